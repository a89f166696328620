"""The measurement by torch.distributed, over gloo in host memory: what is run on GPUs but for the backend and the clock."""

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpudoctor.facts.comms import NcclRank, NcclTest
from gpudoctor.nccl import torch_perf
from gpudoctor.parsers.nccl_tests import table

RECORDED = Path(__file__).parent / "data" / "torch-2.13-gloo.txt"
LIVE = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="needs torch, several hundred MB that nothing else here needs; what it printed is recorded beside this file",
)


def read(text: str) -> tuple[list[NcclRank], NcclTest]:
    *ranks, test = table(text)
    assert isinstance(test, NcclTest)
    return [rank for rank in ranks if isinstance(rank, NcclRank)], test


def start(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, torch_perf.__file__, "--device", "cpu", *words],
        env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def test_what_torch_printed_is_a_table() -> None:
    ranks, test = read(RECORDED.read_text())
    assert [(rank.rank, rank.device, rank.gpu_name, rank.pid) for rank in ranks] == [(n, n, "CPU", None) for n in range(4)]  # fmt: skip
    assert (test.collective, test.ranks, test.nodes, test.rows, test.complete, test.wrong) == ("all_reduce", 4, 1, 5, True, 0)  # fmt: skip
    assert (test.size_max, test.busbw_at_largest, test.busbw_average) == (16777216, 0.47, 0.345802)


@LIVE
def test_torch_measures_over_gloo() -> None:
    done = start("-b", "64K", "-e", "256K", "-g", "3", "-w", "1", "-n", "2")
    ranks, test = read(done.communicate(timeout=120)[0])
    assert done.returncode == 0
    assert (len(ranks), test.rows, test.wrong, test.complete) == (3, 3, 0, True)
    assert [size for size, _ in test.curve] == [65536, 131072, 262144]
    assert all(0 < busbw < 100 for _, busbw in test.curve)


@LIVE
def test_a_rank_that_is_killed_ends_the_others_and_is_named() -> None:
    done = start("-b", "8M", "-e", "8G", "-g", "2")
    assert done.stdout
    for line in done.stdout:
        if line.strip().startswith("8388608"):
            break
    for words in Path("/proc").glob("[0-9]*/cmdline"):
        if words.read_bytes().endswith(b"--rank\x001\x00") and os.getsid(int(words.parent.name)) == done.pid:
            os.kill(int(words.parent.name), signal.SIGKILL)
    said = done.communicate(timeout=60)[0]
    assert done.returncode == 9
    assert "torch error: rank 1 ended first, by signal 9" in said
