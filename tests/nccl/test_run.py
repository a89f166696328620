"""The shell around nccl-tests: a recorded program on a faked 8-GPU node, with everything that can go wrong."""

import contextlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.facts.gpu import Gpu, GpuProcess
from gpudoctor.facts.store import FactStore
from gpudoctor.nccl.trial import occupied

PROGRAM = Path(__file__).parent / "recorded_program.py"


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
    done = run("--yes", "--gpus", "0,1", "--timeout", "2", fault="hang")
    assert done.code == 2
    assert time.monotonic() - began < 60
    assert done.out.startswith("INCOMPLETE: all_reduce, 2 GPUs on one node, NVIDIA H200: hung: did not end in 2 s")
    assert "it fails on every path" in done.out
    assert not left_behind(b"RECORDED_FAULT=hang\0")


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


def test_without_the_program_it_says_where_to_get_it(gpudoctor: Callable[..., Any], tmp_path: Path) -> None:
    done = gpudoctor("nccl", "run", "--yes", "--nccl-tests", str(tmp_path), scenario="h100x8")
    assert done.code == 3
    assert "github.com/NVIDIA/nccl-tests" in done.err


def test_a_job_of_several_nodes_gets_its_launch_line(run: Callable[..., Any]) -> None:
    done = run("--yes", SLURM_JOB_ID="77", SLURM_JOB_NUM_NODES="4")
    assert done.code == 3
    assert "srun --mpi=pmix -N 4 --ntasks-per-node=8" in done.err


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
