"""A machine's graph as one self-contained SVG drawing, for HTML pages.

Devices stand in a row. Bars below them show what their PCIe traffic passes: the longer the way, the lower the bar. NVLinks run
above them, to a bar where NVSwitches join the GPUs, else as arcs from GPU to GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape

from gpudoctor.nccl.graph import SWITCHED, Graph, Node, nvlinks_of, pcie_path

_COLOURS = {
    "NV": "#2e9d3a",
    "PIX": "#2f7ed8",
    "PXB": "#1a9c9c",
    "PHB": "#c98a00",
    "NODE": "#d9722b",
    "SYS": "#9a4fc0",
    "bad": "#d3312a",
}
_LEVELS = {
    "PIX": "PCIe switch",
    "PXB": "PCIe bridges",
    "PHB": "PCIe host bridge",
    "NODE": "within the NUMA node",
    "SYS": "between the CPU sockets",
}
_BETTER = {"PIX": ("PIX", "PSB"), "PXB": ("PXB",), "PHB": ("PHB",), "NODE": ("NODE",), "SYS": ("SYS", "SOC")}
_CELL, _BOX, _TALL, _LEVEL, _MARGIN, _LINE = 116, 104, 62, 44, 14, 17
_MARKS = 12  # lines about what is below par

Cluster = tuple[str, list[Node], list["Cluster"]]  # level, devices in it, what it is made of


def topology_svg(graph: Graph) -> str:
    """Return the drawing; nothing where there is no GPU. It takes text and line colour from the page around it."""
    if not graph.gpus:
        return ""
    top = _clusters(graph)
    order = _leaves(top)
    left = {id(node): _MARGIN + place * _CELL for place, node in enumerate(order)}
    switched = _switched(graph)
    arcs = [] if switched else _arcs(graph)
    height_above = 46 if switched else _arc_room(graph, arcs, left)
    row = _MARGIN + height_above
    parts = list(_nvlinks(graph, left, row, switched, arcs))
    bars: list[str] = []
    bottom = _bars(graph, top, left, row + _TALL, bars)
    parts += bars
    for node in order:
        parts += _device(node, left[id(node)], row)
    width = max(2 * _MARGIN + len(order) * _CELL, 560)
    parts += _captions(graph, parts, bottom)
    height = bottom + _LINE * (2 + len(_said(graph))) + _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="system-ui,sans-serif" font-size="12" fill="currentColor">'
        f"<title>{_text(_title(graph))}</title><desc>{_text(_described(graph))}</desc>{''.join(parts)}</svg>"
    )


def _title(graph: Graph) -> str:
    return f"Topology: {len(graph.gpus)} GPUs, {len(graph.nics)} network adapters"


def _described(graph: Graph) -> str:
    """What somebody who can't see the drawing needs: how the GPUs are joined, and what is wrong."""
    kinds: dict[str, int] = {}
    for path in graph.paths.values():
        if path.a.startswith("GPU") and path.b.startswith("GPU"):
            kinds[path.path] = kinds.get(path.path, 0) + 1
    joined = ", ".join(f"{number} pairs by {kind}" for kind, number in sorted(kinds.items()))
    return f"GPUs: {joined or 'paths not known'}. Below par: {'; '.join(graph.below_par[:_MARKS]) or 'nothing'}."


def _text(text: str) -> str:
    return escape("".join(char for char in text if char.isprintable()))


def _leaves(clusters: list[Cluster]) -> list[Node]:
    return [node for _, nodes, _ in clusters for node in nodes]


def _clusters(graph: Graph) -> list[Cluster]:
    """Devices that reach each other without passing more than a level, level by level; in the order in which they are drawn."""
    found: list[Cluster] = [("", [node], []) for node in (*graph.gpus, *graph.nics)]
    for level in _LEVELS:
        found = _merged(found, level, lambda a, b, words=_BETTER[level]: pcie_path(graph, a, b) in words)  # type: ignore[misc]
    return found


def _merged(clusters: list[Cluster], level: str, near: Callable[[Node, Node], bool]) -> list[Cluster]:
    groups: list[list[Cluster]] = []
    for cluster in clusters:
        joins = [group for group in groups if any(near(a, b) for other in group for a in other[1] for b in cluster[1])]
        together = [member for group in joins for member in group] + [cluster]
        groups = [group for group in groups if not any(group is other for other in joins)] + [together]
    merged: list[Cluster] = []
    for group in groups:
        group.sort(key=_place)
        merged.append(group[0] if len(group) == 1 else (level, [node for part in group for node in part[1]], group))
    return sorted(merged, key=_place)


def _place(cluster: Cluster) -> tuple[int, int, str]:
    """GPUs by their number, adapters alone at the end."""
    first = cluster[1][0]
    number = first.name.removeprefix("GPU")
    return (0, int(number), "") if first.kind == "gpu" and number.isdigit() else (1, 0, first.name)


def _switched(graph: Graph) -> bool:
    pairs = [path for path in graph.paths.values() if nvlinks_of(path.path)]
    return bool(pairs) and (graph.switches > 0 or max(nvlinks_of(path.path) for path in pairs) >= SWITCHED) and len(graph.gpus) > 2  # fmt: skip


def _arcs(graph: Graph) -> list[tuple[Node, Node, int]]:
    return [
        (a, b, links)
        for place, a in enumerate(graph.gpus)
        for b in graph.gpus[place + 1 :]
        if (path := graph.path(a.name, b.name)) and (links := nvlinks_of(path.path))
    ]


def _arc_height(a: Node, b: Node, left: dict[int, int]) -> int:
    return 16 + 11 * abs(left[id(a)] - left[id(b)]) // _CELL


def _arc_room(graph: Graph, arcs: list[tuple[Node, Node, int]], left: dict[int, int]) -> int:
    return max((_arc_height(a, b, left) + 16 for a, b, _ in arcs), default=0)


def _nvlinks(
    graph: Graph, left: dict[int, int], row: int, switched: bool, arcs: list[tuple[Node, Node, int]]
) -> Iterator[str]:
    colour = _COLOURS["NV"]
    if switched:
        joined = {gpu.name: _most_links(graph, gpu) for gpu in graph.gpus}
        middles = [left[id(gpu)] + _BOX // 2 for gpu in graph.gpus if joined[gpu.name]]
        start, end = min(middles) - _BOX // 2, max(middles) + _BOX // 2
        yield _bar(start, end - start, _MARGIN, colour, f"{graph.switches or ''} NVSwitches".strip())
        for gpu in graph.gpus:
            if links := joined[gpu.name]:
                middle = left[id(gpu)] + _BOX // 2
                bad = any("NVLink" in mark for mark in gpu.marks)
                yield _stroke(middle, _MARGIN + 20, middle, row, _COLOURS["bad"] if bad else colour, 3)
                yield _label(middle + 5, row - 8, f"{gpu.nvlinks or links} links")
    for a, b, links in arcs:
        start, end = sorted((left[id(a)] + _BOX // 2, left[id(b)] + _BOX // 2))
        peak = row - 2 * _arc_height(a, b, left)
        path = graph.path(a.name, b.name)
        shade = _COLOURS["bad"] if path and path.marks else colour
        yield (
            f'<path d="M{start} {row}Q{(start + end) // 2} {peak} {end} {row}" fill="none" stroke="{shade}" '
            f'stroke-width="{min(1 + links / 2, 5):g}"><title>{_text(f"{a.name} - {b.name}: NV{links}")}</title></path>'
        )
        yield _label((start + end) // 2 - 12, row - _arc_height(a, b, left) - 4, f"NV{links}")


def _most_links(graph: Graph, gpu: Node) -> int:
    paths = (graph.path(gpu.name, other.name) for other in graph.gpus if other is not gpu)
    return max((nvlinks_of(path.path) for path in paths if path), default=0)


def _bars(graph: Graph, clusters: list[Cluster], left: dict[int, int], above: int, out: list[str]) -> int:
    """Draw the clusters' bars, the inner ones first; returns where the drawing ends."""
    ends = [_cluster(graph, cluster, left, above, out) for cluster in clusters]
    return max(end for _, end in ends) + 24


def _cluster(graph: Graph, cluster: Cluster, left: dict[int, int], above: int, out: list[str]) -> tuple[int, int]:
    """Returns the cluster's middle and its lower edge."""
    level, nodes, parts = cluster
    start, end = left[id(nodes[0])], left[id(nodes[-1])] + _BOX
    if not parts:
        return (start + end) // 2, above
    inside = [(part, *_cluster(graph, part, left, above, out)) for part in parts]
    top = max(edge for *_, edge in inside) + _LEVEL - 20
    marked = [bridge for bridge in _shared_bridges(graph, nodes) if bridge.marks] if level in ("PIX", "PXB") else []
    colour = _COLOURS["bad"] if marked else _COLOURS[level]
    for part, middle, edge in inside:
        slow = not part[2] and any("PCIe" in mark for mark in part[1][0].marks)
        out.append(_stroke(middle, edge, middle, top, _COLOURS["bad"] if slow else _COLOURS[level], 2))
    out.append(_bar(start, end - start, top, colour, _named(graph, level, nodes, marked)))
    return (start + end) // 2, top + 20


def _named(graph: Graph, level: str, nodes: list[Node], marked: list[Node]) -> str:
    numas = {node.numa for node in nodes} - {None}
    name = f"NUMA node {min(number for number in numas if number is not None)}" if level == "NODE" and len(numas) == 1 else _LEVELS[level]  # fmt: skip
    if level in ("PIX", "PXB") and (bridges := _shared_bridges(graph, nodes)):
        name += f" {bridges[0].name}"
    return f"{name}  ! {marked[0].marks[0]}" if marked else name


def _shared_bridges(graph: Graph, nodes: list[Node]) -> list[Node]:
    """The bridges that all of them hang on, the nearest first, where the PCI tree is known."""
    chains: list[list[str]] = []
    for node in nodes:
        chain: list[str] = []
        pci = node.pci
        while pci is not None and (pci := graph.parents.get(pci)) and pci not in chain:
            chain.append(pci)
        chains.append(chain)
    return [graph.bridges[pci] for pci in chains[0] if pci in graph.bridges and all(pci in chain for chain in chains)]


def _device(node: Node, x: int, y: int) -> Iterator[str]:
    edge = _COLOURS["bad"] if node.marks else "currentColor"
    label = (node.label or "").removeprefix("NVIDIA ").rpartition("[")[2].rstrip("]")
    link = f"PCIe {node.generation}.0 x{node.width}" if node.width and node.generation else f"PCIe x{node.width}" if node.width else ""  # fmt: skip
    below = [label, link] if node.kind == "gpu" else [f"{node.rate:g} Gb/s" if node.rate else "", node.state or ""]
    whole = "; ".join(part for part in (node.name, node.label, node.pci, *node.marks) if part)
    yield (
        f'<g><title>{_text(whole)}</title><rect x="{x}" y="{y}" width="{_BOX}" height="{_TALL}" rx="{6 if node.kind == "gpu" else 20}" '
        f'fill="{edge}" fill-opacity="0.08" stroke="{edge}" stroke-width="{2 if node.marks else 1}"/>'
    )
    yield f'<text x="{x + _BOX // 2}" y="{y + 18}" text-anchor="middle" font-weight="600">{_text(node.name[:14])}{" !" if node.marks else ""}</text>'
    for place, text in enumerate(part for part in below if part):
        yield f'<text x="{x + _BOX // 2}" y="{y + 35 + 15 * place}" text-anchor="middle" font-size="10">{_text(text[:17])}</text>'
    yield "</g>"


def _captions(graph: Graph, parts: list[str], y: int) -> Iterator[str]:
    """The colours that were used, and below them what is below par."""
    drawn = "".join(parts)
    x = _MARGIN
    for level, text in (("NV", "NVLink"), *_LEVELS.items(), ("bad", "below par")):
        if _COLOURS[level] in drawn:
            yield f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{_COLOURS[level]}"/>'
            yield _label(x + 14, y, text if level in ("NV", "bad") else f"{level}: {text}")
            x += 26 + 7 * len(text if level in ("NV", "bad") else f"{level}: {text}")
    for place, line in enumerate(_said(graph), start=1):
        yield _label(_MARGIN, y + 6 + _LINE * place, line)


def _said(graph: Graph) -> list[str]:
    lines = [f"! {line}" for line in graph.below_par[:_MARKS]]
    if more := len(graph.below_par) - _MARKS:
        lines += [f"! and {more} more"] if more > 0 else []
    return lines


def _bar(x: int, width: int, y: int, colour: str, text: str) -> str:
    room = max(4, width // 6 - 2)
    shown = text if len(text) <= room else text[: room - 1] + "…"
    return (
        f'<g><title>{_text(text)}</title><rect x="{x}" y="{y}" width="{width}" height="20" rx="3" fill="{colour}" fill-opacity="0.2" stroke="{colour}"/>'
        f'<text x="{x + width // 2}" y="{y + 14}" text-anchor="middle" font-size="11">{_text(shown)}</text></g>'
    )


def _stroke(x1: int, y1: int, x2: int, y2: int, colour: str, width: int) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-width="{width}"/>'


def _label(x: int, y: int, text: str) -> str:
    return f'<text x="{x}" y="{y}" font-size="11">{_text(text)}</text>'
