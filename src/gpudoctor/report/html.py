"""The report as one HTML page: no script, nothing loaded from elsewhere, all text from machines escaped."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from gpudoctor.findings.model import Finding, Report

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1, h2 { line-height: 1.25 }
article { border-left: .4rem solid #888; padding: .1rem 1rem; margin: 1.5rem 0 }
.critical { border-color: #c22 } .warning { border-color: #b70 } .info { border-color: #27b }
pre { overflow-x: auto; padding: .5rem; border: 1px solid #8886; border-radius: .3rem }
table { border-collapse: collapse } td, th { padding: .1rem .8rem .1rem 0; text-align: left; vertical-align: top }
.small { font-size: .875rem }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def render_html(report: Report) -> str:
    """Return the page."""
    return "\n".join(_page(report)) + "\n"


def _page(report: Report) -> Iterator[str]:
    title = f"{report.status.upper()}: {report.summary}"
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
    yield f"<h1>{escape(title)}</h1>"
    yield from _node(report)
    keys = {finding.key for finding in report.findings}
    for finding in report.findings:
        if finding.role != "consequence" or not keys & set(finding.caused_by):
            yield from _finding(finding, [other for other in report.findings if finding.key in other.caused_by])
    yield from _list("Could not be decided", [f"{entry.id}: {entry.ask}" for entry in report.undecided])
    yield from _list(
        "Suppressed, not counted",
        [
            f"{entry.finding.title} ({entry.finding.key}): {entry.suppression.reason}, until {entry.suppression.expires}"
            for entry in report.suppressed
        ],
    )
    yield from _list(
        "Suppressions that have expired",
        [f"{old.id} for {old.subject}: {old.reason}, until {old.expires}" for old in report.expired_suppressions],
    )
    failed = [probe for probe in report.probes if probe.status in ("failed", "timeout", "denied")]
    yield from _list(
        "Probes that gave no answer", [f"{probe.name}: {probe.status} {probe.reason}".rstrip() for probe in failed]
    )
    yield from _list("Could not be read", report.source.problems)
    info, source = report.gpudoctor, report.source
    when = f", taken {source.collected_at}" if source.collected_at else ""
    incomplete = "" if source.complete else " (incomplete)"
    yield f'<p class="small">{escape(f"Source: {source.kind} {source.path}{incomplete}{when}; gpudoctor {info.version}, {info.rules} rules")}</p>'
    yield "</body></html>"


def _node(report: Report) -> Iterator[str]:
    rows = [(key, str(value)) for key, value in report.node.items() if isinstance(value, (str, int, float))]
    gpus = report.node.get("gpus") or []
    rows += [(str(gpu.get("gpu")), str(gpu.get("name") or "")) for gpu in gpus if isinstance(gpu, dict)]
    if rows:
        yield "<table>"
        yield from (f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in rows)
        yield "</table>"


def _finding(finding: Finding, folded: list[Finding]) -> Iterator[str]:
    about = ", ".join(f"{subject.kind} {subject.name}" for subject in finding.subjects)
    yield f'<article class="{escape(finding.severity)}"><h2>{escape(finding.title)}</h2>'
    yield f'<p class="small">{escape(f"{finding.severity}, {finding.confidence}, {finding.id}, {about}")}</p>'
    yield f"<p>{escape(finding.because)}</p>"
    if finding.evidence:
        yield "<details open><summary>Evidence</summary><pre>"
        yield from (escape(f"{where}  {where.text[:300]}") for where in finding.evidence)
        yield "</pre></details>"
    if folded:
        yield "<p>It explains:</p><ul>"
        yield from (f"<li>{escape(f'{other.title} ({other.id})')}</li>" for other in folded)
        yield "</ul>"
    if finding.fixes:
        yield "<ol>"
        for fix in finding.fixes:
            needs = f"; needs {', '.join(fix.needs)}" if fix.needs else ""
            yield f"<li>{escape(fix.title)} <span class=small>[{escape(fix.risk + needs)}]</span>"
            if fix.why:
                yield f"<br>{escape(fix.why)}"
            if fix.commands:
                yield f"<pre>{escape(chr(10).join(fix.commands))}</pre>"
            yield "</li>"
        yield "</ol>"
    for link in finding.references:
        if link.startswith(("https://", "http://")):
            yield f'<p class="small"><a href="{escape(link)}" rel="noreferrer">{escape(link)}</a></p>'
    yield "</article>"


def _list(title: str, entries: list[str]) -> Iterator[str]:
    if entries:
        yield f"<h2>{escape(title)}</h2><ul>"
        yield from (f"<li>{escape(entry)}</li>" for entry in entries)
        yield "</ul>"
