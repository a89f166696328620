"""What a site wants to hear of: the areas and ids that it chose, less what it has decided to live with for a while."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from fnmatch import fnmatchcase

import msgspec

from gpudoctor.findings.model import Finding, Suppressed, Suppression

NEVER = "never"


class Policy(msgspec.Struct, frozen=True):
    """only, skip: areas or ids (nothing in `only` means all). Applied once causes and consequences are settled."""

    only: Sequence[str] = ()
    skip: Sequence[str] = ()
    suppressions: Sequence[Suppression] = ()

    def selects(self, finding_id: str) -> bool:
        """Tell whether findings of this id are wanted."""
        wanted = not self.only or any(named_by(name, finding_id) for name in self.only)
        return wanted and not any(named_by(name, finding_id) for name in self.skip)

    def apply(self, findings: Iterable[Finding], today: date) -> tuple[list[Finding], list[Suppressed]]:
        """Return the findings that count, in their order, and those that are suppressed."""
        counted: list[Finding] = []
        suppressed: list[Suppressed] = []
        valid = [suppression for suppression in self.suppressions if not expired(suppression, today)]
        for finding in findings:
            if not self.selects(finding.id):
                continue
            suppression = next((known for known in valid if _covers(known, finding)), None)
            if suppression is None:
                counted.append(finding)
            else:
                suppressed.append(Suppressed(finding=finding, suppression=suppression))
        return counted, suppressed

    def astray(self, ids: Iterable[str]) -> list[str]:
        """Say of each suppression that fits no rule that it does; it was misspelt, or the rule is gone."""
        known = set(ids)
        known |= {finding_id.partition(".")[0] for finding_id in known}
        return [
            f"suppression of {suppression.id}: no rule has that id or area"
            for suppression in self.suppressions
            if suppression.id not in known
        ]

    def expired(self, today: date) -> list[Suppression]:
        """Return the suppressions that no longer hold."""
        return [suppression for suppression in self.suppressions if expired(suppression, today)]


def named_by(name: str, finding_id: str) -> bool:
    """Tell whether an area or id names a finding.

    >>> named_by("pcie", "pcie.width-degraded"), named_by("pcie.width", "pcie.width-degraded")
    (True, False)
    """
    return name in (finding_id, finding_id.partition(".")[0])


def expired(suppression: Suppression, today: date) -> bool:
    """Tell whether its last day has passed."""
    return suppression.expires != NEVER and today > date.fromisoformat(suppression.expires)


def _covers(suppression: Suppression, finding: Finding) -> bool:
    """A finding about two GPUs is not suppressed by a word about one of them."""
    return named_by(suppression.id, finding.id) and all(
        fnmatchcase(subject.name, suppression.subject) for subject in finding.subjects
    )
