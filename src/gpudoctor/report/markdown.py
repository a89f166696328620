"""The report, or one finding of it, as Markdown for a ticket. Text from machines stands in code, where it is not markup."""

from __future__ import annotations

from collections.abc import Iterator

from gpudoctor.findings.model import Finding, Report
from gpudoctor.report.evidence import quote
from gpudoctor.report.overview import asks, node_words, seen_words, subjects_words
from gpudoctor.report.tree import Tree

_SHOWN_EVIDENCE = 6


def render_markdown(report: Report) -> str:
    """Return the whole report."""
    return "\n".join(_report(report)) + "\n"


def finding_markdown(finding: Finding) -> str:
    """Return one finding."""
    return "\n".join(_finding(finding, "##")) + "\n"


def _report(report: Report) -> Iterator[str]:
    yield f"# {report.status.upper()}: {_escaped(report.summary)}"
    yield ""
    if words := node_words(report):
        yield _escaped(words)
        yield ""
    tree = Tree(report.findings)
    for finding in tree.roots:
        yield from _finding(finding, "##")
        if tree.below(finding):
            yield "It explains:"
            yield ""
            for depth, other in tree.all_below(finding):
                yield f"{'  ' * depth}- {_escaped(other.title)} (`{other.id}`)"
            yield ""
    if report.undecided:
        yield "## Could not be decided"
        yield ""
        yield from (f"- {', '.join(map(_code, ids))}: {_prose(ask)}" for ask, ids in asks(report.undecided).items())
        yield ""
    if report.suppressed:
        yield "## Suppressed, not counted"
        yield ""
        for entry in report.suppressed:
            reason, expires = _escaped(entry.suppression.reason), entry.suppression.expires
            until = "" if expires == "never" else f" (until {_escaped(expires)})"
            yield f"- {_escaped(entry.finding.title)} ({_code(entry.finding.key)}): {reason}{until}"
        yield ""
    if report.expired_suppressions:
        yield "## Suppressions that have expired"
        yield ""
        for old in report.expired_suppressions:
            yield f"- {_code(old.id)} for {_code(old.subject)}: {_escaped(old.reason)} (until {_escaped(old.expires)})"
        yield ""
    info = report.gpudoctor
    yield f"Source: {report.source.kind} {_code(report.source.path)}{'' if report.source.complete else ' (incomplete)'};"
    yield f"gpudoctor {info.version}, {info.rules} rules."


def _finding(finding: Finding, level: str) -> Iterator[str]:
    about = subjects_words(finding.subjects)
    yield f"{level} {_escaped(finding.title)}"
    yield ""
    grade = "advice" if finding.role == "advice" else finding.severity
    yield f"{grade}, {finding.confidence}, `{finding.id}`" + (f", {_code(about)}" if about else "")
    yield ""
    yield _prose(finding.because)
    yield ""
    if seen := seen_words(finding):
        yield f"{seen[0].upper()}{seen[1:]}."
        yield ""
    for where in finding.evidence[:_SHOWN_EVIDENCE]:
        yield f"- {_code(str(where))}" + (f": {_code(said)}" if (said := quote(where)) else "")
    if (more := len(finding.evidence) - _SHOWN_EVIDENCE) > 0:
        yield f"- and {more} more place{'s' if more > 1 else ''}"
    if finding.evidence:
        yield ""
    for number, fix in enumerate(finding.fixes, start=1):
        needs = f", needs {', '.join(fix.needs)}" if fix.needs else ""
        yield f"{number}. {_escaped(fix.title)} ({fix.risk}{needs})" + (f". {_prose(fix.why)}" if fix.why else "")
        if fix.commands:
            yield ""
            yield from _block([line for command in fix.commands for line in command.splitlines()], "   ")
            yield ""
    if finding.fixes and not finding.fixes[-1].commands:
        yield ""
    if finding.references:
        yield from (f"- <{reference}>" for reference in finding.references)
        yield ""


def _escaped(text: str) -> str:
    r"""Keep text from being read as markup.

    >>> _escaped("a *b* [c](d) <e>")
    'a \\*b\\* \\[c\\](d) \\<e>'
    """
    return "".join(f"\\{letter}" if letter in "\\`*_[]<#|" else letter for letter in " ".join(text.split()))


def _prose(text: str) -> str:
    r"""Return a sentence of ours; what it has between backticks becomes code.

    >>> _prose("send the output of `lspci -nn` *now*")
    'send the output of `lspci -nn` \\*now\\*'
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _escaped(text)
    return "".join(_code(part) if place % 2 else _kept(part) for place, part in enumerate(parts))


def _kept(text: str) -> str:
    """Escape a part of a sentence, its outer spaces kept."""
    inner = _escaped(text)
    return f"{' ' if text[:1].isspace() else ''}{inner}{' ' if inner and text[-1:].isspace() else ''}"


def _code(text: str) -> str:
    """Put text into a code span whose fence is longer than any run of backticks in it.

    >>> _code("a `b` c")
    '`` a `b` c ``'
    """
    text = " ".join(text.split())
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (_longest_run(text) + 1)
    return f"{fence} {text} {fence}"


def _longest_run(text: str) -> int:
    longest = run = 0
    for letter in text:
        run = run + 1 if letter == "`" else 0
        longest = max(longest, run)
    return longest


def _block(lines: list[str], indent: str) -> Iterator[str]:
    fence = "`" * max(3, max(map(_longest_run, lines), default=0) + 1)
    yield indent + fence
    yield from (indent + line for line in lines)
    yield indent + fence
