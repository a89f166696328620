"""When it happened: one axis for the host and all GPUs, across boots, and below it every event; Enter opens its log.

Long silences are drawn short: a gap is as wide as the logarithm of its length, so that a burst of seconds can be read beside
a boot of last week. Repetitions are one event with a count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.cells import cell_len

from gpudoctor.report.overview import gpus, short_address
from gpudoctor.report.times import YEAR_KNOWN, span, stamp
from gpudoctor.tui.rows import OpenLog, Part, Row, column, fit, heading, paragraph, plain, row
from gpudoctor.tui.symbols import SYMBOLS, grade
from gpudoctor.tui.widgets.findings import about

if TYPE_CHECKING:
    from gpudoctor.findings.model import Event, Finding, Report

_BURST = 60.0  # seconds between two events of one burst
_REBOOT = 3600.0  # seconds that a reboot counts on the axis where no clock tells how long it took
_WHEN = 20
_WITH_SUBJECT = 60  # columns from which there is room to say what a finding is about
_GRADES = ("critical", "warning", "info", "event")
_XID = re.compile(r"(?:NVRM: )?Xid \([^)]*\): (?P<code>\d+)")
_NOBODY = re.compile(r", (?:pid|name)='?<unknown>'?(?=,|$)")
_VARIES = re.compile(r"0x[0-9a-f]+|[0-9a-f]{6,}|\d+", re.IGNORECASE)


@dataclass
class Burst:
    """Events of one GPU or the host that say the same within a short time."""

    first: Event
    last: Event
    count: int
    grade: str


def bursts(events: Sequence[Event]) -> list[Burst]:
    """Fold events that differ in numbers only and follow each other closely on the same GPU."""
    found: list[Burst] = []
    newest: dict[tuple[int, str | None, str], Burst] = {}
    for event in events:
        # the number of an Xid says what it is, so it varies nothing
        shape = (event.boot, event.gpu, _VARIES.sub("#", event.text) + _code(event.text))
        known = newest.get(shape)
        if known is not None and _gap(known.last, event) <= _BURST:
            known.last = event
            known.count += event.count
            known.grade = min(known.grade, event.severity or "event", key=_GRADES.index)
        else:
            newest[shape] = Burst(event, event, event.count, event.severity or "event")
            found.append(newest[shape])
    return found


def _code(text: str) -> str:
    code = _XID.search(text)
    return code["code"] if code else ""


def short(text: str) -> str:
    """Leave out of an Xid's line what stands beside it already, or says nothing.

    >>> short("NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")
    'Xid 79, GPU has fallen off the bus.'
    >>> short("NVRM: Xid (PCI:0000:86:00): 45, pid=41200, name=python3, Ch 00000000")
    'Xid 45, pid=41200, name=python3, Ch 00000000'
    """
    return _NOBODY.sub("", _XID.sub(r"Xid \g<code>", text))


def _gap(sooner: Event, later: Event) -> float:
    """Return the seconds between two events, as far as clocks tell them."""
    if sooner.time is not None and later.time is not None:
        return max(0.0, later.time - sooner.time)
    if sooner.boot != later.boot:
        return _REBOOT
    if sooner.uptime is not None and later.uptime is not None:
        return max(0.0, later.uptime - sooner.uptime)
    return 0.0


def timeline_rows(report: Report, width: int) -> Iterator[Row]:
    """Yield the page: the picture, the events by boot, then findings that no event belongs to."""
    found = bursts(report.timeline)
    if found:
        yield heading("The host and all GPUs, long silences drawn short", width)
        yield from _picture(report, found, width)
        yield row("")
        yield from _events(found, width)
    rest = list(_findings(report, width))
    yield from rest
    if not found and not rest:
        yield from paragraph("No log gave a time to anything.", width, "dim")


def _picture(report: Report, found: Sequence[Burst], width: int) -> Iterator[Row]:
    """Yield a lane for the host and one for each GPU on which something happened, and the axis."""
    names = _lanes(report, found)
    lead = max(cell_len(name) for name in names.values()) + 1
    room = max(10, width - lead)
    starts, ends = _places(found, room)
    reboots = {
        max(starts[number] - 1, starts[number - 1])
        for number in range(1, len(found))
        if found[number].first.boot != found[number - 1].first.boot
    }
    for lane, name in names.items():
        cells: list[Part] = [(SYMBOLS["boot"], "rule") if n in reboots else (SYMBOLS["absent"], "rule") for n in range(room)]  # fmt: skip
        for burst, start, end in sorted(zip(found, starts, ends, strict=True), key=lambda each: -_GRADES.index(each[0].grade)):  # fmt: skip
            if (burst.first.gpu or "") == lane:
                for place in range(start + 1, end + 1):
                    cells[place] = (SYMBOLS["full"], burst.grade)
                cells[start] = (SYMBOLS[burst.grade], burst.grade)
        yield row((column(name, lead), "bold"), *_runs(cells))
    yield row(" " * lead, (_scale(found, starts, room), "dim"))


def _lanes(report: Report, found: Sequence[Burst]) -> dict[str, str]:
    """Return what stands at the left of each lane: the host, then the GPUs by their number."""
    seen = {burst.first.gpu for burst in found}
    lanes = {"": "host"} if None in seen else {}
    for gpu in gpus(report.node):
        if gpu.get("gpu") in seen:
            index = "" if gpu.get("index") is None else f"{gpu['index']} "
            lanes[str(gpu["gpu"])] = plain(f"{index}{short_address(str(gpu['gpu']))}")
    return lanes | {name: plain(short_address(name)) for name in sorted(filter(None, seen)) if name not in lanes}


def _places(found: Sequence[Burst], room: int) -> tuple[list[int], list[int]]:
    """Return the columns in which bursts begin and end: one axis, gaps by the logarithm of their seconds."""
    at, here = [0.0], 0.0
    for sooner, later in pairwise(found):
        here += math.log2(1 + _gap(sooner.first, later.first))
        if later.first.boot != sooner.first.boot:
            here += 1
        at.append(here)
    scale = (room - 1) / here if here else 0.0
    starts = [round(place * scale) for place in at]
    ends = []
    for number, burst in enumerate(found):
        until = burst.last.last_time or burst.last.time
        end = starts[number]
        while until is not None and number + 1 < len(found) and (found[number + 1].first.time or until) < until:
            number += 1  # noqa: PLW2901  # on to what began while this burst went on
            end = starts[number]
        ends.append(end)
    return starts, ends


def _runs(cells: Sequence[Part]) -> Iterator[Part]:
    """Join neighbours of one style."""
    text, style = "", ""
    for letter, its in cells:
        if its != style and text:
            yield text, style
            text = ""
        text, style = text + letter, its
    yield text, style


def _scale(found: Sequence[Burst], starts: Sequence[int], room: int) -> str:
    """Write times below the axis where there is room; the day only where it changes."""
    line, day = "", ""
    for burst, start in zip(found, starts, strict=True):
        words, date = _when(burst.first, day)
        if start < len(line) + 2 * bool(line) or start + cell_len(words) > room:
            continue
        line, day = line.ljust(start) + words, date
    return line


def _when(event: Event, day: str) -> tuple[str, str]:
    """Return the moment in words, without the day where it is the one given, and its day."""
    if event.time is None:
        return f"+{span(event.uptime or 0.0)}", day
    date, _, clock = stamp(event.time).removesuffix(" UTC").partition(" ")
    return (clock if date == day else f"{date} {clock}"), date


def _events(found: Sequence[Burst], width: int) -> Iterator[Row]:
    boots = sorted({burst.first.boot for burst in found})
    lane = max((cell_len(_device(burst)) for burst in found), default=4)
    for boot in boots:
        ago = "the last boot" if boot == boots[-1] == 0 else f"{-boot} boot{'s' if boot < -1 else ''} before"
        dated = any(burst.first.time is not None for burst in found if burst.first.boot == boot)
        year = any((burst.first.time or 0) > YEAR_KNOWN for burst in found if burst.first.boot == boot)
        clock = "UTC" if year else "the log names no year" if dated else "by the time since boot"
        title = f"What happened in {ago} ({clock})" if boot == boots[-1] == 0 else f"What happened {ago} ({clock})"
        yield heading(title, width)
        day = ""
        for burst in (burst for burst in found if burst.first.boot == boot):
            words, day = _when(burst.first, day)
            yield _event(burst, words, lane, width)
        yield row("")


def _device(burst: Burst) -> str:
    return plain(short_address(burst.first.gpu)) if burst.first.gpu else "host"


def _event(burst: Burst, when: str, lane: int, width: int) -> Row:
    event = burst.first
    times = f"{burst.count} times" if burst.count > 1 else ""
    until = burst.last.last_time or burst.last.time
    if times and until is not None and event.time is not None and until > event.time:
        times += f" in {span(until - event.time)}"
    used = _WHEN + lane + 5
    said = fit(plain(short(event.text)), width - used - (cell_len(times) + 3 if times else 0))
    return row(
        (column(when, _WHEN - 1, right=True) + " ", "dim"),
        (f"{SYMBOLS[burst.grade]} ", burst.grade),
        (column(_device(burst), lane) + "  ", "bold" if event.gpu else "dim"),
        (said, burst.grade if burst.grade == "critical" else ""),
        (f" ({times})" if times else "", "dim"),
        key=f"time:{event.where}",
        action=OpenLog(event.where.source, event.where.line, event.where.text),
    )


def _findings(report: Report, width: int) -> Iterator[Row]:
    """Yield the findings that no event belongs to, those with a time first; advice has none."""
    told = {event.finding for event in report.timeline}
    rest = [f for f in report.findings if f.key not in told and f.role != "advice"]
    dated = sorted((f for f in rest if f.first_seen is not None), key=lambda f: (f.first_seen or 0.0, f.key))
    for title, group in (
        ("Findings with a time (UTC)", dated),
        ("Findings whose time is not known", [f for f in rest if f.first_seen is None]),
    ):
        if group:
            yield heading(title, width)
            yield from (_finding(finding, width) for finding in group)
            yield row("")


def _finding(finding: Finding, width: int) -> Row:
    style = grade(finding)
    when = stamp(finding.first_seen).removesuffix(" UTC") if finding.first_seen is not None else ""
    count = f" ({finding.count} times)" if finding.count > 1 else ""
    boot = " (earlier boot)" if finding.history else ""
    subject = f" {column(about(finding.subjects).replace(' 0000:', ' '), 18)}" if width >= _WITH_SUBJECT else ""
    room = width - _WHEN - 2 - cell_len(subject)
    where = finding.evidence[0] if finding.evidence else None
    return row(
        (column(when, _WHEN - 1, right=True) + " ", "dim"),
        (f"{SYMBOLS[style]} ", style),
        (column(plain(finding.title) + count + boot, room), "dim" if finding.role == "consequence" else ""),
        (subject, "dim"),
        key=f"time:{finding.key}",
        action=OpenLog(where.source, where.line, where.text) if where else None,
    )
