"""`gpudoctor` without a command: examine this machine."""

from __future__ import annotations

import argparse
import sys

from gpudoctor.cli.output import add_output_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Examine this machine."""
    sys.stderr.write("gpudoctor: not yet\n")
    return 70
