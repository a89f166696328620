"""Where a program that measures lies on this machine, and how a job of several nodes would start it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_NAMES = ("all_reduce_perf", "all_reduce_perf_mpi")
_FOLDERS = (
    "~/nccl-tests/build",
    "/opt/nccl-tests/build",
    "/opt/nccl-tests",
    "/opt/nccl_tests/build",
    "/usr/local/nccl-tests/build",
    "/usr/lib/nccl-tests",
    "/usr/libexec/nccl-tests",
    "/workspace/nccl-tests/build",
    "/nccl-tests/build",
    "/root/nccl-tests/build",
)
GET_THEM = (
    "git clone https://github.com/NVIDIA/nccl-tests.git",
    "make -C nccl-tests -j",
)


# Which CUDA this torch was built for, without the seconds that importing torch takes; a build for the CPU has none.
_LOOK = """
import importlib.util, pathlib, sys
spec, told = importlib.util.find_spec("torch"), {}
if spec and spec.origin:
    exec(pathlib.Path(spec.origin).with_name("version.py").read_text(), told)
sys.exit(0 if told.get("cuda") else 1)
"""
_PATIENCE = 20.0  # seconds: a Python on a network file system may take long to start


@dataclass(frozen=True)
class Program:
    """An all_reduce_perf; one that may not be run is shown to the user, not passed over.

    python: the interpreter that runs it, where torch.distributed measures in its stead.
    """

    path: Path
    runnable: bool
    python: str | None = None

    @property
    def command(self) -> list[str]:
        """The words that start it."""
        return [*([self.python] if self.python else []), str(self.path)]


def find_program(folder: str | None = None, environ: Mapping[str, str] = os.environ) -> Program | None:
    """Return the program in this folder, or of PATH and the usual places the first that may be run."""
    folders = [folder] if folder else [*environ.get("PATH", "").split(os.pathsep), *_FOLDERS]
    refused: Program | None = None
    for place in folders:
        for name in _NAMES:
            for path in (Path(place).expanduser() / name, Path(place).expanduser() / "build" / name):
                try:
                    there = path.is_file()
                except OSError:
                    continue
                if there and os.access(path, os.X_OK):
                    return Program(path, runnable=True)
                if there and refused is None:
                    refused = Program(path, runnable=False)
    return refused


def find_torch(environ: Mapping[str, str] = os.environ) -> Program | None:
    """Return the measurement by torch.distributed, run by the first Python that has a torch for CUDA; torch is not imported for that."""
    for python in dict.fromkeys(_pythons(environ)):
        try:
            done = subprocess.run([python, "-c", _LOOK], capture_output=True, timeout=_PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return Program(Path(__file__).with_name("torch_perf.py"), runnable=True, python=python)
    return None


def _pythons(environ: Mapping[str, str]) -> Iterator[str]:
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if environ.get(name):
            yield str(Path(environ[name]) / "bin" / "python")
    for name in ("python3", "python"):
        if found := shutil.which(name, path=environ.get("PATH")):
            yield found
    yield sys.executable


def launched_with(environ: Mapping[str, str]) -> int:
    """Return how many processes a launcher started together with this one; 1 where none did.

    >>> launched_with({"OMPI_COMM_WORLD_SIZE": "8"}), launched_with({"SLURM_STEP_NUM_TASKS": "1"}), launched_with({})
    (8, 1, 1)
    """
    told = (environ.get(name, "") for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"))
    return max((int(number) for number in told if number.isdigit()), default=1)


def launch_line(program: Path, gpus: int, environ: Mapping[str, str]) -> str | None:
    """Return how a job that has several nodes starts the test on all of them; None outside such a job.

    >>> launch_line(Path("/opt/all_reduce_perf"), 8, {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "4"})
    'srun --mpi=pmix -N 4 --ntasks-per-node=8 /opt/all_reduce_perf -b 8M -e 8G -f 2 -g 1 | tee nccl-tests.log'
    >>> launch_line(Path("/opt/all_reduce_perf"), 8, {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "1"})
    """
    sizes = "-b 8M -e 8G -f 2 -g 1 | tee nccl-tests.log"
    nodes = environ.get("SLURM_JOB_NUM_NODES") or environ.get("SLURM_NNODES") or ""
    if environ.get("SLURM_JOB_ID") and nodes.isdigit() and int(nodes) > 1:
        return f"srun --mpi=pmix -N {nodes} --ntasks-per-node={gpus} {program} {sizes}"
    hosts = (
        environ.get("PBS_NODEFILE") or environ.get("OMPI_MCA_orte_default_hostfile") or environ.get("LSB_DJOB_HOSTFILE")
    )
    if hosts:
        return f"mpirun --hostfile {hosts} --map-by ppr:{gpus}:node {program} {sizes}"
    return None
