"""How GPUs and network adapters reach each other, as a matrix coloured by the kind of path, with the NUMA node of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.cells import cell_len

from gpudoctor.report.overview import PATHS, short_address
from gpudoctor.tui.rows import Part, Row, column, fit, heading, paragraph, plain, row

_STYLES = {"NV": "ok", "PIX": "ok", "PXB": "info", "PHB": "info", "NODE": "warning", "SYS": "critical"}
_NUMA = ("numa-0", "numa-1")  # styles, in turn


def topology_rows(node: Mapping[str, Any], width: int) -> Iterator[Row]:
    """Yield the matrix; where it is wider than the screen, in parts one below the other."""
    topology = node.get("topology") or {}
    names = [str(name) for name in topology.get("devices") or []]
    if not names:
        return
    devices = [plain(short_address(name)) for name in names]
    numa: Mapping[str, int] = topology.get("numa") or {}
    lead = max(map(cell_len, devices)) + (9 if numa else 2)
    wide = max(5, *(cell_len(name) for name in devices)) + 1
    fits = max(1, (width - lead) // wide)
    yield heading("How they reach each other", width)
    for start in range(0, len(devices), fits):
        part = slice(start, start + fits)
        yield row(" " * lead, *((column(name, wide), "dim") for name in devices[part]))
        for name, device, paths in zip(devices, names, topology["paths"], strict=True):
            label: list[Part] = [(f"{name} ", "bold")]
            if (place := numa.get(device)) is not None:
                label.append((f"NUMA {place}", _NUMA[place % len(_NUMA)]))
            gap = " " * (lead - sum(cell_len(text) for text, _ in label))
            cells = [(column(plain(path), wide), _style(path)) for path in paths[part]]
            yield row(*label, gap, *cells)
    used = {_kind(path) for paths in topology["paths"] for path in paths}
    for kind, words in PATHS.items():
        if kind in used:
            yield row((column(kind, lead), _STYLES[kind]), (fit(words, width - lead), "dim"))
    if "NV" not in used and any(link["active"] for link in (node.get("nvlink") or {}).values()):
        yield from paragraph("These are the PCIe paths. NVLink is up as well; see the GPUs above.", width, "dim")
    yield row("")


def _kind(path: str) -> str:
    return "NV" if path.startswith("NV") else path


def _style(path: str) -> str:
    return _STYLES.get(_kind(path), "dim")
