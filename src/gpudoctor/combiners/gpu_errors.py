"""Error numbers and bus errors with what the tables and the other facts add to them."""

from __future__ import annotations

from collections.abc import Iterable

from gpudoctor.facts.base import Fact
from gpudoctor.facts.gpu import LostTogether, PcieError, Sxid, Xid, XidPattern
from gpudoctor.facts.store import FactStore
from gpudoctor.knowledge import sxids, xids

_PROGRAM_FAULTS = (13, 31, 43)
_LOST = (79, 167)
_TOGETHER = 60.0  # seconds


def explain_errors(store: FactStore) -> Iterable[Fact]:
    """Give every Xid and SXid its name, class and severity from the tables."""
    for fact in store.of("xid"):
        if isinstance(fact, Xid):
            entry = xids.xid(fact.code)
            fact.name = entry.title
            fact.severity = entry.severity
            fact.class_ = entry.findings[0] if entry.findings else None
    for fact in store.of("sxid"):
        if isinstance(fact, Sxid):
            known = sxids.sxid(fact.code)
            fact.name = known.event if known else None
            harmless = fact.fatal is False or (fact.fatal is None and known is not None and known.severity == "info")
            fact.ignorable = harmless
    return _patterns([fact for fact in store.of("xid") if isinstance(fact, Xid)], store)


def _patterns(errors: list[Xid], store: FactStore) -> list[XidPattern]:
    """Program faults per GPU: which programs, and how many GPUs of how many."""
    programs: dict[str, dict[str, Xid]] = {}
    for error in errors:
        if error.code in _PROGRAM_FAULTS and error.gpu and error.process:
            programs.setdefault(error.gpu, {}).setdefault(error.process, error)
    total = len({fact.gpu for fact in store.of("gpu") if fact.gpu}) or None
    return [
        XidPattern(
            gpu=gpu,
            programs=len(by_name),
            gpus_hit=len(programs),
            gpus=total,
            where=next(iter(by_name.values())).where,
            boot=max(error.boot or 0 for error in by_name.values()),
            time=next(iter(by_name.values())).time,
        )
        for gpu, by_name in programs.items()
    ]


def place_bus_errors(store: FactStore) -> Iterable[Fact]:
    """A bus error of a GPU, or of another function on its board, is that GPU's."""
    gpus = {fact.gpu for kind in ("gpu", "xid", "pci_device") for fact in store.of(kind) if fact.gpu}
    errors = [fact for fact in store.of("pcie_error") if isinstance(fact, PcieError) and fact.pci]
    gpus |= {_board(fact) for fact in errors if fact.driver == "nvidia"}
    below = _below_ports(store, gpus)
    for fact in errors:
        if (board := _board(fact)) in gpus:
            fact.gpu = board
        elif fact.pci in below:
            fact.gpu = below[fact.pci]
    return ()


def _below_ports(store: FactStore, gpus: set[str]) -> dict[str | None, str]:
    """The GPU right below each port, by the tree or by the bus that the port opens."""
    devices = store.of("pci_device")
    below: dict[str | None, str] = {}
    buses = {
        str(fact.value("secondary_bus")): str(fact.value("pci")) for fact in devices if fact.value("secondary_bus")
    }
    for fact in devices:
        if fact.gpu in gpus and fact.value("type") == "gpu":
            port = fact.value("parent") or buses.get(fact.gpu.rpartition(":")[0])
            if isinstance(port, str):
                below[port] = fact.gpu
    return below


def _board(error: PcieError) -> str:
    return f"{(error.pci or '').rpartition('.')[0]}.0"


def lost_together(store: FactStore) -> Iterable[Fact]:
    """GPUs that fell off the bus within the same minute share what failed."""
    lost: dict[str, Fact] = {}
    for fact in store.of("xid"):
        if isinstance(fact, Xid) and fact.code in _LOST and fact.gpu:
            lost.setdefault(fact.gpu, fact)
    for fact in store.of("gpu"):
        if fact.value("state") == "lost" and fact.gpu:
            lost.setdefault(fact.gpu, fact)
    for fact in store.of("pci_device"):
        if fact.value("unreadable") and fact.value("type") == "gpu" and fact.gpu:
            lost.setdefault(fact.gpu, fact)
    parents = {str(fact.value("pci")): fact.value("parent") for fact in store.of("pci_device") if fact.value("parent")}
    for first in lost.values():
        group = [gpu for gpu, fact in lost.items() if _same_moment(first, fact)]
        if len(group) > 1:
            above = {parents.get(gpu) for gpu in group}
            parent = next(iter(above)) if len(above) == 1 else None
            last = lost[group[-1]]
            fact = LostTogether(number=len(group), gpus=", ".join(group), parent=str(parent) if parent else None)
            fact.where, fact.time, fact.boot, fact.node = last.where, first.time, first.boot, first.node
            return [fact]
    return []


def _same_moment(a: Fact, b: Fact) -> bool:
    if a.boot != b.boot:
        return False
    for field in ("uptime", "time"):
        mine, theirs = a.value(field), b.value(field)
        if isinstance(mine, (int, float)) and isinstance(theirs, (int, float)):
            return abs(mine - theirs) <= _TOGETHER
    return True
