"""`gpudoctor nccl read|run`: are these GPUs talking to each other as fast as they can?"""

from __future__ import annotations

import argparse
import sys

UNREADABLE = 66
_EXITS = {"fast enough": 0, "not judged": 3, "incomplete": 1, "too slow": 1, "wrong results": 2}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="read")
    read = actions.add_parser("read", help="judge tables that nccl-tests printed, with whatever else the files hold")
    read.add_argument(
        "file",
        nargs="+",
        help="output of nccl-tests; more evidence (topo -m, ibstat, logs) helps; - for standard input",
    )
    read.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    return _read(args)


def _read(args: argparse.Namespace) -> int:
    """0 fast enough, 1 too slow or incomplete, 2 wrong results, 3 nothing to judge; 66 where a file can't be read."""
    from gpudoctor.diagnosis import Doctor
    from gpudoctor.nccl.read import read
    from gpudoctor.nccl.report import as_text, causes
    from gpudoctor.sources.base import SourceUnreadable
    from gpudoctor.sources.open import open_sources

    try:
        judgements, report = read(Doctor(), open_sources(args.file))
    except SourceUnreadable as error:
        sys.stderr.write(f"gpudoctor nccl read: {error}\n")
        return UNREADABLE
    if args.json:
        import json

        data = {
            "tables": [found.as_data() for found in judgements],
            "causes": [finding.model_dump(mode="json") for finding in causes(report.findings)],
        }
        sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=1) + "\n")
    else:
        sys.stdout.write(as_text(judgements, report.findings))
    return max((_EXITS[found.verdict] for found in judgements if found.verdict != "not judged"), default=3)
