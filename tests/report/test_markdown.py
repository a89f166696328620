"""Markdown for tickets: all of it there, and nothing of a log read as markup."""

from __future__ import annotations

from msgspec.structs import replace

from gpudoctor.facts.base import Where
from gpudoctor.findings.model import Finding, Fix, ProgramInfo, Report, SourceInfo, Subject, Undecided
from gpudoctor.report.markdown import finding_markdown, render_markdown

CAUSE = Finding(
    id="a.cause",
    title="Cause [x](http://evil.example) *now*",
    severity="critical",
    confidence="certain",
    key="cause",
    subjects=[Subject(kind="gpu", name="0000:3b:00.0")],
    because="It <b>broke</b>.",
    evidence=[Where(source="dmesg.txt", line=7, text="a `tick` and ``two``")],
    fixes=[Fix(title="Mend it", why="It helps.", commands=["echo '```'", "sudo mend"], risk="safe", needs=["root"])],
    references=["https://docs.example/a"],
)
EFFECT = replace(CAUSE, id="a.effect", title="Effect", key="effect", role="consequence", caused_by=["cause"])


def test_report():
    text = render_markdown(
        Report(
            gpudoctor=ProgramInfo(version="1", engine="builtin", rules=2, python="3"),
            source=SourceInfo(kind="folder", path="bundle", complete=False),
            node={},
            status="critical",
            summary=CAUSE.title,
            findings=[CAUSE, EFFECT],
            undecided=[Undecided(id="a.open", missing=["x"], ask="send `x`")],
            probes=[],
        )
    )
    assert text.startswith("# CRITICAL: Cause \\[x\\](http://evil.example) \\*now\\*\n")
    assert text.count("\n## ") == 2
    assert "It explains:\n\n- Effect (`a.effect`)" in text
    assert "- `a.open`: send `x`" in text
    assert "folder `bundle` (incomplete)" in text


def test_finding():
    text = finding_markdown(CAUSE)
    assert "critical, certain, `a.cause`, `GPU 0000:3b:00.0`" in text
    assert "It \\<b>broke\\</b>." in text
    assert "- `dmesg.txt:7`: ``` a `tick` and ``two`` ```" in text
    assert "1. Mend it (safe, needs root). It helps." in text
    assert "   ````\n   echo '```'\n   sudo mend\n   ````" in text
    assert "- <https://docs.example/a>" in text


def test_advice_and_what_is_left_out_are_named():
    many = [Where(source="dmesg.txt", line=line) for line in range(1, 9)]
    text = finding_markdown(replace(CAUSE, role="advice", severity="info", evidence=many))
    assert "\nadvice, certain, `a.cause`" in text
    assert "- `dmesg.txt:6`\n- and 2 more places\n" in text
