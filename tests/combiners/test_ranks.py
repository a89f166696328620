"""Who said a line, in a job of many ranks."""

from gpudoctor.combiners import combine
from gpudoctor.facts.base import LogLine
from gpudoctor.facts.comms import CollectiveTimeout, NcclRank, NcclWarning


def rank(number: int) -> NcclRank:
    return NcclRank(rank=number, ranks=16, host=f"node{number // 8}", pid=100 + number, device=number % 8)


RANKS = [rank(number) for number in range(16)]


def line(number: int, pattern: str, count: int = 1) -> LogLine:
    text = f"node{number // 8}:{100 + number}:{300 + number} [{number % 8}] NCCL WARN something"
    return LogLine(pattern=pattern, text=text, count=count)


def test_what_one_rank_said_is_about_that_rank() -> None:
    only = line(13, "a")
    combine([*RANKS, only], [])
    assert only.node == "node1, rank 13"


def test_what_all_ranks_said_is_about_nobody() -> None:
    every = line(0, "b", count=15)
    combine([*RANKS, every], [])
    assert every.node is None


def test_warnings_and_late_ranks_get_their_names() -> None:
    warning = NcclWarning(message="x", host="node1", device=5)
    timeouts = [
        CollectiveTimeout(rank=number, sequence=7 - (number == 9), operation="ALLREDUCE", elements=64)
        for number in range(16)
    ]
    store = combine([*RANKS, warning, *timeouts], [])
    assert warning.rank == 13
    assert [(skew.value("ranks"), skew.node) for skew in store.of("collective_skew")] == [("9", "node1, rank 9")]
