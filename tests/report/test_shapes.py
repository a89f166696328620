"""Each shape as its readers take it: well formed, bounded, and deaf to what machines write into names."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from report.reports import HOSTILE, finding, report

from gpudoctor.report.github import render_github
from gpudoctor.report.html import render_html
from gpudoctor.report.markdown import render_markdown
from gpudoctor.report.nagios import MAX_LINE, nagios_unknown, render_nagios
from gpudoctor.report.prometheus import MAX_FINDINGS, MAX_LABEL, render_prometheus
from gpudoctor.report.text import render_text

NOW = 1_796_000_000.5
PROMTOOL = shutil.which("promtool")
SERIES = re.compile(r'[a-z_]+(\{[a-z]+="(?:[^"\\\n]|\\.)*"(?:,[a-z]+="(?:[^"\\\n]|\\.)*")*\})? \S+')


def hostile() -> list[str]:
    return [text for text in HOSTILE if text != "\ud800"]  # pydantic refuses lone surrogates


def series(text: str, name: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith((f"{name}{{", f"{name} "))]


@pytest.mark.parametrize(
    "made",
    [
        report(status="ok"),
        report(*(finding(name, at) for at, name in enumerate(hostile())), suppressed=True),
        report(*(finding(f"gpu{n}", n) for n in range(200))),
    ],
    ids=["healthy", "hostile", "200 findings"],
)
def test_promtool_takes_the_metrics(made):
    if PROMTOOL is None:
        pytest.skip("needs promtool (Debian: prometheus)")
    text = render_prometheus(made, NOW)
    done = subprocess.run(
        [PROMTOOL, "check", "metrics"], check=False, input=text.encode(), capture_output=True, timeout=30
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_metrics_are_one_line_per_series_whatever_the_names_hold():
    text = render_prometheus(report(*(finding(name, at) for at, name in enumerate(hostile()))), NOW)
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(SERIES.fullmatch(line) for line in lines)
    assert len(series(text, "gpudoctor_finding")) == len(hostile())
    assert max(map(len, lines)) < 4 * MAX_LABEL


def test_a_finding_is_a_series_while_it_stands():
    text = render_prometheus(report(finding()), NOW)
    assert (
        'gpudoctor_finding{id="hardware.made-up-0",severity="critical",subject="0000:3b:00.0",role="cause"} 1\n' in text
    )
    assert series(render_prometheus(report(status="ok"), NOW), "gpudoctor_finding") == []


def test_two_hundred_findings_stay_bounded_and_are_all_counted():
    text = render_prometheus(report(*(finding(f"gpu{n}", n) for n in range(200))), NOW)
    assert len(series(text, "gpudoctor_finding")) == MAX_FINDINGS
    assert "gpudoctor_findings_omitted 100\n" in text
    assert 'gpudoctor_findings{severity="critical",role="cause"} 200\n' in text


def test_names_that_are_equal_once_cut_make_one_series():
    text = render_prometheus(report(finding("x" * 500 + "1"), finding("x" * 500 + "2")), NOW)
    assert len(series(text, "gpudoctor_finding")) == 1


def test_metrics_tell_of_probes_and_of_the_run():
    text = render_prometheus(report(suppressed=True), NOW)
    assert 'gpudoctor_probe_failed{probe="nvml"} 1\n' in text
    assert 'gpudoctor_probe_seconds{probe="pci"} 0.01\n' in text
    assert "gpudoctor_last_run_timestamp_seconds 1796000000.5\n" in text
    assert "gpudoctor_findings_suppressed 1\n" in text
    assert "gpudoctor_suppressions_expired 1\n" in text
    assert re.search(r'gpudoctor_build_info\{version="0\.1\.0",schema="\d+\.\d+",engine="builtin".*\} 1\n', text)


@pytest.mark.parametrize("name", hostile())
def test_nagios_gets_one_line_with_one_bar(name):
    line = render_nagios(report(finding(name), finding("b", 1)))
    assert line.count("\n") == 1
    assert line.count("|") == 1
    message, _, performance = line.partition(" | ")
    assert message.startswith("GPUDOCTOR CRITICAL - ")
    assert message.isprintable()
    assert len(message) <= MAX_LINE + 30
    assert "critical=2;;0;0" in performance.split()
    for item in performance.split():
        assert re.fullmatch(r"[a-z_]+=[\d.]+s?;[\d.]*;[\d.]*;0(;\d+)?", item)


def test_nagios_without_a_report():
    assert nagios_unknown("a | b\nc") == "GPUDOCTOR UNKNOWN - a / b c\n"


@pytest.mark.parametrize("name", hostile())
def test_github_commands_come_from_gpudoctor_alone(name):
    lines = render_github(
        report(finding(name, because=f"{name}\n::error::owned"), finding("b", 1, severity="info"))
    ).splitlines()
    token = next(line.removeprefix("::stop-commands::") for line in lines if line.startswith("::stop-commands::"))
    free = lines[: lines.index(f"::stop-commands::{token}") + 1] + lines[lines.index(f"::{token}::") :]
    assert len(token) == 32
    assert [line.split(" ")[0].split("::")[1] for line in free] == [
        "error",
        "notice",
        "group",
        "stop-commands",
        token,
        "endgroup",
    ]
    assert lines[-1] == "::endgroup::"


def test_github_shows_ten_of_a_kind_and_counts_the_rest():
    lines = render_github(report(*(finding(f"gpu{n}", n) for n in range(200)))).splitlines()
    assert sum(line.startswith("::error ") for line in lines) == 10
    assert "::notice title=gpudoctor::190 more findings stand in the report below" in lines


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html, render_github])
def test_suppressed_and_expired_are_named_wherever_people_read(render):
    text = render(report(status="ok", suppressed=True)).replace("\\", "")
    assert "Suppressed, not counted" in text
    assert "have expired" in text
    assert "nvlink.link-inactive" in text
