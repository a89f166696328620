"""The shell around nccl-tests: a recorded program on a faked 8-GPU node, with everything that can go wrong."""

import contextlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from gpudoctor.facts.gpu import Gpu, GpuProcess
from gpudoctor.facts.store import FactStore
from gpudoctor.nccl.trial import occupied

HERE = Path(__file__).parent
PROGRAM = HERE / "recorded_program.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    program = tmp_path / "all_reduce_perf"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {PROGRAM} "$@"\n')
    program.chmod(0o755)
    return tmp_path


@pytest.fixture
def run(gpudoctor: Callable[..., Any], folder: Path) -> Callable[..., Any]:
    def start(*words: str, fault: str = "", scenario: str | None = "h100x8", **env: str) -> Any:
        return gpudoctor(
            "nccl",
            "run",
            "--nccl-tests",
            str(folder),
            *words,
            scenario=scenario,
            timeout=120,
            RECORDED_FAULT=fault,
            **env,
        )

    return start


def test_a_healthy_board(run: Callable[..., Any]) -> None:
    done = run("--yes")
    assert done.code == 0, done.err
    assert done.out.startswith("FAST ENOUGH: all_reduce, 8 GPUs on one node, NVIDIA H200: 463.58 GB/s at 1 GiB")
    assert "CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7" in done.err
    assert "  512 MiB  450.29 GB/s" in done.err  # progress
    assert "closer" not in done.out


def test_a_slow_gpu_is_found(run: Callable[..., Any]) -> None:
    done = run("--yes", "--json", fault="slow-gpu:5")
    data = json.loads(done.out)
    assert (done.code, data["table"]["verdict"]) == (1, "too slow")
    assert [entry["what"] for entry in data["runs"] if entry["state"] == "slow"] == [
        "all 8 GPUs", "pair 4 and 5", "pair 5 and 6", "suspect 5 with 0",
    ]  # fmt: skip
    (said,) = data["conclusions"]
    assert said.startswith("GPU 5 is to blame")


def test_a_slow_link_is_told_from_a_slow_gpu(run: Callable[..., Any]) -> None:
    done = run("--yes", "--gpus", "0,1,2,3", fault="slow-pair:1,2")
    assert done.code == 1
    assert "the path between GPU 1 and GPU 2 is to blame" in done.out


def left_behind(mark: bytes) -> list[str]:
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in environ.read_bytes():
                found.append(environ.parent.name)
    return found


def test_a_hang_ends_at_the_deadline_and_leaves_nothing_behind(run: Callable[..., Any]) -> None:
    began = time.monotonic()
    mark = str(uuid4())  # other tests may hang at the same time
    done = run("--yes", "--gpus", "0,1", "--timeout", "2", fault="hang", MARK=mark)
    assert done.code == 2
    assert time.monotonic() - began < 60
    assert done.out.startswith("INCOMPLETE: all_reduce, 2 GPUs on one node, NVIDIA H200: hung: did not end in 2 s")
    assert "it fails on every path" in done.out
    assert not left_behind(mark.encode())


def test_a_hang_of_peer_to_peer_is_told_by_a_run_without_it(run: Callable[..., Any]) -> None:
    done = run("--yes", "--gpus", "2,3", "--timeout", "4", fault="hang-p2p")
    assert done.code == 2
    assert "peer-to-peer is to blame: hung with it, fine without it" in done.out


def test_shared_memory(run: Callable[..., Any]) -> None:
    done = run("--yes", "--gpus", "0,1", fault="shm")
    assert done.code == 2
    assert "shared memory is to blame" in done.out
    assert "failed to extend /dev/shm" in done.out


def test_a_crash_shows_the_last_words(run: Callable[..., Any]) -> None:
    done = run("--yes", "--gpus", "0,1,2", fault="crash")
    assert done.code == 2
    assert "failed: ended by SIGABRT" in done.out
    assert "uncorrectable NVLink error detected during the execution" in done.out
    assert "every pair is as bad as the others" in done.out


def test_wrong_results_are_traced_to_the_gpu(run: Callable[..., Any]) -> None:
    done = run("--yes", "--gpus", "0,1,2,3", fault="wrong:2")
    assert done.code == 2
    assert done.out.startswith("WRONG RESULTS: all_reduce, 4 GPUs on one node")
    assert "GPU 2 is to blame: every pair with it is wrong" in done.out


def test_no_permission_for_the_devices(run: Callable[..., Any]) -> None:
    done = run("--yes", "--gpus", "0,1", fault="no-permission")
    assert done.code == 2
    assert "no CUDA-capable device is detected" in done.out
    assert "closer" not in done.out  # pairs would say the same


def test_no_permission_for_the_program(run: Callable[..., Any], folder: Path) -> None:
    (folder / "all_reduce_perf").chmod(0o644)
    done = run("--yes")
    assert done.code == 3
    assert f"chmod +x {folder}/all_reduce_perf" in done.err


def test_a_program_that_can_not_start(run: Callable[..., Any], folder: Path) -> None:
    (folder / "all_reduce_perf").write_text("#!/nonexistent/interpreter\n")
    done = run("--yes")
    assert done.code == 3
    assert "could not be started" in done.out


def test_busy_gpus_are_left_alone(run: Callable[..., Any]) -> None:
    done = run("--yes", scenario="h100x8-busy")
    assert done.code == 3
    assert "GPU 0: 99 % busy" in done.err  # its process lives in no process table here
    assert "gpudoctor nccl read FILE" in done.err
    assert done.out == ""


def test_nothing_runs_without_a_yes(run: Callable[..., Any]) -> None:
    done = run()
    assert done.code == 3
    assert "--yes runs it" in done.err
    assert done.out == ""


def test_without_gpus_it_offers_read(run: Callable[..., Any]) -> None:
    done = run("--yes", scenario=None)
    assert done.code == 3
    assert "no NVIDIA GPU" in done.err and "gpudoctor nccl read FILE" in done.err


@pytest.fixture
def by_torch(gpudoctor: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    (tmp_path / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "python3").chmod(0o755)

    def start(*words: str, fault: str = "", **env: str) -> Any:
        python = {"PATH": str(tmp_path), "HOME": str(tmp_path), "PYTHONPATH": str(HERE / "torch_stub")}
        return gpudoctor(
            "nccl", "run", "--yes", *words, scenario="h100x8", timeout=120, RECORDED_FAULT=fault, **(python | env)
        )  # fmt: skip

    return start


def test_torch_measures_where_nccl_tests_is_missing(by_torch: Callable[..., Any]) -> None:
    done = by_torch("--gpus", "0,1,2,3,4,5,6,7")
    assert done.code == 0, done.err
    assert "torch.distributed measures in its stead" in done.err
    assert done.out.startswith("FAST ENOUGH: all_reduce, 8 GPUs on one node, NVIDIA H200: 463.58 GB/s at 1 GiB")


def test_a_torch_for_the_cpu_is_passed_over(by_torch: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise SystemExit('must not be imported')\n")
    (tmp_path / "torch" / "version.py").write_text("__version__ = '2.13.0+cpu'\ncuda = None\n")
    done = by_torch("--gpus", "0,1", PYTHONPATH=str(tmp_path))
    assert done.code == 3
    assert "no Python has a torch for CUDA" in done.err


def test_wrong_sums_of_torch(by_torch: Callable[..., Any]) -> None:
    done = by_torch("--gpus", "0,1", fault="wrong")
    assert done.code == 2
    assert done.out.startswith("WRONG RESULTS: all_reduce, 2 GPUs on one node")


def test_torch_that_can_not_begin(by_torch: Callable[..., Any]) -> None:
    done = by_torch("--gpus", "0,1", fault="init")
    assert done.code == 2
    assert "unhandled system error, NCCL version 2.27.3" in done.out


@pytest.fixture
def job(gpudoctor: Callable[..., Any], folder: Path) -> Callable[..., Any]:
    for name in ("srun", "mpirun"):
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "recorded_srun.py"} "$@"\n')
    (folder / "scontrol").write_text("#!/bin/sh\nfor name in $NODES; do echo $name; done\n")
    for name in ("srun", "mpirun", "scontrol"):
        (folder / name).chmod(0o755)

    def start(*words: str, nodes: int = 5, fault: str = "", **env: str) -> Any:
        slurm = {
            "SLURM_JOB_ID": "77", "SLURM_JOB_NODELIST": f"node[1-{nodes}]", "SLURM_GPUS_ON_NODE": "8",
            "NODES": " ".join(f"node{number}" for number in range(1, nodes + 1)),
        }  # fmt: skip
        return gpudoctor(
            "nccl", "run", "--nodes", "--yes", "--nccl-tests", str(folder), *words, timeout=120,
            PATH=f"{folder}:/usr/bin:/bin", RECORDED_FAULT=fault, **(env or slurm),
        )  # fmt: skip

    return start


def test_a_healthy_job(job: Callable[..., Any]) -> None:
    done = job()
    assert done.code == 0, done.err
    assert done.out.startswith(
        "FAST ENOUGH: all_reduce, 40 GPUs on 5 nodes, NVIDIA H100 80GB HBM3: 371.6 GB/s at 4 GiB"
    )
    assert "srun --mpi=pmix -N 5 -w node1,node2,node3,node4,node5 --ntasks-per-node=8" in done.err
    assert "every pair of nodes is as fast as the others" in done.out  # nobody told how fast the adapters are
    assert "suspect" not in done.out


def test_a_slow_node_is_found_by_pairing_suspects_with_good_nodes(job: Callable[..., Any]) -> None:
    done = job("--json", nodes=6, fault="slow-node:node4")
    data = json.loads(done.out)
    assert [(entry["what"], entry["state"]) for entry in data["runs"]] == [
        ("all 6 nodes", "slow"),
        ("node1 and node2", "fine"), ("node3 and node4", "slow"), ("node5 and node6", "fine"),
        ("suspect node3 with node1", "fine"), ("suspect node4 with node2", "slow"),
    ]  # fmt: skip
    assert data["conclusions"] == ["node node4 is to blame: slow also with node2, which is fine with others"]


def test_a_slow_path_between_nodes_is_told_from_slow_nodes(job: Callable[..., Any]) -> None:
    done = job(nodes=5, fault="slow-path:node1,node2")
    assert done.code == 1
    assert done.out.startswith("TOO SLOW: all_reduce, 40 GPUs on 5 nodes")
    assert "=> the path between node1 and node2 is to blame: slow with each other, fine with others" in done.out


def test_a_node_that_hangs(job: Callable[..., Any]) -> None:
    done = job("--timeout", "2", nodes=4, fault="hang-node:node2")
    assert done.code == 2
    assert done.out.startswith("INCOMPLETE: all_reduce, 32 GPUs on 4 nodes, NVIDIA H100 80GB HBM3: hung")
    assert "node node2 is to blame: hung also with node4" in done.out


def test_two_nodes_are_compared_alone(job: Callable[..., Any], tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("node1 slots=8\nnode1 slots=8\nnode2 slots=8\n")
    done = job("--gpus-per-node", "8", fault="slow-path:node1,node2", PBS_NODEFILE=str(hosts))
    assert "mpirun --host node1:8,node2:8 --map-by ppr:8:node" in done.err
    assert "the path between node1 and node2 is to blame: each of them alone is fine" in done.out


def test_nodes_outside_of_a_job(run: Callable[..., Any]) -> None:
    done = run("--nodes", "--yes", scenario=None)
    assert done.code == 3
    assert "no job of several nodes" in done.err


def test_without_the_program_it_says_where_to_get_it(gpudoctor: Callable[..., Any], tmp_path: Path) -> None:
    done = gpudoctor("nccl", "run", "--yes", "--nccl-tests", str(tmp_path), scenario="h100x8")
    assert done.code == 3
    assert "github.com/NVIDIA/nccl-tests" in done.err


def test_a_job_of_several_nodes_gets_its_launch_line(run: Callable[..., Any]) -> None:
    done = run("--yes", SLURM_JOB_ID="77", SLURM_JOB_NUM_NODES="4")
    assert done.code == 3
    assert "srun --mpi=pmix -N 4 --ntasks-per-node=8" in done.err
    assert "gpudoctor nccl run --nodes" in done.err


def test_one_of_many_copies_refuses(run: Callable[..., Any]) -> None:
    done = run("--yes", OMPI_COMM_WORLD_SIZE="8", OMPI_COMM_WORLD_RANK="3")
    assert done.code == 3
    assert "8 copies of it were started by a launcher" in done.err
    assert done.out == ""


def test_processes_are_named_and_displays_don_t_count() -> None:
    store = FactStore(
        [
            Gpu(gpu="0000:01:00.0", index=0, memory_used=900, memory_total=81559),
            Gpu(gpu="0000:02:00.0", index=1, memory_used=400, memory_total=81559),
            GpuProcess(gpu="0000:01:00.0", pid=41007, name="python3", type="C", memory=860),
            GpuProcess(gpu="0000:02:00.0", pid=2210, name="Xorg", type="G", memory=40),
        ]
    )
    assert occupied(store, ["0", "1"]) == ["GPU 0: process 41007 (python3, 860 MiB)"]
    assert occupied(store, ["1"]) == []
