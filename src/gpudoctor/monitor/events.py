"""Tells what changed between two reports: a finding appeared, changed or was resolved; nothing flaps.

What gets worse is told at once (a new finding after `appear` cycles), what gets better once it was so in `resolve` cycles in a row.
A cycle in which a probe gave no answer that gave one when the finding was last seen says nothing about its absence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from gpudoctor.findings.model import SEVERITIES, Finding, Report

Kind = Literal["appeared", "changed", "suppressed", "resolved", "status"]
_FAILED = ("failed", "timeout", "denied", "skipped")
# What people act on; counts, times and measured values change all the time.
_TOLD = ("severity", "role", "confidence", "history")
_STATUSES = ("ok", "unknown", "warning", "critical")


class Known(msgspec.Struct, kw_only=True):
    """A finding as it was last seen. `told` is what was last said of it."""

    finding: Finding
    present: int = 1  # cycles in a row
    absent: int = 0
    differs: int = 0  # cycles in a row in which it was otherwise than told
    announced: bool = False
    told: dict[str, Any] = {}
    failed: list[str] = []  # probes that gave no answer when it was last seen
    since: float = 0.0


class Event(msgspec.Struct, kw_only=True):
    """One line of the watch's output. `previous` holds what changed."""

    event: Kind
    sequence: int
    time: float
    status: str
    node: str | None = None
    finding: Finding | None = None
    since: float | None = None
    previous: dict[str, Any] = {}

    def as_json(self) -> str:
        """Return it as one line of JSON without the keys that nothing is known for."""
        return msgspec.json.encode(_known(msgspec.to_builtins(self))).decode()


class Tracker:
    """Remembers the findings of the last cycles."""

    def __init__(self, appear: int = 1, resolve: int = 3) -> None:
        self.appear, self.resolve = appear, resolve
        self.known: dict[str, Known] = {}
        self.status: str | None = None
        self.better = 0  # cycles in a row in which the status was better than told
        self.sequence = 0
        self._events: list[Event] = []

    def observe(self, report: Report, now: float) -> list[Event]:
        """Return what is new in this report."""
        self._events = []
        failed = sorted(probe.name for probe in report.probes if probe.status in _FAILED)
        for finding in report.findings:
            self._present(report, finding, failed, now)
        there = {finding.key for finding in report.findings}
        suppressed = {entry.finding.key for entry in report.suppressed}
        for key in [key for key in self.known if key not in there]:
            if key not in suppressed:
                self._absent(report, key, failed, now)
            elif self.known.pop(key).announced:
                entry = next(entry for entry in report.suppressed if entry.finding.key == key)
                self._tell(report, "suppressed", now, finding=entry.finding)
        self._judge_status(report, now)
        return self._events

    def _present(self, report: Report, finding: Finding, failed: list[str], now: float) -> None:
        known = self.known.get(finding.key)
        if known is None:
            known = self.known[finding.key] = Known(finding=finding, since=now)
        else:
            known.present = known.present + 1 if known.absent == 0 else 1
            known.absent = 0
        known.finding, known.failed = finding, failed
        says = {name: getattr(finding, name) for name in _TOLD}
        if not known.announced:
            if known.present >= self.appear:
                known.announced, known.told = True, says
                self._tell(report, "appeared", now, finding=finding, since=known.since)
            return
        previous = {name: value for name, value in known.told.items() if says[name] != value}
        known.differs = known.differs + 1 if previous else 0
        if previous and (_worse(known.told, says) or known.differs >= self.resolve):
            known.told, known.differs = says, 0
            self._tell(report, "changed", now, finding=finding, since=known.since, previous=previous)

    def _absent(self, report: Report, key: str, failed: list[str], now: float) -> None:
        known = self.known[key]
        if set(failed) - set(known.failed):
            return
        known.absent += 1
        known.present = 0
        if not known.announced or known.absent >= self.resolve:
            del self.known[key]
            if known.announced:
                self._tell(report, "resolved", now, finding=known.finding, since=known.since)

    def _judge_status(self, report: Report, now: float) -> None:
        if report.status == self.status:
            self.better = 0
            return
        before = self.status
        if before is not None and _STATUSES.index(report.status) < _STATUSES.index(before):
            self.better += 1
            if self.better < self.resolve:
                return
        self.status, self.better = report.status, 0
        self._tell(report, "status", now, previous={"status": before} if before else {})

    def _tell(self, report: Report, kind: Kind, now: float, **values: Any) -> None:
        self.sequence += 1
        node = report.node.get("host")
        name = str(node) if node else None
        event = Event(event=kind, sequence=self.sequence, time=now, status=report.status, node=name, **values)
        self._events.append(event)

    def dump_key(self) -> tuple[object, ...]:
        """Return something that differs where a dump would."""
        counted = ((key, k.present == 0, k.absent, k.differs, k.announced) for key, k in self.known.items())
        return (self.sequence, self.status, self.better, *counted)

    def dump(self) -> dict[str, Any]:
        """Return all that must survive a restart, as plain data."""
        return {
            "known": msgspec.to_builtins(self.known),
            "status": self.status,
            "better": self.better,
            "sequence": self.sequence,
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take it back; raises ValueError or KeyError where it is no such data."""
        self.known = msgspec.convert(data["known"], dict[str, Known])
        self.status, self.better, self.sequence = data["status"], int(data["better"]), int(data["sequence"])


def _worse(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    return SEVERITIES.index(after["severity"]) > SEVERITIES.index(before["severity"])


def _known(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _known(value) for key, value in data.items() if value is not None}
    return [_known(value) for value in data] if isinstance(data, list) else data
