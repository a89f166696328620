"""Whatever a text holds, a parser reads it or says that it can't: never another exception, never seconds.

More examples: GPUDOCTOR_FUZZ=100000 python -m pytest tests/parsers/test_any_text.py
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpudoctor.facts.base import Fact
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.parsers.formats import FORMATS
from gpudoctor.parsers.scan import Scanner

RULES = Path(__file__).parents[1] / "rules"
EXAMPLES = int(os.environ.get("GPUDOCTOR_FUZZ", "200"))
SCANNER = Scanner(FORMATS, ())


def samples() -> list[str]:
    """The texts of the rules' tests: every format that a rule rests on is among them."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    areas = [yaml.load(path.read_text(encoding="utf-8"), loader) for path in sorted(RULES.glob("*.yaml"))]
    cases = [case for area in areas for rule in area.values() for kind in rule.values() for case in kind]
    return sorted({text for case in cases for text in case["files"].values() if len(text) < 4000})


SAMPLES = samples()


@st.composite
def spoilt(draw: st.DrawFn) -> str:
    """A sample with parts cut out, doubled, mixed with another's, or numbers made strange."""
    text = draw(st.sampled_from(SAMPLES))
    for _ in range(draw(st.integers(1, 5))):
        at, size = draw(st.integers(0, len(text))), draw(st.integers(1, 60))
        match draw(st.sampled_from(("cut", "double", "mix", "number", "end"))):
            case "cut":
                text = text[:at] + text[at + size :]
            case "double":
                text = text[:at] + text[at : at + size] * 2 + text[at + size :]
            case "mix":
                other = draw(st.sampled_from(SAMPLES))
                text = text[:at] + other[:size] + text[at:]
            case "number":
                text = (
                    text[:at]
                    + draw(st.sampled_from(("1.2.3", "99999999999999999999", "-1", "0x", "NaN", "1e999", "٣")))
                    + text[at:]
                )
            case _:
                text = text[:at]
    return text


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(spoilt())
def test_parsers_take_any_text(text: str) -> None:
    started = time.process_time()
    scanned = SCANNER.scan("text", [text.encode()])
    assert time.process_time() - started < 2
    broken = [problem for problem in scanned.problems if "Error: " in problem.reason.split(" ")[0] + " "]
    assert broken == []


@pytest.mark.parametrize("text", ["# Avg bus bandwidth    : 162.6.3 \n", "some avg10=1.2.3 avg60=1 avg300=1 total=1\n"])
def test_numbers_that_are_none(text: str) -> None:
    assert SCANNER.scan("text", [text.encode()]).problems == []


def test_what_only_looks_like_a_long_format_is_not_read_to_the_end_each_time() -> None:
    handed = 0

    def none_of_it(text: str) -> Iterator[Fact]:
        nonlocal handed
        handed += len(text)
        raise NotThisFormat
        yield

    text = b"PID STAT WCHAN  COMMAND\n" * 20_000
    Scanner((Format("long", ("STAT WCHAN",), none_of_it, lines=200_000),), ()).scan("text", [text])
    assert handed < 100 * len(text)


def test_a_text_is_given_up_once_the_time_is_over():
    """What was read by then counts, and it is said from which line on nothing was."""
    line = "[  812.114] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    plain = "[  812.115] usb 1-1: new high-speed USB device number 7 using xhci_hcd\n" * 20_000
    scanned = SCANNER.scan("dmesg", ((line + plain).encode(), plain.encode(), (line + plain).encode()), until=0.0)
    assert [(fact.code, fact.count) for fact in scanned.facts if fact.kind == "xid"] == [(79, 1)]
    [problem] = scanned.problems
    assert problem.reason == "the time was over here; what follows was not judged"
    assert 1 < problem.where.line <= 20_002
    whole = SCANNER.scan("dmesg", ((line + plain).encode(), plain.encode(), (line + plain).encode()))
    assert [fact.count for fact in whole.facts if fact.kind == "xid"] == [2]


def test_what_the_nvml_child_never_prints_is_named_in_one_line() -> None:
    text = b'begin nvmlInit\n{"nvml": "count", "nmuber": 4}\n{"nvml": "end"}\n'
    [problem] = Scanner(FORMATS, ()).scan("text", [text]).problems
    assert (problem.format, problem.reason) == (
        "NVML",
        "a line is not as the NVML child prints it (KeyError: 'number')",
    )
