"""The text report as somebody tired reads it."""

from __future__ import annotations

import json

import pytest
from report.reports import finding, report

from gpudoctor.facts.base import Where
from gpudoctor.findings.model import ProbeResult, Report, Subject, Undecided
from gpudoctor.report.evidence import quote
from gpudoctor.report.html import render_html
from gpudoctor.report.markdown import render_markdown
from gpudoctor.report.published import published_report
from gpudoctor.report.text import render_text

LOST = json.dumps({"nvml": "gpu", "index": 5, "set": {"index": 5, "seen_by": "nvml", "state": "lost", "mig": False}})


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html])
def test_what_the_nvml_child_printed_is_said_in_words(render):
    made = report(finding(evidence=[Where(source="NVML", line=951, text=LOST)]))
    text = render(made)
    assert "GPU 5: state lost, MIG no" in text
    assert "NVML:951" in text
    assert "seen_by" not in text and "{" not in text.partition("</style>")[2 if "<style>" in text else 0]
    assert json.loads(published_report(made))["findings"][0]["evidence"][0]["text"] == LOST


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("begin nvmlInit", "nvmlInit was called"),
        ('{"nvml": "nvlink", "index": 4, "link": 9, "set": {"state": "inactive"}}', "GPU 4, NVLink 9: state inactive"),
        ('{"nvml": "pair", "a": 0, "b": 1, "path": "SYS"}', "GPU 0 and GPU 1: path SYS"),
        ('{"nvml": "failed", "call": "nvmlInit", "code": 18}', "NVML failed: call nvmlInit, code 18"),
        ('{"nvml": "gpu", "index": 2, "set": {"name": "H100", "uuid": "GPU-5d', "GPU 2: name H100"),
        (
            '{"nvml": "gpu", "index": 5, "set": {"throttle_idle": false, "throttle_app_clocks": false, "throttle_sw_power": false,'
            ' "throttle_hw_slowdown": true, "throttle_hw_thermal": true, "temperature": 89, "power_limit": 300.0}}',
            "GPU 5: throttle hardware slowdown yes, throttle hardware thermal yes, temperature 89 °C, power limit 300 W",
        ),
        ('{"nvml": broken', '{"nvml": broken'),
        ('{"other": 1}', '{"other": 1}'),
        ("x" * 400, "x" * 300 + "…"),
    ],
)
def test_evidence_in_words(line, said):
    assert quote(Where("NVML", 1, line)) == said


def test_the_machine_the_times_and_what_to_send_once():
    made = report(finding(count=3, first_seen=1772359200.0, last_seen=1772359260.0))
    made.node = {"host": "node1", "driver": "550.54.15", "gpus": [{"gpu": "a", "name": "NVIDIA L4"}] * 2}
    made.undecided = [
        Undecided(id=f"hardware.{name}", missing=["x"], ask="send the output of `lspci`") for name in ("one", "two")
    ]
    lines = render_text(made).splitlines()
    assert lines[1] == "node1, 2x L4, driver 550.54.15"
    assert "   Seen 3 times, first 2026-03-01 10:00:00 UTC, last 2026-03-01 10:01:00 UTC." in lines
    assert "  - hardware.one, hardware.two: send the output of `lspci`" in lines
    assert max(map(len, lines)) <= 100


def test_a_gpu_without_address_is_named_once():
    text = render_text(report(finding(subjects=[Subject(kind="gpu", name="GPU 5"), Subject(kind="node", name="vm")])))
    assert "[GPU 5]" in text


def test_one_rule_is_singular():
    made: Report = report(finding())
    made.undecided = [Undecided(id="nccl.far", missing=["x"], ask="send it")]
    assert "  1 rule; --json lists them\n" in render_text(made)


def test_a_bundle_says_what_it_gave_what_it_lacks_and_what_it_never_holds():
    made: Report = report(finding())
    made.source.kind = "nvidia-bug-report"
    made.source.read = ["r.log § dmesg: Xid", "r.log § /etc/issue: system name"]
    made.source.skipped = ['r.log § base64 "nvidia-nvml-temp1.log": base64']
    made.probes = [
        ProbeResult(name="pci", status="ok"),
        ProbeResult(name="dkms", status="absent", reason="not in this bug report"),
        ProbeResult(name="topology", status="skipped", reason="no part of a bug report"),
    ]
    text = render_text(made)
    assert 'Read: 2 parts; passed over: base64 "nvidia-nvml-temp1.log" (--json lists them).\n' in text
    assert "Not in this bundle: dkms.\nNever in such a bundle: topology.\n" in text
