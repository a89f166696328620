"""Measuring across the nodes of a job: all together, then pair by pair, then suspects with nodes that are known to be good."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from gpudoctor.facts.comms import NcclTest
from gpudoctor.nccl.search import Result, RunAll, Step, judge_pairs

_HOST_FILES = ("PBS_NODEFILE", "OMPI_MCA_orte_default_hostfile", "LSB_DJOB_HOSTFILE")
_ALL, _PAIR = "4G", "1G"  # largest messages
_PATIENCE = 10.0  # seconds for scontrol


@dataclass(frozen=True)
class Job:
    """The nodes that a batch system gave to this job, and how programs are started on them."""

    launcher: str  # srun, mpirun
    nodes: tuple[str, ...]
    gpus: int | None  # per node


def find_job(environ: Mapping[str, str], gpus: int | None) -> Job | None:
    """Return the job that this process runs in, if it has several nodes; gpus: of this node, where nothing else tells."""
    told = re.search(r"\d+$", environ.get("SLURM_GPUS_ON_NODE") or environ.get("SLURM_GPUS_PER_NODE") or "")
    if environ.get("SLURM_JOB_ID"):
        nodes = _slurm_nodes(environ.get("SLURM_JOB_NODELIST") or environ.get("SLURM_NODELIST") or "")
        return Job("srun", nodes, int(told[0]) if told else gpus) if len(nodes) > 1 else None
    for name in _HOST_FILES:
        nodes = _host_file(environ.get(name) or "")
        if len(nodes) > 1:
            return Job("mpirun", nodes, gpus)
    return None


def _slurm_nodes(listed: str) -> tuple[str, ...]:
    if not listed or listed.startswith("-"):
        return ()
    try:
        done = subprocess.run(
            ["scontrol", "show", "hostnames", listed], capture_output=True, timeout=_PATIENCE, check=False, text=True
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(dict.fromkeys(done.stdout.split())) if done.returncode == 0 else ()


def _host_file(name: str) -> tuple[str, ...]:
    try:
        lines = Path(name).read_text(errors="replace").splitlines() if name else []
    except OSError:
        return ()
    return tuple(dict.fromkeys(line.split()[0] for line in lines if line.strip() and not line.startswith("#")))


@dataclass
class NodesTrial:
    """Runs over the nodes of a job; each rank has one GPU."""

    program: list[str]
    job: Job
    gpus: int
    deadline: float = 300.0

    def first(self) -> Step:
        """Everything at once."""
        return Step(f"all {len(self.job.nodes)} nodes", nodes=self.job.nodes)

    def none(self) -> NcclTest:
        """Return what stands for a table that never came."""
        return NcclTest(ranks=len(self.job.nodes) * self.gpus, nodes=len(self.job.nodes), rows=0)

    def command(self, step: Step) -> list[str]:
        """Return the command that starts a step from inside the job."""
        count, each = len(step.nodes), str(self.gpus)
        sizes = ["-b", "8M" if step.nodes == self.job.nodes else "64M", "-e", _ALL if count > 2 else _PAIR, "-f", "2", "-g", "1", "-w", "5", "-n", "20"]  # fmt: skip
        if self.job.launcher == "srun":
            start = ["srun", "--mpi=pmix", "-N", str(count), "-w", ",".join(step.nodes), f"--ntasks-per-node={each}"]
        else:
            hosts = ",".join(f"{node}:{each}" for node in step.nodes)
            start = ["mpirun", "--host", hosts, "--map-by", f"ppr:{each}:node", "-x", "NCCL_DEBUG", "-x", "NCCL_DEBUG_SUBSYS"]  # fmt: skip
        return [*start, *self.program, *sizes]

    def environment(self, step: Step, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that are set for a step: NCCL tells which adapters it uses, which the expectation needs."""
        return {} if environ.get("NCCL_DEBUG") else {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV"}

    def shown(self, step: Step, environ: Mapping[str, str]) -> str:
        """Return the step as a person would type it."""
        variables = [f"{name}={value}" for name, value in self.environment(step, environ).items()]
        return " ".join([*variables, *self.command(step)])

    def closer(self, first: Result, run_all: RunAll) -> tuple[list[Result], list[str]]:
        """Return what the comparison of nodes gave, and what follows from it."""
        nodes = self.job.nodes
        return _alone(nodes, run_all) if len(nodes) == 2 else _in_pairs(nodes, run_all)


def _alone(nodes: Sequence[str], run_all: RunAll) -> tuple[list[Result], list[str]]:
    """Two nodes have nobody to be compared with but each other."""
    results = run_all([Step(f"{node} alone", nodes=(node,)) for node in nodes])
    judge_pairs(results)
    said = [f"node {result.step.nodes[0]} is to blame: it is {result.state} alone" for result in results if result.state != "fine"]  # fmt: skip
    return results, said or [f"the path between {nodes[0]} and {nodes[1]} is to blame: each of them alone is fine"]


def _in_pairs(nodes: Sequence[str], run_all: RunAll) -> tuple[list[Result], list[str]]:
    results = run_all([Step(f"{a} and {b}", nodes=(a, b)) for a, b in _disjoint(nodes)])
    if len(nodes) % 2:
        results += run_all([Step(f"{nodes[-1]} and {nodes[0]}", nodes=(nodes[-1], nodes[0]))])
    judge_pairs(results)
    bad = [result for result in results if result.state != "fine"]
    good = [node for result in results if result.state == "fine" for node in result.step.nodes]
    good = [node for node in dict.fromkeys(good) if not any(node in result.step.nodes for result in bad)]
    if not bad:
        return results, [
            "every pair of nodes is as fast as the others: no node is to blame; what all of them share is (links above the "
            "leaf switches, routing, congestion)"
        ]
    if not good:
        return results, ["every pair of nodes is bad: no single node is to blame, but what all of them have in common"]
    return _second_pass(results, bad, good, run_all)


def _disjoint(nodes: Sequence[str]) -> Iterator[tuple[str, str]]:
    return zip(nodes[::2], nodes[1::2], strict=False)


def _second_pass(
    results: list[Result], bad: list[Result], good: list[str], run_all: RunAll
) -> tuple[list[Result], list[str]]:
    """Each node of a bad pair with a node that is known to be good; no good node serves two at the same time."""
    suspects = list(dict.fromkeys(node for result in bad for node in result.step.nodes))
    steps = [Step(f"suspect {a} with {b}", nodes=(a, b)) for a, b in zip(suspects, islice(cycle(good), len(suspects)), strict=True)]  # fmt: skip
    again: list[Result] = []
    for start in range(0, len(steps), len(good)):
        again += run_all(steps[start : start + len(good)])
    judge_pairs(again, [result.busbw for result in results if result.state == "fine"])
    blamed = {result.step.nodes[0]: result for result in again if result.state != "fine"}
    said = [
        f"node {node} is to blame: {result.state} also with {result.step.nodes[1]}, which is fine with others"
        for node, result in blamed.items()
    ]
    for result in bad:
        if not blamed.keys() & set(result.step.nodes):
            a, b = result.step.nodes
            said.append(f"the path between {a} and {b} is to blame: {result.state} with each other, fine with others")
    return [*results, *again], said
