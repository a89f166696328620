"""Published bandwidths of healthy machines are not called low; those of degraded ones are."""

from pathlib import Path

import pytest

from gpudoctor.combiners.comms import comms
from gpudoctor.diagnosis import Doctor
from gpudoctor.facts.base import Where
from gpudoctor.facts.comms import CollectiveSkew, CollectiveTimeout, NcclProcess, NcclTest
from gpudoctor.facts.host import RdmaPort
from gpudoctor.facts.store import FactStore
from gpudoctor.sources.open import open_sources

GIB = 2**30
HERE = Where(source="run.log")


def judged(test: NcclTest, nics: int | None = None, rate: float | None = None) -> bool | None:
    test.where = HERE
    store = FactStore([test])
    if nics:
        store.add([NcclProcess(nics=nics, host="n1", pid=1, where=HERE)])
    if rate:
        store.add([RdmaPort(device="mlx5_0", rate=rate, state="active")])
    list(comms(store))
    return test.shortfall


def table(gpu: str, ranks: int, nodes: int, size: int, busbw: float, collective: str = "all_reduce") -> NcclTest:
    return NcclTest(
        gpu_name=gpu,
        ranks=ranks,
        nodes=nodes,
        gpus_per_node=ranks // nodes,
        size_max=size,
        busbw_max=busbw,
        collective=collective,
    )


@pytest.mark.parametrize(
    ("gpu", "ranks", "size", "busbw", "collective"),
    [
        ("NVIDIA H100 80GB HBM3", 8, 8 * GIB, 370, "all_reduce"),
        ("NVIDIA H100 80GB HBM3", 8, 16 * GIB, 480, "all_reduce"),
        ("NVIDIA H200", 4, 8 * GIB, 363.3, "all_reduce"),
        ("NVIDIA H200", 8, 256 << 20, 436.15, "all_reduce"),
        ("NVIDIA H200", 8, 64 << 20, 346.51, "all_reduce"),
        ("NVIDIA H200", 8, 16 * GIB, 361.4, "all_gather"),
        ("NVIDIA B200", 8, 16 * GIB, 845.67, "all_reduce"),
        ("NVIDIA B200", 8, 128 << 20, 568.38, "all_reduce"),
        ("NVIDIA GB200", 4, 16 * GIB, 432, "all_reduce"),
        ("NVIDIA A100-SXM4-80GB", 8, 4 * GIB, 228, "all_reduce"),
        ("NVIDIA A100-SXM4-80GB", 8, 1 * GIB, 195.1, "sendrecv"),
        ("NVIDIA A100-SXM4-80GB", 8, 64 << 20, 171.54, "all_reduce"),
        ("NVIDIA H800", 8, 8 * GIB, 215, "all_reduce"),
        ("NVIDIA A100 80GB PCIe", 4, 8 * GIB, 25, "all_reduce"),
        ("NVIDIA A100 80GB PCIe", 3, 8 * GIB, 20, "all_reduce"),
        ("NVIDIA H100 PCIe", 2, 8 * GIB, 116, "all_reduce"),
        ("NVIDIA GeForce RTX 5090", 8, 8 * GIB, 28, "all_reduce"),
        ("NVIDIA GeForce RTX 2080 Ti", 2, 1 * GIB, 21, "all_reduce"),
        ("NVIDIA GeForce RTX 4090", 2, 1 * GIB, 10, "all_reduce"),
        ("Tesla V100-SXM2-32GB", 8, 1 * GIB, 130, "all_reduce"),
        ("NVIDIA L40S", 8, 1 * GIB, 20, "all_reduce"),
    ],
)
def test_healthy_nodes_are_not_called_low(gpu: str, ranks: int, size: int, busbw: float, collective: str) -> None:
    assert judged(table(gpu, ranks, 1, size, busbw, collective)) is False


@pytest.mark.parametrize(
    ("gpu", "ranks", "nodes", "busbw", "nics", "rate"),
    [
        ("NVIDIA A100-SXM4-80GB", 16, 2, 192, 8, 200),
        ("NVIDIA A100-SXM4-80GB", 16, 2, 86, 4, 200),
        ("NVIDIA H200", 32, 4, 364.65, 16, 200),
        ("NVIDIA B200", 32, 4, 381.8, 8, 400),
        ("Tesla V100-SXM2-32GB", 16, 2, 42, 4, 100),
        ("NVIDIA H100 80GB HBM3", 2, 2, 48, 8, 400),
    ],
)
def test_healthy_clusters_are_not_called_low(
    gpu: str, ranks: int, nodes: int, busbw: float, nics: int, rate: float
) -> None:
    assert not judged(table(gpu, ranks, nodes, 8 * GIB, busbw), nics, rate)


@pytest.mark.parametrize(
    ("test", "nics"),
    [
        (table("NVIDIA A100-SXM4-80GB", 4, 1, 8 * GIB, 5.2), None),
        (table("NVIDIA H100 80GB HBM3", 8, 1, 8 * GIB, 42.7), None),
        (table("NVIDIA GeForce RTX 3090", 2, 1, GIB, 0.8), None),
        (table("NVIDIA A100-SXM4-80GB", 16, 2, 8 * GIB, 10), 8),
    ],
)
def test_degraded_ones_are(test: NcclTest, nics: int | None) -> None:
    assert judged(test, nics) is True


def test_unknown_networks_are_not_judged() -> None:
    assert judged(table("NVIDIA H100 80GB HBM3", 16, 2, 8 * GIB, 1.1)) is None


def test_timeouts_of_different_groups_are_not_compared() -> None:
    facts = [
        CollectiveTimeout(
            rank=rank, group=f"PG {rank}", sequence=5 + rank, operation="ALLREDUCE", elements=8, where=HERE
        )
        for rank in range(4)
    ]
    assert not [fact for fact in comms(FactStore(facts)) if isinstance(fact, CollectiveSkew)]


@pytest.mark.parametrize(("numbers", "found"), [((0, 1, 2, 3), ["2"]), ((0, 0, 2, 3), [])])
def test_a_file_for_each_rank_is_one_job_unless_two_are_alike(numbers: tuple[int, ...], found: list[str]) -> None:
    facts = [
        CollectiveTimeout(
            rank=rank,
            sequence=9 - (rank == 2),
            operation="ALLREDUCE",
            elements=64,
            where=Where(source=f"rank-{place}.log"),
        )
        for place, rank in enumerate(numbers)
    ]
    skews = [fact for fact in comms(FactStore(facts)) if isinstance(fact, CollectiveSkew)]
    assert [skew.ranks for skew in skews] == found


def test_the_second_host_is_shown_by_its_own_line():
    folder = Path(__file__).parents[2] / "fixtures" / "nccl-docker-bridge"
    lead = Doctor().diagnose(open_sources([str(folder)])).findings[0]
    assert [(where.line, where.text.partition(":")[0]) for where in lead.evidence] == [
        (1, "gpu-a"),
        (8, "gpu-b"),
        (11, "gpu-b"),
    ]
