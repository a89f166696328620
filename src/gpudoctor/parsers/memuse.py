"""GPU memory that a program writes down from step to step, read as one series."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec.structs import replace

from gpudoctor.facts.memory import GpuMemoryUse
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex

_SAMPLE = LazyRegex(
    r"(?P<label>(?:(?:gpu|cuda|vram|torch\.cuda\.)[ _-]?)(?:\d+ )?(?:mem(?:ory)?(?:[ _-]?(?:allocated|usage|used|in use|alloc))?(?:\(\))?|usage|used)"
    r"|\bmem(?:ory)?[ _](?:allocated|used)(?:\(\))?)"
    r"(?: \((?P<unit_before>[KMG]i?B)\))?\s*(?:is|at|[:=|])?\s*(?P<value>\d[\d.]*)\s*(?P<unit>[KMG]i?B?|bytes)?(?![\w%])",
    re.IGNORECASE,
)
_PEAK = LazyRegex(r"(?:max|peak|total|limit|free|reserved|cached)[ _-]*$", re.IGNORECASE)
_SCALE = {"k": 1 / 1024, "m": 1.0, "g": 1024.0, "b": 1 / 2**20}
FEWEST = 6  # samples that make a series
_LEAST = 256.0  # MiB of growth, and
_SHARE = 0.25  # share of the first value


def gpu_memory_use(text: str) -> Iterator[GpuMemoryUse]:
    """The series of one label: first and last value, and whether it climbs to the end.

    >>> sample = "\\n".join(f"step {n} loss 0.5 gpu memory allocated: {4000 + 150 * n} MiB" for n in range(10))
    >>> fact = next(gpu_memory_use(sample)); fact.samples, fact.first, fact.last, fact.growing
    (10, 4000.0, 5350.0, True)
    """
    series: list[float] = []
    label, last_line = "", 0
    for number, line in enumerate(text.split("\n")):
        for found in _SAMPLE.finditer(line[:600]):
            unit = (found["unit"] or found["unit_before"] or "").lower()[:1]
            if not unit or _PEAK.search(line[: found.start()]):
                continue
            name = " ".join(found["label"].lower().split())
            if label and name != label:
                continue
            try:
                value = float(found["value"].rstrip(".")) * _SCALE[unit]
            except ValueError:
                continue
            label, last_line = name, number
            series.append(value)
            break
        if not series:
            raise NotThisFormat
    yield replace(growth(label, series), at=last_line)


def growth(label: str, series: Sequence[float], fewest: int = FEWEST) -> GpuMemoryUse:
    """Judge a series: it grows if it hardly ever falls, keeps rising in its last third, and the rise is worth naming.

    >>> growth("memory", [5000, 9000, 9100, 9100, 9100, 9100, 9100]).growing
    False
    """
    steps = [later - earlier for earlier, later in pairwise(series)]
    rise = series[-1] - series[0]
    falls = sum(1 for step in steps if step < -0.01 * series[0])
    third = series[-max(2, len(series) // 3) :]
    warm = series[1:] if len(series) > FEWEST else series  # the first step allocates what every step needs
    growing = (
        len(series) >= fewest
        and falls <= len(steps) // 20
        and sum(1 for step in steps if step > 0) >= 0.4 * len(steps)
        and rise >= max(_LEAST, _SHARE * series[0])
        and warm[-1] - warm[0] >= _LEAST / 2
        and third[-1] - third[0] >= 0.1 * rise
    )
    return GpuMemoryUse(
        label=label,
        samples=len(series),
        first=series[0],
        last=series[-1],
        per_sample=rise / max(1, len(steps)),
        growing=growing,
    )


FORMATS = (
    Format(
        "GPU memory over time",
        (
            "memory allocated",
            "memory_allocated",
            "mem_allocated",
            "gpu_mem",
            "gpu mem:",
            "gpu mem=",
            "gpu memory:",
            "gpu memory=",
            "gpu memory used",
            "gpu memory usage:",
            "cuda memory",
            "cuda_mem",
            "vram us",
        ),
        gpu_memory_use,
        lines=300,
    ),
)
