"""Which NUMA node a process is bound to, and whether its GPU sits on another one."""

from __future__ import annotations

from collections.abc import Iterable

from gpudoctor.facts.base import Fact
from gpudoctor.facts.gpu import Gpu, GpuProcess
from gpudoctor.facts.host import EnvVar, Numa, NumaNode
from gpudoctor.facts.store import FactStore


def place_processes(store: FactStore) -> Iterable[Fact]:
    """Complete each binding: the nodes of its CPUs, the node of its GPU, and whether these differ."""
    nodes = {fact.number: cpu_set(fact.cpus) for fact in store.of("numa_node") if isinstance(fact, NumaNode)}
    for fact in store.of("numa_binding"):
        if not isinstance(fact, Numa):
            continue
        if fact.cpu_nodes is None and fact.cpus:
            bound = cpu_set(fact.cpus)
            touched = [node for node, cpus in sorted(nodes.items()) if bound & cpus]
            fact.cpu_nodes = " ".join(str(node) for node in touched) or None
        fact.gpu_node = _gpu_node(store, fact)
        if fact.gpu_node is not None and fact.cpu_nodes and fact.cpu_nodes.isdigit():
            fact.far = int(fact.cpu_nodes) != fact.gpu_node
    return ()


def cpu_set(text: str) -> set[int]:
    """Return the numbers that a list of CPUs names.

    >>> sorted(cpu_set("0-2,8"))
    [0, 1, 2, 8]
    """
    found: set[int] = set()
    for part in text.split(","):
        low, _, high = part.strip().partition("-")
        if low.isdigit() and (not high or high.isdigit()):
            found.update(range(int(low), min(int(high or low), int(low) + 4096) + 1))
    return found


def _gpu_node(store: FactStore, binding: Numa) -> int | None:
    """Return the node of the GPU that the process uses; where that isn't shown, the one node that all GPUs share."""
    gpus = [fact for fact in store.of("gpu") if isinstance(fact, Gpu) and fact.numa_node is not None]
    gpus = [gpu for gpu in gpus if (gpu.numa_node or 0) >= 0]
    names = {
        fact.gpu for fact in store.of("gpu_process") if isinstance(fact, GpuProcess) and fact.pid == binding.pid
    } - {None}
    used = [gpu for gpu in gpus if binding.pid is not None and gpu.gpu in names]
    if not used:
        asked = [
            fact.setting
            for fact in store.of("env_var")
            if isinstance(fact, EnvVar) and fact.name == "CUDA_VISIBLE_DEVICES"
        ]
        if len(set(asked)) == 1 and asked[0].isdigit():
            used = [gpu for gpu in gpus if gpu.index == int(asked[0])]
        elif asked:
            return None
    found = {gpu.numa_node for gpu in used or gpus}
    return found.pop() if len(found) == 1 else None
