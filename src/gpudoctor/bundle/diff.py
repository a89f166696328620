"""Compares two machines, or one at two moments: findings that only one has, and facts that differ, likeliest reasons first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gpudoctor.facts.base import Fact
from gpudoctor.facts.host import Limit
from gpudoctor.facts.store import FactStore
from gpudoctor.findings.model import Finding, Report

_DRIVER, _FRAMEWORKS, _GPUS, _LINKS, _SYSTEM, _SETTINGS = GROUPS = (
    "driver and its libraries",
    "CUDA, frameworks and packages",
    "GPUs",
    "links, buses and networks",
    "operating system and hardware",
    "settings and environment",
)


@dataclass(frozen=True)
class _Compared:
    """How facts of a kind are compared: in which group, what tells one thing from another, and which fields count."""

    group: str
    identity: tuple[str, ...]
    fields: tuple[str, ...]


# What changes from second to second (load, temperature, memory in use, process ids) is left out.
_KINDS = {
    "driver_version": _Compared(_DRIVER, (), ("version", "cuda")),
    "kernel_module": _Compared(_DRIVER, ("name",), ("version", "flavour", "loaded")),
    "module_file": _Compared(_DRIVER, ("name",), ("version", "flavour", "kernel", "signer", "found")),
    "driver_library": _Compared(_DRIVER, ("name",), ("version", "found", "stub")),
    "dkms_module": _Compared(_DRIVER, ("name", "kernel"), ("version", "state")),
    "module_parameter": _Compared(_DRIVER, ("module", "name"), ("value_",)),
    "secure_boot": _Compared(_DRIVER, (), ("enabled", "lockdown")),
    "smi_error": _Compared(_DRIVER, ("reason",), ("message",)),
    "device_node": _Compared(_DRIVER, ("path",), ("present", "mode", "owner", "group")),
    "cuda_toolkit": _Compared(_FRAMEWORKS, ("path",), ("version", "found")),
    "shared_library": _Compared(_FRAMEWORKS, ("name",), ("version", "found", "stub")),
    "framework_build": _Compared(_FRAMEWORKS, ("name",), ("version", "cuda", "cudnn", "nccl", "cpu_only", "sees_gpu")),
    "python_package": _Compared(_FRAMEWORKS, ("name", "environment"), ("version", "channel")),
    "python": _Compared(_FRAMEWORKS, ("path",), ("version",)),
    "package": _Compared(_FRAMEWORKS, ("name",), ("version", "installed", "held")),
    "container_engine": _Compared(_FRAMEWORKS, ("name",), ("version", "runtime", "nvidia_runtime", "cgroup_driver", "cgroup_version", "rootless")),
    "gpu": _Compared(
        _GPUS,
        ("gpu",),
        (
            "name", "vbios", "state", "error", "memory_total", "mig", "mig_pending", "persistence", "compute_mode", "ecc", "ecc_pending",
            "power_limit", "power_limit_max", "clock_sm_max", "clock_app_sm", "throttle_hw_slowdown", "throttle_hw_thermal",
            "throttle_hw_power_brake", "throttle_sw_thermal", "ecc_uncorrectable_volatile", "ecc_uncorrectable_aggregate", "retired_double_bit",
            "remapped_uncorrectable", "remap_pending", "remap_failed", "reset_required", "recovery_action", "pcie_gen_max", "pcie_width",
            "pcie_width_max", "numa_node", "fabric_state", "fabric_status", "addressing_mode", "gsp_firmware", "virtualization", "vgpu_license",
        ),
    ),
    "gpu_count": _Compared(_GPUS, ("seen_by",), ("number",)),
    "xid": _Compared(_GPUS, ("gpu", "code"), ()),
    "nvlink_link": _Compared(_LINKS, ("gpu", "link"), ("state", "speed")),
    "topology_path": _Compared(_LINKS, ("a", "b"), ("path", "links")),
    "peer_access": _Compared(_LINKS, ("a", "b"), ("status",)),
    "pci_device": _Compared(_LINKS, ("pci",), ("device_id", "driver", "link_width", "link_width_max", "link_speed_max", "numa_node", "bar_unassigned", "acs_redirect")),
    "rdma_port": _Compared(_LINKS, ("device", "port"), ("state", "physical", "rate", "link_layer", "mtu")),
    "os": _Compared(_SYSTEM, (), ("id", "version", "name")),
    "kernel": _Compared(_SYSTEM, (), ("release", "machine")),
    "cpu": _Compared(_SYSTEM, (), ("model", "logical", "sockets", "numa_nodes", "governor", "hypervisor")),
    "host_memory": _Compared(_SYSTEM, (), ("total", "swap_total", "cma_total", "huge_pages")),
    "service": _Compared(_SYSTEM, ("name",), ("state", "enabled", "version")),
    "container": _Compared(_SYSTEM, (), ("engine",)),
    "kernel_option": _Compared(_SETTINGS, ("name",), ("setting",)),
    "limit": _Compared(_SETTINGS, ("name",), ("soft", "hard")),
    "config": _Compared(_SETTINGS, ("file", "key"), ("setting",)),
    "env_var": _Compared(_SETTINGS, ("name",), ("setting",)),
    "file_system": _Compared(_SETTINGS, ("mount",), ("type", "size")),
}  # fmt: skip

_UNITS = {
    ("gpu", "memory_total"): "MiB", ("gpu", "power_limit"): "W", ("gpu", "power_limit_max"): "W",
    ("gpu", "clock_sm_max"): "MHz", ("gpu", "clock_app_sm"): "MHz",
    ("nvlink_link", "speed"): "GB/s", ("pci_device", "link_speed_max"): "GT/s", ("rdma_port", "rate"): "Gb/s",
    ("host_memory", "total"): "MiB", ("host_memory", "swap_total"): "MiB", ("host_memory", "cma_total"): "MiB",
    ("file_system", "size"): "MiB",
}  # fmt: skip
_KIB_LIMITS = ("memlock", "stack", "as", "rss")  # the others are numbers of things
_UNLIMITED = -1
ABSENT = "absent"
_NAMED = 3  # fields of a thing that only one side has


@dataclass(frozen=True)
class Side:
    """One of the two: what it is called, its report, and its facts."""

    name: str
    report: Report
    store: FactStore


@dataclass(frozen=True)
class Difference:
    """A field that differs. A thing that only one side has differs in no field: the other side is `absent`."""

    group: str
    kind: str
    thing: str
    field: str
    a: str
    b: str


@dataclass
class Comparison:
    """All that differs between two sides; kinds of facts that only one of them answers are not compared."""

    a: Side
    b: Side
    only_a: list[Finding] = field(default_factory=list)
    only_b: list[Finding] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    not_compared: list[tuple[str, str]] = field(default_factory=list)

    @property
    def same(self) -> bool:
        """Tell whether nothing differs."""
        return not (self.only_a or self.only_b or self.differences)


def compare(a: Side, b: Side) -> Comparison:
    """Compare two sides."""
    result = Comparison(a, b)
    known_a = {finding.id for finding in a.report.findings}
    known_b = {finding.id for finding in b.report.findings}
    result.only_a = [finding for finding in a.report.findings if finding.id not in known_b]
    result.only_b = [finding for finding in b.report.findings if finding.id not in known_a]
    names_a, names_b = _gpu_names(a.store, b.store)
    for kind, how in _KINDS.items():
        mine, theirs = _things(a.store.of(kind), how, names_a), _things(b.store.of(kind), how, names_b)
        silent_a, silent_b = not mine and not a.store.probed(kind), not theirs and not b.store.probed(kind)
        if silent_a != silent_b:
            result.not_compared.append((kind, a.name if silent_b else b.name))
        if not silent_a and not silent_b:
            result.differences += _differences(kind, how, mine, theirs)
    result.differences.sort(key=lambda difference: GROUPS.index(difference.group))
    return result


def _gpu_names(a: FactStore, b: FactStore) -> tuple[dict[str, str], dict[str, str]]:
    """Name the GPUs by their place in order where the two machines have them at other addresses."""
    mine, theirs = (list(dict.fromkeys(fact.gpu for fact in store.of("gpu") if fact.gpu)) for store in (a, b))
    if set(mine) & set(theirs) or not mine or not theirs:
        return {}, {}
    names = [f"GPU {number}" for number in range(max(len(mine), len(theirs)))]
    return dict(zip(sorted(mine), names, strict=False)), dict(zip(sorted(theirs), names, strict=False))


def _things(facts: Iterable[Fact], how: _Compared, names: dict[str, str]) -> dict[str, dict[str, list[str]]]:
    """Return, per thing, the values of its fields; several sources may say several."""
    things: dict[str, dict[str, list[str]]] = {}
    for fact in facts:
        if fact.boot is not None and fact.boot < 0:
            continue
        identity = [fact.value(name) for name in how.identity]
        thing = " ".join(names.get(str(part), str(part)) for part in identity if part is not None)
        values = things.setdefault(thing, {})
        for name in how.fields:
            value = fact.value(name)
            if isinstance(fact, Limit) and value == _UNLIMITED:
                value = "unlimited"
            if value is not None and (shown := _shown(value, _unit(fact, name))) not in values.setdefault(name, []):
                values[name].append(shown)
    return things


def _unit(fact: Fact, field: str) -> str:
    if isinstance(fact, Limit) and fact.name.removesuffix("_hard") in _KIB_LIMITS:
        return "KiB"
    return _UNITS.get((fact.kind, field), "")


def _shown(value: Any, unit: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if not isinstance(value, (int, float)):
        return str(value)[:200]
    return f"{value:.10g} {unit}".rstrip()


def _alike(thing: str, mine: Iterable[str], theirs: Iterable[str]) -> bool:
    """Tell whether both sides tell the parameters of this module in the same breadth: /proc names all, modprobe.d those that are set."""
    module = thing.partition(" ")[0] + " "
    a, b = (sum(name.startswith(module) for name in names) for names in (mine, theirs))
    return 0 < max(a, b) <= 3 * min(a, b)


def _differences(
    kind: str, how: _Compared, mine: dict[str, dict[str, list[str]]], theirs: dict[str, dict[str, list[str]]]
) -> Iterator[Difference]:
    for thing in dict.fromkeys([*mine, *theirs]):
        if thing not in mine or thing not in theirs:
            if kind == "module_parameter" and not _alike(thing, mine, theirs):
                continue
            there = mine.get(thing, theirs.get(thing, {}))
            known = [(name.rstrip("_"), " | ".join(values)) for name, values in there.items()]
            # one value speaks for itself; of several the first are named, they tell what the thing is
            shown = ", ".join(f"{name} {value}" if len(known) > 1 else value for name, value in known[:_NAMED])[:120]
            shown = shown or "present"
            a, b = (shown, ABSENT) if thing in mine else (ABSENT, shown)
            yield Difference(how.group, kind, thing, "", a, b)
            continue
        for name in how.fields:
            a_values, b_values = mine[thing].get(name, []), theirs[thing].get(name, [])
            # a value that one side doesn't know is no difference
            if a_values and b_values and sorted(a_values) != sorted(b_values):
                yield Difference(how.group, kind, thing, name.rstrip("_"), " | ".join(a_values), " | ".join(b_values))
