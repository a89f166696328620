"""NCCL logs of all releases, RAS and watchdog messages, cut and prefixed."""

import pytest

from gpudoctor.parsers import nccl, nccl_ras
from gpudoctor.parsers.base import NotThisFormat


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "[1,3]<stdout>:n9:301:355 [3] NCCL INFO comm 0x7f1 rank 3 nranks 8 cudaDev 3 nvmlDev 3 - Init COMPLETE",
            ("n9", 301, 3, 8, None, True),
        ),
        (
            "worker-2: n9:301:355 [1] NCCL INFO comm 0x7f1 rank 9 nranks 16 cudaDev 1 busId 41000 - Init COMPLETE",
            ("n9", 301, 9, 16, "0000:41:00.0", True),
        ),
        (
            "::16674:17023 [0] NCCL INFO comm 0x56 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 100000 commId 0x2 - Init START",
            (None, 16674, 0, 1, "0001:00:00.0", False),
        ),
        (
            "n9:301:355 [7] NCCL INFO ncclCommSplit comm 0x1 rank 7 nranks 8 cudaDev 7 nvmlDev 7 busId da000 parent 0x2 "
            "splitCount 1 color 0 key 7- Init COMPLETE",
            ("n9", 301, 7, 8, "0000:da:00.0", True),
        ),
    ],
)
def test_communicator(line: str, expected: tuple[object, ...]) -> None:
    fact = next(nccl.communicator(line))
    assert (fact.host, fact.pid, fact.rank, fact.ranks, fact.pci, fact.init_complete) == expected


@pytest.mark.parametrize(
    ("line", "interface", "address"),
    [
        ("n1:1:2 [0] NCCL INFO Bootstrap : Using [0]ib0:192.0.2.2<0> [1]ib1:198.51.100.2<0>", "ib0", "192.0.2.2"),
        ("n1:1:2 [0] NCCL INFO Bootstrap : Using ens7:192.0.2.3<0>", "ens7", "192.0.2.3"),
        ("n1:1:2 [0] NCCL INFO Bootstrap: Using bond0:192.0.2.4<0>", "bond0", "192.0.2.4"),
    ],
)
def test_bootstrap(line: str, interface: str, address: str) -> None:
    fact = next(nccl.network(line))
    assert (fact.interface, fact.address) == (interface, address)


@pytest.mark.parametrize(
    ("line", "via", "gdr"),
    [
        ("n1:1:2 [0] NCCL INFO Ring 00 : 0[0] -> 1[1] via P2P/direct pointer", "P2P", None),
        (
            "n1:1:2 [0] NCCL INFO Channel 00 : 3[43000] -> 4[8a000] via direct shared memory",
            "direct shared memory",
            None,
        ),
        ("n1:1:2 [0] NCCL INFO Channel 00/1 : 0[0] -> 8[0] [send] via NET/IBext_v8/7/GDRDMA", "NET/IBext_v8", True),
        ("n1:1:2 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/Socket/0", "NET/Socket", False),
        ("n1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0(1)/GDRDMA/Shared", "NET/IB", True),
    ],
)
def test_connection(line: str, via: str, gdr: bool | None) -> None:
    fact = next(nccl.connection(line))
    assert (fact.via, fact.gdr) == (via, gdr)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "[E ProcessGroupNCCL.cpp:587] [Rank 4] Watchdog caught collective operation timeout: WorkNCCL(OpType=BROADCAST, "
            "TensorShape=[1024, 8], Timeout(ms)=1800000) ran for 1804406 milliseconds before timing out.",
            (4, None, None, "BROADCAST", 8192, 1800000, 1804406),
        ),
        (
            "[rank0]:[E613 05:06:30 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum=12, OpType=_ALLGATHER_BASE, NumelIn=16, NumelOut=128, Timeout(ms)=1000) ran for 1001 milliseconds before timing out.",
            (0, None, 12, "_ALLGATHER_BASE", 16, 1000, 1001),
        ),
    ],
)
def test_watchdog(line: str, expected: tuple[object, ...]) -> None:
    fact = next(nccl.watchdog(line))
    seen = (fact.rank, fact.group, fact.sequence, fact.operation, fact.elements, fact.timeout_ms, fact.elapsed_ms)
    assert seen == expected


def test_watchdog_progress() -> None:
    line = (
        "[rank3]:[E626 06:24:44 ProcessGroupNCCL.cpp:1785] [PG ID 1 PG GUID 1 Rank 3] Exception (either an error or timeout) "
        "detected by watchdog at work: 808, last enqueued NCCL work: 811, last completed NCCL work: 807."
    )
    fact = next(nccl.watchdog(line))
    assert (fact.rank, fact.last_enqueued, fact.last_completed) == (3, 811, 807)


def test_ras_names_no_lag_for_one_count() -> None:
    with pytest.raises(NotThisFormat):
        list(
            nccl_ras.mismatch(
                "#0-0 (27a0) MISMATCH\n  Communicator ranks have different status\n  3 ranks have status ABORTED"
            )
        )


@pytest.mark.parametrize(
    "parse", [nccl.communicator, nccl.version, nccl.network, nccl.connection, nccl.watchdog, nccl_ras.mismatch]
)
@pytest.mark.parametrize(
    "text", ["", "\n", "NCCL", "n1:1:2 [0] NCCL INFO comm 0x1 rank", "[" * 3000, "WorkNCCL(" * 500]
)
def test_garbled_text_is_refused(parse: object, text: str) -> None:
    with pytest.raises(NotThisFormat):
        list(parse(text))  # type: ignore[operator]
