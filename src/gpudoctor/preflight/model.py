"""What a preflight check says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

# no: training on the GPU will fail; unknown: needed to answer and not known; advice: works, and could be better; yes: fine
Answer = Literal["yes", "no", "unknown", "advice"]
Verdict = Literal["yes", "no", "unknown"]


@dataclass(frozen=True)
class Remark:
    """One answer about one topic; `where` is a place in a file that was read (path:line)."""

    answer: Answer
    topic: str  # gpu, driver, framework, machine, container, requirements, script, run
    text: str
    where: str = ""
    fixes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Preflight:
    """All remarks and what they come to."""

    remarks: tuple[Remark, ...]
    verdict: Verdict = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "verdict", decide(self.remarks))

    def of(self, answer: Answer) -> tuple[Remark, ...]:
        """Return the remarks with this answer."""
        return tuple(remark for remark in self.remarks if remark.answer == answer)


def decide(remarks: Iterable[Remark]) -> Verdict:
    """One `no` is a no; else one thing that isn't known keeps the answer open.

    >>> decide([Remark("yes", "gpu", "one A100"), Remark("advice", "script", "no mixed precision")])
    'yes'
    """
    answers = {remark.answer for remark in remarks}
    if "no" in answers:
        return "no"
    return "unknown" if "unknown" in answers or "yes" not in answers else "yes"
