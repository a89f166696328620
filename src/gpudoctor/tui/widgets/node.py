"""The node at a glance: GPUs, versions, host. Only what was read is shown; what is unknown is left blank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from gpudoctor.tui.rows import Fold, OpenNode, Part, Row, column, fit, heading, paragraph, plain, row
from gpudoctor.tui.symbols import SYMBOLS, grade

if TYPE_CHECKING:
    from gpudoctor.findings.model import Finding, Report

_GOOD = "ok"
_LABELS = {
    "driver": "driver",
    "module": "kernel module",
    "cuda": "CUDA of the driver",
    "kernel": "kernel",
    "os": "system",
    "host": "host",
    "container": "container",
}
_THROTTLES = {
    "throttle_hw_thermal": "heat (hardware)",
    "throttle_sw_thermal": "heat",
    "throttle_hw_power_brake": "power brake",
    "throttle_hw_slowdown": "hardware slowdown",
    "throttle_sw_power": "power cap",
}
_BAR = 10
_STALLED = 20.0  # percent of the time that tasks waited, over ten seconds
# kind of path -> style, and what it means; from the best to the worst
_PATHS = {
    "NV#": ("ok", "NVLink, and how many links"),
    "PIX": ("ok", "one PCIe switch"),
    "PXB": ("info", "several PCIe switches"),
    "PHB": ("info", "the PCIe host bridge of a processor"),
    "NODE": ("warning", "host bridges within one NUMA node"),
    "SYS": ("critical", "the link between processors: slow"),
}


def node_line(report: Report) -> str:
    """Say in one line which machine this is."""
    node = report.node
    names = [plain(gpu.get("name") or "GPU") for gpu in node.get("gpus", [])]
    kinds = [f"{names.count(name)}x {_short_name(name)}" for name in dict.fromkeys(names)]
    driver = node.get("driver") or node.get("module")
    nodes = len(report.nodes)
    parts = [
        f"{nodes} nodes" if nodes else "",
        plain(node.get("host") or ""),
        ", ".join(kinds),
        f"driver {plain(driver)}" if driver else "",
        f"CUDA {plain(node['cuda'])}" if node.get("cuda") else "",
        plain(node.get("os") or ""),
        "" if report.source.kind == "live" else plain(report.source.path),
        "" if report.source.complete else "incomplete",
    ]
    return " · ".join(part for part in parts if part)


def node_rows(report: Report, width: int, unfolded: set[str]) -> Iterator[Row]:
    """Yield the page: GPUs, then versions and host."""
    if report.nodes:
        yield from _nodes(report, width)
        yield row("")
    else:
        yield from _gpus(report, width, unfolded)
    yield heading("Source", width)
    source = report.source
    yield row(fit(f"{source.kind} {plain(source.path)}", width))
    if source.collected_at:
        yield row(("read ", "dim"), plain(source.collected_at))
    if not source.complete:
        yield from _warn("incomplete: some of it could not be read", width)
    for problem in source.problems[:50]:
        yield row((fit(f"{SYMBOLS['absent']} {plain(problem)}", width), "dim"))
    info = report.gpudoctor
    yield row((fit(f"gpudoctor {info.version}, {info.rules} rules, {info.engine} engine", width), "dim"))


def _nodes(report: Report, width: int) -> Iterator[Row]:
    """Yield a row per node; Enter shows that node alone."""
    yield heading(f"Nodes ({len(report.nodes)})", width)
    names = [plain(node.source.path) or "what belongs to none" for node in report.nodes]
    wide = min(max(map(len, names), default=4), 30)
    for number, (name, node) in enumerate(zip(names, report.nodes, strict=True)):
        yield row(
            (f"{SYMBOLS[node.status]} ", node.status),
            (column(name, wide) + "  ", "bold"),
            fit(plain(node.summary), max(0, width - wide - 4)),
            key=f"node:{number}",
            action=OpenNode(number),
        )


def _gpus(report: Report, width: int, unfolded: set[str]) -> Iterator[Row]:
    gpus: list[Mapping[str, Any]] = report.node.get("gpus", [])
    yield heading(f"GPUs ({len(gpus)})", width)
    if not gpus:
        yield from paragraph("No GPU was seen in what could be read.", width, "dim")
    links = report.node.get("nvlink") or {}
    for number, given in enumerate(gpus):
        gpu = {**given, "nvlink": links[given["gpu"]]} if given.get("gpu") in links else given
        yield from _gpu(number, gpu, report, width, unfolded)
    yield row("")
    yield from topology_rows(
        report.node.get("topology") or {}, width, linked=any(link["active"] for link in links.values())
    )
    yield from _processes(report.node.get("processes") or [], width)
    yield heading("Versions and host", width)
    known = {key: value for key, value in report.node.items() if not isinstance(value, (list, dict))}
    labels = {key: _LABELS.get(key, key.replace("_", " ")) for key in known}
    wide = max((len(label) for label in labels.values()), default=0)
    ordered = sorted(known, key=lambda key: list(_LABELS).index(key) if key in _LABELS else len(_LABELS))
    for key in ordered:
        yield row(
            (column(labels[key], wide) + "  ", "dim"), fit(plain(known[key]), width - wide - 2), key=f"node:{key}"
        )
    for name, versions in (report.node.get("software") or {}).items():
        text = ", ".join(map(plain, versions))
        several = ("warning", f"  {SYMBOLS['warning']} several") if len(versions) > 1 else ("", "")
        yield row((column(plain(name), wide) + "  ", "dim"), (fit(text + several[1], width - wide - 2), several[0]))
    yield from _memory(report.node.get("memory") or {}, width, wide)
    if known.get("driver") and known.get("module") and known["driver"] != known["module"]:
        yield from _warn("driver and kernel module differ", width)
    yield row("")


def topology_rows(topology: Mapping[str, Any], width: int, *, linked: bool = False) -> Iterator[Row]:
    """Yield the matrix of how GPUs and network cards reach each other, coloured by the kind of path."""
    devices = [plain(name).removeprefix("0000:") for name in topology.get("devices") or []]
    if not devices:
        return
    wide = max(5, *(cell_len(name) for name in devices)) + 1
    lead = max(map(cell_len, devices)) + 2
    fits = max(1, (width - lead) // wide)
    yield heading("How they reach each other", width)
    for start in range(0, len(devices), fits):
        part = devices[start : start + fits]
        yield row(" " * lead, *((column(name, wide), "dim") for name in part))
        for name, paths in zip(devices, topology["paths"], strict=True):
            cells = [(column(plain(path), wide), _path_style(path)) for path in paths[start : start + fits]]
            yield row((column(name, lead), "bold"), *cells)
    used = {_path_kind(path) for paths in topology["paths"] for path in paths}
    for kind, (style, words) in _PATHS.items():
        if kind in used:
            yield row((column(kind, lead), style), (fit(words, width - lead), "dim"))
    if linked and "NV#" not in used:
        yield from paragraph("These are the PCIe paths. NVLink is up as well; see the GPUs above.", width, "dim")
    yield row("")


def _path_kind(path: str) -> str:
    return "NV#" if path.startswith("NV") else path


def _path_style(path: str) -> str:
    return _PATHS.get(_path_kind(path), ("dim", ""))[0]


def _processes(processes: list[Mapping[str, Any]], width: int) -> Iterator[Row]:
    if not processes:
        return
    yield heading(f"Processes on the GPUs ({len(processes)})", width)
    for process in processes:
        memory = process.get("memory")
        size = f"{memory / 1024:.1f} GiB" if memory is not None else ""
        gone = "  gone" if process.get("alive") is False else ""
        yield row(
            (column(plain(process["gpu"]).removeprefix("0000:"), 9), "dim"),
            (column(str(process["pid"]), 9, right=True) + "  ", ""),
            (column(size, 10, right=True) + "  ", ""),
            (
                fit(plain(process.get("name") or "a process without a name") + gone, width - 32),
                "warning" if gone else "",
            ),
        )
    yield row("")


def _memory(memory: Mapping[str, Any], width: int, wide: int) -> Iterator[Row]:
    if memory.get("total"):
        text = f"{memory['total'] / 1024:.0f} GiB"
        if memory.get("available") is not None:
            text += f", {memory['available'] / 1024:.0f} GiB available"
        if memory.get("swap_total"):
            text += f", swap {(memory.get('swap_used') or 0) / 1024:.0f}/{memory['swap_total'] / 1024:.0f} GiB"
        yield row((column("host memory", wide) + "  ", "dim"), fit(text, width - wide - 2))
    stalls = [(name, memory.get(f"pressure_{name}")) for name in ("memory", "cpu", "io")]
    said = [f"{name} {share:g}%" for name, share in stalls if share is not None]
    if said:
        worst = max(share for _, share in stalls if share is not None)
        style = "warning" if worst > _STALLED else ""
        yield row((column("pressure", wide) + "  ", "dim"), (fit(", ".join(said), width - wide - 2), style))


def _warn(text: str, width: int) -> Iterator[Row]:
    return paragraph(text, width, "warning", indent="  ", first=f"{SYMBOLS['warning']} ")


def _gpu(number: int, gpu: Mapping[str, Any], report: Report, width: int, unfolded: set[str]) -> Iterator[Row]:
    key = f"gpu:{gpu.get('gpu', number)}"
    worst = _worst(gpu, report.findings)
    mark = grade(worst) if worst else ("critical" if gpu.get("state") in ("lost", "error") else _GOOD)
    is_open = key in unfolded
    lead = f"{SYMBOLS['open' if is_open else 'closed']} "
    index = gpu.get("index")
    name = f"{'' if index is None else index:>2} {_short_name(plain(gpu.get('name') or 'GPU'))}"
    address = plain(gpu.get("pci") or gpu.get("gpu") or "").removeprefix("0000:")
    parts: list[Part] = [
        (lead, "dim"),
        (f"{SYMBOLS[mark]} ", mark),
        (column(name, 20) + " ", "bold"),
        (column(address, 8), "dim"),
    ]
    values = [part for part in _values(gpu) if part[0]]
    room = width - sum(cell_len(text) for text, _ in parts)
    line = list(parts)
    action = Fold(key)
    for text, style in values:
        if cell_len(text) + 2 > room:
            yield Row(tuple(line), key=key if line[0] == parts[0] else f"{key}:{len(text)}:{text}", action=action)
            line, room = [("      ", "")], width - 6
        line += [("  ", ""), (fit(text, room - 2), style)]
        room -= cell_len(text) + 2
    yield Row(tuple(line), key=key if line[0] == parts[0] else f"{key}:more", action=action)
    if worst is not None:
        yield row("      ", (fit(plain(worst.title), width - 6), grade(worst)), key=f"{key}:finding", action=action)
    if is_open:
        shown = {name: value for name, value in gpu.items() if value is not None and name != "nvlink"}
        wide = max(len(name) for name in shown)
        for name, value in shown.items():
            text = plain(f"{value:g}" if isinstance(value, float) else value)
            yield row(
                "      ",
                (column(name.replace("_", " "), wide) + "  ", "dim"),
                fit(text, width - wide - 8),
                key=f"{key}:{name}",
            )


def _values(gpu: Mapping[str, Any]) -> Iterator[Part]:
    """Yield what matters of a GPU, in the order of interest; each with the style that its value deserves."""
    state = gpu.get("state")
    if state not in (None, "ok"):
        yield plain(state), "critical"
    used, total = gpu.get("memory_used"), gpu.get("memory_total")
    if total:
        share = min(1.0, max(0.0, (used or 0.0) / total))
        full = round(share * _BAR)
        bar = SYMBOLS["full"] * full + SYMBOLS["empty"] * (_BAR - full)
        yield f"{bar} {(used or 0) / 1024:.0f}/{total / 1024:.0f} GiB", "warning" if share > 0.97 else ""
    if (heat := gpu.get("temperature")) is not None:
        limit = gpu.get("temperature_slowdown") or 90
        yield f"{heat:.0f} C", "critical" if heat >= limit else "warning" if heat >= limit - 5 else ""
    if (power := gpu.get("power")) is not None:
        cap = gpu.get("power_limit")
        yield f"{power:.0f}{f'/{cap:.0f}' if cap else ''} W", ""
    if (busy := gpu.get("utilization")) is not None:
        yield f"{busy:.0f}%", ""
    yield _pcie(gpu)
    if link := gpu.get("nvlink"):
        up, of = link["active"], link["links"]
        yield (
            f"NVLink {up}/{of}" + (f" {link['errors']} errors" if link["errors"] else ""),
            "warning" if up < of else "",
        )
    yield _errors(gpu)
    held = [word for field, word in _THROTTLES.items() if gpu.get(field)]
    if held:
        yield f"slowed: {', '.join(held)}", "warning"
    if gpu.get("mig"):
        yield "MIG", ""


def _pcie(gpu: Mapping[str, Any]) -> Part:
    gen, width = gpu.get("pcie_gen"), gpu.get("pcie_width")
    gen_max, width_max = gpu.get("pcie_gen_max"), gpu.get("pcie_width_max")
    if gen is None and width is None:
        return "", ""
    now = f"PCIe {gen or '?'} x{width or '?'}"
    if (gen, width) == (gen_max, width_max) or (gen_max is None and width_max is None):
        return now, ""
    # A link of an idle GPU runs at a lower generation to save power; a narrower one is never right.
    narrow = width is not None and width_max is not None and width < width_max
    return f"{now} of {gen_max or '?'} x{width_max or '?'}", "warning" if narrow else ""


def _errors(gpu: Mapping[str, Any]) -> Part:
    if gpu.get("ecc") is False:
        return "ECC off", "dim"
    bad = (gpu.get("ecc_uncorrectable_volatile") or 0) + (gpu.get("ecc_uncorrectable_aggregate") or 0)
    if gpu.get("remap_failed"):
        return "ECC row remap failed", "critical"
    if gpu.get("remap_pending") or gpu.get("retired_pending"):
        return "ECC repair pending", "warning"
    if bad:
        return f"ECC {bad} uncorrectable", "warning"
    return ("ECC ok", "") if gpu.get("ecc") else ("", "")


def _worst(gpu: Mapping[str, Any], findings: list[Finding]) -> Finding | None:
    names = {str(gpu[name]) for name in ("gpu", "pci", "uuid") if gpu.get(name)}
    mine = [f for f in findings if f.role != "advice" and any(s.kind == "gpu" and s.name in names for s in f.subjects)]
    return mine[0] if mine else None


def _short_name(name: str) -> str:
    return name.removeprefix("NVIDIA ").removeprefix("GeForce ")
