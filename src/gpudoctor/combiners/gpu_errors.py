"""Error numbers and bus errors with what the tables and the other facts add to them."""

from __future__ import annotations

from collections.abc import Iterable

from gpudoctor.facts.base import Fact
from gpudoctor.facts.gpu import PcieError, Sxid, Xid
from gpudoctor.facts.store import FactStore
from gpudoctor.knowledge import sxids, xids


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
    return ()


def place_bus_errors(store: FactStore) -> Iterable[Fact]:
    """A bus error of a GPU, or of another function on its board, is that GPU's."""
    gpus = {fact.gpu for kind in ("gpu", "xid", "pci_device") for fact in store.of(kind) if fact.gpu}
    for fact in store.of("pcie_error"):
        if not isinstance(fact, PcieError) or fact.pci is None:
            continue
        board = fact.pci.rpartition(".")[0] + ".0"
        if board in gpus or fact.driver == "nvidia":
            fact.gpu = board
    return ()
