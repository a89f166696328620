"""Judged tables as text: the verdict first, then the curve, the reasoning and the causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpudoctor.nccl.judge import Judgement, Point, size_text

if TYPE_CHECKING:
    from gpudoctor.findings.model import Finding
    from gpudoctor.nccl.trial import Outcome

_BAR = 40
_AREAS = ("nccl.", "pcie.", "nvlink.", "hardware.", "driver.", "container.", "host.", "memory.")


def causes(findings: Sequence[Finding]) -> list[Finding]:
    """Return what explains slow or failed communication, the report's order kept; the bandwidth itself is no cause."""
    return [
        finding
        for finding in findings
        if finding.role == "cause" and finding.id.startswith(_AREAS) and finding.id != "nccl.bandwidth-low"
    ]


def as_text(
    judgements: Sequence[Judgement], findings: Sequence[Finding], job: Sequence[str] = (), problems: Sequence[str] = ()
) -> str:
    """Return the whole answer."""
    return "\n".join([*_lines(judgements, findings, job), *(f"Could not be read: {said}" for said in problems)]) + "\n"


def _lines(judgements: Sequence[Judgement], findings: Sequence[Finding], job: Sequence[str]) -> Iterator[str]:
    if not judgements:
        yield "No table of nccl-tests was found."
    for number, found in enumerate(judgements):
        if number:
            yield ""
        yield f"{found.verdict.upper()}: {heading(found)}: {found.summary}."
        for reason in found.reasoning:
            yield f"  because {reason}" if reason == found.reasoning[0] else f"  and {reason}"
        if found.missing:
            yield f"  To judge it: {found.missing}"
        yield from drawing(found.curve)
    if job:
        yield ""
        yield "The job, by NCCL's own lines:"
        yield from (f"  {line}" for line in job)
    known = causes(findings)
    if known:
        yield ""
        yield from _known(known)


def causes_text(known: Sequence[Finding]) -> str:
    """Return what is wrong."""
    return "\n".join(_known(known)) + "\n"


def _known(known: Sequence[Finding]) -> Iterator[str]:
    yield "What the evidence shows to be wrong, the likeliest cause first:"
    for place, finding in enumerate(known, start=1):
        yield f"  {place}. {finding.title} ({finding.id}, {finding.confidence})"
        yield f"     {finding.because}"
        for where in finding.evidence[:2]:
            yield f"     {where}"
    yield "What to do about each: gpudoctor diagnose with the same files, or gpudoctor explain ID"


def trial_text(outcome: Outcome) -> str:
    """Return what a run on this machine came to."""
    first, _, rest = as_text([outcome.judgement], outcome.report.findings).partition("\n")
    lines = [first, *(f"  => {conclusion}" for conclusion in outcome.conclusions), rest.rstrip("\n")]
    if outcome.closer:
        lines += ["", "The closer look:"]
    for result in outcome.closer:
        measured = f"{result.busbw:.1f} GB/s" if result.busbw else ""
        lines.append(f"  {result.step.title:<52} {measured:>12}  {result.state}")
    return "\n".join(lines) + "\n"


def heading(found: Judgement) -> str:
    """Return what was measured, in words."""
    where = "" if found.nodes is None else " on one node" if found.nodes == 1 else f" on {found.nodes} nodes"
    ranks = f", {found.ranks} GPUs" if found.ranks else ""
    return f"{found.collective}{ranks}{where}{f', {found.gpu}' if found.gpu else ''}"


def drawing(points: Sequence[Point]) -> Iterator[str]:
    """Yield the curve as bars; of long sweeps only the sizes that tell something."""
    shown = [point for point in points if point.busbw > 0]
    peak = max((point.busbw for point in shown), default=0)
    for point in shown[-16:]:
        bar = "#" * max(1, round(_BAR * point.busbw / peak))
        expected = "" if point.low is None else f"at least {point.low:g} expected"
        yield f"  {size_text(point.size):>9}  {point.busbw:>8.2f} GB/s  {bar:<{_BAR}}  {point.phase:<9}  {expected}".rstrip()
