"""When it happened: a picture with one line for the host and one for each GPU, and the same as a table.

Long silences are drawn short: a gap is as wide as the logarithm of its length, so that a burst of seconds can still be read
beside a boot of last week. What the logs give no clock for is drawn by the time since its boot, in a picture of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gpudoctor.findings.model import Event, Report
from gpudoctor.report.html.markup import graded, scrolling, table, text
from gpudoctor.report.overview import gpus, short_address
from gpudoctor.report.times import YEAR_KNOWN, span, stamp

_WIDTH, _LEFT, _RIGHT, _LANE, _TOP = 960, 150, 30, 30, 30
_NEAR = 16  # marks closer than this become one
_LABEL = 118  # room that the time below the axis needs
_MANY_LANES = 16
_OPEN_ROWS = 12
_GRADES = ("critical", "warning", "info", "none")


@dataclass
class _Mark:
    """One or several events of a lane that lie too close to be told apart."""

    start: float
    end: float
    events: list[Event]

    @property
    def grade(self) -> str:
        return min((event.severity or "none" for event in self.events), key=_GRADES.index)

    @property
    def count(self) -> int:
        return sum(event.count for event in self.events)


def timeline(report: Report, ids: dict[str, str], level: int = 2) -> Iterator[str]:
    """Yield the section; nothing where no log gave a time."""
    if not report.timeline:
        return
    yield f"<section><h{level}>What happened when</h{level}>"
    for axis in _axes(report.timeline):
        yield from scrolling(axis.title, _picture(axis, _lanes(report, axis.events)))
    rows = [_row(event, ids) for event in report.timeline]
    is_open = " open" if len(rows) <= _OPEN_ROWS else ""
    yield f"<details{is_open}><summary>The same as a table ({len(rows)})</summary>"
    yield from table("Events", ("When", "Device", "What", "Where"), rows, kind="events")
    yield "</details></section>"


@dataclass
class _Axis:
    """Events that can be compared: `moment` is where one lies, `said` how a moment is written, `day` whether it has one."""

    title: str
    events: list[Event]
    moment: Callable[[Event], float]
    said: Callable[[float], str]
    day: bool = True


def _axes(events: Sequence[Event]) -> Iterator[_Axis]:
    dated = [event for event in events if event.time is not None and event.time > YEAR_KNOWN]
    yearless = [event for event in events if event.time is not None and event.time <= YEAR_KNOWN]
    if dated:
        yield _Axis("Events by time (UTC)", dated, _clock, stamp)
    if yearless:
        yield _Axis("Events by time (the log names no year)", yearless, _clock, stamp)
    since = [event for event in events if event.time is None]
    for boot in sorted({event.boot for event in since}):
        title = f"Events by time since boot{f', {_ago(boot)}' if boot else ''}"
        yield _Axis(title, [event for event in since if event.boot == boot], _uptime, span, day=False)


def _ago(boot: int) -> str:
    return f"{-boot} boot{'s' if boot < -1 else ''} ago"


def _clock(event: Event) -> float:
    return event.time or 0.0


def _uptime(event: Event) -> float:
    return event.uptime or 0.0


def _lanes(report: Report, events: Sequence[Event]) -> list[tuple[str, str]]:
    """Return (name in events, name on the picture): the host, then all GPUs, or those with events where there are many."""
    known = {
        str(gpu["gpu"]): f"GPU {gpu['index']} {short_address(str(gpu.get('pci') or ''))}".rstrip()
        if gpu.get("index") is not None
        else f"GPU {short_address(str(gpu['gpu']))}".replace("GPU GPU", "GPU")
        for gpu in gpus(report.node)
        if gpu.get("gpu")
    }
    seen = dict.fromkeys(event.gpu for event in events if event.gpu)
    shown = [name for name in known if len(known) <= _MANY_LANES or name in seen]
    more = [name for name in seen if name not in known]
    return [("", "Host"), *((name, known[name]) for name in shown), *((name, f"GPU {short_address(name)}") for name in more)]  # fmt: skip


def _picture(axis: _Axis, lanes: list[tuple[str, str]]) -> Iterator[str]:
    events, moments = axis.events, sorted({axis.moment(event) for event in axis.events})
    ends = {event.last_time for event in events if event.last_time is not None}
    place = _scale(sorted({*moments, *ends}))
    bottom = _TOP + _LANE * len(lanes)
    told = f"{sum(event.count for event in events)} events on {len({event.gpu for event in events})} devices, from {axis.said(moments[0])} to {axis.said(max(ends | {moments[-1]}))}"
    yield (
        f'<svg class="timeline" role="img" viewBox="0 0 {_WIDTH} {bottom + 34}" width="{_WIDTH}" height="{bottom + 34}">'
        f"<title>{text(axis.title)}</title><desc>{text(told)}. The table below holds the same.</desc>"
    )
    yield f'<text class="small" x="0" y="14">{text(axis.title)}; long silences are drawn short</text>'
    middle = [_TOP + _LANE * number + _LANE // 2 for number in range(len(lanes))]
    for y, (_, label) in zip(middle, lanes, strict=True):
        yield f'<line class="lane" x1="{_LEFT}" y1="{y}" x2="{_WIDTH - _RIGHT}" y2="{y}"/>'
        yield f'<text x="{_LEFT - 12}" y="{y + 5}" text-anchor="end">{text(label[:20])}</text>'
    yield from _boots(axis, place, bottom)
    for y, (name, _) in zip(middle, lanes, strict=True):
        yield from (_drawn(mark, y, axis) for mark in _marks(axis, name, place))
    yield from _ticks(axis, moments, place, bottom)
    yield "</svg>"


def _scale(moments: list[float]) -> Callable[[float], float]:
    """Return where a moment lies: gaps are as wide as the logarithm of their seconds."""
    gaps = [math.log2(1 + later - sooner) for sooner, later in pairwise(moments)]
    whole = sum(gaps) or 1.0
    room = _WIDTH - _LEFT - _RIGHT - 2 * _NEAR
    places, so_far = {}, 0.0
    for moment, gap in zip(moments, [*gaps, 0.0], strict=True):
        places[moment] = _LEFT + _NEAR + (so_far / whole * room if gaps else room / 2)
        so_far += gap
    return lambda moment: places[moment]


def _marks(axis: _Axis, lane: str, place: Callable[[float], float]) -> list[_Mark]:
    marks: list[_Mark] = []
    for event in (event for event in axis.events if (event.gpu or "") == lane):
        start = place(axis.moment(event))
        end = place(event.last_time) if event.last_time is not None else start
        if marks and start - marks[-1].end < _NEAR:
            marks[-1].end = max(marks[-1].end, end)
            marks[-1].events.append(event)
        else:
            marks.append(_Mark(start, end, [event]))
    return marks


def _drawn(mark: _Mark, y: int, axis: _Axis) -> str:
    """A single event is a shape that tells its grade, several are a bar of their extent; both with their number."""
    told = "\n".join(f"{axis.said(axis.moment(event))} {event.text}" for event in mark.events[:8])
    more = f"\nand {len(mark.events) - 8} more" if len(mark.events) > 8 else ""
    x, grade = mark.start, mark.grade
    if mark.end - mark.start > _NEAR:
        shape = f'<rect x="{x - 6:.1f}" y="{y - 6}" width="{mark.end - x + 12:.1f}" height="12" rx="6"/>'
    elif grade == "critical":
        shape = f'<path d="M{x:.1f} {y - 8}l8 8l-8 8l-8 -8z"/>'
    elif grade == "warning":
        shape = f'<path d="M{x:.1f} {y - 8}l8 14h-16z"/>'
    else:
        shape = f'<circle cx="{x:.1f}" cy="{y}" r="6"/>'
    number = f'<text class="small" x="{mark.end + 11:.1f}" y="{y + 4}">x{mark.count}</text>' if mark.count > 1 else ""
    return f'<g class="event {grade}"><title>{text(told + more)}</title>{shape}{number}</g>'


def _boots(axis: _Axis, place: Callable[[float], float], bottom: int) -> Iterator[str]:
    """Draw a line where a boot ends."""
    for sooner, later in pairwise(axis.events):
        if later.boot > sooner.boot and axis.moment(later) > axis.moment(sooner):
            x = (place(axis.moment(sooner)) + place(axis.moment(later))) / 2
            yield f'<line class="boot" x1="{x:.1f}" y1="{_TOP - 6}" x2="{x:.1f}" y2="{bottom}"/>'
            yield f'<text class="small" x="{x + 4:.1f}" y="{_TOP - 2}">reboot</text>'


def _ticks(axis: _Axis, moments: list[float], place: Callable[[float], float], bottom: int) -> Iterator[str]:
    """Write times below the axis where there is room; the day only where it changes."""
    free, day = 0.0, ""
    for moment in moments:
        x = place(moment)
        if x < free:
            continue
        words = axis.said(moment).removesuffix(" UTC")
        date, _, clock = words.partition(" ")
        yield f'<line class="tick" x1="{x:.1f}" y1="{bottom}" x2="{x:.1f}" y2="{bottom + 5}"/>'
        anchor = "end" if x > _WIDTH - _LABEL else "middle"
        shown = clock if axis.day and date == day else words
        yield f'<text class="small" x="{x:.1f}" y="{bottom + 19}" text-anchor="{anchor}">{text(shown)}</text>'
        free, day = x + _LABEL, date


def _row(event: Event, ids: dict[str, str]) -> tuple[str, str, str, str]:
    when = stamp(event.time) if event.time is not None else f"{span(event.uptime or 0.0)} after boot"
    if event.boot:
        when += f" ({_ago(event.boot)})"
    times = ""
    if event.count > 1:
        until = f" until {stamp(event.last_time)}" if event.last_time is not None else ""
        times = f' <span class="small">x{event.count}{text(until)}</span>'
    what = graded((event.text, event.severity or ""))
    if event.finding in ids:
        what = f'<a href="#{ids[event.finding]}">{what}</a>'
    device = short_address(event.gpu) if event.gpu else "host"
    return text(when) + times, text(device), what, f'<code class="place">{text(event.where)}</code>'
