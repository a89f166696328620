"""`gpudoctor preflight`: before a training run, will this machine train on its GPU, and well?"""

from __future__ import annotations

import argparse
import sys

from gpudoctor.cli.arguments import seconds

UNREADABLE = 66
EXITS = {"yes": 0, "no": 2, "unknown": 3}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "source", nargs="*", help="judge this bundle, folder or files instead of the machine (a report of another node)"
    )
    parser.add_argument("--framework", choices=["tensorflow", "pytorch", "jax"], help="the framework that will train")
    parser.add_argument(
        "--script",
        action="append",
        default=[],
        metavar="FILE",
        help="training program (.py, .ipynb), read and never run; may be repeated",
    )
    parser.add_argument(
        "--requirements",
        action="append",
        default=[],
        metavar="FILE",
        help="requirements file, Dockerfile, set-up script or guide; may be repeated",
    )
    parser.add_argument(
        "--python",
        default=None,
        metavar="PATH",
        help="interpreter that will train (default: the one that runs gpudoctor)",
    )
    parser.add_argument(
        "--run",
        action="store_true",
        dest="trial",
        help="try the framework in a child process: device, allocation, matrix product, convolution",
    )
    parser.add_argument("--no-machine", action="store_true", help="judge only --script and --requirements")
    parser.add_argument(
        "--timeout", type=seconds(1, 3600), default=60.0, metavar="SECONDS", help="deadline of --run (default 60)"
    )
    parser.add_argument("--root", default="/", metavar="DIR", help="examine the machine whose files lie below DIR")
    parser.add_argument(
        "--commands", metavar="DIR", help="take command outputs from this recording instead of running them"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--exit-zero", action="store_true", help="exit 0 whatever the answer is")


def run(args: argparse.Namespace) -> int:
    """Print the answer: 0 yes, 2 no, 3 can't tell; 66 where a file can't be read."""
    from gpudoctor.preflight.check import Unreadable, preflight
    from gpudoctor.preflight.render import as_json, render_text

    if args.no_machine and not (args.script or args.requirements):
        sys.stderr.write("gpudoctor preflight: --no-machine needs --script or --requirements\n")
        return 64
    try:
        result = preflight(
            sources=args.source,
            framework=args.framework,
            scripts=args.script,
            requirements=args.requirements,
            interpreter=args.python,
            trial=args.trial,
            machine=not args.no_machine,
            timeout=args.timeout,
            root=args.root,
            commands=args.commands,
        )
    except Unreadable as error:
        sys.stderr.write(f"gpudoctor preflight: {error}\n")
        return UNREADABLE
    if args.json:
        import json

        sys.stdout.write(json.dumps(as_json(result), ensure_ascii=False, indent=1) + "\n")
    else:
        sys.stdout.write(render_text(result))
    return 0 if args.exit_zero else EXITS[result.verdict]
