"""What the logs date: the lines of GPUs and host that tell of trouble, in order, across boots and with repetitions folded."""

from __future__ import annotations

from collections.abc import Iterable

from gpudoctor.facts.base import Fact, Where
from gpudoctor.facts.store import FactStore
from gpudoctor.findings.model import Event, Finding
from gpudoctor.patterns.lazy import LazyRegex
from gpudoctor.patterns.stamp import parse_stamp

MAX_EVENTS = 300
_BURST = 60.0  # seconds
_VARYING = LazyRegex(r"0x[0-9a-f]+|\b[0-9a-f]{5,}\b|(?<=\[)\d+(?=\])|(?<=pid=)\d+")
# Kinds of facts that happen at a moment. Log lines count where a finding rests on them: a pattern alone says little.
_KINDS = (
    "xid",
    "sxid",
    "kernel_trace",
    "gpu_refusal",
    "module_load_error",
    "host_oom_kill",
    "pcie_error",
    "gpu_oom",
    "cuda_error",
    "nccl_warning",
    "collective_timeout",
    "log",  # last: a pattern that fits many lines counts them all
)


def timeline(store: FactStore, findings: Iterable[Finding]) -> list[Event]:
    """Return the events, oldest boot first; those that a finding rests on are kept where there are too many."""
    of_place: dict[tuple[str, int], Finding] = {}
    for finding in findings:
        for where in finding.evidence:
            of_place.setdefault((where.source, where.line), finding)
    events: dict[tuple[str, int], Event] = {}
    for kind in _KINDS:
        for fact in store.of(kind):
            if fact.where is None or (fact.time is None and fact.uptime is None):
                continue
            place = (fact.where.source, fact.where.line)
            told = of_place.get(place)
            if kind == "log" and told is None:
                continue
            events[place] = _joined(events.get(place), _event(fact, fact.where, told))
    found = _bursts(_told_twice(events.values()))
    if len(found) > MAX_EVENTS:
        found = sorted(found, key=lambda event: not event.finding)[:MAX_EVENTS]
    return sorted(found, key=_order)


def _order(event: Event) -> tuple[int, float, float, int]:
    return event.boot, event.time or 0.0, event.uptime or 0.0, event.where.line


def _event(fact: Fact, where: Where, finding: Finding | None) -> Event:
    stamp = parse_stamp(where.text)
    return Event(
        time=fact.time,
        last_time=fact.last_time if fact.last_time is not None and fact.last_time != fact.time else None,
        uptime=fact.uptime if fact.uptime is not None else stamp.uptime,
        boot=fact.boot or 0,
        count=fact.count,
        gpu=fact.gpu,
        text=stamp.message.strip(),
        where=where,
        finding=finding.key if finding else "",
        severity=finding.severity if finding else None,
    )


def _joined(known: Event | None, new: Event) -> Event:
    """Several facts of one line are one event."""
    if known is None:
        return new
    for name in ("time", "last_time", "uptime", "gpu", "severity"):
        if getattr(known, name) is None:
            setattr(known, name, getattr(new, name))
    known.finding = known.finding or new.finding
    return known


def _told_twice(events: Iterable[Event]) -> list[Event]:
    """Join what the kernel's ring buffer and a journal both hold, and date by such pairs what only the buffer holds."""
    found = list(events)
    by_message: dict[tuple[int, str], Event] = {}
    for event in found:
        if event.time is not None and event.uptime is None:
            by_message.setdefault((event.boot, event.text), event)
    begins: dict[int, float] = {}
    kept = []
    for event in found:
        twin = by_message.get((event.boot, event.text)) if event.time is None else None
        if twin is None or twin.time is None or event.uptime is None:
            kept.append(event)
            continue
        begins.setdefault(event.boot, twin.time - event.uptime)
        twin.uptime = event.uptime
    for event in kept:
        if event.time is None and event.uptime is not None and event.boot in begins:
            event.time = begins[event.boot] + event.uptime
    return kept


def _bursts(events: Iterable[Event]) -> list[Event]:
    """Fold what says the same within a minute, but for process ids and addresses."""
    folded: list[Event] = []
    last: dict[tuple[object, ...], Event] = {}
    for event in sorted(events, key=_order):
        key = (event.boot, event.gpu, event.finding, event.where.source, _VARYING.sub("#", event.text))
        known = last.get(key)
        if known is not None and _moment(event) - _end(known) <= _BURST:
            known.count += event.count
            known.last_time = event.last_time or event.time
        else:
            folded.append(event)
            last[key] = event
    return folded


def _moment(event: Event) -> float:
    return event.time if event.time is not None else event.uptime or 0.0


def _end(event: Event) -> float:
    return event.last_time if event.last_time is not None else _moment(event)
