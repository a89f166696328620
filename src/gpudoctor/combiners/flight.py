"""Flight recorder dumps of several ranks laid side by side: who stands where, and who does something else."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from gpudoctor.facts.comms import CollectiveSkew, FlightRecord
from gpudoctor.facts.store import FactStore

# nccl_trace_rank_3, comm_lib_trace_rank_3, rank-3.json, trace_3: the dump itself doesn't tell its rank.
_RANK = re.compile(r"rank[_-]?(\d{1,6})|(\d{1,6})(?:\.json)?$", re.IGNORECASE)
_LISTED = 8


def flight(store: FactStore) -> Iterable[CollectiveSkew]:
    """Compare the ranks of each process group."""
    groups: dict[str, dict[int, FlightRecord]] = defaultdict(dict)
    for fact in store.of("flight_record"):
        if isinstance(fact, FlightRecord) and fact.where and (found := _RANK.search(fact.where.source)):
            fact.rank = int(found[1] or found[2])
            groups[fact.group].setdefault(fact.rank, fact)
    return [skew for name, ranks in groups.items() if len(ranks) > 1 for skew in _compared(name, ranks)]


def _compared(group: str, ranks: dict[int, FlightRecord]) -> Iterator[CollectiveSkew]:
    waiting = [fact for fact in ranks.values() if fact.sequence is not None]
    if not waiting:
        return
    stuck = min(fact.sequence for fact in waiting if fact.sequence is not None)
    behind = sorted(rank for rank, fact in ranks.items() if (fact.last_enqueued or 0) < stuck)
    here = {rank: (fact.operation, fact.elements) for rank, fact in ranks.items() if fact.sequence == stuck}
    if len(set(here.values())) > 1:
        usual, _ = Counter(here.values()).most_common(1)[0]
        others = sorted(rank for rank, work in here.items() if work != usual)
        kinds = dict.fromkeys(here.values())
        said = "; ".join(
            f"rank {_names(sorted(r for r in here if here[r] == kind))}: {kind[0]} of {kind[1]} elements"
            for kind in list(kinds)[:4]
        )
        yield _skew("mismatch", others, ranks, stuck, f"operation {stuck} of process group {group}: {said}")
    elif behind and len(behind) * 2 <= len(ranks):
        number = ranks[behind[0]].last_enqueued
        yield _skew(
            "lag", behind, ranks, number, f"operation {number} of process group {group}, the others wait in {stuck}"
        )


def _skew(
    reason: str, blamed: list[int], ranks: dict[int, FlightRecord], sequence: int | None, detail: str
) -> CollectiveSkew:
    first = ranks[blamed[0]]
    return CollectiveSkew(reason=reason, ranks=_names(blamed), sequence=sequence, detail=detail, where=first.where)


def _names(numbers: list[int]) -> str:
    more = len(numbers) - _LISTED
    return ", ".join(map(str, numbers[:_LISTED])) + (f" and {more} more" if more > 0 else "")
