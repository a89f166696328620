"""From one bad measurement to the GPU, link or path that is to blame: the plan, and what its results mean."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from gpudoctor.facts.base import Fact
from gpudoctor.facts.comms import NcclTest
from gpudoctor.nccl.measure import Measured
from gpudoctor.parsers import nccl_tests
from gpudoctor.parsers.base import Malformed, NotThisFormat

_SLOW = 0.7  # of the median of the other pairs
_CHANGED = 1.5  # times as fast: another path

P2P_OFF = {"NCCL_P2P_DISABLE": "1"}
SHM_OFF = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}


@dataclass(frozen=True)
class Step:
    """One run: these GPUs of this node, or all GPUs of these nodes, with these variables set for it alone."""

    title: str
    gpus: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


@dataclass
class Result:
    """What a step gave. state: fine, slow, wrong, hung, crashed or denied."""

    step: Step
    measured: Measured
    test: NcclTest | None
    state: str = "fine"
    began: bool = True  # it found the GPUs and listed them

    @property
    def busbw(self) -> float:
        """Bandwidth at the largest sizes; 0 where nothing was measured."""
        return (self.test.busbw_max if self.test else None) or 0.0


Run = Callable[[Step], Result]
RunAll = Callable[[Sequence[Step]], list[Result]]  # of several, as many at the same time as is sensible


def result_of(step: Step, measured: Measured) -> Result:
    """Read what a run printed; whether it is slow is decided later, against the expectation or its neighbours."""
    facts: list[Fact] = []
    with contextlib.suppress(NotThisFormat, Malformed):
        facts = list(nccl_tests.table(measured.output))
    test = next((fact for fact in facts if isinstance(fact, NcclTest)), None)
    state: str = "fine" if measured.status == "ended" else measured.status
    if test and test.wrong:
        state = "wrong"
    elif state == "fine" and (test is None or not test.rows):
        state = "crashed"
    return Result(step, measured, test, state, began=bool(facts))


def look_closer(first: Result, run: Run) -> tuple[list[Result], list[str]]:
    """After a bad first run: pairs of neighbours, then suspects with known good ones, then other paths. Returns the conclusions."""
    gpus = first.step.gpus
    results: list[Result] = []
    if first.state == "denied":
        return results, []
    if len(gpus) > 2:
        results = [run(Step(f"pair {a} and {b}", (a, b))) for a, b in _neighbours(gpus)]
        judge_pairs(results)
        bad = [result for result in results if result.state != "fine"]
        if bad and len(bad) < len(results):
            return _suspects(gpus, results, run)
    return _paths(first, results, run)


def _neighbours(gpus: Sequence[str]) -> list[tuple[str, str]]:
    pairs = [(gpus[place], gpus[(place + 1) % len(gpus)]) for place in range(len(gpus))]
    return pairs if len(gpus) > 2 else pairs[:1]


def judge_pairs(results: Iterable[Result], known_good: Sequence[float] = ()) -> None:
    """Mark the pairs that are clearly slower than the others, or than those that are known to be good."""
    fine = [result for result in results if result.state == "fine"]
    usual = median(known_good or [result.busbw for result in fine] or [0.0])
    for result in fine:
        if result.busbw < _SLOW * usual:
            result.state = "slow"


def _suspects(gpus: Sequence[str], results: list[Result], run: Run) -> tuple[list[Result], list[str]]:
    """Some pairs are bad. A GPU whose pairs are all bad is to blame if it is bad with a known good one too; else the link is."""
    bad = {frozenset(result.step.gpus): result.state for result in results if result.state != "fine"}
    good = [gpu for gpu in gpus if not any(gpu in pair for pair in bad)]
    said: list[str] = []
    blamed: set[str] = set()
    suspects = [gpu for gpu in gpus if sum(gpu in pair for pair in bad) >= 2]
    for gpu in suspects or sorted({gpu for pair in bad for gpu in pair}, key=list(gpus).index):
        partner = next((other for other in good if other != gpu), None)
        if partner is None:
            continue
        again = run(Step(f"suspect {gpu} with {partner}", (gpu, partner)))
        judge_pairs([again], [result.busbw for result in results if result.state == "fine"])
        results.append(again)
        if again.state != "fine":
            blamed.add(gpu)
            said.append(
                f"GPU {gpu} is to blame: every pair with it is {again.state}, also the one with GPU {partner}, which is fine with others"
            )
    for pair, state in bad.items():
        if not pair & blamed:
            a, b = sorted(pair, key=list(gpus).index)
            said.append(f"the path between GPU {a} and GPU {b} is to blame: {state} with each other, fine with others")
    return results, said


def _paths(first: Result, results: list[Result], run: Run) -> tuple[list[Result], list[str]]:
    """All pairs are alike: is it the path that they take?"""
    alike = (
        "every pair is as bad as the others: no single GPU or link is to blame"
        if any(r.state != "fine" for r in results)
        else ""
    )
    if results and not alike:
        alike = "every pair alone is as fast as the others: no single GPU or link is to blame"
    said = [alike] if alike else []
    gpus = first.step.gpus
    without = run(
        Step(f"{len(gpus)} GPUs without peer-to-peer, to tell the paths apart", gpus, environment=dict(P2P_OFF))
    )
    results.append(without)
    failed = first.state in ("hung", "crashed", "wrong")
    if failed and without.state == "fine":
        return results, [
            *said,
            f"peer-to-peer is to blame: {first.state} with it, fine without it (ACS, IOMMU, or a driver or GPU without working P2P)",
        ]
    if failed:
        sockets = run(
            Step(f"{len(gpus)} GPUs without shared memory, to tell the paths apart", gpus, environment=dict(SHM_OFF))
        )
        results.append(sockets)
        if sockets.state == "fine":
            return results, [
                *said,
                f"shared memory is to blame: {without.state} through it, fine through sockets (/dev/shm too small, or not shared by the ranks)",
            ]
        return results, [*said, "neither peer-to-peer nor shared memory is to blame: it fails on every path"]
    if without.state == "fine" and without.busbw > _CHANGED * first.busbw:
        return results, [
            *said,
            f"peer-to-peer is to blame: {first.busbw:g} GB/s with it, {without.busbw:g} GB/s through host memory",
        ]
    if without.state == "fine" and first.busbw < 1.1 * without.busbw:
        return results, [
            *said,
            f"peer-to-peer is not in use, or no faster than host memory ({first.busbw:g} and {without.busbw:g} GB/s)",
        ]
    return results, [*said, f"peer-to-peer is in use ({first.busbw:g} GB/s; {without.busbw:g} GB/s without it)"]
