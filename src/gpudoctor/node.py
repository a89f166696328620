"""The node as the report shows it: GPUs, driver, host, from whatever facts there are."""

from __future__ import annotations

from typing import Any

from gpudoctor.facts.base import Fact
from gpudoctor.facts.store import FactStore

_BARE = set(Fact.model_fields)


def sees_gpu_evidence(store: FactStore) -> bool:
    """Tell whether anything was read that says something about GPUs or their driver."""
    return any(
        store.of(kind)
        for kind in ("gpu", "driver_version", "kernel_module", "xid", "gpu_process", "nccl_test", "smi_error")
    )


def describe_node(store: FactStore) -> dict[str, Any]:
    """Return the node's description; keys that nothing is known of are left out."""
    gpus: dict[str, dict[str, Any]] = {}
    for fact in store.of("gpu"):
        if fact.gpu is None:
            continue
        entry = gpus.setdefault(fact.gpu, {})
        for name, value in fact.model_dump(exclude=_BARE, exclude_none=True).items():
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
    return node
