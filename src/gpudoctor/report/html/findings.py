"""What is wrong: each cause with its evidence, what it explains folded under it, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpudoctor.findings.model import Finding, Fix, Undecided
from gpudoctor.report.evidence import quote
from gpudoctor.report.html.markup import mark, prose, table, text
from gpudoctor.report.overview import asks, seen_words, subjects_words
from gpudoctor.report.tree import Tree

_SHOWN_EVIDENCE = 40
_RISKS = {
    "read-only": "read-only",
    "safe": "safe",
    "restarts-app": "restarts programs",
    "disrupts-node": "disrupts the node",
    "data-loss": "may lose data",
    "vendor": "for the vendor",
}


def anchors(tree: Tree, prefix: str = "") -> dict[str, str]:
    """Return the id on the page for each finding's key."""
    ids = {finding.key: f"{prefix}finding-{number}" for number, finding in enumerate(tree.findings, start=1)}
    return {key: ids[speaker] for key, speaker in tree.key_of.items()}


def findings(tree: Tree, ids: dict[str, str], level: int = 2) -> Iterator[str]:
    """Yield the sections of causes and of advice; `level` is that of their headings."""
    causes = [finding for finding in tree.roots if finding.role != "advice"]
    advice = [finding for finding in tree.roots if finding.role == "advice"]
    for title, group in (("What is wrong", causes), ("Worth doing", advice)):
        if group:
            yield f"<section><h{level}>{title}</h{level}>"
            for finding in group:
                yield from _finding(finding, tree, ids, level + 1)
            yield "</section>"


def undecided(entries: Sequence[Undecided], level: int = 2) -> Iterator[str]:
    """Yield what could not be decided, and what would decide it."""
    if not entries:
        return
    yield f"<section><h{level}>Could not be decided</h{level}>"
    yield "<p>These may or may not be so: what would tell it was not read.</p>"
    rows = [
        (prose(ask[:1].upper() + ask[1:]), "<br>".join(f"<code>{text(name)}</code>" for name in ids))
        for ask, ids in asks(entries).items()
    ]
    yield from table("What would decide it", ("What to do", "What that would decide"), rows, kind="plain")
    yield "</section>"


def _grade(finding: Finding) -> str:
    return "advice" if finding.role == "advice" else finding.severity


def _finding(finding: Finding, tree: Tree, ids: dict[str, str], level: int) -> Iterator[str]:
    grade = _grade(finding)
    yield f'<article class="finding {grade}" id="{ids[finding.key]}">'
    yield f"<h{level}>{mark(grade)} {text(finding.title)}</h{level}>"
    yield _meta(finding)
    yield f'<p class="because">{prose(finding.because)}</p>'
    if finding.evidence or tree.below(finding):
        yield f"<h{level + 1}>Why</h{level + 1}>"
        yield f'<ul class="tree"><li><strong>{text(finding.title)}</strong><ul>'
        yield from _evidence(finding)
        yield from _consequences(finding, tree, ids)
        yield "</ul></li></ul>"
    yield from _ladder(finding, f"h{level + 1}")
    yield "</article>"


def _meta(finding: Finding) -> str:
    about = subjects_words(finding.subjects)
    grade = _grade(finding)
    words = [finding.confidence, about, seen_words(finding), "earlier boot" if finding.history else ""]
    said = " · ".join(text(word) for word in words if word)
    return f'<p class="meta"><span class="badge {grade}">{grade}</span> {said} · <code>{text(finding.id)}</code></p>'


def _evidence(finding: Finding) -> Iterator[str]:
    for where in finding.evidence[:_SHOWN_EVIDENCE]:
        said = quote(where)
        yield f'<li><code class="place">{text(where)}</code>' + (f"<pre>{text(said)}</pre>" if said else "") + "</li>"
    if (more := len(finding.evidence) - _SHOWN_EVIDENCE) > 0:
        yield f"<li>and {more} more places</li>"


def _consequences(finding: Finding, tree: Tree, ids: dict[str, str]) -> Iterator[str]:
    """Yield what a finding explains; to what stands under another cause it points."""
    below, elsewhere = tree.below(finding), tree.elsewhere(finding)
    if not (below or elsewhere):
        return
    yield '<li>so it explains:<ul class="follows">'
    for other in below:
        yield f'<li><details id="{ids[other.key]}"><summary>{mark(_grade(other))} {text(other.title)}</summary>'
        yield f'{_meta(other)}<p>{prose(other.because)}</p><ul class="tree">'
        yield from _evidence(other)
        yield from _consequences(other, tree, ids)
        yield "</ul>"
        yield from _ladder(other, "")
        yield "</details></li>"
    for other in elsewhere:
        yield f'<li>{mark(_grade(other))} <a href="#{ids[other.key]}">{text(other.title)}</a></li>'
    yield "</ul></li>"


def _ladder(finding: Finding, heading: str) -> Iterator[str]:
    """Yield the fixes, how to see that they worked, and references; without a heading the titles are plain lines."""
    start, end = (f"<{heading}>", f"</{heading}>") if heading else ('<p class="label">', "</p>")
    if finding.fixes:
        yield f'{start}What to do, least disruptive first{end}<ol class="ladder">'
        for fix in finding.fixes:
            yield from _fix(fix)
        yield "</ol>"
    if finding.verify.probes:
        probes = ", ".join(finding.verify.probes)
        yield f"{start}See that it worked{end}<p>Run <code>gpudoctor</code> again; it asks {text(probes)}.</p>"
    links = [link for link in finding.references if link.startswith(("https://", "http://"))]
    if links:
        yield f"{start}References{end}"
        yield from (f'<p class="small"><a href="{text(link)}" rel="noreferrer">{text(link)}</a></p>' for link in links)


def _fix(fix: Fix) -> Iterator[str]:
    yield f'<li><p><strong>{text(fix.title)}</strong> <span class="badge risk-{fix.risk}">{_RISKS[fix.risk]}</span>'
    if fix.needs:
        yield f'<span class="needs">needs {text(", ".join(fix.needs))}</span>'
    yield "</p>"
    if fix.why:
        yield f"<p>{prose(fix.why)}</p>"
    if fix.commands:
        lines = "\n".join(
            f'<span class="remark">{text(line)}</span>'
            if command.startswith("#")
            else f'<span class="command">{text(line)}</span>'
            for command in fix.commands
            for line in command.splitlines()
        )
        yield f'<pre class="commands"><code>{lines}</code></pre>'
    yield "</li>"
