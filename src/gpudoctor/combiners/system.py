"""Whether the operating system was past its end of life when the evidence was taken."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone

from gpudoctor.facts.base import Fact
from gpudoctor.facts.host import Os
from gpudoctor.facts.store import FactStore
from gpudoctor.knowledge import systems

_YEAR_KNOWN = 10**9
_TABLE = "2026-11"  # without any date in the evidence: the month in which the table was made


def judge_system(store: FactStore) -> Iterable[Fact]:
    """Fill `end_of_life` and `ended` of every operating system that the table knows."""
    newest = max((fact.time for fact in store if fact.time is not None and fact.time > _YEAR_KNOWN), default=None)
    month = datetime.fromtimestamp(newest, timezone.utc).date().isoformat()[:7] if newest else _TABLE
    for fact in store.of("os"):
        if not isinstance(fact, Os) or not fact.id or not fact.version:
            continue
        system = systems.os(fact.id, fact.version)
        if system is not None and system.end_of_support:
            fact.end_of_life = system.end_of_support
            fact.ended = month > system.end_of_support
    return ()
