"""Lists of visible GPUs in the environment, against the GPUs that are there."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpudoctor.facts.framework import VisibleDevices
from gpudoctor.facts.store import FactStore

_NAMES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
_WORDS = {"all", "void", "none", "", "-1", "nodevfiles", "no"}


def visible_devices(store: FactStore) -> Iterable[VisibleDevices]:
    """Yield one fact per list; `problem` says what about it can't be."""
    indices = {fact.value("index") for fact in store.of("gpu")} - {None}
    uuids = {str(fact.value("uuid")) for fact in store.of("gpu")} - {"None"}
    counts = [fact.value("number") for fact in store.of("gpu_count") if fact.value("seen_by") in ("nvml", "nvidia-smi")]
    present = max([len(indices), *(n for n in counts if isinstance(n, int))], default=0)
    for fact in store.of("env_var"):
        name, setting = str(fact.value("name")), str(fact.value("setting"))
        if name not in _NAMES or setting.strip().lower() in _WORDS or "$" in setting:
            continue
        entries = [entry.strip() for entry in setting.split(",") if entry.strip()]
        yield VisibleDevices(
            name=name,
            setting=setting,
            listed=len(entries),
            present=present or None,
            problem=_problem(entries, present, uuids),
            where=fact.where,
        )


def _problem(entries: list[str], present: int, uuids: set[str]) -> str | None:
    numbers = [int(entry) for entry in entries if re.fullmatch(r"\d{1,3}", entry)]
    if present and (beyond := [number for number in numbers if number >= present]):
        there = "0" if present == 1 else f"0 to {present - 1}"
        return (
            f"there is no GPU {beyond[0]} here; the numbers are {there}, and CUDA ignores that entry and all after it."
        )
    if len(set(numbers)) < len(numbers):
        return "a GPU is named twice, and CUDA then sees none."
    if uuids:
        named = [entry for entry in entries if entry.startswith("GPU-")]
        for entry in named:
            if not any(uuid.startswith(entry) for uuid in uuids):
                return f"no GPU with the UUID {entry} is here."
    return None
