"""What a measured table means: fast enough or not, with the curve and the reasoning."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from gpudoctor.facts.comms import NcclTest
from gpudoctor.knowledge import bandwidth
from gpudoctor.nccl.graph import Graph

VERDICTS = ("fast enough", "too slow", "wrong results", "incomplete", "not judged")
_PLATEAU = 0.8  # of the peak
_LATENCY = 2.0  # times the duration of the smallest message
_SMALL = 1 << 20  # larger messages take time on the links everywhere


@dataclass
class Point:
    """One size of the curve; phase is latency, ramp, plateau or collapse. low: what it should reach, where the links show."""

    size: int
    busbw: float
    phase: str
    low: float | None = None


@dataclass
class Judgement:
    """One table judged. low and high are what the collective should reach at the largest size, in GB/s."""

    verdict: str
    summary: str
    collective: str
    ranks: int | None
    nodes: int | None
    gpu: str | None
    busbw: float | None
    size: int | None
    low: float | None = None
    high: float | None = None
    reasoning: list[str] = field(default_factory=list)
    curve: list[Point] = field(default_factory=list)
    missing: str | None = None  # what would allow a judgement
    where: str | None = None

    def as_data(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


def judge(test: NcclTest, graph: Graph | None = None) -> Judgement:
    """Judge a table. Its expectation was worked out from all facts when they were combined."""
    collective = test.collective or "all_reduce"
    found = Judgement(
        verdict="not judged",
        summary="",
        collective=collective,
        ranks=test.ranks,
        nodes=test.nodes,
        gpu=test.gpu_name,
        busbw=test.busbw_max,
        size=test.size_max,
        curve=curve(test),
        where=str(test.where) if test.where else None,
    )
    _expect(found, test, collective)
    if test.wrong:
        found.verdict = "wrong results"
        found.summary = f"{test.wrong} wrong values, from {size_text(test.wrong_from or 0)} on"
    elif not test.rows:
        found.verdict, found.summary = "incomplete", "no result was printed: the test hung or crashed before its first"
    elif found.low is not None and (test.busbw_max or 0) < found.low:
        found.verdict = "too slow"
        found.summary = f"{test.busbw_max:g} GB/s at {size_text(test.size_max or 0)}, at least {found.low:g} expected"
    elif test.collapse:
        found.verdict = "too slow"
        found.summary = f"falls from {test.busbw_peak:g} GB/s at {size_text(test.size_peak or 0)} to {test.busbw_at_largest:g} GB/s at larger sizes"
    elif found.low is not None:
        found.verdict = "fast enough"
        found.summary = (
            f"{test.busbw_max:g} GB/s at {size_text(test.size_max or 0)}, {found.low:g} to {found.high:g} expected"
        )
    else:
        found.verdict = "not judged" if test.complete else "incomplete"
        found.summary = f"{test.busbw_max:g} GB/s at {size_text(test.size_max or 0)}"
    if test.rows and not test.complete:
        found.summary += "; the table breaks off there"
    if graph is not None:
        found.reasoning += _shown_by(graph, found.verdict)
    return found


def _expect(found: Judgement, test: NcclTest, collective: str) -> None:
    if test.expected_low is None or not test.size_max:
        found.missing = _missing(test)
        return
    found.reasoning.append(test.expectation or "")
    share, part = bandwidth.share(collective), bandwidth.ramp(test.size_max)
    if share != 1:
        found.reasoning.append(f"{collective} reaches at least {share:.0%} of the figure for all_reduce")
    if part is None:
        found.missing = (
            f"messages of 1 GiB: {size_text(test.size_max)} is on the ramp, where links don't show (-b 8 -e 8G -f 2)"
        )
        return
    if part != 1:
        found.reasoning.append(
            f"at {size_text(test.size_max)} a healthy machine has reached at least {part:.0%} of its plateau"
        )
    found.low = round(test.expected_low * share * part, 1)
    found.high = test.expected_high
    for point in found.curve:
        if (reached := bandwidth.ramp(point.size)) is not None:
            point.low = round(test.expected_low * share * reached, 1)


def _missing(test: NcclTest) -> str:
    if test.nodes is None and (test.ranks or 0) > 1:
        return "on how many nodes it ran: the whole list under '# Using devices'"
    if (test.nodes or 1) > 1:
        return "how many network adapters a node has and their rate: the log with NCCL_DEBUG=INFO, and ibstat"
    if not test.gpu_name:
        return "the kind of GPU: the lines '# Using devices' above the table"
    if (test.ranks or 0) < 2:
        return "at least two ranks: one GPU alone doesn't communicate"
    return f"how {test.gpu_name} are joined: nvidia-smi topo -m"


def _shown_by(graph: Graph, verdict: str) -> list[str]:
    paths = [path for path in graph.paths.values() if path.a.startswith("GPU") and path.b.startswith("GPU")]
    said = []
    if paths and verdict != "not judged":
        kinds = dict.fromkeys(sorted(path.path for path in paths))
        said.append(f"the topology joins the GPUs by {', '.join(kinds)}")
        if any(path.peer not in (None, "ok") for path in paths):
            said.append("the driver allows no peer-to-peer between some of them: data goes through host memory")
    if verdict == "too slow":
        said += [f"below par is {mark}" for mark in graph.below_par[:6]]
    return said


def curve(test: NcclTest) -> list[Point]:
    """Tell for each size what bounds it: the start of the operation, or the links.

    >>> [point.phase for point in curve(NcclTest(curve=[(8, 0.01), (1 << 24, 90.0), (1 << 28, 200.0), (1 << 30, 220.0)]))]
    ['latency', 'ramp', 'plateau', 'plateau']
    """
    shortest = next((size / busbw for size, busbw in test.curve if busbw > 0), 0.0)
    peak = max((busbw for _, busbw in test.curve), default=0.0)
    top = max((size for size, busbw in test.curve if busbw == peak), default=0)
    points = []
    for size, busbw in test.curve:
        if busbw >= _PLATEAU * peak:
            phase = "plateau"
        elif size > top:
            phase = "collapse" if busbw < peak / 2 else "plateau"
        elif busbw <= 0 or (size <= _SMALL and size / busbw < _LATENCY * shortest):
            phase = "latency"
        else:
            phase = "ramp"
        points.append(Point(size, busbw, phase))
    return points


def size_text(size: int) -> str:
    """Return a size as nccl-tests' options write it.

    >>> size_text(8589934592), size_text(65536), size_text(1250)
    ('8 GiB', '64 KiB', '1250 B')
    """
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor and size % (factor >> 2) == 0:
            return f"{size / factor:g} {unit}"
    return f"{size} B"
