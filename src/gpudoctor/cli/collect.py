"""`gpudoctor collect`: make a support bundle that is safe to send."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gpudoctor.cli.arguments import seconds

if TYPE_CHECKING:
    from gpudoctor.bundle.collect import Snapshot


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the archive to write (.tar.gz or .tar.xz) or a folder for it (default: gpudoctor-DATE.tar.gz here)",
    )
    parser.add_argument(
        "--since", metavar="WHEN", help="read the journal from then on, in journalctl's words ('2 hours ago')"
    )
    parser.add_argument(
        "--with",
        dest="logs",
        action="append",
        default=[],
        metavar="LOG",
        help="put this log in as well (may be repeated)",
    )
    parser.add_argument("--plan", action="store_true", help="show what would be read, and read nothing")
    parser.add_argument(
        "--no-redact", action="store_true", help="keep names, addresses, serials and secrets as they are"
    )
    parser.add_argument(
        "--fixture", metavar="DIR", help="write a fixture for gpudoctor's tests into a new folder instead"
    )
    parser.add_argument(
        "--profile", choices=["quick", "standard", "deep"], default="deep", help="how much (default deep)"
    )
    parser.add_argument(
        "--timeout", type=seconds(2, 600), default=60.0, metavar="SECONDS", help="overall deadline (default 60)"
    )
    parser.add_argument("--root", default="/", metavar="DIR", help="collect from the machine whose files lie below DIR")
    parser.add_argument(
        "--commands", metavar="DIR", help="take command outputs from this recording instead of running them"
    )
    parser.add_argument("--rules", action="append", default=[], metavar="DIR", help="also use the rules in this folder")


def run(args: argparse.Namespace) -> int:
    """Collect; 0 when the bundle is written, 64 on wrong usage, 66 where something can't be read, 73 where it can't be written."""
    if args.plan:
        return _plan(args)
    for folder in (args.root, args.commands):
        if folder and not Path(folder).is_dir():
            return _refuse(f"{folder}: no such folder", 66)
    if args.since is not None and not _is_time(args.since):
        return _refuse(
            f"--since {args.since!r}: no time that journalctl knows ('2 hours ago', 'yesterday', '2026-03-31 14:00')",
            64,
        )
    target = Path(args.fixture) if args.fixture else _target(args.output)
    if refusal := _unwritable(target, new=bool(args.fixture)):
        return _refuse(refusal, 73)

    from gpudoctor.bundle.collect import take, write, write_fixture
    from gpudoctor.diagnosis import Doctor
    from gpudoctor.sources.live import LiveHost

    try:
        snapshot = take(
            Doctor([Path(folder) for folder in args.rules]),
            LiveHost(args.root, args.commands),
            profile=args.profile,
            timeout=args.timeout,
            logs=[Path(log) for log in args.logs],
            since=args.since,
            redacted=not args.no_redact,
            progress=_progress,
        )
    except OSError as error:
        return _refuse(f"{error.filename}: {error.strerror}", 66)
    try:
        (write_fixture if args.fixture else write)(snapshot, target)
    except OSError as error:
        return _refuse(f"{target}: {error.strerror}", 73)
    _tell(snapshot, target)
    if any(probe.status == "timeout" for probe in snapshot.live.probes):
        # A thread that hangs in the kernel would keep the interpreter from ending.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    return 0


def _is_time(words: str) -> bool:
    """Ask journalctl, whose words they are; where there is none, nothing is read from a journal."""
    from gpudoctor.sources.live import LiveHost

    answer = LiveHost().run(["journalctl", f"--since={words}", "-n", "0"], deadline=5, max_bytes=4096)
    return b"parse timestamp" not in answer.output


def _target(output: str | None) -> Path:
    name = time.strftime("gpudoctor-%Y%m%d-%H%M%S.tar.gz", time.gmtime())
    path = Path(output) if output else Path(name)
    return path / name if path.is_dir() else path


def _unwritable(target: Path, *, new: bool) -> str | None:
    if new and target.exists():
        return f"{target}: is there already; a fixture gets a new folder"
    if new:
        return None
    if not target.name.endswith((".tar.gz", ".tgz", ".tar.xz", ".txz")):
        return f"{target}: name the bundle .tar.gz or .tar.xz"
    if not target.absolute().parent.is_dir():
        return f"{target.parent}: no such folder"
    return None if os.access(target.absolute().parent, os.W_OK) else f"{target.parent}: no permission to write there"


def _refuse(line: str, status: int) -> int:
    sys.stderr.write(f"gpudoctor: {line}\n")
    return status


def _progress(name: str, result: object) -> None:
    status = getattr(result, "status", None)
    if status in ("timeout", "failed", "denied"):
        sys.stderr.write(f"{name}: {status} ({getattr(result, 'reason', '')})\n")


def _tell(snapshot: Snapshot, target: Path) -> None:
    """Say what was written, on standard error what to know about it."""
    report = snapshot.report
    sys.stderr.write(f"{report.status.upper()}: {report.summary}\n")
    redacted = snapshot.manifest.redacted
    if redacted is None:
        sys.stderr.write("Nothing was taken out: names, addresses, serials and secrets are in it.\n")
    else:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(redacted.items()))
        sys.stderr.write(f"Replaced: {kinds or 'nothing'}.\n")
    if snapshot.differs:
        sys.stderr.write(
            f"The bundle does not lead to the same findings as the machine: {', '.join(snapshot.differs)}\n"
        )
    sys.stdout.write(f"{target}\n")


def _plan(args: argparse.Namespace) -> int:
    from gpudoctor.collect.probe import COSTS, load_probes

    costs = COSTS[: ("quick", "standard", "deep").index(args.profile) + 1]
    for probe in load_probes():
        if probe.cost not in costs:
            continue
        live = probe.live
        how = "run" if live.command else "call" if live.child else "read"
        root = "; needs root" if probe.needs else ""
        sys.stdout.write(f"{probe.name:<24} {how} {probe.what} (at most {probe.deadline:g} s{root})\n")
    for log in args.logs:
        sys.stdout.write(f"{'with':<24} read {log}\n")
    return 0
