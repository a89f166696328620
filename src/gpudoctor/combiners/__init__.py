"""From several facts to one truth: pure functions over the store that add what no single text says."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpudoctor.combiners.comms import comms
from gpudoctor.combiners.driver import settle_modules
from gpudoctor.combiners.flight import flight
from gpudoctor.combiners.gpu_errors import explain_errors, lost_together, place_bus_errors
from gpudoctor.combiners.gpu_load import judge_load
from gpudoctor.combiners.identity import name_gpus
from gpudoctor.combiners.measured import measured
from gpudoctor.combiners.memory import explain_memory
from gpudoctor.combiners.numa import place_processes
from gpudoctor.combiners.nvlink import nvlink_states
from gpudoctor.combiners.pcie import far_adapters, pcie_links
from gpudoctor.combiners.ports import judge_counters
from gpudoctor.combiners.products import gpu_products
from gpudoctor.combiners.ranks import ranks
from gpudoctor.combiners.site import site_departures
from gpudoctor.combiners.system import judge_system
from gpudoctor.combiners.versions import (
    arch_lists,
    arch_supports,
    driver_conflicts,
    framework_builds,
    package_conflicts,
    python_ranges,
)
from gpudoctor.combiners.visible import visible_devices
from gpudoctor.facts.base import Fact
from gpudoctor.facts.store import FactStore

Combiner = Callable[[FactStore], Iterable[Fact]]
# In this order: names first, so that the others can join facts by GPU.
COMBINERS: tuple[Combiner, ...] = (
    name_gpus,
    gpu_products,
    settle_modules,
    judge_system,
    explain_memory,
    comms,
    flight,
    ranks,
    judge_counters,
    measured,
    explain_errors,
    place_bus_errors,
    judge_load,
    place_processes,
    pcie_links,
    far_adapters,
    lost_together,
    nvlink_states,
    framework_builds,
    driver_conflicts,
    arch_supports,
    arch_lists,
    package_conflicts,
    python_ranges,
    visible_devices,
    site_departures,
)


def combine(facts: Iterable[Fact], failures: list[str]) -> FactStore:
    """Build the store and run every combiner on it; one that breaks is named in `failures` and left out."""
    store = FactStore(facts)
    for combiner in COMBINERS:
        try:
            store.add(list(combiner(store)))
        except Exception as error:
            failures.append(f"combiner {combiner.__module__}: {type(error).__name__}: {error}")
    return store
