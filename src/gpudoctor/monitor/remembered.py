"""What logs have told so far: a burst is one fact with a count, whatever cycles its lines came in; old events are forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpudoctor.facts import fact_from
from gpudoctor.facts.base import Fact, LogLine

MAX_FACTS = 2000
MAX_DISTINCT = 60  # different matches of one pattern or kind; the rest is only counted, per GPU

Key = tuple[str, int | None, str]  # pattern or kind, boot, what was said


class Remembered:
    """Facts of one log."""

    def __init__(self) -> None:
        self.facts: dict[Key, Fact] = {}
        self.omitted = 0
        self.version = 0  # changes whenever the facts do
        self._seen: dict[Key, float] = {}  # when a fact was last heard of, by this machine's clock
        self._distinct: dict[str, int] = {}

    def add(self, facts: Iterable[Fact], now: float) -> None:
        """Take over what was found in new lines."""
        for fact in facts:
            group = f"{fact.pattern}" if isinstance(fact, LogLine) else fact.kind
            key: Key = (group, fact.boot, _said(fact))
            if key not in self.facts and self._distinct.get(group, 0) >= MAX_DISTINCT:
                key = (group, fact.boot, f"more {fact.gpu}")
            self.version += 1
            known = self.facts.get(key)
            if known is not None:
                known.count += fact.count
                known.last_time = fact.last_time or fact.time or known.last_time
                known.last_where = fact.last_where or fact.where
            elif len(self.facts) >= MAX_FACTS:
                self.omitted += fact.count
                continue
            else:
                self.facts[key] = fact
                self._distinct[group] = self._distinct.get(group, 0) + 1
            self._seen[key] = now

    def forget(self, now: float, seconds: float) -> None:
        """Drop what was not heard of for so long. A clock that jumped back makes nothing older."""
        for key in [key for key, seen in self._seen.items() if now - seen > seconds]:
            del self._seen[key], self.facts[key]
            self.version += 1

    def earlier_boot(self) -> None:
        """The machine was started anew: what is known belongs to the boot before."""
        facts: dict[Key, Fact] = {}
        seen: dict[Key, float] = {}
        for key, fact in self.facts.items():
            if fact.boot is not None:
                fact.boot -= 1
            facts[key[0], fact.boot, key[2]] = fact
            seen[key[0], fact.boot, key[2]] = self._seen[key]
        self.facts, self._seen = facts, seen
        self.version += 1

    def dump(self) -> list[list[Any]]:
        """Return the facts as plain data."""
        return [[*key, fact.kind, fact.plain(), self._seen[key]] for key, fact in self.facts.items()]

    def restore(self, data: Iterable[list[Any]]) -> None:
        """Take the facts back from plain data; what no longer is a fact is left out."""
        for group, boot, said, kind, values, seen in data:
            try:
                fact = fact_from(kind, values)
            except (KeyError, ValueError):
                continue
            self.facts[group, boot, said] = fact
            self._seen[group, boot, said] = float(seen)
            self._distinct[group] = self._distinct.get(group, 0) + 1


def _said(fact: Fact) -> str:
    if isinstance(fact, LogLine):
        return repr(tuple(fact.fields.values()))
    return fact.said().decode()
