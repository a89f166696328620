"""nccl-tests output of all versions."""

import json

import pytest

from gpudoctor.facts.comms import NcclRank, NcclTest
from gpudoctor.parsers import nccl_tests
from gpudoctor.parsers.base import Malformed, NotThisFormat

OLD = """\
# nThread 1 nGpus 4 minBytes 9 maxBytes 4194304 step: 1048576(bytes) warmup iters: 5 iters: 20 validation: 1
#   Rank  0 on clx-1 device  0 [0x04] Tesla P100-PCIE-16GB
#   Rank  1 on clx-1 device  1 [0x06] Tesla P100-PCIE-16GB
#                                                     out-of-place                       in-place
#       size         count    type   redop     time   algbw   busbw     error     time   algbw   busbw     error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)               (us)  (GB/s)  (GB/s)
     1048576        262144   float     sum    309.0    3.39    3.39     4e-07    311.0    3.37    3.37     4e-07
     4194304       1048576   float     sum      980    4.28    4.28     4e-07      981    4.28    4.28     4e-07
 Out of bounds values : 0 OK
 Avg bus bandwidth    : 3.83
"""


def run(text: str) -> tuple[list[NcclRank], NcclTest]:
    *ranks, test = nccl_tests.table(text)
    return ranks, test  # type: ignore[return-value]


def test_table_without_root_column() -> None:
    ranks, test = run(OLD)
    assert [rank.gpu_name for rank in ranks] == ["Tesla P100-PCIE-16GB"] * 2
    assert (test.rows, test.size_max, test.busbw_at_largest, test.wrong, test.busbw_average) == (
        2,
        4194304,
        4.28,
        0,
        3.83,
    )


def test_prefixes_of_launchers() -> None:
    tagged = "\n".join(f"[1,0]<stdout>:{line}" for line in OLD.split("\n"))
    numbered = "\n".join(f"0: {line}" for line in OLD.split("\n"))
    pods = "\n".join(f"nccl-worker-0 | {line}" for line in OLD.split("\n"))
    for text in (tagged, numbered, pods):
        ranks, test = run(text)
        assert (len(ranks), test.rows, test.busbw_at_largest) == (2, 2, 4.28), text


def test_prefix_in_the_middle_of_a_row() -> None:
    _, test = run(
        "[0]      1048576        262144     float     sum      -1[0]    1626.5    0.64    1.24      0[0]    2302.3    0.46    0.87      0\n"
        "[0]      2097152        524288     float     sum      -1[0]    2325.3    0.90    1.73      0[0]     416.7    5.03    9.65      0\n"
    )
    assert (test.rows, test.busbw_at_largest, test.complete) == (2, 9.65, False)


def test_rows_without_check_and_with_out_of_place_only() -> None:
    _, test = run(
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
        "  1073741824     268435456    bfloat16     sum      -1   7103.5  151.16  283.42    N/A   7106.6  151.09  283.30    N/A\n"
        "  2147483648     268435456  half    none       0   7103.5  151.16  290.00      0\n"
    )
    assert (test.rows, test.wrong, test.busbw_at_largest) == (2, 0, 290.0)


def test_heading_without_rows_is_a_table_too() -> None:
    _, test = run(
        "# nThread 1 nGpus 2 minBytes 8 maxBytes 16 step: 2(factor)\n#  size  count  type  redop  root  time  algbw  busbw #wrong\n"
    )
    assert (test.rows, test.complete, test.launches) == (0, False, 1)


def test_second_run_is_left_to_the_next_call() -> None:
    _, test = run(OLD + OLD.replace("4.28", "9.99"))
    assert test.busbw_at_largest == 4.28


def test_command_line_alone_is_no_table() -> None:
    with pytest.raises(NotThisFormat):
        list(nccl_tests.table("mpirun -np 8 ./build/all_reduce_perf -b 1M -e 1M -f 2 -g 1 -c 1 -n 200"))


def test_collapse_and_flat() -> None:
    row = "{size:>12} {count:>12}     float     sum      -1   100.0  {bw:.2f}  {bw:.2f}      0   100.0  {bw:.2f}  {bw:.2f}      0"

    def curve(*speeds: float) -> NcclTest:
        return run("\n".join(row.format(size=2**20 << n, count=2**18 << n, bw=bw) for n, bw in enumerate(speeds)))[1]

    assert curve(10, 20, 30, 5, 5).collapse is True
    assert curve(10, 20, 30, 25, 40).collapse is False
    assert curve(5.2, 5.2, 5.2).flat is True
    assert curve(1, 2, 4).flat is False


def test_broken_json() -> None:
    whole = json.dumps(
        {
            "results": [{"size": 8, "out_of_place": {"bus_bw": 1.0, "nwrong": 3}}],
            "average_bus_bandwidth": {"bandwidth": 1.0},
        }
    )
    (test,) = nccl_tests.report(whole)
    assert (test.busbw_max, test.wrong, test.rows) == (1.0, 3, 1)  # type: ignore[attr-defined]
    with pytest.raises(Malformed):
        list(nccl_tests.report(whole[:-30] + '"average_bus_bandwidth"'))
    with pytest.raises(NotThisFormat):
        list(nccl_tests.report('{"results": 4}'))
    with pytest.raises(NotThisFormat):
        list(nccl_tests.report("no json at all"))


def test_report_of_single_iterations_and_timestamps() -> None:
    head = "# nThread 1 nGpus 8 minBytes 1073741824 maxBytes 1073741824 step: 2(factor) warmup iters: 1 iters: 20\n"
    half = "4210.1  255.04  446.32  {}  4105.2  4390.0  4388.1     1.52"
    row = f"  1073741824     268435456     float     sum      -1  {half.format(0)}  {half.format(3)}"
    for line in (row, row + "  2026-01-31 09:15:02"):
        _, test = run(f"{head}{line}\n")
        assert (test.rows, test.busbw_at_largest, test.wrong) == (1, 446.32, 3)
    _, test = run(
        f"{head}  1073741824     268435456     float     sum      -1  4210.1  255.04  446.32  0  4211.1  255.00  446.21  0  2026-01-31 09:15:02\n"
    )
    assert (test.rows, test.busbw_at_largest, test.wrong) == (1, 446.32, 0)


def test_json_report_of_many_processes_lists_one_device_of_each() -> None:
    devices = [
        {"rank": 4 * process, "group": 0, "pid": 70 + process, "hostname": f"node{process // 2}", "device": 4 * (process % 2), "device_hex": "0000:1b:00", "device_info": "NVIDIA H100 80GB HBM3"}
        for process in range(4)
    ]  # fmt: skip
    side = {"cpu_time": 1.0, "alg_bw": 190.0, "bus_bw": 356.2, "nwrong": None}
    text = json.dumps(
        {
            "version": 2,
            "args": ["./build/all_reduce_perf_mpi", "-g", "4"],
            "env": ["NCCL_DEBUG=INFO"],
            "nccl_version": 22807,
            "config": {"nthreads": 1, "ngpus": 4, "blocking_collectives": "false", "devices": devices},
            "results": [{"size": 8589934592, "count": 1, "type": "float", "redop": "sum", "root": "    -1", "out_of_place": None, "in_place": side, "actual_iterations": 20, "experiment_name": "AllReduce"}],
            "out_of_bounds": {"count": 0, "okay": "true"},
            "average_bus_bandwidth": {"bandwidth": 356.2, "okay": "unchecked"},
        }
    )  # fmt: skip
    *ranks, test = nccl_tests.report(text)
    assert isinstance(test, NcclTest)
    assert (len(ranks), test.ranks, test.nodes, test.gpus_per_node) == (4, 16, 2, 8)
    assert (test.collective, test.busbw_at_largest, test.wrong) == ("all_reduce", 356.2, None)


def test_csv_in_the_names_that_scripts_give_its_columns() -> None:
    (fact,) = nccl_tests.comma_separated(
        "size,count,type,redop,root,oop-time,oop-algbw,oop-busbw,oop-wrong,ip-time,ip-algbw,ip-busbw,ip-wrong\n"
        "1048576,262144,float,sum,-1,40.0,26.2,45.9,0,39.0,26.9,47.1,0\n"
        "8589934592,2147483648,float,sum,-1,33000,260.3,455.5,0,33100,259.5,454.2,2\n"
    )
    assert isinstance(fact, NcclTest)
    assert (fact.rows, fact.busbw_at_largest, fact.wrong, fact.wrong_from, fact.ranks) == (2, 455.5, 2, 8589934592, None)  # fmt: skip
    with pytest.raises(NotThisFormat):
        list(nccl_tests.comma_separated("epoch,algbw,loss\n1,2,3\n"))
