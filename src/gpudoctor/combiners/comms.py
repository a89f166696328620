"""What the ranks of a job say together: one library or several, one GPU twice, who is behind, fast enough or not."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from gpudoctor.facts.base import Fact
from gpudoctor.facts.comms import (
    CollectiveSkew,
    CollectiveTimeout,
    DuplicateGpu,
    NcclJob,
    NcclProcess,
    NcclRank,
    NcclTest,
    RasGroup,
    RasProcess,
    RasRank,
)
from gpudoctor.facts.gpu import PeerAccess, TopologyPath
from gpudoctor.facts.host import RdmaPort, RdmaTest
from gpudoctor.facts.store import FactStore
from gpudoctor.knowledge import bandwidth

_LISTED = 8  # names that a sentence holds; the rest is counted


def comms(store: FactStore) -> Iterable[Fact]:
    """Join what single lines said."""
    found: list[Fact] = list(_jobs(store))
    found += _duplicates(store)
    found += _skew(store)
    found += _ras(store)
    _ports(store)
    _expect(store, [fact for fact in found if isinstance(fact, NcclJob)])
    return found


def _source(fact: Fact) -> str:
    return fact.where.source if fact.where else ""


def _names(items: Iterable[object]) -> str:
    words = [str(item) for item in items]
    return ", ".join(words[:_LISTED]) + (f" and {len(words) - _LISTED} more" if len(words) > _LISTED else "")


# -- one job, one library ------------------------------------------------------------------------------------------


def _jobs(store: FactStore) -> Iterator[NcclJob]:
    processes: dict[str, list[NcclProcess]] = defaultdict(list)
    ranks: dict[str, list[NcclRank]] = defaultdict(list)
    for fact in store.of("nccl_process"):
        if isinstance(fact, NcclProcess):
            processes[_source(fact)].append(fact)
    for fact in store.of("nccl_rank"):
        if isinstance(fact, NcclRank):
            ranks[_source(fact)].append(fact)
    sources = list(dict.fromkeys([*processes, *ranks]))
    for group in _same_job(sources, processes, ranks):
        yield _job([p for name in group for p in processes[name]], [r for name in group for r in ranks[name]])


def _same_job(
    sources: list[str], processes: dict[str, list[NcclProcess]], ranks: dict[str, list[NcclRank]]
) -> Iterator[list[str]]:
    """One log may hold all ranks, or each rank (or host) may have its own: those belong together if they count alike."""
    apart: dict[int, list[str]] = defaultdict(list)
    for name in sources:
        hosts = {p.host for p in processes[name]} | {r.host for r in ranks[name]}
        total = max((rank.ranks or 0 for rank in ranks[name]), default=0)
        if len(hosts - {None}) == 1 and total > 1:
            apart[total].append(name)
        else:
            yield [name]
    yield from apart.values()


def _job(processes: list[NcclProcess], ranks: list[NcclRank]) -> NcclJob:
    facts: list[NcclProcess | NcclRank] = [*processes, *ranks]
    hosts = dict.fromkeys(fact.host for fact in facts if fact.host)
    versions = dict.fromkeys(p.version for p in processes if p.version and p.host)
    by_host = dict.fromkeys(f"{p.host} {p.version}" for p in processes if p.version and p.host)
    eras: dict[str, set[str]] = defaultdict(set)
    for process in processes:
        if process.era and process.host:
            eras[process.host].add(process.era)
    mixed = None
    if len(versions) > 1 and _differs_between(processes):
        mixed = "version"
    elif len({frozenset(words) for words in eras.values()}) > 1 and not set.intersection(*eras.values()):
        mixed = "wording"
        by_host = dict.fromkeys(f"{host} {' / '.join(sorted(words))}" for host, words in eras.items())
    networks = {p.network for p in processes if p.network}
    names = dict.fromkeys(rank.gpu_name for rank in ranks if rank.gpu_name)
    first = next((fact for fact in (p for p in processes if p.version or p.era)), None) or facts[0]
    lead = next((fact for fact in facts if fact.host), None)
    other = next((fact for fact in facts if lead and fact.host and fact.host != lead.host), None)
    return NcclJob(
        where=first.where,
        where_fields={"hosts": other.where} if other and other.where else {},  # the line that shows a second host
        time=first.time,
        node=first.host if len(hosts) == 1 else None,
        versions=_names(versions) or None,
        version_hosts=_names(by_host) or None,
        mixed=mixed,
        hosts=len(hosts) or None,
        host_names=_names(hosts) or None,
        ranks=max([*(rank.ranks or 0 for rank in ranks), *(rank.rank + 1 for rank in ranks)], default=0) or None,
        network=networks.pop() if len(networks) == 1 else None,
        gpu_name=next(iter(names), None),
        fabric_gpus=any(bandwidth.fabric_gpu(name) for name in names) if names else None,
    )


def _differs_between(processes: list[NcclProcess]) -> bool:
    """A process may load two libraries (torch and vllm); a job is mixed where hosts or processes differ as wholes."""
    for key in ("host", "pid"):
        sets: dict[object, set[str]] = defaultdict(set)
        for process in processes:
            if process.version and process.host and process.pid is not None:
                sets[getattr(process, key)].add(process.version)
        whole = list(sets.values())
        if len(whole) > 1 and any(not (a & b) for a in whole for b in whole):
            return key == "host" or len({p.host for p in processes if p.host}) == 1
    return False


# -- two ranks on one GPU --------------------------------------------------------------------------------------------


def _duplicates(store: FactStore) -> Iterator[DuplicateGpu]:
    seen: dict[tuple[object, ...], NcclRank] = {}
    told: set[tuple[object, ...]] = set()
    for fact in store.of("nccl_rank"):
        if not isinstance(fact, NcclRank) or not fact.host or not fact.pci:
            continue
        # A GPU has different ranks in different communicators of one process; two processes on it are the fault.
        place = (_source(fact), fact.host, fact.pci)
        key = (*place, "listed") if fact.listed else (*place, fact.ranks)
        if not fact.listed and (fact.ranks or 0) < 2:
            continue
        other = seen.setdefault(key, fact)
        apart = other.pid != fact.pid or bool(fact.listed)
        if other.rank != fact.rank and apart and place not in told and not _again(other, fact):
            told.add(place)
            low, high = sorted((other.rank, fact.rank))
            yield DuplicateGpu(
                a=low, b=high, host=fact.host, pci=fact.pci, where=other.where, last_where=fact.where, time=fact.time
            )


def _again(other: NcclRank, fact: NcclRank) -> bool:
    """A log of several runs lists the same GPUs again, under other numbers where a run used fewer of them."""
    return bool(fact.listed and other.pid != fact.pid and other.where and fact.where) and (
        fact.where.line - other.where.line > max(other.rank, fact.rank) + 8  # type: ignore[union-attr]
    )


# -- who is behind ---------------------------------------------------------------------------------------------------


def _skew(store: FactStore) -> Iterator[CollectiveSkew]:
    timeouts = [fact for fact in store.of("collective_timeout") if isinstance(fact, CollectiveTimeout)]
    groups = _by_group([fact for fact in timeouts if fact.sequence is not None])
    told = set()
    for (source, group), ranks in groups.items():
        if len(ranks) < 2:
            continue
        for skew in _compared(list(ranks.values())):
            told.add((source, group))
            yield skew
    yield from _not_issued(store, told)


def _by_group(facts: list[CollectiveTimeout]) -> dict[tuple[str, str | None], dict[int, CollectiveTimeout]]:
    """By process group; where it isn't told, by text, or all texts together where each is the log of another rank."""
    groups: dict[tuple[str, str | None], dict[int, CollectiveTimeout]] = defaultdict(dict)
    for fact in facts:
        if fact.rank is not None:
            groups[(_source(fact) if fact.group is None else "", fact.group)].setdefault(fact.rank, fact)
    alone = [key for key, ranks in groups.items() if key[1] is None and len(ranks) == 1]
    together = {rank: fact for key in alone for rank, fact in groups[key].items()}
    if len(alone) > 1 and len(together) == len(alone):
        for key in alone:
            del groups[key]
        groups[("", None)] = together
    return groups


def _not_issued(store: FactStore, told: set[tuple[str, str | None]]) -> Iterator[CollectiveSkew]:
    """Ranks that had not even queued the operation in which the others wait."""
    timeouts = [fact for fact in store.of("collective_timeout") if isinstance(fact, CollectiveTimeout)]
    groups = _by_group([fact for fact in timeouts if (fact.last_completed or -1) > 0])
    for key, ranks in groups.items():
        facts = list(ranks.values())
        waiting = [fact for fact in facts if (fact.last_enqueued or 0) > (fact.last_completed or 0)]
        if key in told or len(facts) < 2 or not waiting:
            continue
        stuck = min(fact.last_completed or 0 for fact in waiting) + 1
        behind = [fact for fact in facts if (fact.last_enqueued or 0) < stuck]
        if behind and len(behind) * 2 <= len(facts):
            yield CollectiveSkew(
                reason="lag",
                ranks=_names(sorted(fact.rank for fact in behind if fact.rank is not None)),
                sequence=behind[0].last_enqueued,
                ahead=stuck,
                where=behind[0].where,
                time=behind[0].time,
                detail=f"operation {behind[0].last_enqueued}, the others wait in {stuck}",
            )


def _compared(facts: list[CollectiveTimeout]) -> Iterator[CollectiveSkew]:
    sequences = {fact.sequence for fact in facts if fact.sequence is not None}
    first = facts[0]
    if len(sequences) == 1:
        work = {(fact.operation, fact.elements) for fact in facts}
        if len(work) > 1:
            yield _mismatch(facts, first)
            return
        missing = _absent([fact.rank for fact in facts if fact.rank is not None])
        if missing:
            yield CollectiveSkew(
                reason="absent",
                ranks=_names(missing),
                sequence=first.sequence,
                where=first.where,
                time=first.time,
                detail=f"operation {first.sequence} ({first.operation})",
            )
        return
    kinds = {fact.operation for fact in facts}
    low, high = min(sequences), max(sequences)
    behind = sorted(fact.rank for fact in facts if fact.sequence == low and fact.rank is not None)
    slow = next(fact for fact in facts if fact.sequence == low)
    if len(kinds) == 1 and len({fact.elements for fact in facts}) == 1:
        yield CollectiveSkew(
            reason="lag",
            ranks=_names(behind),
            sequence=low,
            ahead=high,
            where=slow.where,
            time=slow.time,
            detail=f"{slow.operation} {low}, the others {high}",
        )
    elif high - low <= len(facts):
        yield _mismatch(facts, slow)


def _mismatch(facts: list[CollectiveTimeout], first: CollectiveTimeout) -> CollectiveSkew:
    kinds: dict[str, list[int]] = defaultdict(list)
    for fact in facts:
        kinds[f"{fact.operation} {fact.sequence} of {fact.elements} elements"].append(fact.rank or 0)
    said = "; ".join(f"rank {_names(sorted(ranks))}: {what}" for what, ranks in list(kinds.items())[:4])
    fewest = min(kinds.values(), key=len)
    return CollectiveSkew(
        reason="mismatch",
        ranks=_names(sorted(fewest)),
        sequence=first.sequence,
        detail=said,
        where=first.where,
        time=first.time,
    )


def _absent(ranks: list[int]) -> list[int]:
    """Ranks that a whole world of 2^n or 8n would have and that did not time out; only where most of them did."""
    top = max(ranks)
    size = next((size for size in (2, 4, 8) if top < size), (top // 8 + 1) * 8)
    missing = sorted(set(range(size)) - set(ranks))
    return missing if len(missing) * 4 <= size else []


def _ras(store: FactStore) -> Iterator[CollectiveSkew]:
    """One answer of RAS is a snapshot of a running job; only what stands still across answers means something."""
    pictures: dict[tuple[str, str | None], list[RasGroup]] = defaultdict(list)
    for fact in store.of("ras_group"):
        if isinstance(fact, RasGroup):
            pictures[fact.communicator, fact.operation].append(fact)
    alone = len(store.of("ras_answer")) == 1
    for groups in pictures.values():
        last = groups[-1]
        if alone and last.first_rank is not None:
            yield CollectiveSkew(
                reason="moment",
                ranks=f"{last.first_rank} on {last.host}",
                sequence=last.behind,
                ahead=last.ahead,
                where=last.where,
                time=last.time,
            )
        same = [group for group in groups if (group.ahead, group.behind) == (last.ahead, last.behind)]
        if len(same) > 1 and same[0].where != same[-1].where:
            named = last.first_rank is not None
            yield CollectiveSkew(
                reason="lag" if named else "lag of many",
                ranks=f"{last.first_rank} on {last.host}" if named else str(last.ranks_behind),
                sequence=last.behind,
                ahead=last.ahead,
                snapshots=len(same),
                where=last.where,
                time=last.time,
                detail=f"operation {last.behind}, the others {last.ahead}, in {len(same)} answers of RAS",
            )
    yield from _silent(store)
    yield from _other_state(store)


def _other_state(store: FactStore) -> Iterator[CollectiveSkew]:
    """A rank that sets up (or takes down) what the others use, in each answer of RAS."""
    seen: dict[tuple[str, int, str], list[RasRank]] = defaultdict(list)
    for fact in store.of("ras_rank"):
        if isinstance(fact, RasRank) and fact.state != "error":
            seen[fact.communicator, fact.rank, fact.state].append(fact)
    for (_, rank, state), facts in seen.items():
        if len({str(fact.where) for fact in facts}) > 1:
            last = facts[-1]
            yield CollectiveSkew(
                reason="state",
                ranks=f"{rank} on {last.host}",
                snapshots=len(facts),
                where=last.where,
                node=last.host,
                time=last.time,
                detail=f"Rank {rank} on {last.host} has status {state.upper()} in {len(facts)} answers of RAS, most others {(last.usual or '?').upper()}",
            )


def _silent(store: FactStore) -> Iterator[CollectiveSkew]:
    """A process that is stopped, or whose node is gone, answers RAS neither the first time nor the second."""
    seen: dict[tuple[str, int], list[RasProcess]] = defaultdict(list)
    for fact in store.of("ras_process"):
        if isinstance(fact, RasProcess) and fact.state == "silent":
            seen[fact.host, fact.pid].append(fact)
    for (host, pid), facts in seen.items():
        if len({str(fact.where) for fact in facts}) > 1:
            last = facts[-1]
            said = f"process {pid} on {host} (GPU {last.gpus})"
            yield CollectiveSkew(
                reason="silent", ranks=said, snapshots=len(facts), where=last.where, node=host, time=last.time
            )


# -- ports -----------------------------------------------------------------------------------------------------------

# Adapters of this generation are also sold with ports of half their rate; those are not slow.
_HALVED = 400.0
_NEIGHBOURS = 4


def _ports(store: FactStore) -> None:
    """Mark InfiniBand ports that run below their adapter's rate, or below all the others of the host."""
    ports = [
        fact
        for fact in store.of("rdma_port")
        if isinstance(fact, RdmaPort) and fact.link_layer == "infiniband" and fact.state == "active" and fact.rate
    ]
    for port in ports:
        rate, possible = port.rate or 0.0, port.rate_max
        others = [other.rate or 0.0 for other in ports if other is not port and _source(other) == _source(port)]
        wider = [other for other in ports if other is not port and _source(other) == _source(port) and port.speed_name]
        wide = [other.lanes or 0 for other in wider if other.speed_name == port.speed_name]
        if len(wide) >= 2 and port.lanes and min(wide) > port.lanes:  # the same signalling on fewer lanes
            port.slow, port.rate_max = True, max(others)
        elif len(others) >= _NEIGHBOURS and min(others) > rate:
            port.slow, port.rate_max = True, min(others)
        elif possible:
            port.slow = rate < (possible / 2 if possible >= _HALVED else possible)


# -- fast enough -----------------------------------------------------------------------------------------------------

_WHOLE_NODE = 8  # so many GPUs use all adapters, also where there are two for each


def _expect(store: FactStore, jobs: list[NcclJob]) -> None:
    links, peers = _nvlinks(store), _peers(store)
    rates = sorted(
        fact.rate
        for fact in store.of("rdma_port")
        if isinstance(fact, RdmaPort) and fact.rate and fact.state in (None, "active")
    )
    rate = rates[len(rates) // 2] if rates else None
    nics: dict[str, int] = {}
    for fact in store.of("nccl_process"):
        if isinstance(fact, NcclProcess) and fact.nics:
            nics[_source(fact)] = max(nics.get(_source(fact), 0), fact.nics)
    sockets = {_source(job) for job in jobs if job.network == "Socket"}
    moved = max(_moved(store), key=lambda fact: fact.rate or 0.0, default=None)
    for test in store.of("nccl_test"):
        if not isinstance(test, NcclTest) or test.busbw_max is None or not test.size_max:
            continue
        expected = None
        if test.nodes == 1 or (test.nodes is None and test.launches is None and not test.gpu_name):
            test.gpu_name = test.gpu_name or _only_name(store)
            expected = bandwidth.inside_node(test.gpu_name, test.ranks or (2 if links else 0), links, peers)
        elif (test.nodes or 0) > 1 and nics.get(_source(test)) and _source(test) not in sockets:
            used = nics[_source(test)]
            if (test.gpus_per_node or 1) < _WHOLE_NODE:
                used = min(used, test.gpus_per_node or 1)  # a GPU sends through the adapter next to it
            expected = bandwidth.across_nodes(test.gpu_name, test.gpus_per_node, used, rate)
            if test.gpus_per_node == 1 and moved:
                expected = bandwidth.beside(moved.rate or 0.0, moved.device)
        if expected is None:
            continue
        test.expected_low, test.expected_high, test.expectation = expected.low, expected.high, expected.why
        part = bandwidth.ramp(test.size_max)
        if part is not None:
            test.shortfall = test.busbw_max < expected.low * part * bandwidth.share(test.collective)


def _moved(store: FactStore) -> Iterator[RdmaTest]:
    """The tests of perftest whose result NCCL's can be held against, where there was one adapter to test."""
    tests = [
        fact for fact in store.of("rdma_test") if isinstance(fact, RdmaTest) and fact.operation == "write" and fact.rate
    ]
    if len({fact.device for fact in tests}) == 1:
        yield from tests


def _only_name(store: FactStore) -> str | None:
    """The kind of GPU of a table that doesn't tell it, where all GPUs of the machine are alike."""
    names = {str(fact.value("name")) for fact in store.of("gpu") if fact.value("name")}
    return names.pop() if len(names) == 1 else None


_BELOW_ONE_CPU = {"X", "PIX", "PXB", "PHB"}
_NO_PEERS = ("chipset_not_supported", "gpu_not_supported", "topology_not_supported", "not_supported", "disabled")


def _peers(store: FactStore) -> bool | None:
    """Whether all GPUs reach each other directly; over the link between sockets that is no faster than host memory."""
    told = [fact for fact in store.of("peer_access") if isinstance(fact, PeerAccess) and fact.capability in (None, "read", "write")]  # fmt: skip
    if any(fact.status in _NO_PEERS for fact in told):
        return False
    ways = {fact.path for fact in store.of("topology_path") if isinstance(fact, TopologyPath) and fact.a_kind == fact.b_kind == "gpu"}  # fmt: skip
    return True if told and ways and ways <= _BELOW_ONE_CPU and all(fact.status == "ok" for fact in told) else None


def _nvlinks(store: FactStore) -> int | None:
    """Return the fewest NVLinks of a pair where every pair of GPUs has some."""
    found: list[int] = []
    for path in store.of("topology_path"):
        if (
            isinstance(path, TopologyPath)
            and path.path != "X"
            and re.match(r"GPU", path.a)
            and re.match(r"GPU", path.b)
        ):
            if not path.links:
                return None
            found.append(path.links)
    return min(found, default=None)
