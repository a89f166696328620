"""Findings as people read them: what holds of several devices said once, causes with what they explain below them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from msgspec.structs import replace

from gpudoctor.findings.model import Finding, Fix

_ALL_SENTENCES = 3  # up to so many devices each has its own sentence


class Tree:
    """`roots` stand by themselves, in their rank; `below` gives what stands under a finding. Each stands exactly once.

    What several causes explain stands under the first of them. What explains each other in a circle begins with the finding
    that ranks first. Findings that differ by their device alone are one; `key_of` tells which one speaks for a key.
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        by_key = {finding.key: finding for finding in findings}
        groups: dict[tuple[object, ...], list[Finding]] = {}
        for finding in findings:
            cause = next((by_key[key].id for key in finding.caused_by if key in by_key), None)
            alike = (finding.id, finding.role, finding.severity, finding.confidence, finding.history, cause)
            groups.setdefault(alike, []).append(finding)
        self.key_of = {finding.key: group[0].key for group in groups.values() for finding in group}
        self.findings = [_joined(group) for group in groups.values()]
        self._children: dict[str, list[Finding]] = {}
        above: dict[str, str] = {}
        for finding in self.findings:
            cause_key = next(iter(self.causes(finding)), None)
            if cause_key is not None and not _circular(finding.key, cause_key, above):
                above[finding.key] = cause_key
                self._children.setdefault(cause_key, []).append(finding)
        self.roots = [finding for finding in self.findings if finding.key not in above]

    def causes(self, finding: Finding) -> list[str]:
        """Return the keys of those that explain a finding, itself left out."""
        known = (self.key_of[key] for key in finding.caused_by if key in self.key_of)
        return [key for key in dict.fromkeys(known) if key != finding.key]

    def below(self, finding: Finding) -> list[Finding]:
        """Return what stands directly under a finding."""
        return self._children.get(finding.key, [])

    def all_below(self, finding: Finding, depth: int = 0) -> Iterator[tuple[int, Finding]]:
        """Yield everything under a finding, each with how deep it stands."""
        for child in self.below(finding):
            yield depth, child
            yield from self.all_below(child, depth + 1)

    def elsewhere(self, finding: Finding) -> list[Finding]:
        """Return what a finding explains that stands under another cause."""
        below = {child.key for child in self.below(finding)}
        return [other for other in self.findings if finding.key in self.causes(other) and other.key not in below]


def _circular(key: str, cause: str, above: dict[str, str]) -> bool:
    while cause in above:
        cause = above[cause]
    return cause == key


def _joined(group: Sequence[Finding]) -> Finding:
    """Make one finding of several that differ by their device; the first one's key stands for all."""
    first = group[0]
    if len(group) == 1:
        return first
    sentences = list(dict.fromkeys(finding.because for finding in group))
    because = " ".join(sentences[:_ALL_SENTENCES])
    if len(sentences) > _ALL_SENTENCES:
        because = f"{sentences[0]} The same is so for {len(sentences) - 1} more: see the evidence."
    rows = zip_longest(*(finding.evidence for finding in group))
    times = [time for finding in group for time in (finding.first_seen, finding.last_seen) if time is not None]
    return replace(
        first,
        subjects=list(dict.fromkeys(subject for finding in group for subject in finding.subjects)),
        because=because,
        evidence=list(dict.fromkeys(where for row in rows for where in row if where is not None)),
        caused_by=list(dict.fromkeys(key for finding in group for key in finding.caused_by)),
        count=sum(finding.count for finding in group),
        first_seen=min(times, default=None),
        last_seen=max(times, default=None),
        fixes=[_rung(rungs) for rungs in zip_longest(*(finding.fixes for finding in group))],
    )


def _rung(rungs: Sequence[Fix | None]) -> Fix:
    """Join a rung of several devices: the commands of all of them, each once."""
    known = [rung for rung in rungs if rung is not None]
    commands = dict.fromkeys(command for rung in known for command in rung.commands)
    return replace(known[0], commands=list(commands))
