"""Which driver module is in memory now, out of all loads and unloads that the logs tell of."""

from __future__ import annotations

from collections.abc import Iterable

from gpudoctor.facts.base import Fact
from gpudoctor.facts.driver import KernelModule
from gpudoctor.facts.store import FactStore


def settle_modules(store: FactStore) -> Iterable[Fact]:
    """Mark what a log says was loaded as gone where it was unloaded, loaded anew or belongs to an earlier boot."""
    modules = [fact for fact in store.of("kernel_module") if isinstance(fact, KernelModule) and fact.name == "nvidia"]
    listed = any(fact.seen_by == "lsmod" for fact in store.of("kernel_module") if isinstance(fact, KernelModule))
    present = any(fact.seen_by in ("lsmod", None) and fact.loaded for fact in modules)
    by_source: dict[str, list[KernelModule]] = {}
    for fact in modules:
        if fact.seen_by == "log":
            by_source.setdefault(fact.where.source if fact.where else "", []).append(fact)
    for events in by_source.values():
        for earlier in events[:-1]:
            earlier.loaded = False
        newest = events[-1]
        if (newest.boot or 0) < 0 or (listed and not present):
            newest.loaded = False
    return ()
