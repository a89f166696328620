"""Rates that logs tell in passing: of a network link, of a training step."""

from __future__ import annotations

from collections.abc import Iterator

from gpudoctor.facts.host import (
    NetInterface,
    StepTime,
)
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex
from gpudoctor.patterns.stamp import parse_stamp

_LINK = LazyRegex(
    r"(?P<name>e[nt]\w+|ib\w+|bond\w+|mlx5_\w+): (?:\w+ )?(?:NIC )?Link is [Uu]p[ ,-]+(?:at )?(?P<speed>\d+)\s*(?P<unit>[MG])b(?:ps|it)?"
)


def link_up(text: str) -> Iterator[NetInterface]:
    """The speed with which a network port came up.

    >>> fact = next(link_up("[ 9.1] ixgbe 0000:03:00.0 eno1: NIC Link is Up 1 Gbps, Flow Control: RX/TX")); fact.speed
    1000
    """
    message = parse_stamp(text.partition("\n")[0]).message
    found = _LINK.search(message)
    if not found:
        raise NotThisFormat
    speed = int(found["speed"]) * (1000 if found["unit"] == "G" else 1)
    yield NetInterface(name=found["name"], speed=speed, state="up")


_STEP = LazyRegex(
    r"\b(?:Batch |batch_)?[Tt]ime:?\s+(?P<step>\d+\.\d+)s?\s*\((?:\d+\.\d+)\).{0,20}?\b[Dd]ata(?:[ _][Tt]ime)?:?\s+(?P<data>\d+\.\d+)s?\s*\("
)
_STEP_MM = LazyRegex(r"\btime: (?P<step>\d+\.\d+),? +(?:loss: \S+,? +)?data_time: (?P<data>\d+\.\d+)")


def step_time(text: str) -> Iterator[StepTime]:
    """A progress line that tells the time of a step and the part that waited for data.

    >>> fact = next(step_time("Epoch: [0][10/5005]\\tTime 22.424 (7.498)\\tData 22.372 (7.070)\\tLoss 6.9"))
    >>> round(fact.share, 3)
    0.998
    """
    line = text.partition("\n")[0]
    found = _STEP.search(line) or _STEP_MM.search(line)
    if not found:
        raise NotThisFormat
    step, data = float(found["step"]), float(found["data"])
    yield StepTime(step=step, data=data, share=data / step if step else None)


FORMATS = (
    Format("link speed", ("Link is Up", "Link is up", "Link up"), link_up, lines=1),
    Format("step time", ("\tData ", ") Data ", "data_time: "), step_time, lines=1),
)
