"""Tells causes from consequences, history from trouble, and ranks what is left."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from gpudoctor.findings.model import CONFIDENCES, SEVERITIES, Finding

_DAY = 86_400.0
_YEAR_KNOWN = 10**9  # stamps without a year count from 1970 and compare only among themselves
_DEVICES = ("hardware", "pcie", "nvlink")
_SLACK = 300.0  # clocks of different logs differ; a cause may be written down a little after its effect


class Inferred(Struct, frozen=True):
    """A finding with what only ranking needs: how many conditions its rule had, and in which boots (0 newest) it was seen."""

    finding: Finding
    specificity: int = 0
    boots: tuple[int, ...] = ()


def resolve(inferred: Iterable[Inferred], collected: float | None = None) -> list[Finding]:
    """Return the findings with roles, history and rank settled.

    collected: when the evidence was taken (seconds since the epoch), where that is known.
    """
    known = _absorb(inferred)
    specificity = {each.finding.key: each.specificity for each in known}

    def rank(finding: Finding) -> tuple[int, int, int, int, float, str]:
        return _rank(finding, specificity[finding.key])

    settled = sorted((_history(each, collected) for each in known), key=rank)
    edges = _edges(settled)
    resolved = []
    for finding in settled:
        causes = edges.get(finding.key, [])
        if causes and finding.role == "cause":
            finding = replace(finding, role="consequence", caused_by=causes)  # noqa: PLW2901
        resolved.append(finding)
    now = any(f.role == "cause" and f.severity != "info" for f in resolved)
    resolved = [_past(finding) if now else finding for finding in resolved]
    resolved.sort(key=rank)
    return resolved


def _past(finding: Finding) -> Finding:
    """Trouble of programs ended with its boot: beside a cause that is at work now it is only worth knowing.

    What a device showed stays a cause, for the device is still there.
    """
    of_device = finding.id.partition(".")[0] in _DEVICES
    if finding.role == "cause" and finding.history and finding.severity == "info" and not of_device:
        return replace(finding, role="advice")
    return finding


def _absorb(inferred: Iterable[Inferred]) -> list[Inferred]:
    """Drop what is said of the node as a whole where the same is said of its only GPU or one GPU of it."""
    found = list(inferred)
    told = {(f.id, f.role): f for f in (each.finding for each in found) if any(s.kind == "gpu" for s in f.subjects)}
    kept = []
    for each in found:
        finding = each.finding
        closer = told.get((finding.id, finding.role))
        wide = all(subject.kind == "node" for subject in finding.subjects)
        if not (wide and closer) or (closer.history and not finding.history):
            kept.append(each)
    return kept


def _history(inferred: Inferred, collected: float | None) -> Finding:
    """Trouble of earlier boots alone is history, unless it came back over several boots or is less than a day old."""
    finding = inferred.finding
    if not finding.history or finding.severity == "info":
        return finding
    recurs = len(inferred.boots) > 1
    recent = collected is not None and finding.last_seen is not None and 0 <= collected - finding.last_seen < _DAY
    if recurs or recent:
        note = "It recurred over several boots." if recurs else "It fell within the day before the evidence was taken."
        because = f"{finding.because} This boot shows no sign of it so far. {note}"
        return replace(finding, severity="warning", because=because)
    because = f"{finding.because} That was in an earlier boot; this one shows no sign of it."
    return replace(finding, severity="info", because=because)


def _edges(findings: list[Finding]) -> dict[str, list[str]]:
    """Return, for each explained finding's key, the keys of the causes that explain it."""
    edges: dict[str, list[str]] = {}
    for rank, cause in enumerate(findings):
        if cause.role != "cause" or not cause.explains:
            continue
        for other_rank, effect in enumerate(findings):
            if effect is cause or effect.role != "cause" or not _explains(cause, effect):
                continue
            if _explains(effect, cause) and other_rank < rank:
                continue  # each explains the other: the stronger one leads
            edges.setdefault(effect.key, []).append(cause.key)
    return edges


def _explains(cause: Finding, effect: Finding) -> bool:
    if cause.id == effect.id or not any(_names(pattern, effect.id) for pattern in cause.explains):
        return False
    if cause.history and not effect.history:
        return False
    if cause.confidence == "possible" and effect.confidence != "possible":
        return False
    if not _related(cause, effect):
        return False
    start, later = cause.first_seen, effect.first_seen
    comparable = start is not None and later is not None and (start > _YEAR_KNOWN) == (later > _YEAR_KNOWN)
    return not (comparable and start is not None and later is not None and start > later + _SLACK)


def _names(pattern: str, finding_id: str) -> bool:
    return pattern == finding_id or (pattern.endswith(".*") and finding_id.startswith(pattern[:-1]))


def _related(cause: Finding, effect: Finding) -> bool:
    """A fault of one GPU explains trouble of that GPU and of anything wider, not of another GPU."""
    mine = {subject for subject in cause.subjects if subject.kind == "gpu"}
    theirs = {subject for subject in effect.subjects if subject.kind == "gpu"}
    return not mine or not theirs or bool(mine & theirs)


def _rank(finding: Finding, specificity: int) -> tuple[int, int, int, int, float, str]:
    return (
        ("cause", "consequence", "advice").index(finding.role),
        -SEVERITIES.index(finding.severity),
        -CONFIDENCES.index(finding.confidence),
        -specificity,
        finding.first_seen or 0.0,
        finding.key,
    )
