"""One GPU, one name: facts that call the same GPU by index, UUID or PCI address get the same `gpu`."""

from __future__ import annotations

from collections.abc import Iterable

from gpudoctor.facts.base import Fact
from gpudoctor.facts.gpu import Gpu
from gpudoctor.facts.store import FactStore
from gpudoctor.patterns.address import pci_address
from gpudoctor.patterns.lazy import LazyRegex

_PCI = LazyRegex(r"(?:PCI:)?(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?$")
_INDEX = LazyRegex(r"(?:GPU ?|cuda:)?(\d{1,3})$")


def name_gpus(store: FactStore) -> Iterable[Fact]:
    """Rewrite `gpu` of all facts to the best name: PCI address, else UUID, else `GPU <index>`."""
    names: dict[str, str] = {}
    for fact in store.of("gpu"):
        if isinstance(fact, Gpu):
            known = [_plain(name) for name in (fact.pci, fact.uuid, _index(fact.index)) if name]
            if not known:
                continue
            joined = {names[name] for name in known if name in names}
            best = next((name for name in (*known, *sorted(joined)) if _PCI.match(name)), None) or next(
                iter(sorted(joined)), known[0]
            )
            if joined - {best}:  # two names turn out to be one GPU
                names = {alias: best if name in joined else name for alias, name in names.items()}
            names.update(dict.fromkeys(known, best))
    only = next(iter(set(names.values())), None) if len(set(names.values())) == 1 else None
    for fact in store:
        if isinstance(fact, Gpu) and fact.gpu is None:
            fact.gpu = next((name for name in (fact.pci, fact.uuid, _index(fact.index)) if name), only)
        if fact.gpu is not None:
            plain = _plain(fact.gpu)
            fact.gpu = names.get(plain, plain)
    return ()


def _index(index: int | None) -> str | None:
    return None if index is None else f"GPU {index}"


def _plain(name: str) -> str:
    if _PCI.match(name):
        return pci_address(name)
    if found := _INDEX.match(name):
        return f"GPU {int(found[1])}"
    return name
