"""durable-rules as evaluator: its network finds the joins, everything else is decided as in the built-in evaluator.

Only what both engines surely understand alike is handed over: equality of text, whole numbers and truth values with a
constant, and (un)equality of text fields between facts. All other comparisons, counts and absences are checked on the
tuples that come back, by the same functions as in `evaluate`.

Known traps of durable-rules 2.0.28, and what is done about them here:

- A ruleset with more than about 500 alternatives (rules times `$or` branches) never finishes compiling: rulesets are cut
  after `_PER_RULESET`, and `$or` is never emitted (a log line with several patterns becomes a group of its own).
- One fact that hits several hundred rules is refused (303): the same cut keeps clear of it.
- `$nex` never returns: absence is never asked of it. Floats with an exponent are refused (204): floats stay here.
- Identical facts must differ in `id`. A fact that no rule wants is answered with code 1, which is no error.
- `durable.engine.Host` starts polling threads, so the C module is called directly.
"""

from __future__ import annotations

import itertools
import json
import types
import typing
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import durable_rules_engine as network

from gpudoctor.engine.compile import Alternative, Condition, Reference, Test
from gpudoctor.engine.evaluate import MAX_MATCHES, Match, fits, matches
from gpudoctor.facts import KINDS
from gpudoctor.facts.base import Fact, LogLine
from gpudoctor.facts.store import FactStore

_PER_RULESET = 100
_MAX_ACTIONS = 20_000  # tuples that one ruleset may return before the built-in evaluator takes it over
_names = itertools.count()

Key = tuple[str, tuple[str, ...]]  # kind, and for log lines the patterns


@dataclass(frozen=True)
class _Compiled:
    """One ruleset: its handle, its alternatives in order, and the fields that its facts need per key."""

    handle: int
    alternatives: tuple[Alternative, ...]
    fields: dict[Key, frozenset[str]]
    numbers: dict[Key, int]


class DurableEvaluator:
    """Compiles alternatives when first seen and keeps them for further diagnoses."""

    def __init__(self) -> None:
        self._compiled: dict[int, list[_Compiled]] = {}
        self._kept: list[Sequence[Alternative]] = []  # keeps the ids above from being reused

    def __call__(self, alternatives: Iterable[Alternative], store: FactStore) -> Iterable[Match]:
        """Yield all matches, in the order in which the built-in evaluator yields them."""
        known = alternatives if isinstance(alternatives, tuple) else tuple(alternatives)
        if id(known) not in self._compiled:
            self._compiled[id(known)] = _compile([a for a in known if _suits(a)])
            self._kept.append(known)
        found: dict[str, list[Match]] = {}
        for compiled in self._compiled[id(known)]:
            found.update(_evaluate(compiled, store))
        for alternative in known:
            yield from found[alternative.key] if alternative.key in found else matches(alternative, store)


def _suits(alternative: Alternative) -> bool:
    return all(condition.at_least is None for condition in alternative.all)


def _key(condition: Condition) -> Key:
    return condition.kind, condition.patterns


def _compile(alternatives: list[Alternative]) -> list[_Compiled]:
    compiled = []
    for start in range(0, len(alternatives), _PER_RULESET):
        part = alternatives[start : start + _PER_RULESET]
        fields: dict[Key, set[str]] = {}
        numbers: dict[Key, int] = {}
        rules = {}
        for number, alternative in enumerate(part):
            conditions = []
            by_alias = {condition.alias: condition for condition in alternative.all}
            for condition in alternative.all:
                key = _key(condition)
                wanted = fields.setdefault(key, set())
                parts: list[dict[str, Any]] = [{"key": numbers.setdefault(key, len(numbers))}]
                for test in condition.tests:
                    if expression := _expression(test, condition, by_alias):
                        parts.append(expression)
                        wanted.add(test.field)
                        if isinstance(test.value, Reference):
                            fields[_key(by_alias[test.value.alias])].add(test.value.field)
                conditions.append({condition.alias: {"$and": parts} if len(parts) > 1 else parts[0]})
            rules[str(number)] = {"all": conditions}
        handle = network.create_ruleset(f"gpudoctor{next(_names)}", json.dumps(rules))
        compiled.append(_Compiled(handle, tuple(part), {k: frozenset(v) for k, v in fields.items()}, numbers))
    return compiled


def _expression(test: Test, condition: Condition, by_alias: dict[str, Condition]) -> dict[str, Any] | None:
    """Return the comparison in durable-rules' terms, or None where it is decided here."""
    value = test.value
    if isinstance(value, Reference):
        if test.operator not in ("eq", "not"):
            return None
        if not (_is_text(condition, test.field) and _is_text(by_alias[value.alias], value.field)):
            return None
        joined = {test.field: {value.alias: value.field}}
        return joined if test.operator == "eq" else {"$neq": joined}
    if test.operator == "eq" and isinstance(value, (str, bool)) and _type(condition, test.field) is type(value):
        return {test.field: value}
    return None


def _is_text(condition: Condition, field: str) -> bool:
    return _type(condition, field) is str


def _type(condition: Condition, field: str) -> type | None:
    """Return the declared type of a field, without None; holes of log lines are left to the check here."""
    if condition.kind == "log":
        return None
    declared = _hints(condition.kind).get(field)
    if isinstance(declared, types.UnionType):
        members = [member for member in typing.get_args(declared) if member is not type(None)]
        return members[0] if len(members) == 1 and isinstance(members[0], type) else None
    return declared if isinstance(declared, type) else None


@cache
def _hints(kind: str) -> dict[str, Any]:
    return typing.get_type_hints(KINDS[kind])


def _evaluate(compiled: _Compiled, store: FactStore) -> dict[str, list[Match]]:
    """Return the matches of each alternative of a ruleset; alternatives that overflow are missing."""
    facts: dict[str, Fact] = {}
    kinds = {kind for kind, _ in compiled.numbers}
    order = {id(fact): place for kind in kinds for place, fact in enumerate(store.of(kind))}
    tuples: dict[str, list[dict[str, Fact]]] = {alternative.key: [] for alternative in compiled.alternatives}
    session = str(next(_names))
    actions = 0
    state = None
    try:
        for key, number in compiled.numbers.items():
            for fact in _facts(key, store):
                name = str(len(facts))
                facts[name] = fact
                message: dict[str, Any] = {"id": name, "sid": session, "key": number}
                for field in compiled.fields[key]:
                    if (value := fact.value(field)) is not None:
                        message[field] = value
                code, state = network.assert_fact(compiled.handle, json.dumps(message))
                if code != 0:
                    continue
                for rule, bound in _actions(compiled.handle, state):
                    actions += 1
                    if actions > _MAX_ACTIONS:
                        return {}
                    alternative = compiled.alternatives[int(rule)]
                    tuples[alternative.key].append({alias: facts[entry["id"]] for alias, entry in bound.items()})
    finally:
        if state is not None:
            network.delete_state(compiled.handle, session)
    return {
        alternative.key: _checked(alternative, tuples[alternative.key], order) for alternative in compiled.alternatives
    }


def _facts(key: Key, store: FactStore) -> list[Fact]:
    kind, patterns = key
    if kind != "log":
        return store.of(kind)
    return [fact for fact in store.of(kind) if isinstance(fact, LogLine) and fact.pattern in patterns]


def _actions(handle: int, state: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (rule, alias -> fact) for everything that the last assertion made true."""
    result = network.start_action_for_state(handle, state)
    if not result:
        return
    context, pending = json.loads(result[0]), result[1]
    while pending:
        for rule, bound in json.loads(pending).items():
            yield rule, bound
        network.update_state(handle, json.dumps(context))
        pending = network.complete_and_start_action(handle, state)


def _checked(alternative: Alternative, tuples: list[dict[str, Fact]], order: dict[int, int]) -> list[Match]:
    """Keep the tuples that pass all comparisons, in reading order of their facts."""
    aliases = [condition.alias for condition in alternative.all]
    kept: list[Match] = []
    for bound in sorted(tuples, key=lambda one: [order[id(one[alias])] for alias in aliases]):
        before: dict[str, Fact] = {}
        for condition in alternative.all:
            if not fits(condition, bound[condition.alias], before):
                break
            before[condition.alias] = bound[condition.alias]
        else:
            kept.append(Match(alternative, before))
            if len(kept) >= MAX_MATCHES:
                break
    return kept
