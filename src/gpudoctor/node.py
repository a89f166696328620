"""The node as the report shows it: GPUs, driver, host, from whatever facts there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpudoctor.facts.base import Fact
from gpudoctor.facts.store import FactStore

if TYPE_CHECKING:
    from gpudoctor.nccl.graph import Graph

_BARE = set(Fact.__struct_fields__)
_MAX_DEVICES = 64
_MAX_PROCESSES = 200
_LIBRARIES = ("cudart", "cudnn", "cublas", "nccl", "cuda")
_FRAMEWORKS = ("torch", "tensorflow", "jax", "jaxlib", "cupy", "vllm", "onnxruntime-gpu", "transformers", "triton")


def sees_gpu_evidence(store: FactStore) -> bool:
    """Tell whether anything was read that says something about GPUs or their driver."""
    kinds = ("gpu", "driver_version", "kernel_module", "xid", "gpu_process", "nccl_test")
    return any(store.of(kind) for kind in kinds) or bool(smi_failures(store))


def smi_failures(store: FactStore) -> list[Fact]:
    """Return what nvidia-smi and NVML complain of, without the missing library of a machine on whose bus no GPU is."""
    no_gpu = any(fact.value("seen_by") == "sysfs" and fact.value("number") == 0 for fact in store.of("gpu_count"))
    return [fact for fact in store.of("smi_error") if not (no_gpu and fact.value("reason") == "library_not_found")]


def graph_of(store: FactStore) -> Graph | None:
    """Return how the machine's devices reach each other; None where there is nothing to join."""
    if not (store.of("gpu") or store.of("topology_path")):
        return None
    from gpudoctor.nccl.graph import machine_graph

    return machine_graph(store)


def describe_node(store: FactStore, graph: Graph | None = None) -> dict[str, Any]:
    """Return the node's description; keys that nothing is known of are left out."""
    gpus: dict[str, dict[str, Any]] = {}
    for fact in store.of("gpu"):
        if fact.gpu is None:
            continue
        entry = gpus.setdefault(fact.gpu, {})
        for name, value in fact.plain().items():
            if name not in _BARE:
                entry.setdefault(name, value)
    node: dict[str, Any] = {"gpus": [{"gpu": name, **entry} for name, entry in gpus.items()]}
    for key, kind, field in (
        ("host", "kernel", "node"),
        ("driver", "driver_version", "version"),
        ("module", "kernel_module", "version"),
        ("cuda", "driver_version", "cuda"),
        ("kernel", "kernel", "release"),
        ("os", "os", "name"),
        ("container", "container", "engine"),
    ):
        for fact in store.of(kind):
            if kind == "kernel_module" and fact.value("name") != "nvidia":
                continue
            if (value := fact.value(field)) is not None:
                node.setdefault(key, value)
    parts = {
        "topology": _topology(graph) if graph else {},
        "nvlink": _nvlink(store),
        "processes": _processes(store),
        "memory": _memory(store),
        "libraries": _libraries(store),
        "software": _software(store),
    }
    return node | {key: value for key, value in parts.items() if value}


def _topology(graph: Graph) -> dict[str, Any]:
    """Return the devices, how each reaches each (`paths[row][column]`, empty where nothing tells it), and their NUMA nodes."""
    known = {device.name: device for device in (*graph.gpus, *graph.nics)}
    paths = {key: path.path for key, path in graph.paths.items() if path.path != "?"} or graph.ancestors
    named = {name for key in paths for name in key}
    devices = [*known, *sorted(named - set(known))]
    if not (paths and 1 < len(devices) <= _MAX_DEVICES):
        return {}
    topology: dict[str, Any] = {
        "devices": devices,
        "paths": [["X" if a == b else paths.get(frozenset((a, b)), "") for b in devices] for a in devices],
    }
    numa = {name: device.numa for name, device in known.items() if device.numa is not None}
    return topology | {"numa": numa} if numa else topology


def _nvlink(store: FactStore) -> dict[str, dict[str, Any]]:
    """Return for each GPU how many NVLink links are up, how many there are, which are down, and the errors counted on them."""
    states: dict[str, dict[int, str]] = {}
    errors: dict[str, int] = {}
    for fact in store.of("nvlink_link"):
        link = fact.value("link")
        if fact.gpu is None or not isinstance(link, int):
            continue
        if (state := fact.value("state")) is not None and state != "not_supported":
            states.setdefault(fact.gpu, {}).setdefault(link, str(state))
        count = fact.value("errors")
        errors[fact.gpu] = errors.get(fact.gpu, 0) + (count if isinstance(count, int) else 0)
    found: dict[str, dict[str, Any]] = {}
    for gpu, links in states.items():
        down = sorted(link for link, state in links.items() if state != "active")
        found[gpu] = {"active": len(links) - len(down), "links": len(links), "errors": errors.get(gpu, 0)}
        if down:
            found[gpu]["down"] = down
    return found


def _processes(store: FactStore) -> list[dict[str, Any]]:
    """Return the processes on the GPUs, each once."""
    found: dict[tuple[str, Any], dict[str, Any]] = {}
    for fact in store.of("gpu_process"):
        if (pid := fact.value("pid")) is not None and fact.gpu is not None:
            entry = found.setdefault((fact.gpu, pid), {"gpu": fact.gpu, "pid": pid})
            for name in ("name", "type", "memory", "alive"):
                if (value := fact.value(name)) is not None:
                    entry.setdefault(name, value)
    return list(found.values())[:_MAX_PROCESSES]


def _memory(store: FactStore) -> dict[str, Any]:
    """Return the host's memory (MiB) and how long tasks stall for want of it, of processors and of disks (percent)."""
    memory: dict[str, Any] = {}
    for fact in store.of("host_memory"):
        for name in ("total", "available", "swap_total", "swap_used"):
            if (value := fact.value(name)) is not None:
                memory.setdefault(name, value)
    for fact in store.of("pressure"):
        if fact.value("scope") == "some":
            memory.setdefault(f"pressure_{fact.value('resource')}", fact.value("avg10"))
    return memory


def _libraries(store: FactStore) -> dict[str, list[str]]:
    """Return the versions of the driver's user-space libraries; one that is not the kernel module's is a mismatch.

    nvidia-smi itself is no library: an older one, as images bring it, works with a newer driver.
    """
    versions: dict[str, list[str]] = {}
    for fact in store.of("driver_library"):
        if fact.value("name") == "nvidia-smi":
            continue
        version = fact.value("version")
        known = versions.setdefault(str(fact.value("name")), [])
        if version is not None and str(version) not in known:
            known.append(str(version))
    return {name: found for name, found in versions.items() if found}


def _software(store: FactStore) -> dict[str, list[str]]:
    """Return the versions of what runs on the GPU; more than one of a thing is worth seeing."""
    versions: dict[str, list[str]] = {}
    for kind, wanted in (("shared_library", _LIBRARIES), ("python_package", _FRAMEWORKS), ("cuda_toolkit", None)):
        for fact in store.of(kind):
            name = "CUDA toolkit" if wanted is None else str(fact.value("name"))
            version = fact.value("version")
            if (
                version is not None
                and (wanted is None or name in wanted)
                and str(version) not in versions.get(name, ())
            ):
                versions.setdefault(name, []).append(str(version))
    return versions
