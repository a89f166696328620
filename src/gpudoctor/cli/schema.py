"""`gpudoctor schema`: the contract of --json, for programs that read it."""

from __future__ import annotations

import argparse
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It has none."""


def run(args: argparse.Namespace) -> int:
    """Print the JSON Schema that ships with the product."""
    from pathlib import Path

    import gpudoctor.report

    sys.stdout.write(Path(gpudoctor.report.__file__).with_name("report.schema.json").read_text(encoding="utf-8"))
    return 0
