"""Books what a probe gave: the facts that it failed or answered, and its line in the report. Live and from a snapshot alike."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from gpudoctor.collect.collected import Collected
from gpudoctor.facts.base import Probed, ProbeFailed, Where
from gpudoctor.findings.model import ProbeResult, ProbeStatus

_WORST = ("absent", "ok", "skipped", "denied", "failed", "timeout")


class Answered(NamedTuple):
    """One answer of a probe: the name of its text, what became of it and why, and the first line that came."""

    name: str
    status: ProbeStatus
    reason: str = ""
    first_line: str = ""


def book(
    probe: str,
    command: Sequence[str],
    answers: Sequence[str],
    seconds: float,
    parts: Sequence[Answered],
    collected: Collected,
    *,
    root: bool,
) -> ProbeResult:
    """Add a probe's result and the facts that follow from it. root: whether it ran with all rights."""
    for part in parts:
        if part.status in ("timeout", "failed", "denied"):
            collected.facts.append(
                ProbeFailed(
                    probe=probe,
                    status=part.status,
                    reason=part.reason,
                    command=" ".join(command) or None,
                    where=Where(source=part.name or probe, text=part.first_line or part.reason),
                )
            )
    worst = max(parts, key=lambda part: _WORST.index(part.status))
    if worst.status in ("ok", "absent"):
        collected.facts += [Probed(what=kind) for kind in answers]
    reason = worst.reason
    if worst.status == "denied" and not root:
        reason += "; root would add it"
    result = ProbeResult(name=probe, status=worst.status, seconds=round(seconds, 3), reason=reason)
    collected.probes.append(result)
    return result


def is_root() -> bool:
    """Tell whether this process reads everything."""
    return os.geteuid() == 0
