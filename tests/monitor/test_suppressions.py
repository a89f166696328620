"""What a site lives with is shown and not counted; once the time is over it counts again, and is named."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from report.reports import finding

from gpudoctor.diagnosis import Doctor
from gpudoctor.findings.model import Subject, Suppression
from gpudoctor.findings.policy import Policy
from gpudoctor.monitor.configfile import ConfigError
from gpudoctor.monitor.suppressions import add_suppression, read_suppressions
from gpudoctor.sources.memory import TextSource

XID = "[  812.114] NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python3, GPU has fallen off the bus.\n"
TODAY = date(2027, 1, 15)


def write(folder: Path, text: str) -> Path:
    path = folder / "suppressions.toml"
    path.write_text(text)
    return path


def suppression(**values: str) -> Suppression:
    return Suppression(**({"id": "hardware.made-up-0", "reason": "known", "expires": "never"} | values))


def test_a_file(tmp_path):
    path = write(
        tmp_path,
        """
        [[suppress]]
        id = "pcie.width-degraded"
        subject = "0000:3b:00.0"
        reason = "riser card carries x8 only"
        expires = 2027-03-31

        [[suppress]]
        id = "nvlink"
        reason = "bridge is on order"
        expires = "never"
        """,
    )
    assert read_suppressions(path) == [
        Suppression(
            id="pcie.width-degraded", subject="0000:3b:00.0", reason="riser card carries x8 only", expires="2027-03-31"
        ),
        Suppression(id="nvlink", subject="*", reason="bridge is on order", expires="never"),
    ]


FAULTS = {
    "no reason": ('[[suppress]]\nid = "a.b"\nexpires = "never"', ":1: suppress.0.reason: field required"),
    "no last day": ('[[suppress]]\nid = "a.b"\nreason = "known"', "suppress.0.expires: field required"),
    "a wrong day": (
        '[[suppress]]\nid = "a.b"\nreason = "known"\nexpires = "soon"',
        ':4: suppress.0.expires: a day such as 2027-03-31, or "never"',
    ),
    "no id": ('[[suppress]]\nid = "A B"\nreason = "known"\nexpires = "never"', ":2: suppress.0.id: an id such as"),
    "a misspelt key, second entry": (
        '[[suppress]]\nid = "a.b"\nreason = "known"\nexpires = "never"\n'
        '[[suppress]]\nid = "a.b"\nraeson = "known"\nexpires = "never"',
        ":7: suppress.1.raeson: no such key; known are id, subject, reason, expires",
    ),
    "not TOML": ("[[suppress\n", "not valid TOML"),
    "bytes": ("[[suppress]]\nid = '\udcff'", "not UTF-8"),
}


@pytest.mark.parametrize("text,words", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_one_line_that_names_the_place(tmp_path, text, words):
    path = tmp_path / "suppressions.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ConfigError) as caught:
        read_suppressions(path)
    assert str(caught.value).startswith(f"{path}:")
    assert "\n" not in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "values,covered",
    [
        ({}, True),
        ({"id": "hardware"}, True),
        ({"id": "hardware.made-up"}, False),
        ({"id": "hard"}, False),
        ({"subject": "0000:3b:*"}, True),
        ({"subject": "0000:5e:*"}, False),
        ({"expires": "2027-01-15"}, True),
        ({"expires": "2027-01-14"}, False),
    ],
)
def test_which_findings_are_covered(values, covered):
    counted, suppressed = Policy(suppressions=[suppression(**values)]).apply([finding()], TODAY)
    assert (len(counted), len(suppressed)) == ((0, 1) if covered else (1, 0))


def test_a_word_about_one_gpu_leaves_a_finding_about_two_alone():
    both = finding(subjects=[Subject(kind="gpu", name=f"0000:{bus}:00.0") for bus in ("3b", "5e")])
    assert Policy(suppressions=[suppression(subject="0000:3b:00.0")]).apply([both], TODAY)[0] == [both]
    assert Policy(suppressions=[suppression(subject="0000:*")]).apply([both], TODAY)[0] == []


def diagnose(policy: Policy):
    return Doctor(policy=policy).diagnose(TextSource({"dmesg.txt": XID}))


def test_suppressed_findings_are_shown_and_do_not_count():
    report = diagnose(Policy(suppressions=[suppression(id="hardware.fell-off-bus")]))
    assert (report.status, report.findings) == ("ok", [])
    assert {entry.finding.id for entry in report.suppressed} == {"hardware.fell-off-bus"}
    assert "suppressed" in report.summary
    assert report.expired_suppressions == []


def test_an_expired_suppression_is_named_and_its_finding_counts_again():
    old = suppression(id="hardware.fell-off-bus", expires="2020-01-01")
    report = diagnose(Policy(suppressions=[old]))
    assert report.status == "critical"
    assert report.suppressed == []
    assert report.expired_suppressions == [old]


def test_only_and_skip():
    assert diagnose(Policy(only=["hardware"])).status == "critical"
    assert diagnose(Policy(only=["hardware.fell-off-bus"])).status == "critical"
    assert diagnose(Policy(only=["nvlink"])).findings == []
    assert diagnose(Policy(skip=["hardware.fell-off-bus"])).findings == []
    assert diagnose(Policy(only=["hardware"], skip=["hardware"])).findings == []


def test_adding_leaves_what_stands_there(tmp_path):
    path = tmp_path / "deep" / "suppressions.toml"
    first = suppression(reason='a "quoted" \\ reason, 显卡', expires="2027-03-31")
    add_suppression(path, first)
    path.write_text("# ours\n" + path.read_text())
    second = suppression(id="nvlink", subject="0000:3b:00.0")
    add_suppression(path, second)
    assert path.read_text().startswith("# ours\n[[suppress]]\n")
    assert "expires = 2027-03-31\n" in path.read_text()
    assert read_suppressions(path) == [first, second]


def test_nothing_is_added_to_a_file_that_is_wrong_nor_what_would_make_it_wrong(tmp_path):
    path = write(tmp_path, "[[suppress]]\nid = ")
    with pytest.raises(ConfigError):
        add_suppression(path, suppression())
    assert path.read_text() == "[[suppress]]\nid = "
    with pytest.raises(ConfigError):
        add_suppression(tmp_path / "new.toml", suppression(reason="x"))
    assert not (tmp_path / "new.toml").exists()


def test_what_a_terminal_would_obey_is_taken_out_of_a_reason(tmp_path):
    path = write(
        tmp_path, '[[suppress]]\nid = "pcie"\nreason = "known \\u001b[31mfor long\\u0007"\nexpires = "never"\n'
    )
    [known] = read_suppressions(path)
    assert known.reason == "known for long"


def test_a_suppression_that_fits_no_rule_is_named():
    """Misspelt, it would suppress nothing in silence."""
    report = diagnose(Policy(suppressions=[suppression(id="hardware.fell-of-bus"), suppression(id="hardware")]))
    assert report.source.problems == ["suppression of hardware.fell-of-bus: no rule has that id or area"]
