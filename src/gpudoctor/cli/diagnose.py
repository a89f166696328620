"""`gpudoctor diagnose SOURCE...`: offline diagnosis."""

from __future__ import annotations

import argparse
import sys

from gpudoctor.cli.output import add_output_arguments, emit, wants_tui
from gpudoctor.cli.site import Refused, settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "source", nargs="+", help="nvidia-bug-report.log.gz, a folder, log files, or - for standard input"
    )
    parser.add_argument(
        "--at",
        metavar="PLACE",
        help="show this place of the source in its surroundings instead: FILE:LINE, SECTION:LINE, a file or a section",
    )
    parser.add_argument("--rules", action="append", default=[], metavar="DIR", help="also use the rules in this folder")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Diagnose the sources; 66 where one can't be read."""
    if args.at:
        return _show(args)
    try:
        chosen = settings(args, live=False)
        if wants_tui(args):
            from gpudoctor.cli.screens import OfflineExamination, show

            return show(args, OfflineExamination(args, chosen))
    except Refused as refusal:
        sys.stderr.write(f"gpudoctor: {refusal}\n")
        return refusal.status

    from gpudoctor.sources.base import SourceUnreadable
    from gpudoctor.sources.open import Begun, open_sources

    try:
        source = Begun(open_sources(args.source))
        report = chosen.doctor().diagnose(source)
    except Refused as refusal:
        sys.stderr.write(f"gpudoctor: {refusal}\n")
        return refusal.status
    except SourceUnreadable as error:
        sys.stderr.write(f"gpudoctor: {error}\n")
        return 66
    return emit(report, args)


def _show(args: argparse.Namespace) -> int:
    """Print the lines around a place; 66 where it isn't in the source."""
    from gpudoctor.sources.base import SourceUnreadable
    from gpudoctor.sources.excerpt import NoSuchPlace, excerpt
    from gpudoctor.sources.open import open_sources

    try:
        found = excerpt(open_sources(args.source), args.at)
    except (SourceUnreadable, NoSuchPlace) as error:
        sys.stderr.write(f"gpudoctor: {error}\n")
        return 66
    sys.stdout.write(f"{found.name}\n")
    for number, text in found.lines:
        sys.stdout.write(f"{'>' if number == found.asked else ' '}{number:>8}  {text}\n")
    return 0
