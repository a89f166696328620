"""The text report: the answer first, then why, then what to do, then the rest."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from gpudoctor.findings.model import Finding, Report, Suppression
from gpudoctor.report.evidence import quote
from gpudoctor.report.overview import asks, node_words, seen_words, subjects_words
from gpudoctor.report.tree import Tree

WIDTH = 100
_MARK = {"critical": "CRITICAL", "warning": "WARNING", "info": "INFO"}
_SHOWN_EVIDENCE = 4
_SHOWN_ASKS = 5
_SHOWN_SKIPPED = 3
_BUNDLES = ("nvidia-bug-report", "sosreport", "supportconfig")


def render_text(report: Report) -> str:
    """Return the report for a terminal or a ticket, plain text of at most 100 columns where lines can be broken."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"{report.status.upper()}: {report.summary}."
    if words := node_words(report):
        yield from _wrapped(words, "")
    yield ""
    tree = Tree(report.findings)
    plain = () if report.nodes else ("node", report.node.get("host"))  # the one machine that all is about
    for number, finding in enumerate(tree.roots, start=1):
        yield from _finding(number, finding, tree, plain)
        yield ""
    yield from _footer(report)


def _finding(number: int, finding: Finding, tree: Tree, plain: tuple[str | None, ...]) -> Iterator[str]:
    parts = [subject for subject in finding.subjects if subject.kind != "node"] if plain else []
    others = [subject for subject in finding.subjects if subject.name not in plain]
    about = subjects_words(parts or others)
    mark = "ADVICE" if finding.role == "advice" else _MARK[finding.severity]
    yield from _wrapped(f"{number}. {mark} {finding.title}" + (f" [{about}]" if about else ""), "", "   ")
    yield f"   {finding.id}, {finding.confidence}"
    yield from _wrapped(finding.because, "   ")
    if finding.evidence:
        yield "   Evidence:"
        for where in finding.evidence[:_SHOWN_EVIDENCE]:
            yield f"     {where}"
            if said := quote(where):
                yield from _wrapped(said, "       | ")
        more = len(finding.evidence) - _SHOWN_EVIDENCE
        if more > 0:
            yield f"     and {more} more place{'s' if more > 1 else ''}"
    if seen := seen_words(finding):
        yield f"   {seen[0].upper()}{seen[1:]}."
    if tree.below(finding):
        yield "   It explains:"
        for depth, other in tree.all_below(finding):
            indent = " " * (5 + 2 * min(depth, 8))
            yield from _wrapped(f"- {other.title} ({other.id})", indent, indent + "  ")
    if finding.fixes:
        yield "   What to do:"
        for step, fix in enumerate(finding.fixes, start=1):
            needs = f"; needs {', '.join(fix.needs)}" if fix.needs else ""
            yield from _wrapped(f"{step}) {fix.title} [{fix.risk}{needs}]", "     ", "        ")
            if fix.why:
                yield from _wrapped(fix.why, "        ")
            for command in fix.commands:
                yield f"        {'' if command.startswith('#') else '$ '}{command}"
    if finding.verify.probes:
        yield from _wrapped(f"Verify: run gpudoctor again; it looks at {', '.join(finding.verify.probes)}.", "   ")


def _footer(report: Report) -> Iterator[str]:
    areas = {finding.id.partition(".")[0] for finding in report.findings if finding.role == "cause"}
    near = [entry for entry in report.undecided if not areas or entry.id.partition(".")[0] in areas]
    if report.undecided:
        yield "Could not be decided:"
        wanted = list(asks(near).items())[:_SHOWN_ASKS]
        for ask, ids in wanted:
            yield from _wrapped(f"- {', '.join(ids)}: {ask}", "  ", "    ")
        if more := len(report.undecided) - sum(len(ids) for _, ids in wanted):
            yield f"  {'and ' if wanted else ''}{more} {'more ' if wanted else ''}rule{'s' if more > 1 else ''}; --json lists them"
        yield ""
    if report.suppressed:
        yield "Suppressed, not counted:"
        for entry in report.suppressed:
            yield from _wrapped(
                f"- {entry.finding.title} ({entry.finding.key}): {_until(entry.suppression)}", "  ", "    "
            )
        yield ""
    if report.expired_suppressions:
        yield "Suppressions that have expired; what they name counts again:"
        for old in report.expired_suppressions:
            yield from _wrapped(f"- {old.id} for {old.subject}: {_until(old)}", "  ", "    ")
        yield ""
    failed = [probe for probe in report.probes if probe.status in ("failed", "timeout", "denied")]
    if failed:
        yield "Probes that gave no answer:"
        for probe in failed:
            yield from _wrapped(
                f"- {probe.name}: {probe.status}" + (f" ({probe.reason})" if probe.reason else ""), "  ", "    "
            )
        yield ""
    if report.source.problems:
        yield "Could not be read:"
        for problem in report.source.problems[:10]:
            yield from _wrapped(f"- {problem}", "  ", "    ")
        yield ""
    yield from _account(report)
    for node in report.nodes:
        yield from _wrapped(f"- {node.source.path}: {node.status}: {node.summary}.", "  ", "    ")
    info = report.gpudoctor
    yield f"Source: {report.source.kind} {report.source.path}" + ("" if report.source.complete else " (incomplete)")
    yield f"gpudoctor {info.version}, {info.rules} rules, {info.engine} engine"


def _account(report: Report) -> Iterator[str]:
    """Say what a bundle gave, what it lacks, and what such a bundle never holds: what rests on that can't be known."""
    source = report.source
    if source.kind in ("live", "log"):
        return
    count = f"{len(source.read)} part{'' if len(source.read) == 1 else 's'}" if source.read else "nothing known"
    passed = [_last(entry.rpartition(": ")[0]) for entry in source.skipped]
    more = f" and {len(passed) - _SHOWN_SKIPPED} more" if len(passed) > _SHOWN_SKIPPED else ""
    over = f"; passed over: {', '.join(passed[:_SHOWN_SKIPPED])}{more}" if passed else ""
    yield from _wrapped(f"Read: {count}{over} (--json lists them).", "", "  ")
    for status, said in (("absent", "Not in this bundle"), ("skipped", "Never in such a bundle")):
        names = [probe.name for probe in report.probes if probe.status == status]
        if names and source.kind in _BUNDLES:
            yield from _wrapped(f"{said}: {', '.join(names)}.", "", "  ")


def _last(place: str) -> str:
    """Return the section, or the file's name without its folders."""
    path, _, section = place.partition(" § ")
    return section or path.rpartition("/")[2]


def _until(suppression: Suppression) -> str:
    return suppression.reason + ("" if suppression.expires == "never" else f" (until {suppression.expires})")


def _wrapped(text: str, first: str, rest: str | None = None) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=first if rest is None else rest, break_on_hyphens=False
    ) or [first.rstrip()]
