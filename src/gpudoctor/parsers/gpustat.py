"""gpustat's lines, one GPU each, alone or sampled with --watch."""

from __future__ import annotations

from collections.abc import Iterator

from gpudoctor.facts.base import Fact
from gpudoctor.facts.gpu import Gpu, GpuProcess
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex

_LINE = LazyRegex(
    r"\[(?P<index>\d{1,3})\] (?P<name>[^|]{3,60}?)\s*\|\s*(?P<temp>\d+)\s?['\u00b0]?C,(?:\s*\d+ %,)?\s*(?P<load>\d+|\?\?) %(?:,\s*[\d?]+ / [\d?]+ W)?\s*\|"
    r"\s*(?P<used>\d+) / (?P<total>\d+) MB\s*\|?(?P<processes>.*)"
)
_PROCESS = LazyRegex(r"(?P<name>[\w.@-]+(?::[\w.-]+)?)(?:/(?P<pid>\d+))?\((?P<memory>\d+|\?)M\)")


def gpustat(text: str) -> Iterator[Fact]:
    """One line of gpustat, with or without processes, power and users.

    >>> facts = list(gpustat("[1] GeForce GTX TITAN X | 36'C,   4 % | 9713 / 12196 MB | anna:python/4021(9700M)"))
    >>> facts[0].memory_used, facts[0].utilization, facts[1].pid, facts[1].memory
    (9713.0, 4.0, 4021, 9700.0)
    """
    found = _LINE.search(text.partition("\n")[0])
    if not found:
        raise NotThisFormat
    index, used, total = int(found["index"]), float(found["used"]), float(found["total"])
    yield Gpu(
        index=index,
        name=found["name"],
        seen_by="gpustat",
        gpu=f"GPU {index}",
        temperature=float(found["temp"]),
        utilization=float(found["load"]) if found["load"].isdigit() else None,
        memory_used=used,
        memory_total=total,
        memory_free=total - used,
    )
    for process in _PROCESS.finditer(found["processes"]):
        yield GpuProcess(
            gpu=f"GPU {index}",
            pid=int(process["pid"]) if process["pid"] else None,
            name=process["name"],
            memory=float(process["memory"]) if process["memory"].isdigit() else None,
        )


FORMATS = (Format("gpustat", ("'C, ", "\u00b0C, "), gpustat, lines=1),)
