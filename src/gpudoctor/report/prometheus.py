"""The report as metrics in Prometheus' text format, version 0.0.4.

A fault is a series that is there while the fault is and gone afterwards. However much is found, the number of series stays
bounded: the worst findings have a series each, all of them are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gpudoctor.findings.model import SEVERITIES, Finding, Report

MAX_FINDINGS = 100
MAX_LABEL = 120  # characters of a label's value
_STATUSES = ("ok", "warning", "critical", "unknown")
_FAILED = ("failed", "timeout", "denied")

Labels = Mapping[str, str]


@dataclass
class Metric:
    """One family: name, type, help and its series."""

    name: str
    kind: str
    help: str
    series: dict[tuple[tuple[str, str], ...], float] = field(default_factory=dict)

    def add(self, value: float, labels: Labels | None = None) -> Metric:
        """Add a series; of two with the same labels the first stays."""
        cut = tuple((name, label_value(text)) for name, text in (labels or {}).items())
        self.series.setdefault(cut, value)
        return self

    def lines(self) -> Iterator[str]:
        """Yield the lines of the family; none where it has no series."""
        if not self.series:
            return
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        for labels, value in self.series.items():
            inner = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels)
            yield f"{self.name}{f'{{{inner}}}' if inner else ''} {value:.15g}"


def label_value(text: str) -> str:
    r"""Make text from a machine fit for a label: one line, printable, of bounded length.

    >>> label_value('a\x1b[31m\nb' + "\ud800")
    'a?[31m b?'
    """
    flat = " ".join(text[: 4 * MAX_LABEL].split())
    clean = "".join(letter if letter.isprintable() else "?" for letter in flat)
    return clean if len(clean) <= MAX_LABEL else f"{clean[: MAX_LABEL - 1]}…"


def _escaped(text: str) -> str:
    r"""Escape a label's value.

    >>> print(_escaped('say "\\"'))
    say \"\\\"
    """
    return text.replace("\\", "\\\\").replace('"', '\\"')


def render_prometheus(report: Report, now: float, more: Iterable[Metric] = ()) -> str:
    """Return the metrics; `now` is when the report was made, `more` are families of the caller."""
    return "".join(f"{line}\n" for metric in (*_metrics(report, now), *more) for line in metric.lines())


def _metrics(report: Report, now: float) -> Sequence[Metric]:
    info = report.gpudoctor
    build = Metric("gpudoctor_build_info", "gauge", "Which gpudoctor made the report; always 1.")
    build.add(
        1.0,
        {
            "version": info.version,
            "schema": report.schema_version,
            "engine": info.engine,
            "python": info.python,
            "rules": str(info.rules),
        },
    )
    status = Metric("gpudoctor_status", "gauge", "1 for the status of the machine, 0 for the others.")
    for name in _STATUSES:
        status.add(float(report.status == name), {"status": name})
    shown = report.findings[:MAX_FINDINGS]
    finding = Metric("gpudoctor_finding", "gauge", "1 while the finding stands.")
    for found in shown:
        finding.add(1.0, _labels(found))
    counts = Metric("gpudoctor_findings", "gauge", "Findings by severity and role, all of them.")
    for severity in SEVERITIES:
        for role in ("cause", "consequence", "advice"):
            number = sum(found.severity == severity and found.role == role for found in report.findings)
            counts.add(float(number), {"severity": severity, "role": role})
    seconds = Metric("gpudoctor_probe_seconds", "gauge", "How long the probe took.")
    failed = Metric("gpudoctor_probe_failed", "gauge", "1 where the probe gave no answer (failed, timed out, denied).")
    for probe in report.probes:
        if probe.status not in ("skipped", "absent"):
            seconds.add(probe.seconds, {"probe": probe.name})
            failed.add(float(probe.status in _FAILED), {"probe": probe.name})
    return (
        build,
        status,
        finding,
        counts,
        _one(
            "gpudoctor_findings_omitted",
            "Findings without a series of their own, because there are too many.",
            len(report.findings) - len(shown),
        ),
        _one("gpudoctor_findings_suppressed", "Findings that the site has suppressed.", len(report.suppressed)),
        _one(
            "gpudoctor_suppressions_expired",
            "Suppressions whose last day has passed.",
            len(report.expired_suppressions),
        ),
        _one("gpudoctor_undecided", "Rules that could not be decided.", len(report.undecided)),
        seconds,
        failed,
        _one("gpudoctor_last_run_timestamp_seconds", "When the report was made.", now),
    )


def _one(name: str, text: str, value: float) -> Metric:
    return Metric(name, "gauge", text).add(value)


def _labels(finding: Finding) -> Labels:
    names = [subject.name for subject in finding.subjects]
    subject = names[0] if len(names) == 1 else f"{len(names)}: {', '.join(names)}"
    return {"id": finding.id, "severity": finding.severity, "subject": subject, "role": finding.role}
