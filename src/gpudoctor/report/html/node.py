"""The node: GPUs, processes, versions, host, and how devices reach each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gpudoctor.findings.model import Report
from gpudoctor.nccl.graph import Graph
from gpudoctor.nccl.svg import topology_svg
from gpudoctor.report import overview
from gpudoctor.report.html.markup import graded, scrolling, table, text

_COLUMNS: dict[str, Callable[[Mapping[str, Any]], overview.Said]] = {
    "Temperature": overview.temperature,
    "Power": overview.power,
    "Clock": overview.clock,
    "Slowed by": overview.slowed,
    "Busy": overview.busy,
    "PCIe": overview.pcie,
    "NVLink": overview.nvlink,
    "ECC": overview.ecc,
}


def node(report: Report, level: int = 2) -> Iterator[str]:
    """Yield the section; nothing where nothing is known of the node."""
    parts = [
        *_gpus(report, level + 1),
        *_topology(report, level + 1),
        *_processes(report, level + 1),
        *_pairs("Versions", list(overview.versions(report.node)), level + 1),
        *_pairs("Host", list(overview.host(report.node)), level + 1),
    ]
    if parts:
        yield f"<section><h{level}>The node</h{level}>"
        yield from parts
        yield "</section>"


def _gpus(report: Report, level: int) -> Iterator[str]:
    gpus = overview.gpus(report.node)
    if not gpus:
        return
    rows = [
        [_name(gpu), graded(overview.state(gpu, report.findings)), _memory(gpu), *(graded(say(gpu)) for say in _COLUMNS.values())]
        for gpu in gpus
    ]  # fmt: skip
    heads = ["GPU", "State", "Memory", *_COLUMNS]
    used = [place for place in range(len(heads)) if any(row[place] for row in rows)]
    yield f"<h{level}>GPUs</h{level}>"
    yield from table(
        f"GPUs ({len(gpus)})",
        [heads[place] for place in used],
        ([row[place] for place in used] for row in rows),
        kind="gpus",
    )


def _name(gpu: Mapping[str, Any]) -> str:
    lead = f"{gpu['index']} · " if gpu.get("index") is not None else ""
    address = overview.short_address(str(gpu.get("pci") or gpu.get("gpu") or ""))
    name = overview.short_name(str(gpu.get("name") or "GPU"))
    return f'{text(lead + name)}<br><span class="small">{text(address)}</span>'


def _memory(gpu: Mapping[str, Any]) -> str:
    said = graded(overview.memory(gpu))
    total, used = gpu.get("memory_total"), gpu.get("memory_used")
    if not said or used is None:
        return said
    share = min(100, max(0, round(100 * used / total)))
    return f'{said}<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect width="{share}" height="8"/></svg>'


def _processes(report: Report, level: int) -> Iterator[str]:
    processes = report.node.get("processes") or []
    if not processes:
        return
    rows = []
    for process in processes:
        memory = process.get("memory")
        gone = ("gone", "warning") if process.get("alive") is False else ("", "")
        rows.append(
            (
                text(process["pid"]),
                text(process.get("name") or "not known") + (f" {graded(gone)}" if gone[0] else ""),
                text(overview.short_address(str(process["gpu"]))),
                text(f"{memory / 1024:.1f} GiB" if memory is not None else ""),
            )
        )
    yield f"<h{level}>Processes on the GPUs</h{level}>"
    yield from table(f"Processes ({len(rows)})", ("PID", "Program", "GPU", "GPU memory"), rows)


def _pairs(title: str, pairs: list[tuple[str, str, str]], level: int) -> Iterator[str]:
    if pairs:
        rows = [(text(name), text(value) + (f" {graded((wrong, 'warning'))}" if wrong else "")) for name, value, wrong in pairs]  # fmt: skip
        yield f"<h{level}>{title}</h{level}>"
        yield from table(title, ("What", "Value"), rows, kind="plain")


def _topology(report: Report, level: int) -> Iterator[str]:
    topology = report.node.get("topology") or {}
    devices = [overview.short_address(str(name)) for name in topology.get("devices") or []]
    drawing = topology_svg(report.graph) if isinstance(report.graph, Graph) and len(report.graph.gpus) > 1 else ""
    if not (devices or drawing):
        return
    yield f"<h{level}>How they reach each other</h{level}>"
    if drawing:
        yield from scrolling("Drawing of the topology", [drawing])
    numa = topology.get("numa") or {}
    heads = ["Device", *devices, *(["NUMA"] if numa else [])]
    rows = [
        (
            text(short),
            *(f'<span class="path-{_kind(path)}">{text(path)}</span>' for path in paths),
            *([text(numa.get(name, ""))] if numa else []),
        )
        for short, name, paths in zip(devices, topology.get("devices") or [], topology.get("paths") or [], strict=True)
    ]
    if rows:
        yield from table("Paths between devices", heads, rows, kind="matrix")
    used = {_kind(path) for paths in topology.get("paths") or [] for path in paths}
    said = [f'<li><span class="path-{kind}">{kind}</span> {text(words)}</li>' for kind, words in overview.PATHS.items() if kind in used]  # fmt: skip
    if said:
        yield f'<ul class="legend">{"".join(said)}</ul>'


def _kind(path: str) -> str:
    return "NV" if path.startswith("NV") else path if path in overview.PATHS else "none"
