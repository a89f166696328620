"""Matches that are kept from cycle to cycle: a rule is matched anew only where facts of a kind that it names have changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpudoctor.engine.compile import Alternative
from gpudoctor.engine.evaluate import Match, matches
from gpudoctor.facts.store import FactStore

Said = list[dict[str, Any]]  # of one kind: the fields of all facts, as combiners may write into the facts themselves


class KeptMatches:
    """An evaluator for `infer` with the built-in semantics."""

    def __init__(self) -> None:
        self.evaluated = 0  # alternatives that were matched anew in the last round
        self._facts: dict[str, Said] = {}
        self._matches: dict[int, tuple[Alternative, list[Match]]] = {}

    def __call__(self, alternatives: Iterable[Alternative], store: FactStore) -> Iterable[Match]:
        """Return all matches of all alternatives."""
        said: dict[str, Said] = {}
        for fact in store:
            said.setdefault(fact.kind, []).append(dict(fact.__dict__))
        changed = {kind for kind in {*said, *self._facts} if said.get(kind) != self._facts.get(kind)}
        self._facts = said
        self.evaluated = 0
        kept: dict[int, tuple[Alternative, list[Match]]] = {}
        found: list[Match] = []
        for alternative in alternatives:
            known = self._matches.get(id(alternative))
            if known is None or any(condition.kind in changed for condition in alternative.all):
                known = (alternative, list(matches(alternative, store)))
                self.evaluated += 1
            kept[id(alternative)] = known
            found += known[1]
        self._matches = kept
        return found
