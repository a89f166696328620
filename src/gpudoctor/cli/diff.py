"""`gpudoctor diff A B`: two nodes, or one before and after, side by side."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpudoctor.bundle.diff import Comparison, Side
    from gpudoctor.diagnosis import Doctor

LIVE = "live"
_SHOWN = 40  # lines per group in the text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("a", metavar="A", help="a bundle, snapshot, folder or log, or `live` for this machine")
    parser.add_argument("b", metavar="B", help="what to compare it with")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--all", action="store_true", help="all differing facts, not the first of each group")
    parser.add_argument("--rules", action="append", default=[], metavar="DIR", help="also use the rules in this folder")


def run(args: argparse.Namespace) -> int:
    """Compare; 0 where nothing differs, 1 where something does, 66 where a side can't be read."""
    from gpudoctor.bundle.diff import compare
    from gpudoctor.diagnosis import Doctor
    from gpudoctor.sources.base import SourceUnreadable

    doctor = Doctor([Path(folder) for folder in args.rules])
    try:
        comparison = compare(*(_side(doctor, path) for path in (args.a, args.b)))
    except SourceUnreadable as error:
        sys.stderr.write(f"gpudoctor: {error}\n")
        return 66
    if args.json:
        import json

        sys.stdout.write(json.dumps(_object(comparison), indent=1) + "\n")
    else:
        sys.stdout.write("\n".join(_lines(comparison, everything=args.all)) + "\n")
    return 0 if comparison.same else 1


def _side(doctor: Doctor, path: str) -> Side:
    from gpudoctor.bundle.diff import Side
    from gpudoctor.collect.collected import Collected
    from gpudoctor.collect.offline import collect_offline
    from gpudoctor.combiners import combine
    from gpudoctor.examine import examine
    from gpudoctor.sources.live import LiveHost
    from gpudoctor.sources.open import open_sources

    if path == LIVE and not Path(path).exists():
        collected = Collected()
        report = examine(doctor, LiveHost(), profile="deep", timeout=40, collected=collected, everything=True)
    else:
        source = open_sources([path])
        collected = collect_offline(source, doctor.scanner)
        report = doctor.judge(collected, source.notes)
    return Side(path, report, combine(collected.facts, []))


def _lines(comparison: Comparison, *, everything: bool) -> Iterator[str]:
    a, b = comparison.a, comparison.b
    yield f"A: {a.name}: {a.report.status}: {a.report.summary}"
    yield f"B: {b.name}: {b.report.status}: {b.report.summary}"
    for name, findings in (("A", comparison.only_a), ("B", comparison.only_b)):
        if findings:
            yield f"\nFindings only in {name}:"
            for finding in findings:
                yield f"  {finding.severity:<8} {finding.id}: {finding.because}"
    for group, found in groupby(comparison.differences, key=lambda difference: difference.group):
        differences = list(found)
        yield f"\nDiffering: {group}"
        for difference in differences if everything else differences[:_SHOWN]:
            what = " ".join(part for part in (difference.kind, difference.thing, difference.field) if part)
            yield f"  {what}: {difference.a} -> {difference.b}"
        if not everything and len(differences) > _SHOWN:
            yield f"  and {len(differences) - _SHOWN} more (--all shows them)"
    if comparison.same:
        yield "\nNothing differs in what both sides know."
    for side in (a.name, b.name):
        kinds = [kind for kind, name in comparison.not_compared if name == side]
        if kinds:
            yield f"\nOnly {side} tells: {', '.join(kinds)}"


def _object(comparison: Comparison) -> dict[str, Any]:
    from gpudoctor.report.published import published_findings

    sides = {
        name: {"path": side.name, "status": side.report.status, "summary": side.report.summary}
        for name, side in (("a", comparison.a), ("b", comparison.b))
    }
    return {
        **sides,
        "findings_only_in_a": published_findings(comparison.only_a),
        "findings_only_in_b": published_findings(comparison.only_b),
        "differences": [vars(difference) for difference in comparison.differences],
        "not_compared": [{"kind": kind, "known_to": name} for kind, name in comparison.not_compared],
    }
