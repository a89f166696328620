"""Public tables get the judgement that their threads confirmed; the curve, the reasoning and the cause come with it."""

import json
import sys
from pathlib import Path

import pytest

from gpudoctor.cli.main import main
from gpudoctor.diagnosis import Doctor
from gpudoctor.nccl.read import read
from gpudoctor.sources.open import open_sources

sys.path.insert(0, str(Path(__file__).parent))
from tables import TABLES, Table, matrix, ports, printed

DOCTOR = Doctor(engine="builtin")


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table.platform} ({table.source})")
def test_public_tables(table: Table, tmp_path: Path) -> None:
    (tmp_path / "nccl-tests.log").write_text(printed(table))
    if table.rate:
        (tmp_path / "ibstat.txt").write_text(ports(table))
    if table.links:
        (tmp_path / "topo.txt").write_text(matrix(table))
    (found,) = read(DOCTOR, open_sources([str(tmp_path)])).judgements
    assert found.verdict == table.verdict, found
    assert found.low is not None and found.high is not None and found.reasoning
    best = max(table.rows.values())
    if table.verdict == "fast enough":
        assert found.low <= best <= found.high * 1.05
    else:
        assert found.busbw is not None and found.busbw < found.low


def test_at_least_25_tables_of_named_sources() -> None:
    assert len(TABLES) >= 25
    assert all(table.source and table.platform for table in TABLES)


def test_the_cause_stands_below_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow = next(table for table in TABLES if table.verdict == "too slow")
    (tmp_path / "nccl-tests.log").write_text(printed(slow))
    (tmp_path / "env.txt").write_text("NCCL_P2P_DISABLE=1\n")
    (tmp_path / "topo.txt").write_text(matrix(Table("", "", "", 4, {}, links=12)))
    assert main(["nccl", "read", str(tmp_path)]) == 1
    text = capsys.readouterr().out
    assert text.startswith("TOO SLOW: all_reduce, 4 GPUs on one node, NVIDIA A100-SXM4-80GB: 5.2 GB/s at 8 GiB")
    assert "the topology joins the GPUs by NV12" in text
    assert "nccl.p2p-disabled" in text


@pytest.mark.parametrize(("status", "said"), [("OK", "TOO SLOW"), ("CNS", "FAST ENOUGH")])
def test_cards_without_nvlink_are_judged_by_the_way_they_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], status: str, said: str
) -> None:
    (tmp_path / "run.log").write_text(printed(Table("", "", "NVIDIA RTX A6000", 2, {8 << 30: 5.0})))
    (tmp_path / "topo.txt").write_text("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPHB\t0-31\nGPU1\tPHB\t X \t0-31\n")
    (tmp_path / "p2p.txt").write_text(
        f"$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\n GPU0\tX\t{status}\n GPU1\t{status}\tX\n\nLegend:\n\n  X    = Self\n"
    )
    main(["nccl", "read", str(tmp_path)])
    text = capsys.readouterr().out
    assert text.startswith(said)
    assert ("peer-to-peer" if status == "OK" else "through host memory") in text


def test_small_messages_are_not_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = Table("", "", "NVIDIA H100 80GB HBM3", 8, {8: 0.01, 65536: 4.1, 1 << 20: 61.0})
    (tmp_path / "run.log").write_text(printed(small))
    assert main(["nccl", "read", "--json", str(tmp_path / "run.log")]) == 3
    (found,) = json.loads(capsys.readouterr().out)["tables"]
    assert (found["verdict"], found["low"]) == ("not judged", None)
    assert "is on the ramp" in found["missing"]
    assert [point["phase"] for point in found["curve"]] == ["latency", "ramp", "plateau"]


def test_wrong_values_come_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = printed(Table("", "", "NVIDIA H100 80GB HBM3", 8, {8 << 30: 470.0}))
    (tmp_path / "run.log").write_text(good.replace("470.00      0", "470.00    512"))
    assert main(["nccl", "read", str(tmp_path / "run.log")]) == 2
    assert capsys.readouterr().out.startswith("WRONG RESULTS: all_reduce, 8 GPUs on one node")


def test_nothing_to_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.log").write_text("hello\n")
    assert main(["nccl", "read", str(tmp_path / "run.log")]) == 3
    assert "No table of nccl-tests was found." in capsys.readouterr().out
    assert main(["nccl", "read", "/nonexistent"]) == 66


def test_a_csv_is_judged_with_what_the_machine_says_of_its_gpus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "result.csv").write_text(
        "collective,ranks,nodes,size,type,redop,inplace,time,algbw,busbw,#wrong\n"
        "AllReduce,8,1,1048576,float,sum,0,40.1,26.15,45.76,0\n"
        "AllReduce,8,1,8589934592,float,sum,0,155000,55.4,96.9,0\n"
    )
    assert main(["nccl", "read", str(tmp_path)]) == 3
    assert "To judge it: the kind of GPU" in capsys.readouterr().out
    (tmp_path / "gpus.txt").write_text(
        "".join(f"GPU {n}: NVIDIA H200 (UUID: GPU-{n}ec45129-20da-4a34-b813-7d3a51060903)\n" for n in range(8))
    )
    assert main(["nccl", "read", str(tmp_path)]) == 1
    assert capsys.readouterr().out.startswith(
        "TOO SLOW: all_reduce, 8 GPUs on one node, NVIDIA H200: 96.9 GB/s at 8 GiB"
    )


def test_the_curve_says_what_each_size_should_reach(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.log").write_text(printed(TABLES[0]))
    assert main(["nccl", "read", str(tmp_path / "run.log")]) == 0
    text = capsys.readouterr().out
    (large,) = (line for line in text.splitlines() if line.strip().startswith("256 MiB"))
    (small,) = (line for line in text.splitlines() if line.strip().startswith("1 MiB"))
    assert large.endswith("plateau    at least 216 expected")
    assert small.endswith("latency")


def test_a_collective_that_nobody_names_is_told_by_its_factor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An alltoall without its heading is no slow all_reduce."""
    text = printed(Table("", "", "NVIDIA H100 80GB HBM3", 8, {8 << 30: 175.0})).partition("\n")[2]
    text = text.replace("  87.50", " 200.00").replace(" sum ", "none ")
    (tmp_path / "run.log").write_text(text)
    assert main(["nccl", "read", str(tmp_path / "run.log")]) == 0
    assert capsys.readouterr().out.startswith("FAST ENOUGH: all_gather or alltoall, 8 GPUs on one node")


def test_wrong_values_in_an_early_row_are_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(Table("", "", "NVIDIA H100 80GB HBM3", 8, {64 << 20: 300.0, 1 << 30: 460.0, 8 << 30: 470.0}))
    (tmp_path / "run.log").write_text(text.replace("300.00      0", "300.00     12"))
    assert main(["nccl", "read", "--json", str(tmp_path / "run.log")]) == 2
    (found,) = json.loads(capsys.readouterr().out)["tables"]
    assert found["verdict"] == "wrong results"


def test_a_json_report_that_is_cut_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.json").write_text('{"version": 1, "args": ["./all_gather_perf"], "nccl_version": 22703, "results": [{"size": 8, "out_of_place": ')  # fmt: skip
    assert main(["nccl", "read", str(tmp_path / "run.json")]) == 3
    said = capsys.readouterr().out
    assert said.startswith("No table of nccl-tests was found.\nCould not be read: ")
    assert "run.json:1" in said and "breaks off" in said


def test_every_table_of_a_session_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fast, slow = TABLES[0], next(table for table in TABLES if table.verdict == "too slow")
    tagged = "".join(f"[1,0]<stdout>:{line}\n" for line in printed(fast).splitlines())
    (tmp_path / "session.log").write_text(
        f"$ mpirun -np 8 ./build/all_reduce_perf -b 8 -e 16G -f 2\n{tagged}$ ./build/all_reduce_perf -g 4\n{printed(slow)}"
    )
    assert main(["nccl", "read", "--json", str(tmp_path / "session.log")]) == 1
    assert [table["verdict"] for table in json.loads(capsys.readouterr().out)["tables"]] == ["fast enough", "too slow"]


def test_the_job_stands_in_a_few_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["NCCL version 2.22.3+cuda12.6"]
    for host in ("gpu-a", "gpu-b"):
        for rank in range(2):
            head = f"{host}:70{rank}:71{rank} [{rank}] NCCL INFO "
            number = rank + 2 * (host == "gpu-b")
            lines += [
                f"{head}Bootstrap : Using eth0:192.0.2.{number + 1}<0>",
                f"{head}NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:192.0.2.{number + 1}<0>",
                f"{head}Using network IB",
                f"{head}comm 0x5 rank {number} nranks 4 cudaDev {rank} nvmlDev {rank} busId 1{rank}000 commId 0x2 - Init START",
                f"{head}NCCL_IB_HCA set by environment to mlx5_0,mlx5_1.",
                f"{head}Channel 00/0 : {number}[{rank}] -> {(number + 1) % 4}[{1 - rank}] via P2P/CUMEM"
                if rank == 0
                else f"{head}Channel 00/0 : {number}[1] -> {(number + 1) % 4}[0] [send] via NET/IB/0/GDRDMA",
                f"{head}16 coll channels, 16 collnet channels, 0 nvls channels, 16 p2p channels, 2 p2p channels per peer",
                f"{head}TUNER/Plugin: Could not find: libnccl-tuner.so. Using internal tuner plugin.",
                f"{head}comm 0x5 rank {number} nranks 4 cudaDev {rank} nvmlDev {rank} busId 1{rank}000 commId 0x2 - Init COMPLETE",
            ]
    lines.insert(5, "gpu-a:700:710 [0] NCCL INFO Channel 00/16 :    0   1   2   3")
    lines.insert(6, "gpu-a:700:710 [0] NCCL INFO Trees [0] 1/2/-1->0->-1 [1] 1/-1/-1->0->2")
    lines.insert(7, "gpu-a:700:710 [0] NCCL INFO NVLS multicast support is not available on dev 0 (NVLS_NCHANNELS 0)")
    for size in (8 << 20, 16 << 20, 32 << 20):
        lines.append(
            f"gpu-a:700:710 [0] NCCL INFO AllReduce: {size} Bytes -> Algo RING proto SIMPLE channel{{Lo..Hi}}={{0..15}}"
        )
    (tmp_path / "job.log").write_text("\n".join(lines) + "\n")
    assert main(["nccl", "read", str(tmp_path / "job.log")]) == 3
    text = capsys.readouterr().out
    for said in (
        "4 ranks, 2 hosts (gpu-a, gpu-b)",
        "NCCL version: 2.22.3",
        "network: IB",
        "adapters: 2 (ib)",
        "bootstrap over: eth0",
        "P2P",
        "NET/IB with GPUDirect",
        "channels: 16 coll channels, 16 collnet channels, 0 nvls channels, 16 p2p channels",
        "ring: 0 1 2 3",
        "tree from: 0, then 1 and 2",
        "NVLink SHARP: not available",
        "chosen: AllReduce by RING, SIMPLE\n",
        "set: NCCL_IB_HCA=mlx5_0,mlx5_1",
    ):
        assert said in text, text


def test_a_job_with_the_first_supported_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "job.log").write_text(
        "NCCL version 2.4.8+cuda10.0\n"
        "gpu-a:3384:3384 [0] NCCL INFO Bootstrap : Using [0]eno1:192.0.2.11<0>\n"
        "gpu-a:3384:3384 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_2:1/IB ; OOB eno1:192.0.2.11<0>\n"
        "gpu-a:3384:3414 [0] NCCL INFO Channel 00 :    0   1   2   3\n"
        "gpu-a:3384:3414 [0] NCCL INFO Ring 00 : 3 -> 0 [receive] via NET/IB/0/GDRDMA\n"
        "gpu-a:3384:3414 [0] NCCL INFO Ring 00 : 0[0] -> 1[1] via P2P/IPC\n"
        "gpu-a:3384:3414 [0] NCCL INFO Trees [0] -1->0->1/-1/-1 [1] 1->0->2/-1/-1\n"
        "gpu-a:3384:3414 [0] NCCL INFO comm 0x7fe3d4001980 rank 0 nranks 4 cudaDev 0 nvmlDev 0 - Init COMPLETE\n"
        "gpu-b:3385:3415 [1] NCCL INFO comm 0x7fe3d4001981 rank 2 nranks 4 cudaDev 1 nvmlDev 1 - Init COMPLETE\n"
    )
    assert main(["nccl", "read", str(tmp_path / "job.log")]) == 3
    text = capsys.readouterr().out
    for said in (
        "4 ranks, 2 hosts (gpu-a, gpu-b)",
        "NCCL version: 2.4.8",
        "adapters: 2 (ib)",
        "ranks reach each other by: NET/IB with GPUDirect, P2P",
        "ring: 0 1 2 3",
        "tree from: 0, then 1",
    ):
        assert said in text, text
