"""Options and output that the diagnosing commands share."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the models take longer to load than the screens may take to appear
    from gpudoctor.findings.model import Report

EXITS = {"ok": 0, "warning": 1, "critical": 2, "unknown": 3}
SHAPES = {
    "json": "one JSON object (gpudoctor schema prints its schema)",
    "text": "plain text (the default where output is not a terminal)",
    "markdown": "Markdown, for a ticket",
    "html": "one HTML page that needs nothing else",
    "nagios": "one line with performance data, as Nagios plugins print it",
    "prometheus": "metrics in Prometheus' text format",
    "github": "annotations and a folded report for the log of a GitHub Actions job",
}


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the report shapes, what is reported, and what decides the exit status."""
    shape = parser.add_mutually_exclusive_group()
    for name, text in SHAPES.items():
        shape.add_argument(f"--{name}", dest="shape", action="store_const", const=name, help=text)
    shape.add_argument("--tui", action="store_true", help="the interactive screens (the default on a terminal)")
    add_selection_arguments(parser)
    parser.add_argument("--exit-zero", action="store_true", help="exit 0 whatever is found")
    parser.add_argument(
        "--fail-on",
        choices=["info", "warning", "critical", "undecided"],
        help="exit 1 or 2 only from this severity on; info: also for info findings; undecided: 3 where a rule is undecided",
    )


def add_selection_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what is reported and what counts."""
    for name, text in (("only", "report only these findings"), ("skip", "leave these findings out")):
        parser.add_argument(
            f"--{name}", action="append", default=[], metavar="AREA|ID", help=f"{text} (may be repeated)"
        )
    parser.add_argument("--suppressions", metavar="FILE", help="findings that the site lives with for a while (TOML)")
    parser.add_argument("--config", metavar="FILE", help="site configuration (TOML) instead of the usual places")


def wants_tui(args: argparse.Namespace) -> bool:
    """Tell whether the interactive screens are to be shown."""
    if args.tui:
        return True
    if args.shape or os.environ.get("TERM", "dumb") in ("dumb", ""):
        return False
    return sys.stdout.isatty() and sys.stdin.isatty()


def emit(report: Report, args: argparse.Namespace) -> int:
    """Print the report and return the exit status."""
    sys.stdout.write(render(report, args.shape or "text"))
    return exit_status(report, args)


def render(report: Report, shape: str) -> str:
    """Return the report in one of the shapes; only that shape's module is loaded."""
    match shape:
        case "json":
            from gpudoctor.report.published import published_report

            return published_report(report)
        case "markdown":
            from gpudoctor.report.markdown import render_markdown

            return render_markdown(report)
        case "html":
            from gpudoctor.report.html import render_html

            return render_html(report)
        case "nagios":
            from gpudoctor.report.nagios import render_nagios

            return render_nagios(report)
        case "prometheus":
            import time

            from gpudoctor.report.prometheus import render_prometheus

            return render_prometheus(report, time.time())
        case "github":
            from gpudoctor.report.github import render_github

            return render_github(report)
    from gpudoctor.report.text import render_text

    return render_text(report)


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
