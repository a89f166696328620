"""One finding in full: the answer, what it rests on, what it causes, what to do, how to see that it worked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpudoctor.report.overview import subjects_words
from gpudoctor.report.times import stamp
from gpudoctor.tui.rows import Copy, Goto, OpenLog, Row, acting, chop, fit, heading, paragraph, plain, quoted, row
from gpudoctor.tui.symbols import SYMBOLS, grade

if TYPE_CHECKING:
    from gpudoctor.findings.model import Finding, Fix, Report, Suppressed, Undecided

_SHOWN_EVIDENCE = 40


def detail_rows(finding: Finding, report: Report, width: int) -> Iterator[Row]:
    """Yield the page of a finding."""
    style = grade(finding)
    yield from paragraph(finding.title, width, style, indent="  ", first=f"{SYMBOLS[style]} ")
    words = [style, finding.confidence, finding.role, plain(finding.id)]
    yield from paragraph(" · ".join(dict.fromkeys(words)), width, "dim")
    yield row("")
    yield from paragraph(finding.because, width)
    if finding.subjects:
        yield from paragraph(f"About: {subjects_words(finding.subjects)}", width, "dim")
    if seen := _seen(finding):
        yield from paragraph(seen, width, "dim")
    yield row("")
    yield from _why(finding, report, width)
    yield from _fixes(finding, width)
    if finding.verify.probes:
        yield heading("See that it worked", width)
        yield from paragraph(f"Press w to be led through; it asks {', '.join(finding.verify.probes)} again.", width)
        yield row("")
    if finding.references:
        yield heading("References", width)
        for reference in finding.references:
            yield from acting(paragraph(reference, width, "link"), Copy(plain(reference), "reference"))


def suppressed_rows(suppressed: Suppressed, report: Report, width: int) -> Iterator[Row]:
    """Yield the page of a finding that doesn't count: why not, then the finding."""
    entry = suppressed.suppression
    until = "for good" if entry.expires == "never" else f"up to and including {entry.expires}"
    yield from paragraph(f"Suppressed {until}", width, "suppressed", indent="  ", first=f"{SYMBOLS['suppressed']} ")
    yield from paragraph(f"Reason: {entry.reason}", width)
    whatever = ", whatever it is about" if entry.subject == "*" else f", about {entry.subject}"
    yield from paragraph(f"It holds for {entry.id}{whatever}; it stands in the suppressions file.", width, "dim")
    yield row("")
    yield from detail_rows(suppressed.finding, report, width)


def undecided_rows(undecided: Undecided, width: int) -> Iterator[Row]:
    """Yield the page of a rule that could not be decided."""
    yield from paragraph(undecided.id, width, "undecided", indent="  ", first=f"{SYMBOLS['undecided']} ")
    yield row("")
    yield from paragraph("This may or may not be so: what would tell it was not read.", width)
    yield row("")
    yield heading("What would decide it", width)
    if undecided.ask:
        yield from acting(paragraph(undecided.ask, width), Copy(plain(undecided.ask), "request"))
    yield from paragraph("Missing: " + ", ".join(undecided.missing), width, "dim")


def _seen(finding: Finding) -> str:
    parts = [f"Seen {finding.count} times" if finding.count > 1 else ""]
    if finding.first_seen is not None:
        parts.append(f"first {stamp(finding.first_seen)}")
    if finding.last_seen is not None and finding.last_seen != finding.first_seen:
        parts.append(f"last {stamp(finding.last_seen)}")
    said = ", ".join(part for part in parts if part)
    return said[:1].upper() + said[1:] + "." if said else ""


def _why(finding: Finding, report: Report, width: int) -> Iterator[Row]:
    """Draw the chain: evidence, the causes above, this finding, what follows from it."""
    yield heading("Why", width)
    by_key = {other.key: other for other in report.findings}
    indent = ""
    for cause in _chain(finding, by_key):
        yield _link(cause, indent, width)
        indent = f"{'   ' * (len(indent) // 3)}└─ "
        indent = indent if len(indent) <= 12 else indent[-12:]
    style = grade(finding)
    yield row(
        (indent, "rule"), (f"{SYMBOLS[style]} ", style), (fit(plain(finding.title), width - len(indent) - 2), "bold")
    )
    base = "   " * (len(indent) // 3)
    follows = [other for other in report.findings if finding.key in other.caused_by]
    shown = finding.evidence[:_SHOWN_EVIDENCE]
    for number, where in enumerate(shown):
        last = number == len(shown) - 1 and not follows
        branch, trunk = ("└─ ", "   ") if last else ("├─ ", "│  ")
        action = OpenLog(where.source, where.line, where.text)
        place = fit(f"{plain(where.source)}:{where.line}", width - len(base) - 3)
        yield row((base + branch, "rule"), (place, "link"), action=action)
        if where.text:
            yield from quoted(where.text, width, "quote", indent=base + trunk, action=action)
    if len(finding.evidence) > len(shown):
        yield row((base + "├─ ", "rule"), (f"and {len(finding.evidence) - len(shown)} more places", "dim"))
    if follows:
        yield row((base + "└─ ", "rule"), ("so it explains:", "dim"))
        for other in follows:
            yield _link(other, base + "   └─ ", width)
    yield row("")


def _chain(finding: Finding, by_key: dict[str, Finding]) -> list[Finding]:
    """Return the causes above a finding, the first one first."""
    chain: list[Finding] = []
    seen = {finding.key}
    here = finding
    while True:
        above = next((by_key[key] for key in here.caused_by if key in by_key and key not in seen), None)
        if above is None:
            return chain[::-1]
        chain.append(above)
        seen.add(above.key)
        here = above


def _link(finding: Finding, indent: str, width: int) -> Row:
    style = grade(finding)
    label = fit(plain(finding.title), width - len(indent) - 2)
    return row((indent, "rule"), (f"{SYMBOLS[style]} ", style), (label, "link"), action=Goto(finding.key))


def _fixes(finding: Finding, width: int) -> Iterator[Row]:
    if not finding.fixes:
        return
    yield heading("What to do, least disruptive first", width)
    for number, fix in enumerate(finding.fixes, start=1):
        yield from fix_rows(fix, f"{number}. ", width)
    yield row("")


def fix_rows(fix: Fix, number: str, width: int) -> Iterator[Row]:
    """Yield a rung: what it does, its risk, why, and the commands as they are to be typed."""
    indent = " " * len(number)
    yield from paragraph(fix.title, width, "bold", indent=indent, first=number)
    needs = f" needs {', '.join(map(plain, fix.needs))}" if fix.needs else ""
    yield row(
        indent, (f" {fix.risk} ", f"badge-{fix.risk}"), (fit(needs, width - len(indent) - len(fix.risk) - 2), "dim")
    )
    if fix.why:
        yield from paragraph(fix.why, width, "dim", indent=indent)
    for command in fix.commands:
        if command.startswith("#"):
            yield from paragraph(command, width, "dim", indent=indent)
        else:
            action = Copy(command, "command")
            first, *rest = chop_command(command, width - len(indent) - 2)
            yield row(indent, ("$ ", "dim"), (first, "command"), action=action)
            for line in rest:
                yield row(indent + "  ", (line, "command"), action=action)


def chop_command(command: str, width: int) -> list[str]:
    """Break a command at the edge of the screen without changing it; several lines stay several."""
    return [part for line in command.splitlines() or [""] for part in chop(plain(line), width)]
