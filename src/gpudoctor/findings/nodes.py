"""Several nodes in one source: one report over all of them, which says what they share."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gpudoctor.findings.model import SEVERITIES, Finding, Report, SourceInfo, Status, Subject

_ORDER: tuple[Status, ...] = ("ok", "unknown", "warning", "critical")
_MAX_EVIDENCE = 8


def joined(reports: Sequence[tuple[str, Report]], source: SourceInfo) -> Report:
    """Return a report over several: what is found on more than one node is one finding with all of them as subjects."""
    first = reports[0][1]
    shared: dict[tuple[str, str], list[tuple[str, Finding]]] = {}
    for name, report in reports:
        for finding in report.findings:
            shared.setdefault((finding.id, finding.role), []).append((name, finding))
    everywhere = sum(bool(name) for name, _ in reports)
    findings = [_over_nodes(group, everywhere) for group in shared.values()]
    keys = {finding.id: finding.key for finding in findings}
    for finding in findings:
        finding.caused_by = [keys[cause] for cause in finding.caused_by if cause in keys]
    findings.sort(key=lambda finding: (("cause", "consequence", "advice").index(finding.role), -_severity(finding)))
    # a note beside the bundles that tells nothing is no node, and no reason for doubt
    telling = [(name, report) for name, report in reports if name or report.status != "unknown" or report.findings]
    status = max((report.status for _, report in telling), key=_ORDER.index)
    bad = [
        name or "what belongs to none of them" for name, report in reports if report.status in ("warning", "critical")
    ]
    lead = f"{findings[0].title}; " if findings and bad else ""
    return Report(
        gpudoctor=first.gpudoctor,
        source=replace(
            source,
            collected_at=first.source.collected_at,
            read=[part for _, report in reports for part in report.source.read],
            skipped=[part for _, report in reports for part in report.source.skipped],
            problems=[*source.problems, *(part for _, report in reports for part in report.source.problems)],
        ),
        node={"nodes": [name for name, _ in reports if name]},
        status=status,
        summary=f"{lead}{everywhere} nodes, trouble on {len(bad)}{': ' + ', '.join(bad[:8]) if bad else ''}",
        findings=findings,
        undecided=[],
        probes=[],
        suppressed=[entry for _, report in reports for entry in report.suppressed],
        expired_suppressions=first.expired_suppressions,
        nodes=[report for _, report in telling],
    )


def _severity(finding: Finding) -> int:
    return SEVERITIES.index(finding.severity)


def _over_nodes(group: list[tuple[str, Finding]], everywhere: int) -> Finding:
    """Join one finding of several nodes: the worst speaks, each node is a subject."""
    worst = max((finding for _, finding in group), key=_severity)
    names = list(dict.fromkeys(name for name, _ in group if name))
    subjects = [Subject(kind="node", name=name) for name in names]
    subjects += [s for _, finding in group for s in finding.subjects if s.kind != "node"] if len(names) < 2 else []
    because = worst.because
    if len(names) > 1:
        share = "all" if len(names) == everywhere else f"{len(names)} of"
        because += f" The same is found on {share} {everywhere} nodes: {', '.join(names[:12])}."
    elif names:
        because = f"On {names[0]}: {because}"
    firsts = [finding.first_seen for _, finding in group if finding.first_seen is not None]
    lasts = [finding.last_seen for _, finding in group if finding.last_seen is not None]
    return replace(
        worst,
        key=f"{worst.id}@{','.join(names) or 'rest'}",
        subjects=subjects or worst.subjects,
        because=because,
        evidence=[where for _, finding in group for where in finding.evidence[:2]][:_MAX_EVIDENCE],
        caused_by=sorted({key.partition("@")[0] for _, finding in group for key in finding.caused_by}),
        first_seen=min(firsts, default=None),
        last_seen=max(lasts, default=None),
        count=sum(finding.count for _, finding in group),
    )
