"""Error counters of network ports: which are more than a healthy port gathers, and which grow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from gpudoctor.facts.base import Fact
from gpudoctor.facts.host import PortCounter
from gpudoctor.facts.store import FactStore

# From where on a counter says something, by what it counts: as a whole, and between two readings. Each reboot of the far side
# takes the link down once, and a bit error now and then is what the specification allows.
_SERIOUS = {"down": 10, "signal": 100, "loss": 1000, "failed": 1}
_GROWING = {"down": 1, "signal": 10, "loss": 100, "failed": 1}


def judge_counters(store: FactStore) -> Iterable[Fact]:
    """Mark the counters; a listing that names its port and the line in it are one reading."""
    readings: dict[object, PortCounter] = {}
    for fact in store.of("port_counter"):
        if isinstance(fact, PortCounter):
            key = (fact.where.source, fact.where.line, fact.name) if fact.where else id(fact)
            if key not in readings or readings[key].device is None:
                readings[key] = fact
    series: dict[tuple[str | None, int | None, str], list[PortCounter]] = defaultdict(list)
    for fact in readings.values():
        series[fact.device, fact.port, fact.name].append(fact)
    for (device, _, _), facts in series.items():
        last = facts[-1]
        last.serious = last.number >= _SERIOUS[last.means]
        growth = last.number - facts[0].number
        if device and growth >= _GROWING[last.means]:
            last.grown = growth
    return ()
