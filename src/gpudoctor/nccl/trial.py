"""Running nccl-tests on this machine: who may run it, what is run, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event

from gpudoctor.collect.collected import Collected
from gpudoctor.combiners import combine
from gpudoctor.diagnosis import Doctor
from gpudoctor.facts.comms import NcclTest
from gpudoctor.facts.gpu import Gpu, GpuProcess
from gpudoctor.facts.host import RdmaPort
from gpudoctor.facts.store import FactStore
from gpudoctor.findings.model import Report
from gpudoctor.nccl.graph import machine_graph
from gpudoctor.nccl.judge import Judgement, judge, size_text
from gpudoctor.nccl.measure import measure
from gpudoctor.nccl.nodes import NodesTrial
from gpudoctor.nccl.search import Result, RunAll, Step, look_closer, result_of
from gpudoctor.parsers import nccl_tests
from gpudoctor.parsers.base import NotThisFormat
from gpudoctor.sources.base import Document, SourceNotes

_IDLE_MEMORY = 1500.0  # MiB that driver and display may hold on a GPU that nobody computes on
_BUSY = 10.0  # percent
_ROOMY = 6000.0  # MiB free that messages of 1 GiB need: two buffers, and what checks them
_SOURCE = "nccl-tests"
_TOGETHER = 16  # pairs of nodes at the same time

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
    """Runs over GPUs of this node."""

    program: list[str]
    gpus: list[str]
    largest: str = "1G"
    deadline: float = 120.0

    def first(self) -> Step:
        """Everything at once."""
        return Step(f"all {len(self.gpus)} GPUs", tuple(self.gpus))

    def none(self) -> NcclTest:
        """Return what stands for a table that never came."""
        return NcclTest(ranks=len(self.gpus), nodes=1, rows=0)

    def closer(self, first: Result, run_all: RunAll) -> tuple[list[Result], list[str]]:
        """Return what pairs of GPUs and other paths gave, and what follows from it; one after the other, on one machine."""
        return look_closer(first, lambda step: run_all([step])[0])

    def command(self, step: Step) -> list[str]:
        """Return the command of a step: a whole curve of all GPUs, large messages alone of a pair."""
        smallest = "8M" if len(step.gpus) == len(self.gpus) and not step.environment else "64M"
        return [
            *self.program,
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


def carry_out(
    trial: Trial | NodesTrial, doctor: Doctor, machine: Collected, environ: Mapping[str, str], say: Say
) -> Outcome:
    """Run everything at once; where that is bad, look for the GPU, node, link or path that is to blame."""
    stop = Event()

    def run(step: Step) -> Result:
        whole = step == trial.first()
        say(f"{step.title} ({', '.join(step.gpus or step.nodes)})")
        progress = _progress(say) if whole else lambda line: None
        measured = measure(trial.command(step), trial.environment(step, environ), trial.deadline, progress, stop)
        result = result_of(step, measured)
        ending = f"{result.busbw:g} GB/s" if result.state == "fine" else f"{result.state} {measured.reason}".strip()
        say(f"  {'' if whole else step.title + ': '}{ending} after {measured.seconds:.0f} s")
        return result

    def run_all(steps: Sequence[Step]) -> list[Result]:
        with ThreadPoolExecutor(_TOGETHER) as pool:
            try:
                return list(pool.map(run, steps))
            except BaseException:
                stop.set()  # whoever interrupts doesn't want to wait for what is still running
                raise

    (first,) = run_all([trial.first()])
    output = first.measured.output.encode()
    scanned = doctor.scanner.scan(_SOURCE, (output,))
    machine.add(Document(_SOURCE, lambda: (output,)), scanned)
    report = doctor.judge(machine, SourceNotes("live", "/"))
    graph = machine_graph(combine(machine.facts, []))
    tests = [fact for fact in scanned.facts if isinstance(fact, NcclTest)]
    judgement = judge(tests[0], graph) if tests else judge(trial.none(), graph)
    if first.state == "fine" and judgement.verdict == "too slow":
        first.state = "slow"
    if first.state in ("hung", "crashed", "denied"):
        judgement.verdict, judgement.summary = "incomplete", _ended(first)
    outcome = Outcome(first, judgement, report)
    bad = first.state in ("slow", "wrong", "hung", "crashed")
    if first.began and (bad or (first.step.nodes and not _sure(judgement, machine))):
        say(
            "That is not as it should be: looking closer."
            if bad
            else "What to expect is not known well: comparing nodes."
        )
        outcome.closer, outcome.conclusions = trial.closer(first, run_all)
        if not bad and any(result.state != "fine" for result in outcome.closer):
            judgement.verdict = "too slow"
            judgement.summary = f"{first.busbw:g} GB/s, and not all nodes are as fast as the others"
    return outcome


def _sure(judgement: Judgement, machine: Collected) -> bool:
    """Across nodes the expectation is worth little where nobody told how fast the adapters are."""
    rates = (fact.rate for fact in machine.facts if isinstance(fact, RdmaPort))
    return judgement.verdict == "fast enough" and any(rates)


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
            "nodes": list(result.step.nodes),
            "environment": result.step.environment,
            "state": result.state,
            "busbw": result.busbw or None,
            "seconds": round(result.measured.seconds, 1),
            "reason": result.measured.reason or None,
        }
        for result in results
    ]
