"""Tells what changed between two reports: a finding appeared, changed or was resolved; nothing flaps.

A finding is announced once it was there in `appear` cycles in a row, and resolved once it was away in `resolve` cycles in a row.
A cycle in which a probe gave no answer that gave one when the finding was last seen says nothing about its absence.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from gpudoctor.findings.model import Finding, Report

_FAILED = ("failed", "timeout", "denied", "skipped")


class Known(BaseModel):
    """A finding as it was last seen."""

    finding: Finding
    present: int = 1  # cycles in a row
    absent: int = 0
    announced: bool = False
    failed: list[str] = []  # probes that gave no answer when it was last seen
    since: float = 0.0


class Event(BaseModel):
    """One line of the watch's output. `previous` holds what changed."""

    event: Literal["appeared", "changed", "resolved", "status"]
    sequence: int
    time: float
    status: str
    node: str | None = None
    finding: Finding | None = None
    since: float | None = None
    previous: dict[str, Any] = {}


class Tracker:
    """Remembers the findings of the last cycles."""

    def __init__(self, appear: int = 1, resolve: int = 3) -> None:
        self.appear, self.resolve = appear, resolve
        self.known: dict[str, Known] = {}
        self.status: str | None = None
        self.sequence = 0

    def observe(self, report: Report, now: float) -> list[Event]:
        """Return what is new in this report."""
        failed = sorted(probe.name for probe in report.probes if probe.status in _FAILED)
        events: list[Event] = []

        def tell(kind: Literal["appeared", "changed", "resolved", "status"], **values: Any) -> None:
            self.sequence += 1
            node = report.node.get("host")
            name = str(node) if node else None
            events.append(
                Event(event=kind, sequence=self.sequence, time=now, status=report.status, node=name, **values)
            )

        for finding in report.findings:
            known = self.known.get(finding.key)
            if known is None:
                known = self.known[finding.key] = Known(finding=finding, since=now)
            else:
                known.present = known.present + 1 if known.absent == 0 else 1
                known.absent = 0
            before, known.finding, known.failed = known.finding, finding, failed
            if not known.announced and known.present >= self.appear:
                known.announced = True
                tell("appeared", finding=finding, since=known.since)
            elif known.announced and (changed := _changed(before, finding)):
                tell("changed", finding=finding, since=known.since, previous=changed)
        there = {finding.key for finding in report.findings}
        for key in [key for key in self.known if key not in there]:
            known = self.known[key]
            if set(failed) - set(known.failed):
                continue
            known.absent += 1
            known.present = 0
            if not known.announced or known.absent >= self.resolve:
                del self.known[key]
                if known.announced:
                    tell("resolved", finding=known.finding, since=known.since)
        if report.status != self.status:
            previous = {"status": self.status} if self.status else {}
            self.status = report.status
            tell("status", previous=previous)
        return events

    def dump(self) -> dict[str, Any]:
        """Return all that must survive a restart, as plain data."""
        return {
            "known": {key: known.model_dump(mode="json") for key, known in self.known.items()},
            "status": self.status,
            "sequence": self.sequence,
        }

    def dump_key(self) -> tuple[object, ...]:
        """Return something that differs where a dump would."""
        return tuple((key, known.present == 0, known.absent, known.announced) for key, known in self.known.items())

    def restore(self, data: dict[str, Any]) -> None:
        """Take it back."""
        self.known = {key: Known.model_validate(value) for key, value in data["known"].items()}
        self.status, self.sequence = data["status"], int(data["sequence"])


def _changed(before: Finding, after: Finding) -> dict[str, Any]:
    """Return the old values of what people act on; counts, times and measured values change all the time."""
    fields = ("severity", "role", "confidence", "history")
    return {name: getattr(before, name) for name in fields if getattr(before, name) != getattr(after, name)}
