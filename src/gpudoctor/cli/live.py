"""`gpudoctor` without a command: examine this machine."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from gpudoctor.cli.arguments import seconds
from gpudoctor.cli.output import add_output_arguments, emit, wants_tui
from gpudoctor.cli.site import Refused, settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--timeout", type=seconds(2, 600), metavar="SECONDS", help="overall deadline (default 20)")
    parser.add_argument(
        "--profile",
        choices=["quick", "standard", "deep"],
        help="quick: files and NVML only; standard: also commands; deep: everything (default standard)",
    )
    parser.add_argument("--root", default="/", metavar="DIR", help="examine the machine whose files lie below DIR")
    parser.add_argument(
        "--commands", metavar="DIR", help="take command outputs from this recording instead of running them"
    )
    parser.add_argument("--rules", action="append", default=[], metavar="DIR", help="also use the rules in this folder")
    parser.add_argument(
        "--lock", metavar="FILE", help="run only where no earlier run still holds this file's lock (75)"
    )
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Examine this machine."""
    for folder in (args.root, args.commands):
        if folder and not Path(folder).is_dir():
            sys.stderr.write(f"gpudoctor: {folder}: no such folder\n")
            return 66
    try:
        chosen = settings(args, live=True)
        if wants_tui(args):
            from gpudoctor.cli.screens import LiveExamination, show

            return show(args, LiveExamination(args, chosen))
        doctor = chosen.doctor()
        if args.lock:
            _lock(Path(args.lock))
    except Refused as refusal:
        sys.stderr.write(f"gpudoctor: {refusal}\n")
        return refusal.status

    from gpudoctor.examine import examine
    from gpudoctor.sources.live import LiveHost

    report = examine(
        doctor,
        LiveHost(args.root, args.commands),
        timeout=chosen.timeout,
        profile=chosen.profile,
        collected=chosen.expected(),
        probe_folders=chosen.probes,
    )
    status = emit(report, args)
    if any(probe.status == "timeout" for probe in report.probes):
        # A thread that hangs in the kernel would keep the interpreter from ending.
        sys.stdout.flush()
        os._exit(status)
    return status


def _lock(path: Path) -> None:
    """Hold the lock until this process ends; an earlier run that is stuck is reported, not joined."""
    from gpudoctor.monitor.files import Held, Lock

    try:
        Lock(path)
    except Held as held:
        raise Refused(f"an earlier run has not ended: {held}", 75) from None
    except OSError as error:
        raise Refused(f"{path}: {(error.strerror or str(error)).lower()}", 73) from None
