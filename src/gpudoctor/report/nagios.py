"""One line for Nagios and its relatives: status, summary and performance data, as plugins are expected to print it."""

from __future__ import annotations

from gpudoctor.findings.model import Report

MAX_LINE = 1000  # characters of the message; NRPE carries 1024 in its older form
_STATUS = {"ok": "OK", "warning": "WARNING", "critical": "CRITICAL", "unknown": "UNKNOWN"}


def render_nagios(report: Report) -> str:
    """Return the line; the exit status beside it is 0, 1, 2 or 3, as plugins have it."""
    counts = {"critical": 0, "warning": 0, "info": 0}
    for finding in report.findings:
        if finding.role == "cause":
            counts[finding.severity] += 1
    failed = sum(probe.status in ("failed", "timeout", "denied") for probe in report.probes)
    performance = [
        f"critical={counts['critical']};;0;0",
        f"warning={counts['warning']};0;;0",
        f"info={counts['info']};;;0",
        f"undecided={len(report.undecided)};;;0",
        f"suppressed={len(report.suppressed)};;;0",
        f"probes_failed={failed};;;0;{len(report.probes)}",
        f"probe_time={sum(probe.seconds for probe in report.probes):.3f}s;;;0",
    ]
    return f"GPUDOCTOR {_STATUS[report.status]} - {_message(report)} | {' '.join(performance)}\n"


def nagios_unknown(reason: str) -> str:
    """Return the line where there is no report."""
    return f"GPUDOCTOR UNKNOWN - {_plain(reason)[:MAX_LINE]}\n"


def _message(report: Report) -> str:
    causes = [finding for finding in report.findings if finding.role == "cause" and finding.severity != "info"]
    parts = [report.summary]
    if causes:
        names = ", ".join(subject.name for subject in causes[0].subjects if subject.name != "node")
        parts = [f"{causes[0].title}{f' on {names}' if names else ''}"]
        parts += [finding.id for finding in causes[1:]]
    if report.expired_suppressions:
        parts.append(f"expired suppressions: {len(report.expired_suppressions)}")
    line = _plain("; ".join(parts))
    return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 1]}…"


def _plain(text: str) -> str:
    """Take out what ends the message (`|` begins the performance data) or the line.

    >>> _plain("a | b\\nc")
    'a / b c'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.replace("|", "/").split()))
