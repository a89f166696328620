"""When it happened: every dated finding on one axis, bursts folded into one bar."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpudoctor.tui.rows import OpenLog, Part, Row, column, heading, paragraph, plain, row
from gpudoctor.tui.symbols import SYMBOLS, grade
from gpudoctor.tui.widgets.detail import stamp
from gpudoctor.tui.widgets.findings import about

if TYPE_CHECKING:
    from gpudoctor.findings.model import Finding, Report

_YEAR_KNOWN = 10**9
_WIDE = 110  # from here on there is room for the axis
_WHEN = 24


def dated(report: Report) -> list[Finding]:
    """Return the findings of which a time is known, in order of time."""
    return sorted((f for f in report.findings if f.first_seen is not None), key=lambda f: (f.first_seen or 0.0, f.key))


def timeline_rows(report: Report, width: int) -> Iterator[Row]:
    """Yield the page. Stamps without a year can only be compared among themselves, so they have an axis of their own."""
    findings = dated(report)
    if not findings:
        yield from paragraph("Of no finding the time is known.", width, "dim")
        return
    with_year = [finding for finding in findings if (finding.first_seen or 0) > _YEAR_KNOWN]
    without = [finding for finding in findings if (finding.first_seen or 0) <= _YEAR_KNOWN]
    for group, title in ((with_year, "What happened when (UTC)"), (without, "Of these the year is not known")):
        if group:
            yield heading(title, width)
            yield from _group(group, width)
            yield row("")
    undated = [finding for finding in report.findings if finding.first_seen is None and finding.role != "advice"]
    if undated:
        yield heading("At an unknown time", width)
        for finding in undated:
            yield _line(finding, "", width, "")


def _group(findings: list[Finding], width: int) -> Iterator[Row]:
    begin = min(finding.first_seen or 0.0 for finding in findings)
    end = max(_end(finding) for finding in findings)
    axis = max(0, width // 3 - 2) if width >= _WIDE else 0
    day = ""
    for finding in findings:
        when = stamp(finding.first_seen or 0.0).removesuffix(" UTC")
        date, _, clock = when.partition(" ")
        shown = clock if date == day else when
        day = date
        yield _line(finding, f"{shown:>{_WHEN - 5}}", width, _bar(finding, begin, end, axis))
    if axis and end > begin:
        left, right = stamp(begin).removesuffix(" UTC"), stamp(end).removesuffix(" UTC")
        scale = left + right.rjust(axis - len(left)) if axis > len(left) + len(right) else ""
        yield row((" " * (width - axis), ""), (scale, "dim"))


def _end(finding: Finding) -> float:
    return max(finding.last_seen or 0.0, finding.first_seen or 0.0)


def _bar(finding: Finding, begin: float, end: float, axis: int) -> str:
    """Draw where on the axis a finding lies, from its first to its last sign.

    A single event is one mark; a burst is a bar.
    """
    if not axis:
        return ""
    span = (end - begin) or 1.0
    first = round(((finding.first_seen or 0.0) - begin) / span * (axis - 1))
    last = round((_end(finding) - begin) / span * (axis - 1))
    middle = SYMBOLS["full"] * (last - first + 1) if last > first else SYMBOLS[grade(finding)]
    return SYMBOLS["absent"] * first + middle + SYMBOLS["absent"] * (axis - 1 - last)


def _line(finding: Finding, when: str, width: int, bar: str) -> Row:
    style = grade(finding)
    count = f" ({finding.count} times)" if finding.count > 1 else ""
    boot = " (earlier boot)" if finding.history else ""
    subject_width = 18
    room = width - _WHEN - subject_width - 2 - len(bar) - (1 if bar else 0)
    title_style = "dim" if finding.role == "consequence" else ""
    parts: list[Part] = [
        (column(when, _WHEN - 4) + " ", "dim"),
        (f"{SYMBOLS[style]} ", style),
        (column(plain(finding.title) + count + boot, room), title_style),
        (" " + column(about(finding.subjects).replace(" 0000:", " "), subject_width), "dim"),
    ]
    if bar:
        parts.append((" " + bar, style))
    where = finding.evidence[0] if finding.evidence else None
    action = OpenLog(where.source, where.line, where.text) if where else None
    return Row(tuple(parts), key=f"time:{finding.key}", action=action)
