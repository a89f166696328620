"""The page docs/findings.md: one section per finding id, written from the rules (`gpudoctor rules page`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from gpudoctor.engine.rule import Rule

_HEAD = """# Findings

Every id that gpudoctor reports, in fixed sections: what it means, how it is seen, what it explains, what to do. The ids are stable: grep for
them, alert on them, suppress them. Written by `gpudoctor rules page`; don't edit by hand.
"""


def render_page(rules: Iterable[Rule]) -> str:
    """Return the page in Markdown."""
    ordered = sorted(rules, key=lambda rule: rule.id)
    lines = [_HEAD]
    for area, members in groupby(ordered, key=lambda rule: rule.area):
        lines += [f"## {area}", ""]
        for rule in members:
            lines += _section(rule)
    return "\n".join(lines).rstrip() + "\n"


def _section(rule: Rule) -> Iterator[str]:
    yield f"### {rule.id}"
    yield ""
    kind = "advice" if rule.role == "advice" else rule.severity
    yield f"**{rule.title}** ({kind}, {rule.confidence}; since {rule.since})"
    yield ""
    if rule.about:
        yield " ".join(rule.about.split())
        yield ""
    yield "Seen when:"
    yield ""
    for sentence in dict.fromkeys(_sentence(way.because) for way in rule.ways):
        yield f"- {sentence}"
    yield ""
    if rule.explains:
        yield "Explains: " + ", ".join(f"`{other}`" for other in rule.explains)
        yield ""
    if rule.fix:
        yield "What to do, least disruptive first:"
        yield ""
        for number, rung in enumerate(rule.fix, start=1):
            needs = f"; needs {', '.join(rung.needs)}" if rung.needs else ""
            why = f" {' '.join(rung.why.split())}" if rung.why else ""
            yield f"{number}. {rung.title} ({rung.risk}{needs}).{why}"
        yield ""
    if rule.verify:
        yield "Verify with the probes: " + ", ".join(f"`{name}`" for name in rule.verify)
        yield ""
    for reference in rule.references:
        yield f"- <{reference}>" if reference.startswith("http") else f"- {reference}"
    if rule.references:
        yield ""


def _sentence(because: str) -> str:
    """A rule's sentence, with dots where a report puts what was read."""
    return re.sub(r"\{[^}]*\}", "…", " ".join(because.split()))
