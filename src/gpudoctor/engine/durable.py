"""durable-rules as evaluator: its network finds the joins, everything else is decided as in the built-in evaluator.

Only what both engines surely understand alike is handed over: equality of text, whole numbers and truth values with a
constant, and equality of text fields between facts. All other comparisons, counts and absences are checked on the
tuples that come back, by the same functions as in `evaluate`.

Known traps of durable-rules 2.0.28, and what is done about them here:

- A ruleset with more than about 500 alternatives (rules times `$or` branches) never finishes compiling: rulesets are cut
  after `_PER_RULESET`, and `$or` is never emitted (a log line with several patterns becomes a group of its own).
- One fact that hits several hundred rules is refused (303): the same cut keeps clear of it.
- `$nex` never returns: absence is never asked of it. Floats with an exponent are refused (204): floats stay here.
- A join on a field that one of the facts lacks is refused (311) or crashes: an unknown value is sent as a text that
  equals no other.
- `$neq` between two facts reads memory that nobody wrote (seen with valgrind) and crashes now and then: never emitted.
- Identical facts must differ in `id`. A fact that no rule wants is answered with code 1, which is no error.
- `durable.engine.Host` starts polling threads, so the C module is called directly.
"""

from __future__ import annotations

import itertools
import json
import types
import typing
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import durable_rules_engine as network
import msgspec

from gpudoctor.engine.compile import Alternative, Condition, Reference, Test
from gpudoctor.engine.evaluate import MAX_MATCHES, Match, fits, matches
from gpudoctor.facts import KINDS
from gpudoctor.facts.base import Fact, LogLine
from gpudoctor.facts.store import FactStore

_PER_RULESET = 100
_MAX_ACTIONS = 20_000  # tuples that one ruleset may return before the built-in evaluator takes it over
_names = itertools.count()

Key = tuple[str, tuple[str, ...]]  # kind, and for log lines the patterns


class _Compiled(msgspec.Struct, frozen=True):
    """One ruleset: its definition, its alternatives in order, and the fields that its facts need per key."""

    definition: str
    alternatives: tuple[Alternative, ...]
    fields: dict[Key, set[str]]
    numbers: dict[Key, int]


def durable(alternatives: Iterable[Alternative], store: FactStore) -> Iterable[Match]:
    """Yield all matches, in the order in which the built-in evaluator yields them.

    Only alternatives for whose every condition there is a fact of the kind are compiled; that is a few of many, so that
    rulesets are made for one diagnosis and then deleted (deleting the state alone crashes after an unwanted fact).
    """
    known = list(alternatives)
    there: dict[Key, bool] = {}

    def possible(alternative: Alternative) -> bool:
        for condition in alternative.all:
            key = _key(condition)
            if key not in there:
                there[key] = bool(_facts(key, store))
            if not there[key]:
                return False
        return True

    chosen = [alternative for alternative in known if possible(alternative) and _suits(alternative)]
    found: dict[str, list[Match]] = {}
    for start in range(0, len(chosen), _PER_RULESET):
        found.update(_evaluate(_compile(chosen[start : start + _PER_RULESET]), store))
    for alternative in known:
        yield from found[alternative.key] if alternative.key in found else matches(alternative, store)


def _suits(alternative: Alternative) -> bool:
    """Tell whether there is a join or a comparison to leave to durable-rules; else it would hand back every fact of the kind."""
    if any(condition.at_least is not None for condition in alternative.all):
        return False
    return len(alternative.all) > 1 or any(
        _expression(test, alternative.all[0], {}) for test in alternative.all[0].tests
    )


def _key(condition: Condition) -> Key:
    return condition.kind, condition.patterns


def _compile(alternatives: Sequence[Alternative]) -> _Compiled:
    fields: dict[Key, set[str]] = {}
    numbers: dict[Key, int] = {}
    rules = {}
    for number, alternative in enumerate(alternatives):
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
    return _Compiled(json.dumps(rules), tuple(alternatives), fields, numbers)


def _expression(test: Test, condition: Condition, by_alias: dict[str, Condition]) -> dict[str, Any] | None:
    """Return the comparison in durable-rules' terms, or None where it is decided here."""
    value = test.value
    if isinstance(value, Reference):
        if test.operator != "eq" or not (
            _is_text(condition, test.field) and _is_text(by_alias[value.alias], value.field)
        ):
            return None
        return {_field(test.field): {value.alias: _field(value.field)}}
    if test.operator == "eq" and isinstance(value, (str, bool)) and _type(condition, test.field) is type(value):
        return {_field(test.field): value}
    return None


def _field(name: str) -> str:
    """Return the name of a field in messages: `id`, `sid` and `key` of a fact must not replace those of the message."""
    return f"f_{name}"


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
    handle = network.create_ruleset(f"gpudoctor{next(_names)}", compiled.definition)
    try:
        for key, number in compiled.numbers.items():
            for fact in _facts(key, store):
                name = f"{session}-{len(facts)}"
                facts[name] = fact
                message: dict[str, Any] = {"id": name, "sid": session, "key": number}
                for field in compiled.fields[key]:
                    value = fact.value(field)
                    message[_field(field)] = f"unknown {name}" if value is None else value
                code, state = network.assert_fact(handle, json.dumps(message))
                if code != 0:
                    continue
                for rule, bound in _actions(handle, state):
                    actions += 1
                    if actions > _MAX_ACTIONS:
                        return {}
                    alternative = compiled.alternatives[int(rule)]
                    tuples[alternative.key].append({alias: facts[entry["id"]] for alias, entry in bound.items()})
    finally:
        network.delete_ruleset(handle)
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
        yield from json.loads(pending).items()
        network.update_state(handle, json.dumps(context))
        pending = network.complete_and_start_action(handle, state)


def _checked(alternative: Alternative, tuples: list[dict[str, Fact]], order: dict[int, int]) -> list[Match]:
    """Keep the tuples that pass all comparisons, in reading order of their facts."""
    aliases = [condition.alias for condition in alternative.all]
    kept: list[Match] = []
    for bound in sorted(tuples, key=lambda one: [order[id(one[alias])] for alias in aliases]):
        before: dict[str, Fact] = {}
        for condition in alternative.all:
            fact = bound[condition.alias]
            if any(fact is other for other in before.values()) or not fits(condition, fact, before):
                break
            before[condition.alias] = fact
        else:
            kept.append(Match(alternative, before))
            if len(kept) >= MAX_MATCHES:
                break
    return kept
