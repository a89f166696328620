"""A machine's graph as text: the matrix, the tree, and what is below par; and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import asdict

from gpudoctor.nccl.graph import Graph, Node

_MARK = "!"
_LEGEND = (
    ("NV", "NV#  that many NVLinks"),
    ("PIX", "PIX  through one PCIe switch"),
    ("PXB", "PXB  through several PCIe bridges, not through the CPU"),
    ("PHB", "PHB  through a PCIe host bridge (the CPU)"),
    ("NODE", "NODE through the CPU, within one NUMA node"),
    ("SYS", "SYS  over the link between the CPU sockets"),
)


def as_text(graph: Graph) -> str:
    """Return the drawing, at most as wide as its matrix needs."""
    return "\n".join(_lines(graph)) + "\n"


def _lines(graph: Graph) -> Iterator[str]:
    if not graph.gpus:
        yield "No GPU found."
        return
    yield from matrix(graph)
    yield ""
    yield from tree(graph)
    yield ""
    if graph.switches:
        yield f"NVSwitches: {graph.switches}"
    if graph.iommu:
        yield f"IOMMU: {graph.iommu}"
    if graph.gpudirect:
        yield f"GPUDirect RDMA: {graph.gpudirect}"
    below = graph.below_par
    if below:
        yield f"Below par ({_MARK}):"
        yield from (f"  {line}" for line in below)
    else:
        yield "Below par: nothing that the evidence shows"
    if graph.unknown:
        yield "Not known, and what would tell:"
        yield from (f"  {line}" for line in graph.unknown)


def matrix(graph: Graph) -> Iterator[str]:
    """Yield the matrix of paths, a legend of the words in it below."""
    everyone = [*graph.gpus, *graph.nics]
    cells = [["", *(node.name for node in everyone)]]
    words: set[str] = set()
    for a in everyone:
        row = [a.name]
        for b in everyone:
            path = None if a is b else graph.path(a.name, b.name)
            if path:
                words.add(path.path)
            row.append("-" if a is b else f"{path.path}{_MARK if path.marks else ''}" if path else ".")
        cells.append(row)
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    for row in cells:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
    yield from (f"  {text}" for word, text in _LEGEND if any(shown.startswith(word) for shown in words))


def tree(graph: Graph) -> Iterator[str]:
    """Yield NUMA nodes, the PCIe bridges below them, and their GPUs and adapters."""
    leaves = [*graph.gpus, *graph.nics]
    for numa in sorted({node.numa for node in leaves}, key=lambda number: (number is None, number or 0)):
        yield "NUMA node not known" if numa is None else f"NUMA node {numa}"
        below: dict[str, list[Node]] = {}
        roots: list[Node] = []
        for leaf in (node for node in leaves if node.numa == numa):
            child = leaf
            while (pci := graph.parents.get(child.pci or "")) and (bridge := graph.bridges.get(pci)):
                known = below.setdefault(pci, [])
                if any(child is other for other in known):
                    break
                known.append(child)
                child = bridge
            else:
                if not any(child is other for other in roots):
                    roots.append(child)
        yield from _branches(roots, below, "")


def _branches(nodes: list[Node], below: dict[str, list[Node]], indent: str) -> Iterator[str]:
    for place, node in enumerate(nodes):
        last = place == len(nodes) - 1
        yield f"{indent}{'└─' if last else '├─'} {describe(node)}"
        inside = below.get(node.pci or "", []) if node.kind == "bridge" else []
        yield from _branches(inside, below, indent + ("   " if last else "│  "))


def describe(node: Node) -> str:
    """Return one line about a device."""
    parts = [node.name]
    if node.kind == "gpu":
        parts += [node.label or "", node.pci or ""]
        if node.width:
            parts.append(_link(node))
        if node.nvlinks:
            parts.append(f"{node.nvlinks} NVLinks")
        if node.near:
            parts.append(f"nearest adapter {', '.join(node.near[:4])}")
    elif node.kind == "nic":
        parts += [node.pci or "", f"{node.rate:g} Gb/s" if node.rate else "", node.link_layer or "", node.state or ""]
    else:
        parts.append(node.label or "PCIe bridge")
        if node.acs is not None:
            parts.append("ACS redirects" if node.acs else "ACS off")
    text = "  ".join(part for part in parts if part)
    return f"{text}  {_MARK} {'; '.join(node.marks)}" if node.marks else text


def _link(node: Node) -> str:
    """The PCIe link now; an idle GPU lowers its generation, so what is possible is told as well."""
    now = f"PCIe {node.generation}.0 x{node.width}" if node.generation else f"PCIe x{node.width}"
    more = (node.generation_max or 0) > (node.generation or 9) or (node.width_max or 0) > (node.width or 0)
    if not more:
        return now
    return f"{now} (of {f'{node.generation_max}.0 ' if node.generation_max else ''}x{node.width_max or node.width})"


def as_data(graph: Graph) -> dict[str, Any]:
    """Return the graph as plain data for JSON."""
    return {
        "gpus": [asdict(node) for node in graph.gpus],
        "nics": [asdict(node) for node in graph.nics],
        "bridges": [asdict(node) for node in graph.bridges.values()],
        "paths": [asdict(path) for path in graph.paths.values()],
        "pci_parents": {
            node.pci: graph.parents[node.pci]
            for node in (*graph.gpus, *graph.nics, *graph.bridges.values())
            if node.pci in graph.parents
        },
        "nvswitches": graph.switches,
        "iommu": graph.iommu,
        "gpudirect_rdma": graph.gpudirect,
        "below_par": graph.below_par,
        "unknown": graph.unknown,
    }
