"""All facts of one node, in the order in which they were read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpudoctor.facts.base import Fact, Probed


class FactStore:
    """Facts by kind; what was probed, so that absence can be told from ignorance."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._by_kind: dict[str, list[Fact]] = {}
        self._probed: set[str] = set()
        self.add(facts)

    def add(self, facts: Iterable[Fact]) -> None:
        """Add facts; a `probed` fact also marks its kind as answered."""
        for fact in facts:
            self._by_kind.setdefault(fact.kind, []).append(fact)
            if isinstance(fact, Probed):
                self._probed.add(fact.what)

    def of(self, kind: str) -> list[Fact]:
        """Return the facts of a kind, in reading order."""
        return self._by_kind.get(kind, [])

    def probed(self, kind: str) -> bool:
        """Tell whether facts of this kind were asked for and answered."""
        return kind in self._probed

    def __iter__(self) -> Iterator[Fact]:
        for facts in self._by_kind.values():
            yield from facts

    def __len__(self) -> int:
        return sum(len(facts) for facts in self._by_kind.values())
