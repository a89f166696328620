"""The node at a glance: GPUs with what runs on them, versions, host. Only what was read is shown; what is unknown is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from gpudoctor.report import overview
from gpudoctor.tui.rows import Fold, Goto, OpenNode, Part, Row, column, fit, heading, paragraph, plain, row
from gpudoctor.tui.symbols import SYMBOLS, grade
from gpudoctor.tui.widgets.topology import topology_rows

if TYPE_CHECKING:
    from gpudoctor.findings.model import Finding, Report

_BAR = 10
_INDENT = " " * 6
_PROCESSES = 3  # that are shown of a GPU while it is folded


def node_line(report: Report) -> str:
    """Say in one line which machine this is."""
    words, path = overview.node_words(report), report.source.path
    source = "" if report.source.kind == "live" or path in words else path
    parts = [words, source, "" if report.source.complete else "incomplete"]
    return " · ".join(plain(part) for part in parts if part)


def node_rows(report: Report, width: int, unfolded: set[str]) -> Iterator[Row]:
    """Yield the page: GPUs, then how they are connected, versions, host and source."""
    if report.nodes:
        yield from _nodes(report, width)
        yield row("")
    else:
        yield from _gpus(report, width, unfolded)
        yield row("")
        yield from topology_rows(report.node, width)
        yield from _pairs("Versions", list(overview.versions(report.node)), width, report.findings)
        yield from _pairs("Host", list(overview.host(report.node)), width)
    yield heading("Source", width)
    source = report.source
    yield row(fit(f"{source.kind} {plain(source.path)}", width))
    if source.collected_at:
        yield row(("read ", "dim"), plain(source.collected_at))
    if not source.complete:
        yield from paragraph(
            "incomplete: some of it could not be read", width, "warning", indent="  ", first=f"{SYMBOLS['warning']} "
        )
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
    gpus = overview.gpus(report.node)
    yield heading(f"GPUs ({len(gpus)})", width)
    if not gpus:
        yield from paragraph("No GPU was seen in what could be read.", width, "dim")
    processes: dict[str, list[Mapping[str, Any]]] = {}
    for process in report.node.get("processes") or []:
        processes.setdefault(str(process["gpu"]), []).append(process)
    for number, gpu in enumerate(gpus):
        key = f"gpu:{gpu.get('gpu', number)}"
        is_open = key in unfolded
        mine = processes.pop(str(gpu.get("gpu")), [])
        yield from _gpu(gpu, key, report, width, is_open)
        yield from _processes(mine, key, width, is_open)
        if is_open:
            yield from _everything(gpu, key, width)
    for name, others in processes.items():
        yield row((fit(f"On {plain(name)}, of which nothing else is known", width), "dim"))
        yield from _processes(others, f"gpu:{name}", width, True)


def _gpu(gpu: Mapping[str, Any], key: str, report: Report, width: int, is_open: bool) -> Iterator[Row]:
    """Yield the rows of one GPU: who it is, then as many values to a row as fit."""
    worst = overview.worst(gpu, report.findings)
    lost = gpu.get("state") in ("lost", "error")
    mark = grade(worst) if worst else "critical" if lost else "ok"
    index = gpu.get("index")
    name = f"{'' if index is None else index:>2} {overview.short_name(plain(gpu.get('name') or 'GPU'))}"
    address = plain(overview.short_address(str(gpu.get("pci") or gpu.get("gpu") or "")))
    line: list[Part] = [
        (f"{SYMBOLS['open' if is_open else 'closed']} ", "dim"),
        (f"{SYMBOLS[mark]} ", mark),
        (column(name, 20) + " ", "bold"),
        (column(address, 8), "dim"),
    ]
    first, action = len(line), Fold(key)
    room = width - sum(cell_len(text) for text, _ in line)
    rows = 0
    for text, style in _values(gpu):
        if cell_len(text) + 2 > room:
            yield Row(tuple(line), key=f"{key}:{rows}" if rows else key, action=action)
            line, room, first, rows = [(_INDENT, "")], width - len(_INDENT), 1, rows + 1
        gap = "" if rows and len(line) == first else "  "
        line += [(gap, ""), (fit(text, room - len(gap)), style)]
        room -= cell_len(text) + len(gap)
    yield Row(tuple(line), key=f"{key}:{rows}" if rows else key, action=action)
    if worst is not None:
        label = fit(plain(worst.title), width - len(_INDENT))
        yield row(_INDENT, (label, grade(worst)), key=f"{key}:finding", action=Goto(worst.key))


def _values(gpu: Mapping[str, Any]) -> Iterator[Part]:
    """Yield what matters of a GPU, in the order of interest; each with the style that its value deserves."""
    state = gpu.get("state")
    if state not in (None, "ok"):
        yield plain(state), "critical"
    memory, style = overview.memory(gpu)
    if gpu.get("memory_used") is not None and gpu.get("memory_total"):
        full = round(min(1.0, max(0.0, gpu["memory_used"] / gpu["memory_total"])) * _BAR)
        memory = f"{SYMBOLS['full'] * full}{SYMBOLS['empty'] * (_BAR - full)} {memory}"
    yield from _said("", (memory, style))
    for name, say in (
        ("", overview.temperature),
        ("", overview.power),
        ("busy ", overview.busy),
        ("", overview.clock),
        ("slowed: ", overview.slowed),
        ("PCIe ", overview.pcie),
        ("ECC ", overview.ecc),
        ("NVLink ", overview.nvlink),
    ):
        yield from _said(name, say(gpu))
    if strip := _links(gpu.get("nvlink") or {}):
        yield strip, "warning"
    if gpu.get("mig"):
        yield "MIG", ""


def _said(name: str, said: overview.Said) -> Iterator[Part]:
    text, style = said
    if text:
        yield name + plain(text), style


def _links(nvlink: Mapping[str, Any]) -> str:
    """Draw the links where some are down: which ones tells whether it is one cable, one switch or half the board."""
    down = set(nvlink.get("down") or ())
    if not down:
        return ""
    links = range(max(nvlink["links"], max(down) + 1))
    return "".join(SYMBOLS["failed" if link in down else "link"] for link in links) + (
        f" {', '.join(map(str, sorted(down)))} down" if len(down) <= 4 else ""
    )


def _processes(processes: Sequence[Mapping[str, Any]], key: str, width: int, is_open: bool) -> Iterator[Row]:
    ordered = sorted(processes, key=lambda process: -(process.get("memory") or 0.0))
    shown = ordered if is_open else ordered[:_PROCESSES]
    for process in shown:
        memory = process.get("memory")
        size = f"{memory / 1024:.1f} GiB" if memory is not None else ""
        gone = "  gone" if process.get("alive") is False else ""
        name = plain(process.get("name") or "a process without a name")
        yield row(
            (_INDENT, ""),
            (column(size, 10, right=True) + "  ", ""),
            (column(f"pid {process['pid']}", 12) + "  ", "dim"),
            (fit(name + gone, width - len(_INDENT) - 26), "warning" if gone else ""),
            key=f"{key}:pid:{process['pid']}",
            action=Fold(key),
        )
    if len(ordered) > len(shown):
        words = f"and {len(ordered) - len(shown)} more processes"
        yield row(_INDENT, (words, "dim"), key=f"{key}:processes", action=Fold(key))


def _everything(gpu: Mapping[str, Any], key: str, width: int) -> Iterator[Row]:
    """Yield each value that was read, under its own name."""
    shown = {name: value for name, value in gpu.items() if value is not None and name != "nvlink"}
    wide = max(len(name) for name in shown)
    for name, value in shown.items():
        text = plain(f"{value:g}" if isinstance(value, float) else value)
        label = column(name.replace("_", " "), wide) + "  "
        yield row(_INDENT, (label, "dim"), fit(text, width - wide - 8), key=f"{key}:{name}")


def _pairs(
    title: str, pairs: Sequence[tuple[str, str, str]], width: int, findings: Sequence[Finding] = ()
) -> Iterator[Row]:
    """Yield a row for each (what, value, what is wrong with it); what a finding says of a version is a way to it."""
    if not pairs:
        return
    wide = max(len(plain(name)) for name, _, _ in pairs)
    yield heading(title, width)
    for name, value, wrong in pairs:
        said = plain(value) + (f"  {SYMBOLS['warning']} {plain(wrong)}" if wrong else "")
        label = column(plain(name), wide) + "  "
        yield row((label, "dim"), (fit(said, width - wide - 2), "warning" if wrong else ""), key=f"{title}:{name}")
        told = _about_version(value, findings)
        if told is not None:
            style = grade(told)
            link = (fit(plain(told.title), width - wide - 4), "link")
            yield row(
                " " * (wide + 2),
                (f"{SYMBOLS[style]} ", style),
                link,
                key=f"{title}:{name}:finding",
                action=Goto(told.key),
            )
    yield row("")


def _about_version(version: str, findings: Sequence[Finding]) -> Finding | None:
    """Return the finding of highest rank whose sentence names this very version."""
    exactly = re.compile(rf"(?<![\w.]){re.escape(version)}(?!\.?\w)")
    about = (finding for finding in findings if finding.role == "cause" and exactly.search(finding.because))
    return next(about, None) if version.count(".") else None
