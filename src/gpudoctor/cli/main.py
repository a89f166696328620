"""The command line. argparse, because it starts fastest; each command's module is loaded only when it is asked for."""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import os
import sys
from collections.abc import Sequence

from gpudoctor import __version__

EXIT_USAGE, EXIT_UNREADABLE, EXIT_INTERNAL = 64, 66, 70

# command -> what it is for; its module in cli/ has add_arguments(parser) and run(args) -> exit status
COMMANDS = {
    "diagnose": "diagnose a bundle, folder, log files or '-' (standard input), offline",
    "collect": "make a redacted support bundle that diagnose reads back",
    "diff": "two nodes, or one before and after, side by side",
    "watch": "examine this machine again and again; metrics, and events on change",
    "explain": "what an id, Xid, SXid, NVML/CUDA/NCCL error means and what to do",
    "topo": "how GPUs and network adapters reach each other, what is below par marked",
    "nccl": "judge (and run) nccl-tests: do the GPUs talk to each other as fast as they can?",
    "preflight": "before a training run: will this machine train on its GPU, and well?",
    "compat": "will this driver / CUDA / framework / GPU combination work?",
    "rules": "lint, test or list rules; write the page of findings",
    "schema": "print the JSON Schema of the report",
}
_LIVE = "live"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]  # argparse says NoReturn; exit() raises
        self.exit(EXIT_USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _top() -> str:
    width = max(len(name) for name in COMMANDS)
    lines = [f"  {name:<{width}}  {text}" for name, text in COMMANDS.items()]
    return (
        "Finds out what is wrong with an NVIDIA GPU machine, says why, and walks you through the fix.\n\n"
        "Without a command it examines this machine. Commands:\n" + "\n".join(lines)
    )


def parse(argv: Sequence[str]) -> tuple[str, argparse.Namespace]:
    """Split the command line into command and its arguments; exits with 64 on wrong usage."""
    name = argv[0] if argv and not argv[0].startswith("-") else _LIVE
    rest = list(argv[1:]) if name != _LIVE else list(argv)
    if name != _LIVE and name not in COMMANDS:
        import difflib

        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        if os.path.exists(name):  # noqa: PTH110  # pathlib isn't loaded yet
            hint = f"; to diagnose that file: gpudoctor diagnose {name}"
        sys.stderr.write(f"gpudoctor: unknown command {name!r}{hint} (see gpudoctor --help)\n")
        raise SystemExit(EXIT_USAGE)
    program = "gpudoctor" if name == _LIVE else f"gpudoctor {name}"
    parser = _Parser(
        prog=program,
        description=_top() if name == _LIVE else COMMANDS[name],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if name == _LIVE:
        parser.add_argument("--version", action="version", version=f"gpudoctor {__version__}")
        if rest == ["--version"]:
            parser.parse_args(rest)
    module = importlib.import_module(f"gpudoctor.cli.{name}")
    module.add_arguments(parser)
    args = parser.parse_args(rest)
    args.run = module.run
    return name, args


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit status."""
    words = sys.argv[1:] if argv is None else argv
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by who started us: only the exit status is wanted
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115  # pathlib costs start-up time
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a report with a question mark in it is better than none
    return _plugin(words) if "--nagios" in words else _main(words)


def _plugin(words: Sequence[str]) -> int:
    """Run as a Nagios plugin: whatever goes wrong is one line on standard output and status 3."""
    import contextlib

    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            status = _main(words)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else EXIT_INTERNAL
    if status <= 3:
        return status
    from gpudoctor.report.nagios import nagios_unknown

    try:
        sys.stdout.write(nagios_unknown(complaint.getvalue().removeprefix("gpudoctor: ")))
        sys.stdout.flush()
    except OSError:  # nothing takes the line; the status still says it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 3


def _main(words: Sequence[str]) -> int:
    try:
        _, args = parse(words)
        status: int = args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if os.environ.get("GPUDOCTOR_TRACEBACK"):
            raise
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            sys.stderr.write(f"gpudoctor: {error.filename or 'the output'} can't be written: {error.strerror}\n")
            return EXIT_INTERNAL
        if isinstance(error, PermissionError) and error.filename:
            sys.stderr.write(f"gpudoctor: {error.filename}: permission denied (run as a user who may use it)\n")
            return EXIT_UNREADABLE
        sys.stderr.write(
            f"gpudoctor: internal error: {type(error).__name__}: {error} (GPUDOCTOR_TRACEBACK=1 shows where; please report it)\n"
        )
        return EXIT_INTERNAL
    return status
