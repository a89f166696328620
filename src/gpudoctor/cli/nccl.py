"""`gpudoctor nccl read|run|ras`: are these GPUs talking to each other as fast as they can, or at all?"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from gpudoctor.cli.arguments import seconds

if TYPE_CHECKING:
    from gpudoctor.collect.collected import Collected
    from gpudoctor.nccl.nodes import NodesTrial
    from gpudoctor.nccl.programs import Program
    from gpudoctor.nccl.trial import Trial

UNREADABLE = 66
_EXITS = {"fast enough": 0, "not judged": 3, "incomplete": 1, "too slow": 1, "wrong results": 2}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="read|run|ras")
    read = actions.add_parser("read", help="judge tables that nccl-tests printed, with whatever else the files hold")
    read.add_argument(
        "file",
        nargs="+",
        help="output of nccl-tests; more evidence (topo -m, ibstat, logs) helps; - for standard input",
    )
    read.add_argument("--json", action="store_true", help="print JSON")
    trial = actions.add_parser(
        "run", help="run all_reduce_perf on this machine's GPUs or a job's nodes, and find what slows it down"
    )
    trial.add_argument("--yes", action="store_true", help="don't ask: the GPUs may be used")
    trial.add_argument(
        "--nccl-tests", metavar="DIR", help="where all_reduce_perf lies (default: PATH and the usual places)"
    )
    trial.add_argument(
        "--gpus", metavar="LIST", help="only these GPUs, such as 0,1,4 (default: all that CUDA_VISIBLE_DEVICES allows)"
    )
    trial.add_argument(
        "--nodes", action="store_true", help="inside a Slurm or MPI job: measure across its nodes, and compare them"
    )
    trial.add_argument(
        "--gpus-per-node", type=int, metavar="N", help="with --nodes, where neither the job nor this node tells"
    )
    trial.add_argument(
        "--timeout",
        type=seconds(1, 3600),
        metavar="SECONDS",
        help="deadline of each run (default 120; with --nodes 300)",
    )
    trial.add_argument("--root", default="/", metavar="DIR", help="take the machine's facts from the files below DIR")
    trial.add_argument(
        "--commands", metavar="DIR", help="take command outputs from this recording instead of running them"
    )
    trial.add_argument("--json", action="store_true", help="print JSON")
    ras = actions.add_parser("ras", help="ask NCCL's RAS twice where a job on this node stands, and who holds it up")
    ras.add_argument(
        "--address", metavar="HOST[:PORT]", help="where RAS listens (default: NCCL_RAS_ADDR, or localhost:28028)"
    )
    ras.add_argument(
        "--wait", type=seconds(1, 3600), default=10.0, metavar="SECONDS", help="between the answers (default 10)"
    )
    ras.add_argument(
        "--timeout", type=seconds(1, 3600), default=30.0, metavar="SECONDS", help="for each answer (default 30)"
    )
    ras.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    return {"run": _run, "read": _read, "ras": _ras}[args.action](args)


def _ras(args: argparse.Namespace) -> int:
    """0 the job moves or all ranks stand alike, 2 somebody holds it up, 3 nobody answered."""
    import os

    from gpudoctor.diagnosis import Doctor
    from gpudoctor.nccl.ras import NoAnswer, address_of, ask_twice
    from gpudoctor.nccl.report import causes, causes_text

    address = address_of(args.address, os.environ)
    try:
        asked = ask_twice(Doctor(), address, args.wait, args.timeout, _say)
    except NoAnswer as error:
        return _refuse(
            f"gpudoctor nccl ras: {error}",
            "RAS listens on the nodes of a running job with NCCL 2.24 or newer (not where NCCL_RAS_ENABLE=0).",
        )
    known = causes(asked.report.findings)
    if args.json:
        import json

        from gpudoctor.report.published import published_findings

        data = {"moved": asked.moved, "causes": published_findings(known)}
        sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=1) + "\n")
    elif known:
        sys.stdout.write(causes_text(known))
    else:
        said = "the job moves: between the answers its counts grew" if asked.moved else "no rank is behind the others"
        sys.stdout.write(f"Nobody holds the job up: {said}.\n")
    return 2 if known else 0


def _read(args: argparse.Namespace) -> int:
    """0 fast enough, 1 too slow or incomplete, 2 wrong results, 3 nothing to judge; 66 where a file can't be read."""
    from gpudoctor.diagnosis import Doctor
    from gpudoctor.nccl.read import read
    from gpudoctor.nccl.report import as_text, causes
    from gpudoctor.sources.base import SourceUnreadable
    from gpudoctor.sources.open import open_sources

    try:
        found = read(Doctor(), open_sources(args.file))
    except SourceUnreadable as error:
        sys.stderr.write(f"gpudoctor nccl read: {error}\n")
        return UNREADABLE
    if args.json:
        import json

        from gpudoctor.report.published import published_findings

        data = {
            "tables": [judgement.as_data() for judgement in found.judgements],
            "job": found.job,
            "problems": found.report.source.problems,
            "causes": published_findings(causes(found.report.findings)),
        }
        sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=1) + "\n")
    else:
        sys.stdout.write(as_text(found.judgements, found.report.findings, found.job, found.report.source.problems))
    judged = [judgement.verdict for judgement in found.judgements if judgement.verdict != "not judged"]
    return max((_EXITS[verdict] for verdict in judged), default=3)


_DEADLINE, _DEADLINE_NODES = 120.0, 300.0  # seconds
_INSTEAD = "To judge a table that was measured elsewhere: gpudoctor nccl read FILE"
NOT_RUN = 3


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _refuse(*lines: str) -> int:
    for line in lines:
        sys.stderr.write(f"{line}\n")
    return NOT_RUN


def _run(args: argparse.Namespace) -> int:
    """As _read; 3 also where nothing was run, with the reason."""
    import os

    from gpudoctor.cli.topo import probe_machine
    from gpudoctor.combiners import combine
    from gpudoctor.nccl.programs import find_torch, launch_line, launched_with
    from gpudoctor.nccl.trial import Trial, device_names, largest_message, occupied

    if (copies := launched_with(os.environ)) > 1:
        return _refuse(
            f"gpudoctor nccl run: {copies} copies of it were started by a launcher, and would disturb each other. "
            "Start it once, without mpirun or srun; with --nodes it starts the processes of a job itself."
        )
    machine = probe_machine(args.root, args.commands)
    store = combine(machine.facts, [])
    gpus = [name.strip() for name in args.gpus.split(",")] if args.gpus else device_names(store, os.environ)
    if args.nodes:
        return _run_nodes(args, machine, len(gpus) or None)
    if not gpus or not store.of("gpu"):
        return _refuse(
            "gpudoctor nccl run: no NVIDIA GPU that a program could use was found on this machine.", _INSTEAD
        )
    if len(gpus) < 2:
        return _refuse("gpudoctor nccl run: one GPU alone has nobody to talk to; two are needed.", _INSTEAD)
    program = _program(args)
    if program is None and args.nccl_tests is None:
        program = find_torch()
    if program is None:
        return _no_program(args)
    if not program.runnable:
        return _not_runnable(program)
    if line := launch_line(program.path, len(gpus), os.environ):
        return _refuse(
            "gpudoctor nccl run: this job has several nodes. To test them together, and compare them where that is bad:",
            "  gpudoctor nccl run --nodes",
            "or by hand:",
            f"  {line}",
            "then: gpudoctor nccl read nccl-tests.log",
        )
    if busy := occupied(store, gpus):
        return _refuse(
            "gpudoctor nccl run: these GPUs are in use, and a test would disturb what runs there and measure too little:",
            *(f"  {line}" for line in busy),
            "Run it when they are free, or choose free ones with --gpus.",
            _INSTEAD,
        )
    trial = Trial(program.command, gpus, largest_message(store), args.timeout or _DEADLINE)
    if program.python:
        sys.stderr.write("No nccl-tests was found; torch.distributed measures in its stead.\n")
    more = len(gpus) * 2 + 2 if len(gpus) > 2 else 2
    closer = "pairs of GPUs, then all of them without peer-to-peer and without shared memory, to tell the paths apart"
    if not _agreed(trial, f"the GPUs {', '.join(gpus)} alone", more, closer, args.yes):
        return NOT_RUN
    return _carry_out(trial, machine, args.json)


def _program(args: argparse.Namespace) -> Program | None:
    from gpudoctor.nccl.programs import find_program

    return find_program(args.nccl_tests)


def _no_program(args: argparse.Namespace) -> int:
    from gpudoctor.nccl.programs import GET_THEM

    where = (
        f"in {args.nccl_tests}"
        if args.nccl_tests
        else "in PATH or the usual places, and no Python has a torch for CUDA"
    )
    return _refuse(
        f"gpudoctor nccl run: no all_reduce_perf {where}. To get it:",
        *(f"  {command}" for command in GET_THEM),
        "then: gpudoctor nccl run --nccl-tests nccl-tests/build",
        _INSTEAD,
    )


def _not_runnable(program: Program) -> int:
    return _refuse(
        f"gpudoctor nccl run: {program.path} is there, but may not be run by you: chmod +x {program.path}", _INSTEAD
    )


def _run_nodes(args: argparse.Namespace, machine: Collected, gpus: int | None) -> int:
    """Across the nodes of the job that this process runs in."""
    import os

    from gpudoctor.nccl.nodes import NodesTrial, find_job

    job = find_job(os.environ, gpus)
    if job is None:
        return _refuse(
            "gpudoctor nccl run: no job of several nodes is to be seen here (SLURM_JOB_ID and scontrol, PBS_NODEFILE, "
            "LSB_DJOB_HOSTFILE); start it inside of one: salloc -N 2 --gpus-per-node=8",
            _INSTEAD,
        )
    each = args.gpus_per_node or job.gpus
    if not each:
        return _refuse("gpudoctor nccl run: how many GPUs has a node? --gpus-per-node N tells.", _INSTEAD)
    program = _program(args)
    if program is None:
        return _no_program(args)
    if not program.runnable:
        return _not_runnable(program)
    trial = NodesTrial(program.command, job, each, args.timeout or _DEADLINE_NODES)
    closer = "pairs of nodes at the same time, then those of bad pairs with good ones"
    if not _agreed(trial, f"{each} GPUs on each of {len(job.nodes)} nodes", len(job.nodes) * 3 // 2 + 1, closer, args.yes):  # fmt: skip
        return NOT_RUN
    return _carry_out(trial, machine, args.json)


def _agreed(trial: Trial | NodesTrial, what: str, more: int, closer: str, yes: bool) -> bool:
    """Show what will be run, and ask."""
    import os

    sys.stderr.write(
        f"This will use {what} for about a minute (each run ends after {trial.deadline:g} s at the latest):\n"
        f"  {trial.shown(trial.first(), os.environ)}\n"
        f"If the result is bad, up to {more} more runs of the same program follow: {closer}. Nothing on the machine is changed.\n"
    )
    if yes:
        return True
    if not sys.stdin.isatty():
        sys.stderr.write("gpudoctor nccl run: nobody can be asked here; --yes runs it.\n")
        return False
    sys.stderr.write("Run it? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _carry_out(trial: Trial | NodesTrial, machine: Collected, as_json: bool) -> int:
    import os

    from gpudoctor.diagnosis import Doctor
    from gpudoctor.nccl.report import causes, trial_text
    from gpudoctor.nccl.trial import carry_out, runs_as_data

    outcome = carry_out(trial, Doctor(), machine, os.environ, _say)
    if as_json:
        import json

        from gpudoctor.report.published import published_findings

        data = {
            "table": outcome.judgement.as_data(),
            "runs": runs_as_data([outcome.first, *outcome.closer]),
            "conclusions": outcome.conclusions,
            "causes": published_findings(causes(outcome.report.findings)),
        }
        sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=1) + "\n")
    else:
        sys.stdout.write(trial_text(outcome))
    if outcome.first.state == "denied":
        return NOT_RUN
    return 2 if outcome.first.state in ("hung", "crashed", "wrong") else _EXITS[outcome.judgement.verdict]
