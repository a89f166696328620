"""What follows from one GPU's readings: whether it was under load, and how its clocks and power stand to their limits."""

from __future__ import annotations

from collections.abc import Iterable

from gpudoctor.facts.base import Fact
from gpudoctor.facts.gpu import Gpu, GpuMix
from gpudoctor.facts.store import FactStore

_LOAD = 50.0  # percent
_IDLE = 10.0
_POWER = 0.8
_BUSY_STATE = 2


def judge_load(store: FactStore) -> Iterable[Fact]:
    """Fill the worked-out fields of every GPU, and tell where the GPUs of the node are unlike."""
    gpus = [fact for fact in store.of("gpu") if isinstance(fact, Gpu)]
    for gpu in gpus:
        gpu.clock_share = _share(gpu.clock_sm, gpu.clock_sm_max)
        gpu.power_share = _share(gpu.power, gpu.power_limit)
        gpu.power_limit_share = _share(gpu.power_limit, gpu.power_limit_default)
        gpu.app_clock_share = _share(gpu.clock_app_sm, gpu.clock_app_sm_default)
        if gpu.retired_single_bit is not None or gpu.retired_double_bit is not None:
            gpu.retired_pages = (gpu.retired_single_bit or 0) + (gpu.retired_double_bit or 0)
        if gpu.temperature is not None and gpu.temperature_slowdown:
            gpu.degrees_to_slowdown = gpu.temperature_slowdown - gpu.temperature
        gpu.busy = _busy(gpu)
        for field, base in (("clock_share", "clock_sm"), ("power_share", "power"), ("power_limit_share", "power_limit"), ("app_clock_share", "clock_app_sm"), ("degrees_to_slowdown", "temperature")):  # fmt: skip
            if base in gpu.where_fields:
                gpu.where_fields[field] = gpu.where_fields[base]
    return [*_mix(gpus, "name"), *_mix(gpus, "vbios")]


def _share(value: float | None, whole: float | None) -> float | None:
    return value / whole if value is not None and whole else None


def _busy(gpu: Gpu) -> bool | None:
    """A GPU without work lowers its clocks and link and may name odd reasons for it: that is no fault."""
    if gpu.throttle_idle or (gpu.pstate is not None and gpu.pstate > _BUSY_STATE + 1):
        return False
    if gpu.utilization is not None:
        if gpu.utilization >= _LOAD:
            return True
        if gpu.utilization < _IDLE:
            return False
    if gpu.power_share is not None and gpu.utilization is None:
        return gpu.power_share >= _POWER
    if gpu.throttle_idle is False and gpu.pstate is not None and gpu.utilization is None:
        return True
    return None


def _mix(gpus: list[Gpu], what: str) -> list[GpuMix]:
    values: dict[str, Gpu] = {}
    seen: set[str] = set()
    names = {gpu.name for gpu in gpus if gpu.name and gpu.gpu}
    for gpu in gpus:
        value = gpu.value(what)
        if gpu.seen_by not in ("nvidia-smi", "nvml") or not isinstance(value, str) or value.endswith("..."):
            continue
        if gpu.gpu in seen or gpu.gpu is None:
            continue
        seen.add(gpu.gpu)
        values.setdefault(value, gpu)
    if len(values) < 2 or (what == "vbios" and len(names) > 1):
        return []
    first = next(iter(values.values()))
    last = list(values.values())[-1]
    place = last.where_fields.get(what) or last.where
    return [GpuMix(what=what, values=", ".join(sorted(values)), where=place, node=first.node)]
