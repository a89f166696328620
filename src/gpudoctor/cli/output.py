"""Options and output that the diagnosing commands share."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the models take longer to load than the screens may take to appear
    from gpudoctor.findings.model import Report

EXITS = {"ok": 0, "warning": 1, "critical": 2, "unknown": 3}


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the report shapes and what decides the exit status."""
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="one JSON object (the schema is in docs/)")
    shape.add_argument("--text", action="store_true", help="plain text (the default where output is not a terminal)")
    shape.add_argument("--tui", action="store_true", help="the interactive screens (the default on a terminal)")
    parser.add_argument("--exit-zero", action="store_true", help="exit 0 whatever is found")
    parser.add_argument(
        "--fail-on",
        choices=["info", "warning", "critical", "undecided"],
        help="exit 1 or 2 only from this severity on; info: also for info findings; undecided: 3 where a rule is undecided",
    )


def wants_tui(args: argparse.Namespace) -> bool:
    """Tell whether the interactive screens are to be shown."""
    if args.tui:
        return True
    if args.json or args.text or os.environ.get("TERM", "dumb") in ("dumb", ""):
        return False
    return sys.stdout.isatty() and sys.stdin.isatty()


def emit(report: Report, args: argparse.Namespace) -> int:
    """Print the report and return the exit status."""
    if args.json:
        sys.stdout.write(report.model_dump_json(indent=1) + "\n")
    else:
        from gpudoctor.report.text import render_text

        sys.stdout.write(render_text(report))
    return exit_status(report, args)


def exit_status(report: Report, args: argparse.Namespace) -> int:
    """Return 0 ok, 1 warning, 2 critical, 3 unknown, as --fail-on and --exit-zero bend it."""
    if args.exit_zero:
        return 0
    status = EXITS[report.status]
    severities = {finding.severity for finding in report.findings if finding.role != "advice"}
    match args.fail_on:
        case "critical" if status == 1:
            return 0
        case "info" if status == 0 and severities:
            return 1
        case "undecided" if status == 0 and report.undecided:
            return 3
    return status
