"""The report in the log of a GitHub Actions job: an annotation per finding, then the whole report, folded."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from gpudoctor.findings.model import Finding, Report
from gpudoctor.report.text import render_text

MAX_ANNOTATIONS = 10  # GitHub shows no more of one kind per step
_COMMAND = {"critical": "error", "warning": "warning", "info": "notice"}


def render_github(report: Report) -> str:
    """Return workflow commands; text from machines can start none."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    shown = dict.fromkeys(_COMMAND.values(), 0)
    omitted = 0
    for finding in report.findings:
        if finding.role == "consequence":
            continue
        command = "notice" if finding.role == "advice" else _COMMAND[finding.severity]
        shown[command] += 1
        if shown[command] > MAX_ANNOTATIONS:
            omitted += 1
            continue
        yield f"::{command} title={_property(f'gpudoctor: {finding.id}')}::{_data(_message(finding))}"
    if omitted:
        yield f"::notice title=gpudoctor::{omitted} more findings stand in the report below"
    if not report.findings:
        yield f"::notice title=gpudoctor::{_data(report.summary)}"
    token = secrets.token_hex(16)
    yield f"::group::gpudoctor: {_data(report.status)}"
    yield f"::stop-commands::{token}"
    yield render_text(report).rstrip("\n")
    yield f"::{token}::"
    yield "::endgroup::"


def _message(finding: Finding) -> str:
    about = ", ".join(subject.name for subject in finding.subjects if subject.name != "node")
    first = f" Next: {finding.fixes[0].title}." if finding.fixes else ""
    return f"{finding.title}{f' [{about}]' if about else ''}. {finding.because}{first}"[:2000]


def _data(text: str) -> str:
    r"""Escape the message of a workflow command.

    >>> _data("50%\n::error::x")
    '50%25%0A::error::x'
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape a property of a workflow command."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
