"""Where nccl-tests programs lie on this machine, and how a job of several nodes would start them."""

from __future__ import annotations

import os
from collections.abc import Mapping
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


@dataclass(frozen=True)
class Program:
    """An all_reduce_perf; one that may not be run is shown to the user, not passed over."""

    path: Path
    runnable: bool


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
