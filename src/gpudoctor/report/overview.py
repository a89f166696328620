"""What of a node is worth a person's eye, in words, each with the grade that it deserves.

Grades are "" (fine), "warning" and "critical". Values come from `Report.node`; what was not read is not said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpudoctor.report.times import stamp

if TYPE_CHECKING:  # the screens appear before the models are loaded
    from gpudoctor.findings.model import Finding, Report, Subject, Undecided

Said = tuple[str, str]

NOTHING: Said = ("", "")
LABELS = {
    "host": "Host",
    "os": "System",
    "kernel": "Kernel",
    "container": "Container",
    "module": "Kernel module",
    "driver": "Driver",
    "cuda": "CUDA of the driver",
}
PATHS = {
    "NV": "NVLink, and how many links",
    "PIX": "one PCIe switch",
    "PXB": "several PCIe switches",
    "PHB": "the PCIe host bridge of a processor",
    "NODE": "host bridges within one NUMA node",
    "SYS": "the link between processors: slow",
}
_THROTTLES = {
    "throttle_hw_thermal": "heat (hardware)",
    "throttle_sw_thermal": "heat",
    "throttle_hw_power_brake": "power brake",
    "throttle_hw_slowdown": "hardware slowdown",
    "throttle_sw_power": "power cap",
    "throttle_sync_boost": "sync boost",
}
_STALLED = 20.0  # percent of ten seconds that tasks waited
_MIB = 1024


def node_words(report: Report, between: str = ", ") -> str:
    """Say in one line which machine this is."""
    node = report.node
    given = [str(gpu.get("name") or "") for gpu in gpus(node)]
    kinds = [f"{given.count(name)}x {short_name(name)}" for name in dict.fromkeys(filter(None, given))]
    if unnamed := given.count(""):
        kinds.append(f"{unnamed} {'other ' if kinds else ''}GPU{'s' if unnamed > 1 else ''}")
    driver = node.get("driver") or node.get("module")
    parts = [
        f"{sum(each.source.path != report.source.path for each in report.nodes)} nodes" if report.nodes else "",
        str(node.get("host") or ""),
        " and ".join(kinds),
        f"driver {driver}" if driver else "",
        f"CUDA {node['cuda']}" if node.get("cuda") else "",
        str(node.get("os") or ""),
    ]
    return between.join(part for part in parts if part)


def subject_words(subject: Subject) -> str:
    """Name what a finding is about.

    >>> from gpudoctor.findings.model import Subject
    >>> subject_words(Subject(kind="gpu", name="GPU 5")), subject_words(Subject(kind="port", name="mlx5_0"))
    ('GPU 5', 'port mlx5_0')
    """
    if subject.kind == "gpu":
        return subject.name if subject.name.startswith("GPU") else f"GPU {subject.name}"
    return "the node" if subject.kind == subject.name == "node" else f"{subject.kind} {subject.name}"


def subjects_words(subjects: Sequence[Subject]) -> str:
    """Name all that a finding is about.

    >>> from gpudoctor.findings.model import Subject
    >>> subjects_words([Subject(kind="gpu", name=name) for name in ("0000:3b:00.0", "0000:86:00.0", "GPU 5")])
    'GPUs 0000:3b:00.0, 0000:86:00.0, 5'
    """
    gpus = [subject_words(subject).removeprefix("GPU ") for subject in subjects if subject.kind == "gpu"]
    others = [subject_words(subject) for subject in subjects if subject.kind != "gpu"]
    return ", ".join(([f"GPU{'s' if len(gpus) > 1 else ''} {', '.join(gpus)}"] if gpus else []) + others)


def seen_words(finding: Finding) -> str:
    """Say how often, where the evidence does not show each time, and when; nothing where nothing tells."""
    parts = [f"seen {finding.count} times" if finding.count > len(finding.evidence) else ""]
    if finding.first_seen is not None:
        once = finding.last_seen in (None, finding.first_seen)
        parts.append(f"{'at' if once else 'first'} {stamp(finding.first_seen)}")
        if not once and finding.last_seen is not None:
            parts.append(f"last {stamp(finding.last_seen)}")
    return ", ".join(part for part in parts if part)


def asks(undecided: Iterable[Undecided]) -> dict[str, list[str]]:
    """Return what to send, and the ids of what that would decide."""
    found: dict[str, list[str]] = {}
    for entry in undecided:
        found.setdefault(entry.ask or f"needs {', '.join(entry.missing)}", []).append(entry.id)
    return found


def gpus(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the node's GPUs, each with its NVLink summary."""
    links = node.get("nvlink") or {}
    return [{**gpu, "nvlink": links.get(gpu.get("gpu"))} for gpu in node.get("gpus") or [] if isinstance(gpu, Mapping)]


def short_name(name: str) -> str:
    """Drop what every name begins with.

    >>> short_name("NVIDIA GeForce RTX 4090")
    'RTX 4090'
    """
    return name.removeprefix("NVIDIA ").removeprefix("GeForce ")


def short_address(name: str) -> str:
    """Drop the PCI domain where it is the usual one.

    >>> short_address("0000:3b:00.0")
    '3b:00.0'
    """
    return name.removeprefix("0000:")


def worst(gpu: Mapping[str, Any], findings: Sequence[Finding]) -> Finding | None:
    """Return the finding that ranks first among those about a GPU; advice is none."""
    names = {str(gpu[name]) for name in ("gpu", "pci", "uuid") if gpu.get(name)}
    about = (f for f in findings if any(s.kind == "gpu" and s.name in names for s in f.subjects))
    return next((finding for finding in about if finding.role != "advice"), None)


def state(gpu: Mapping[str, Any], findings: Sequence[Finding]) -> Said:
    """Say how a GPU is."""
    given = str(gpu.get("state") or "ok")
    found = worst(gpu, findings)
    bad = "critical" if given in ("lost", "error") else "" if given == "ok" else "warning"
    if found is None:
        return given, bad
    words = found.title if given == "ok" else f"{given}: {found.title}"
    return words, bad or (found.severity if found.severity != "info" else "")


def memory(gpu: Mapping[str, Any]) -> Said:
    """Say how full a GPU's memory is."""
    total = gpu.get("memory_total")
    if not total:
        return NOTHING
    used = gpu.get("memory_used")
    if used is None:
        return f"{total / _MIB:.0f} GiB", ""
    return f"{used / _MIB:.0f} of {total / _MIB:.0f} GiB", "warning" if used / total > 0.97 else ""


def temperature(gpu: Mapping[str, Any]) -> Said:
    """Say how hot a GPU is, measured by its own limit."""
    heat = gpu.get("temperature")
    if heat is None:
        return NOTHING
    limit = gpu.get("temperature_slowdown") or 90
    return f"{heat:.0f} °C", "critical" if heat >= limit else "warning" if heat >= limit - 5 else ""


def power(gpu: Mapping[str, Any]) -> Said:
    """Say what a GPU draws, and of how much."""
    drawn, cap = gpu.get("power"), gpu.get("power_limit")
    if drawn is None:
        return NOTHING
    lowered = cap is not None and (gpu.get("power_limit_default") or 0) > cap
    return f"{drawn:.0f}{f' of {cap:.0f}' if cap else ''} W", "warning" if lowered else ""


def clock(gpu: Mapping[str, Any]) -> Said:
    """Say how fast a GPU's processors run."""
    now, most = gpu.get("clock_sm"), gpu.get("clock_sm_max")
    return (f"{now}{f' of {most}' if most else ''} MHz", "") if now is not None else NOTHING


def slowed(gpu: Mapping[str, Any]) -> Said:
    """Say what holds a GPU's clocks down."""
    held = [word for field, word in _THROTTLES.items() if gpu.get(field)]
    return (", ".join(held), "warning") if held else NOTHING


def busy(gpu: Mapping[str, Any]) -> Said:
    """Say how much of the time a GPU works."""
    return (f"{gpu['utilization']:.0f} %", "") if gpu.get("utilization") is not None else NOTHING


def pcie(gpu: Mapping[str, Any]) -> Said:
    """Say what the PCIe link runs at; an idle GPU's lower generation saves power, a narrower link is never right."""
    generation, width = gpu.get("pcie_gen"), gpu.get("pcie_width")
    generation_max, width_max = gpu.get("pcie_gen_max"), gpu.get("pcie_width_max")
    if generation is None and width is None:
        return NOTHING
    now = f"gen {generation or '?'} x{width or '?'}"
    if (generation, width) == (generation_max, width_max) or (generation_max is None and width_max is None):
        return now, ""
    narrow = width is not None and width_max is not None and width < width_max
    return f"{now} of gen {generation_max or '?'} x{width_max or '?'}", "warning" if narrow else ""


def nvlink(gpu: Mapping[str, Any]) -> Said:
    """Say how many NVLink links are up."""
    link = gpu.get("nvlink")
    if not link:
        return NOTHING
    down = f", down: {ranges(link['down'])}" if link.get("down") else ""
    errors = f", {link['errors']} errors" if link["errors"] else ""
    return f"{link['active']} of {link['links']} up{down}{errors}", "warning" if link["active"] < link["links"] else ""


def ranges(numbers: Sequence[int]) -> str:
    """Write numbers, runs of them short.

    >>> ranges([0, 9, 10, 11])
    '0 9-11'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return " ".join("-".join(map(str, run)) for run in runs)


def ecc(gpu: Mapping[str, Any]) -> Said:
    """Say what ECC memory reports."""
    if gpu.get("ecc") is False:
        return "off", ""
    if gpu.get("remap_failed"):
        return "row remap failed", "critical"
    if gpu.get("remap_pending") or gpu.get("retired_pending"):
        return "repair pending", "warning"
    bad = (gpu.get("ecc_uncorrectable_volatile") or 0) + (gpu.get("ecc_uncorrectable_aggregate") or 0)
    if bad:
        return f"{bad} uncorrectable", "warning"
    return ("ok", "") if gpu.get("ecc") else NOTHING


def versions(node: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (what, version, what is wrong with it), driver first."""
    module, driver = node.get("module"), node.get("driver")
    for key in ("module", "driver", "cuda"):
        if node.get(key):
            differs = key == "driver" and module and driver != module
            yield LABELS[key], str(node[key]), f"the kernel module is {module}" if differs else ""
    loaded = module or driver
    for name, found in (node.get("libraries") or {}).items():
        other = [version for version in found if loaded and version != loaded and str(name).startswith("lib")]
        yield (
            str(name),
            ", ".join(map(str, found)),
            f"the {'kernel module' if module else 'driver'} is {loaded}" if other else "",
        )
    for name, found in (node.get("software") or {}).items():
        yield str(name), ", ".join(map(str, found)), "several versions" if len(found) > 1 else ""


def host(node: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (what, value, what is wrong with it) of the host."""
    for key in ("host", "os", "kernel", "container"):
        if node.get(key):
            yield LABELS[key], str(node[key]), ""
    given = node.get("memory") or {}
    if given.get("total"):
        free = f", {given['available'] / _MIB:.0f} GiB available" if given.get("available") is not None else ""
        yield "Memory", f"{given['total'] / _MIB:.0f} GiB{free}", ""
    if given.get("swap_total"):
        yield "Swap", f"{(given.get('swap_used') or 0) / _MIB:.0f} of {given['swap_total'] / _MIB:.0f} GiB used", ""
    for name, what in (("memory", "Memory"), ("cpu", "Processor"), ("io", "Disk")):
        share = given.get(f"pressure_{name}")
        if share is not None:
            yield f"{what} pressure", f"{share:g} % of the time", "tasks wait for it" if share > _STALLED else ""
    yield from (
        (LABELS.get(key, key.replace("_", " ").capitalize()), str(value), "")
        for key, value in node.items()
        if key not in LABELS and isinstance(value, (str, int, float))
    )
