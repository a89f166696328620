"""Which rank and host a line of a job's log is about, and which ranks never joined the others."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from gpudoctor.facts.base import Fact, LogLine
from gpudoctor.facts.comms import CollectiveSkew, NcclDeparture, NcclRank, NcclWarning
from gpudoctor.facts.store import FactStore

_HEAD = re.compile(r"(?P<host>[\w.-]+):(?P<pid>\d{1,8}):\d{1,8} \[(?P<device>\d{1,3})\]")
_FEW = 2  # lines of one pattern that point to somebody; what every rank says points to nobody
_SMALLEST = 8  # ranks of a job of which some can be missed
_LISTED = 8


def ranks(store: FactStore) -> Iterable[Fact]:
    """Name the rank in facts that only few ranks said, and find ranks that are missing."""
    departed = list(_departed(store))
    known = [fact for fact in store.of("nccl_rank") if isinstance(fact, NcclRank) and not fact.listed]
    if not known:
        return departed
    world = max(fact.ranks or 0 for fact in known)
    _name(store, {(fact.host, fact.pid): fact for fact in known if fact.ranks == world})
    return departed + list(_missing([fact for fact in known if fact.ranks == world], world))


_CLOSED = re.compile(r"losed by remote peer (?P<host>[^\s<]+)<\d+>")


def _departed(store: FactStore) -> Iterator[NcclDeparture]:
    """When a process ends, its peers say so, and end themselves, which their own peers say in turn: who is named most was first."""
    named: dict[str, dict[str, NcclWarning]] = defaultdict(dict)  # peer -> host that reports it -> its first line
    for fact in store.of("nccl_warning"):
        said = _CLOSED.search(fact.message) if isinstance(fact, NcclWarning) else None
        if said and isinstance(fact, NcclWarning) and fact.host and fact.host != said["host"].partition(".")[0]:
            named[said["host"]].setdefault(fact.host, fact)
    most = sorted(named, key=lambda host: -len(named[host]))[:2]
    if not most or len(named[most[0]]) < _FEW or (len(most) > 1 and len(named[most[0]]) == len(named[most[1]])):
        return
    first, reporters = most[0], named[most[0]]
    line = next(iter(reporters.values()))
    yield NcclDeparture(host=first, reporters=len(reporters), where=line.where, time=line.time)


def _name(store: FactStore, by_process: dict[tuple[str | None, int | None], NcclRank]) -> None:
    lines: dict[str, list[LogLine]] = defaultdict(list)
    for fact in store.of("log"):
        if isinstance(fact, LogLine):
            lines[fact.pattern].append(fact)
    for its in lines.values():
        if sum(fact.count for fact in its) > _FEW:
            continue
        for fact in its:
            head = _HEAD.search(fact.text)
            if head and fact.node is None:
                rank = by_process.get((head["host"], int(head["pid"])))
                fact.node = f"{head['host']}, rank {rank.rank}" if rank else head["host"]
    by_number = {rank.rank: rank for rank in by_process.values()}
    for skew in store.of("collective_skew"):
        if isinstance(skew, CollectiveSkew) and skew.ranks.isdigit() and skew.node is None:
            late = by_number.get(int(skew.ranks))
            skew.node = f"{late.host}, rank {late.rank}" if late and late.host else None
    by_device = {(rank.host, rank.device): rank.rank for rank in by_process.values()}
    for warning in store.of("nccl_warning"):
        if isinstance(warning, NcclWarning) and warning.rank is None:
            warning.rank = by_device.get((warning.host, warning.device))


def _missing(known: list[NcclRank], world: int) -> Iterator[CollectiveSkew]:
    """Few of many ranks never began to set up the communicator in which the others wait, or never ended it."""
    began = {fact.rank: fact for fact in known}
    ended = {fact.rank for fact in known if fact.init_complete}
    if world < _SMALLEST:
        return
    absent = sorted(set(range(world)) - set(began))
    unfinished = sorted(set(began) - ended)
    if absent and len(absent) * _SMALLEST <= world and not ended:
        host = _host_of(absent[0], began)
        names = _names(absent)
        yield _skew(
            names,
            began,
            f"{len(began)} of {world} ranks wait while the communicator is set up; {_ranks(names)} never began{host}",
        )
    elif not absent and ended and unfinished and len(unfinished) * _SMALLEST <= world:
        names = _names(unfinished)
        hosts = ", ".join(dict.fromkeys(str(began[rank].host) for rank in unfinished[:_LISTED]))
        yield _skew(
            names,
            began,
            f"{len(ended)} of {world} ranks have set up the communicator; {_ranks(names)} on {hosts} never finished",
        )


def _skew(names: str, began: dict[int, NcclRank], detail: str) -> CollectiveSkew:
    first = began[min(began)]
    return CollectiveSkew(reason="init", ranks=names, detail=detail, where=first.where, time=first.time)


def _host_of(rank: int, began: dict[int, NcclRank]) -> str:
    """The host where its neighbours on both sides run."""
    below, above = began.get(rank - 1), began.get(rank + 1)
    return f", by its neighbours on {below.host}" if below and above and below.host == above.host else ""


def _ranks(names: str) -> str:
    return f"ranks {names}" if "," in names else f"rank {names}"


def _names(numbers: list[int]) -> str:
    more = len(numbers) - _LISTED
    return ", ".join(str(number) for number in numbers[:_LISTED]) + (f" and {more} more" if more > 0 else "")
