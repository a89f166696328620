"""The page: the answer first, then why and what to do, then the node, the timeline, and what could not be told."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from textwrap import shorten

from gpudoctor.findings.model import Report
from gpudoctor.report.html.findings import anchors, findings, undecided
from gpudoctor.report.html.markup import graded, listed, mark, table, text
from gpudoctor.report.html.node import node
from gpudoctor.report.html.timeline import timeline
from gpudoctor.report.overview import node_words
from gpudoctor.report.tree import Tree

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def render_html(report: Report) -> str:
    """Return the page."""
    return "\n".join(_page(report)) + "\n"


def _page(report: Report) -> Iterator[str]:
    style = files("gpudoctor.report.html").joinpath("page.css").read_text(encoding="utf-8")
    yield "<!DOCTYPE html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{text(_POLICY)}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    title = shorten(f"{report.status.upper()}: {report.summary}", 70, placeholder="…")
    yield f"<title>{text(title)}</title>"
    yield f"<style>\n{style}</style></head><body>"
    yield from _header(report)
    yield "<main>"
    if report.nodes:
        yield from _nodes(report)
    else:
        yield from _one(report, Tree(report.findings), "", 2)
    yield "</main>"
    yield from _footer(report)
    yield "</body></html>"


def _header(report: Report) -> Iterator[str]:
    yield f'<header><h1>{mark(report.status)} <span class="{report.status}">{report.status.upper()}</span>: {text(report.summary)}</h1>'
    if words := node_words(report, " · "):
        yield f"<p>{text(words)}</p>"
    source = report.source
    when = f", {source.collected_at}" if source.collected_at else ""
    live = f"Examined live{'' if source.path == '/' else f' below {source.path}'}"
    yield f'<p class="meta">{text((live if source.kind == "live" else f"From {source.kind} {source.path}") + when)}</p>'
    if not source.complete:
        yield f"<p>{graded(('The evidence is incomplete: some of it could not be read.', 'warning'))}</p>"
    yield "</header>"


def _one(report: Report, tree: Tree, prefix: str, level: int) -> Iterator[str]:
    """Yield everything about one node; `prefix` keeps its ids apart from those of other nodes."""
    ids = anchors(tree, prefix)
    yield from findings(tree, ids, level)
    yield from node(report, level)
    yield from timeline(report, ids, level)
    yield from undecided(report.undecided, level)
    yield from _suppressed(report, level)
    yield from _account(report, level)


def _nodes(report: Report) -> Iterator[str]:
    """Yield what several nodes share, the list of them, and each of them folded."""
    tree = Tree(report.findings)
    yield from findings(tree, anchors(tree), 2)
    names = [node.source.path or "what belongs to none" for node in report.nodes]
    rows = [
        (f'<a href="#node-{number}">{text(name)}</a>', graded((one.status, one.status)), text(one.summary))
        for number, (name, one) in enumerate(zip(names, report.nodes, strict=True), start=1)
    ]
    yield "<section><h2>Nodes</h2>"
    yield from table(f"Nodes ({len(rows)})", ("Node", "Status", "Summary"), rows, kind="plain")
    for number, (name, one) in enumerate(zip(names, report.nodes, strict=True), start=1):
        yield f'<details class="node" id="node-{number}"><summary><h3>{mark(one.status)} {text(name)}: {text(one.summary)}</h3></summary>'
        label = ' aria-label="'  # names of what scrolls are told apart by their node
        yield from (
            part.replace(label, f"{label}{text(name)}: ")
            for part in _one(one, Tree(one.findings), f"node-{number}-", 4)
        )
        yield "</details>"
    yield "</section>"


def _suppressed(report: Report, level: int) -> Iterator[str]:
    if report.suppressed:
        rows = [
            (text(entry.finding.title), f"<code>{text(entry.finding.key)}</code>", text(entry.suppression.reason), text(entry.suppression.expires))
            for entry in report.suppressed
        ]  # fmt: skip
        yield f"<section><h{level}>Suppressed, not counted</h{level}>"
        yield from table("Suppressed findings", ("Finding", "Key", "Reason", "Until"), rows)
        yield "</section>"
    if report.expired_suppressions:
        yield f"<section><h{level}>Suppressions that have expired</h{level}>"
        yield listed(f"{old.id} for {old.subject}: {old.reason}, until {old.expires}" for old in report.expired_suppressions)  # fmt: skip
        yield "</section>"


def _account(report: Report, level: int) -> Iterator[str]:
    """Yield what was asked and read, so that a reader knows what the answer rests on."""
    if not (report.probes or report.source.problems or report.source.read):
        return
    yield f"<section><h{level}>What this rests on</h{level}>"
    if report.source.problems:
        yield f"<p>Could not be read:</p>{listed(report.source.problems)}"
    silent = [probe for probe in report.probes if probe.status in ("failed", "timeout", "denied")]
    if silent:
        yield f"<p>Probes that gave no answer:</p>{listed(f'{p.name}: {p.status}' + (f' ({p.reason})' if p.reason else '') for p in silent)}"
    if report.probes:
        rows = [(text(p.name), text(p.status), f"{p.seconds:.1f} s" if p.seconds >= 0.05 else "", text(p.reason)) for p in report.probes]  # fmt: skip
        yield f'<details class="account"><summary>All probes ({len(rows)})</summary>'
        yield from table("Probes", ("Probe", "Status", "Time", "Reason"), rows)
        yield "</details>"
    if report.source.read:
        yield f'<details class="account"><summary>Parts that were read ({len(report.source.read)})</summary>{listed(report.source.read)}</details>'
    if report.source.skipped:
        yield f'<details class="account"><summary>Parts that hold no evidence ({len(report.source.skipped)})</summary>{listed(report.source.skipped)}</details>'
    yield "</section>"


def _footer(report: Report) -> Iterator[str]:
    info = report.gpudoctor
    yield f'<footer class="meta">{text(f"gpudoctor {info.version}, {info.rules} rules, {info.engine} engine, Python {info.python}")}. It only reads; no command above was run.</footer>'
