"""Causes with what they explain below them, so that every finding stands in a report exactly once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpudoctor.findings.model import Finding


class Tree:
    """`roots` stand by themselves, in their rank; `below` gives what stands under a finding.

    What several causes explain stands under the first of them. What explains each other in a circle begins with the finding
    that ranks first.
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        known = {finding.key for finding in findings}
        self._children: dict[str, list[Finding]] = {}
        above: dict[str, str] = {}
        for finding in findings:
            cause = next((key for key in finding.caused_by if key in known and key != finding.key), None)
            if cause is not None and not _circular(finding.key, cause, above):
                above[finding.key] = cause
                self._children.setdefault(cause, []).append(finding)
        self.roots = [finding for finding in findings if finding.key not in above]

    def below(self, finding: Finding) -> list[Finding]:
        """Return what stands directly under a finding."""
        return self._children.get(finding.key, [])

    def all_below(self, finding: Finding, depth: int = 0) -> Iterator[tuple[int, Finding]]:
        """Yield everything under a finding, each with how deep it stands."""
        for child in self.below(finding):
            yield depth, child
            yield from self.all_below(child, depth + 1)


def _circular(key: str, cause: str, above: dict[str, str]) -> bool:
    while cause in above:
        cause = above[cause]
    return cause == key
