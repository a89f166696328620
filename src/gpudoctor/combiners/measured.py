"""Measured bandwidths laid side by side: one GPU or port that is much slower than it could be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from gpudoctor.facts.gpu import CopyRate, PeerAccess, SlowCopies
from gpudoctor.facts.host import RdmaPort, RdmaTest
from gpudoctor.facts.store import FactStore

_SLOW = 0.6  # of what the others reach; two sockets make a difference of a fifth
_OTHERS = 3  # GPUs that agree with each other
_TELLING = 65_536  # bytes from which on a message shows the link and not the start of an operation


def measured(store: FactStore) -> Iterable[SlowCopies]:
    """Compare GPUs with each other, and RDMA tests with their ports."""
    _judge_rdma(store)
    return [*_from_host(store), *_between(store)]


def _from_host(store: FactStore) -> Iterator[SlowCopies]:
    rates: dict[tuple[str, str], dict[str, CopyRate]] = defaultdict(dict)
    for fact in store.of("copy_rate"):
        if isinstance(fact, CopyRate) and fact.gpu and fact.where:
            rates[fact.where.source, fact.way][fact.gpu] = fact
    for (_, way), its in rates.items():
        yield from _slower({gpu: (fact.bandwidth, fact) for gpu, fact in its.items()}, way)


def _between(store: FactStore) -> Iterator[SlowCopies]:
    """A GPU all of whose pairs are slow; by design that is only where NVSwitches make all pairs alike."""
    best: dict[str, dict[str, tuple[float, PeerAccess]]] = defaultdict(dict)
    for fact in store.of("peer_access"):
        if isinstance(fact, PeerAccess) and fact.bandwidth and fact.where:
            for gpu in (fact.a, fact.b):
                known = best[fact.where.source].get(gpu)
                if known is None or fact.bandwidth > known[0]:
                    best[fact.where.source][gpu] = (fact.bandwidth, fact)
    for its in best.values():
        yield from _slower(its, "peers")


def _slower(its: dict[str, tuple[float, CopyRate]] | dict[str, tuple[float, PeerAccess]], way: str) -> Iterator[SlowCopies]:  # fmt: skip
    from statistics import median  # loads the library of random numbers

    usual = median(rate for rate, _ in its.values())
    slow = {gpu: found for gpu, found in its.items() if found[0] < _SLOW * usual}
    if not slow or len(its) - len(slow) < _OTHERS:
        return
    for gpu, (rate, fact) in slow.items():
        number = gpu.removeprefix("GPU")
        name = f"GPU {number.strip()}" if number.strip().isdigit() else gpu
        yield SlowCopies(gpu=name, way=way, bandwidth=rate, usual=round(usual, 2), where=fact.where, node=fact.node)


def _judge_rdma(store: FactStore) -> None:
    rates: dict[str, float] = {}
    for fact in store.of("rdma_port"):
        if isinstance(fact, RdmaPort) and fact.rate and fact.state in (None, "active"):
            rates[fact.device] = fact.rate
    for test in store.of("rdma_test"):
        if isinstance(test, RdmaTest) and test.rate is not None and (test.size or 0) >= _TELLING:
            test.port_rate = rates.get(test.device)
            test.shortfall = test.port_rate is not None and test.rate < _SLOW * test.port_rate
