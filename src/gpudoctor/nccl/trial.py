"""Running nccl-tests on this machine: who may run it, what is run, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpudoctor.collect.collected import Collected
from gpudoctor.combiners import combine
from gpudoctor.diagnosis import Doctor
from gpudoctor.facts.comms import NcclTest
from gpudoctor.facts.gpu import Gpu, GpuProcess
from gpudoctor.facts.store import FactStore
from gpudoctor.findings.model import Report
from gpudoctor.nccl.graph import machine_graph
from gpudoctor.nccl.judge import Judgement, judge, size_text
from gpudoctor.nccl.measure import measure
from gpudoctor.nccl.search import Result, Step, look_closer, result_of, whole
from gpudoctor.parsers import nccl_tests
from gpudoctor.parsers.base import NotThisFormat
from gpudoctor.sources.base import Document, SourceNotes

_IDLE_MEMORY = 1500.0  # MiB that driver and display may hold on a GPU that nobody computes on
_BUSY = 10.0  # percent
_ROOMY = 6000.0  # MiB free that messages of 1 GiB need: two buffers, and what checks them
_SOURCE = "nccl-tests"

Say = Callable[[str], None]


def device_names(store: FactStore, environ: Mapping[str, str]) -> list[str]:
    """Return the GPUs that a program of this user sees, as CUDA_VISIBLE_DEVICES names them."""
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name.strip() for name in visible.split(",") if name.strip()]
    indices = {fact.index for fact in store.of("gpu") if isinstance(fact, Gpu) and fact.index is not None}
    return [str(index) for index in sorted(indices)]


def occupied(store: FactStore, gpus: Sequence[str]) -> list[str]:
    """Say what keeps these GPUs busy; a display doesn't count."""
    names = {fact.gpu: str(fact.index) for fact in store.of("gpu") if isinstance(fact, Gpu) and fact.index is not None}
    said: list[str] = []
    for fact in store.of("gpu_process"):
        name = names.get(fact.gpu, "?")
        if (
            isinstance(fact, GpuProcess)
            and fact.alive is not False
            and "C" in (fact.type or "C")
            and _asked(name, gpus)
        ):
            held = f", {fact.memory:g} MiB" if fact.memory else ""
            said.append(f"GPU {name}: process {fact.pid or '?'} ({fact.name or 'no name'}{held})")
    for fact in store.of("gpu"):
        name = names.get(fact.gpu, "?")
        if not isinstance(fact, Gpu) or not _asked(name, gpus) or any(line.startswith(f"GPU {name}:") for line in said):
            continue
        if (fact.utilization or 0) >= _BUSY:
            said.append(f"GPU {name}: {fact.utilization:g} % busy")
        elif (fact.memory_used or 0) > _IDLE_MEMORY + 0.02 * (fact.memory_total or 0):
            said.append(f"GPU {name}: {fact.memory_used:g} MiB of its memory in use")
    return list(dict.fromkeys(said))


def _asked(name: str, gpus: Sequence[str]) -> bool:
    """Names that are no index (UUIDs) can't be told apart here: then all count."""
    return name in gpus or not all(gpu.isdigit() for gpu in gpus)


def largest_message(store: FactStore) -> str:
    """Return how large messages may be: 1 GiB shows the links, less where the memory doesn't allow it."""
    free = [fact.memory_free for fact in store.of("gpu") if isinstance(fact, Gpu) and fact.memory_free is not None]
    return "1G" if not free or min(free) >= _ROOMY else "256M"


@dataclass
class Trial:
    """What is run, and how."""

    program: Path
    gpus: list[str]
    largest: str = "1G"
    deadline: float = 120.0

    def command(self, step: Step) -> list[str]:
        """Return the command of a step: a whole curve of all GPUs, large messages alone of a pair."""
        smallest = "8M" if len(step.gpus) == len(self.gpus) and not step.environment else "64M"
        return [
            str(self.program),
            "-b",
            smallest,
            "-e",
            self.largest,
            "-f",
            "2",
            "-g",
            str(len(step.gpus)),
            "-w",
            "5",
            "-n",
            "20",
        ]

    def environment(self, step: Step, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that are set for a step alone."""
        debug = {} if environ.get("NCCL_DEBUG") else {"NCCL_DEBUG": "WARN"}
        return {
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_VISIBLE_DEVICES": ",".join(step.gpus),
            **debug,
            **step.environment,
        }

    def shown(self, step: Step, environ: Mapping[str, str]) -> str:
        """Return the step as a person would type it."""
        variables = [f"{name}={value}" for name, value in self.environment(step, environ).items()]
        return " ".join([*variables, *self.command(step)])


@dataclass
class Outcome:
    """The first run judged, what the closer look found, and the diagnosis of it all."""

    first: Result
    judgement: Judgement
    report: Report
    closer: list[Result] = field(default_factory=list)
    conclusions: list[str] = field(default_factory=list)


def carry_out(trial: Trial, doctor: Doctor, machine: Collected, environ: Mapping[str, str], say: Say) -> Outcome:
    """Run all GPUs at once; where that is bad, look for the GPU, link or path that is to blame."""

    def run(step: Step) -> Result:
        say(f"{step.title} ({', '.join(step.gpus)})")
        measured = measure(trial.command(step), trial.environment(step, environ), trial.deadline, _progress(say))
        result = result_of(step, measured)
        ending = f"{result.busbw:g} GB/s" if result.state == "fine" else f"{result.state} {measured.reason}".strip()
        say(f"  {ending} after {measured.seconds:.0f} s")
        return result

    first = run(whole(trial.gpus))
    output = first.measured.output.encode()
    scanned = doctor.scanner.scan(_SOURCE, (output,))
    machine.add(Document(_SOURCE, lambda: (output,)), scanned)
    report = doctor.judge(machine, SourceNotes("live", "/"))
    graph = machine_graph(combine(machine.facts, []))
    tests = [fact for fact in scanned.facts if isinstance(fact, NcclTest)]
    judgement = judge(tests[0], graph) if tests else judge(NcclTest(ranks=len(trial.gpus), nodes=1, rows=0), graph)
    if first.state == "fine" and judgement.verdict == "too slow":
        first.state = "slow"
    if first.state in ("hung", "crashed", "denied"):
        judgement.verdict, judgement.summary = "incomplete", _ended(first)
    outcome = Outcome(first, judgement, report)
    if first.began and first.state in ("slow", "wrong", "hung", "crashed"):
        say("That is not as it should be: looking closer, one pair after the other.")
        outcome.closer, outcome.conclusions = look_closer(first, run)
    return outcome


def _progress(say: Say) -> Callable[[str], None]:
    def on_line(line: str) -> None:
        try:
            *_, test = nccl_tests.table(line)
        except (NotThisFormat, ValueError):
            return
        if isinstance(test, NcclTest) and test.rows:
            say(f"  {size_text(test.size_max or 0):>8}  {test.busbw_max:g} GB/s")

    return on_line


_TELLING = ("NCCL WARN", "failure", "rror", "cannot", "denied", "No such")


def _ended(first: Result) -> str:
    """Say how the run ended, and what the program said first of why."""
    lines = [line.strip() for line in first.measured.output.splitlines() if line.strip(" #")]
    said = next((line for word in _TELLING for line in lines if word in line), lines[-1] if lines else "")
    how = {"hung": "hung", "crashed": "failed", "denied": "could not be started"}[first.state]
    return f"{how}: {first.measured.reason}" + (f"; it said: {said[:200]}" if said else "")


def runs_as_data(results: Iterable[Result]) -> list[dict[str, object]]:
    """Return the runs as plain data."""
    return [
        {
            "what": result.step.title,
            "gpus": list(result.step.gpus),
            "environment": result.step.environment,
            "state": result.state,
            "busbw": result.busbw or None,
            "seconds": round(result.measured.seconds, 1),
            "reason": result.measured.reason or None,
        }
        for result in results
    ]
