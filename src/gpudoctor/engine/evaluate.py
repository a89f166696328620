"""The reference semantics: a small forward matcher in plain Python.

An evaluator gets alternatives and facts and yields matches: which facts fill which condition of which alternative. The
durable-rules adapter answers the same question for the positive joins; comparison and absence are decided here for both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from gpudoctor.engine.compile import Alternative, Condition, Reference, Test
from gpudoctor.facts.base import Fact, LogLine, Scalar
from gpudoctor.facts.store import FactStore
from gpudoctor.patterns.lazy import LazyRegex

MAX_MATCHES = 500  # of one alternative; beyond that nothing new is learnt
MAX_VISITS = 200_000  # join steps of one alternative: a runaway rule must not eat the deadline

Bound = dict[str, Fact]


class Match(msgspec.Struct):
    """Facts that fill an alternative; `more` holds the further facts of counted conditions."""

    alternative: Alternative
    bound: Bound
    more: list[Fact] = []


def candidates(condition: Condition, store: FactStore) -> Iterable[Fact]:
    """Return the facts that could fill a condition, by kind and pattern alone."""
    facts = store.of(condition.kind)
    if condition.kind != "log":
        return facts
    return [fact for fact in facts if isinstance(fact, LogLine) and fact.pattern in condition.patterns]


def holds(test: Test, fact: Fact, bound: Bound) -> bool:
    """Decide one comparison. Unknown (None) fits only `exists: false`: what isn't known is never a difference."""
    value = fact.value(test.field)
    wanted = test.value
    if test.operator == "exists":
        return (value is not None) == bool(wanted)
    if isinstance(wanted, Reference):
        other = bound.get(wanted.alias)
        if other is None:
            return True  # the condition it refers to is left open (see undecided rules)
        resolved = other.value(wanted.field)
        if isinstance(resolved, list):
            return False
        wanted = resolved
        if wanted is None:
            return False
    if value is None or isinstance(value, list):
        return False
    match test.operator:
        case "eq":
            return value == wanted
        case "not":
            return value not in wanted if isinstance(wanted, tuple) else value != wanted
        case "in":
            return isinstance(wanted, tuple) and value in wanted
        case "not_in":
            return isinstance(wanted, tuple) and value not in wanted
        case "contains":
            words = wanted if isinstance(wanted, tuple) else (wanted,)
            return any(str(word).lower() in str(value).lower() for word in words)
        case "matches":
            return isinstance(wanted, LazyRegex) and wanted.search(str(value)) is not None
    return _ordered(test.operator, value, wanted) if not isinstance(wanted, (tuple, LazyRegex)) else False


def _ordered(operator: str, value: Scalar, wanted: Scalar) -> bool:
    left, right = _comparable(value), _comparable(wanted)
    if left is None or right is None:
        return False
    match operator:
        case "gt":
            return left > right
        case "ge":
            return left >= right
        case "lt":
            return left < right
        case _:
            return left <= right


def _comparable(value: Scalar) -> tuple[float, ...] | None:
    """Numbers compare as numbers, dotted versions part by part; anything else doesn't compare."""
    if isinstance(value, (bool, int, float)):
        return (float(value),)
    parts = re.match(r"v?(\d+(?:\.\d+)*)", value or "")
    return tuple(float(part) for part in parts[1].split(".")) if parts else None


def fits(condition: Condition, fact: Fact, bound: Bound) -> bool:
    """Decide whether a fact fills a condition, given what is bound so far."""
    return all(holds(test, fact, bound) for test in condition.tests)


def matches(alternative: Alternative, store: FactStore, skip: frozenset[str] = frozenset()) -> Iterator[Match]:
    """Yield the ways to fill the positive conditions; those named in `skip` are left open."""
    visits = 0
    found = 0
    conditions = [condition for condition in alternative.all if condition.alias not in skip]

    def step(index: int, bound: Bound, more: list[Fact]) -> Iterator[Match]:
        nonlocal visits, found
        if index == len(conditions):
            found += 1
            yield Match(alternative, dict(bound), list(more))
            return
        condition = conditions[index]
        if condition.at_least is not None:
            group = [fact for fact in candidates(condition, store) if fits(condition, fact, bound)]
            if _number(group, condition) >= condition.at_least:
                yield from step(index + 1, {**bound, condition.alias: _fold(group)}, [*more, *group[1:]])
            return
        for fact in candidates(condition, store):
            visits += 1
            if found >= MAX_MATCHES or visits > MAX_VISITS:
                return
            if any(fact is other for other in bound.values()):
                continue  # one fact fills one condition: two GPUs are two
            if fits(condition, fact, bound):
                yield from step(index + 1, {**bound, condition.alias: fact}, more)

    yield from step(0, {}, [])


def _number(group: list[Fact], condition: Condition) -> int:
    if condition.distinct:
        return len({fact.value(condition.distinct) for fact in group} - {None})
    return sum(fact.count for fact in group)


def _fold(group: list[Fact]) -> Fact:
    return replace(group[0], count=sum(fact.count for fact in group))


class Vetoes:
    """Tells whether a fact stands against a match (`none` or `unless`); what doesn't depend on the match is decided once."""

    def __init__(self, store: FactStore) -> None:
        self._store = store
        self._decided: dict[int, tuple[Condition, bool]] = {}
        self._fitting: dict[int, tuple[Condition, list[Fact]]] = {}

    def against(self, alternative: Alternative, bound: Bound) -> bool:
        """Tell whether anything stands against this match of the alternative."""
        return any(self._stands(condition, bound) for condition in (*alternative.none, *alternative.unless))

    def _stands(self, condition: Condition, bound: Bound) -> bool:
        if any(isinstance(test.value, Reference) for test in condition.tests):
            return self._found(condition, bound)
        known = self._decided.get(id(condition))
        if known is None:
            known = self._decided[id(condition)] = condition, self._found(condition, bound)
        return known[1]

    def _without_references(self, condition: Condition) -> list[Fact]:
        """Return the facts that fill the condition as far as no other fact has a say in it."""
        known = self._fitting.get(id(condition))
        if known is None:
            own = [test for test in condition.tests if not isinstance(test.value, Reference)]
            facts = [fact for fact in candidates(condition, self._store) if all(holds(test, fact, {}) for test in own)]
            known = self._fitting[id(condition)] = condition, facts
        return known[1]

    def _found(self, condition: Condition, bound: Bound) -> bool:
        fitting = (fact for fact in self._without_references(condition) if fits(condition, fact, bound))
        if condition.at_least is None:
            return next(fitting, None) is not None
        group = list(fitting)
        return bool(group) and _number(group, condition) >= condition.at_least


def unproven(alternative: Alternative, store: FactStore) -> list[str]:
    """Return the kinds whose absence the alternative needs and nobody probed."""
    return sorted({c.kind for c in alternative.none if c.kind != "log" and not store.probed(c.kind)})
