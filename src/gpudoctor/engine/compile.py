"""Compiles rules into alternatives: plain conjunctions of conditions that every evaluator understands.

A rule's ways, and every `any` inside them, become alternatives of their own (disjunctive normal form).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Container, Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from gpudoctor.engine.rule import Rule, Way
from gpudoctor.facts import KINDS
from gpudoctor.facts.base import Fact, LogLine, Scalar
from gpudoctor.parsers.scan import LogPattern
from gpudoctor.patterns.lazy import LazyRegex
from gpudoctor.patterns.template import BadTemplate, Template

OPERATORS = ("not", "gt", "ge", "lt", "le", "in", "not_in", "contains", "matches", "exists")
_RESERVED = {"fact", "log", "regex", "anchor", "lines", "ignore_case", "any", "at_least", "distinct"}
_PLACE = re.compile(r"\{([a-z_][a-z0-9_]*)\.([a-z_][a-z0-9_]*)(?::([a-z]+))?\}")
_NUMBERED = LazyRegex(r"\b(?:[Tt]he )?GPU GPU ")
_SPELLED = {
    "pytorch": "PyTorch",
    "tensorflow": "TensorFlow",
    "jax": "JAX",
    "cuda": "CUDA",
    "cupy": "CuPy",
    "vllm": "vLLM",
}
MAX_ALTERNATIVES = 40  # of one way
MAX_LINES = 50  # of one message
MAX_AT_LEAST = 1_000_000


class BadRule(ValueError):
    """A rule that can't be compiled; the message names the rule and the key."""


class Reference(msgspec.Struct, frozen=True):
    """The field of a fact that an earlier condition matched: `$module.version`."""

    alias: str
    field: str


class Test(msgspec.Struct, frozen=True):
    """A comparison of one field. The value is a constant, a tuple of constants (in, not_in) or a reference."""

    field: str
    operator: str  # "eq" or one of OPERATORS
    value: Scalar | tuple[Scalar, ...] | Reference | LazyRegex


class Condition(msgspec.Struct, frozen=True):
    """One fact that must be there (or, in `none` and `unless`, must not).

    `patterns` are the keys of the log patterns for kind "log". With `at_least` the facts that fit are taken together
    and must number that many (by their counts, or by the different values of the field `distinct`).
    """

    alias: str
    kind: str
    tests: tuple[Test, ...] = ()
    patterns: tuple[str, ...] = ()
    at_least: int | None = None
    distinct: str | None = None


class Alternative(msgspec.Struct, frozen=True):
    """A conjunction: every condition of `all` matched, nothing of `none` (proven absent) or `unless` (not seen)."""

    rule: Rule
    way: Way
    number: int
    all: tuple[Condition, ...]
    none: tuple[Condition, ...]
    unless: tuple[Condition, ...]

    @property
    def key(self) -> str:
        """A name for this alternative, unique in its rule set."""
        return f"{self.rule.id}/{self.number}"


class RuleSet(msgspec.Struct, frozen=True):
    """Everything compiled."""

    rules: tuple[Rule, ...]
    alternatives: tuple[Alternative, ...]
    patterns: tuple[LogPattern, ...]
    faults: tuple[str, ...] = ()


def compile_rules(rules: Iterable[Rule], trusted: Container[str] = frozenset()) -> RuleSet:
    """Compile rules; one that can't be compiled is left out and named in `faults`.

    The regular expressions of `trusted` rule ids are compiled when first used: our own are checked by the tests.
    """
    kept: list[Rule] = []
    faults: list[str] = []
    patterns: dict[str, LogPattern] = {}
    alternatives: list[Alternative] = []
    for rule in rules:
        try:
            compiled = _compile_rule(rule, patterns)
            if rule.id not in trusted:
                _check_expressions(compiled, patterns)
        except (BadRule, BadTemplate) as error:
            faults.append(f"{rule.id}: {error}")
            continue
        except (TypeError, AttributeError, KeyError, RecursionError) as error:  # a list for a text, say
            faults.append(f"{rule.id}: a value of the wrong kind: {error}")
            continue
        kept.append(rule)
        alternatives += [replace(alternative, number=number) for number, alternative in enumerate(compiled)]
    return RuleSet(tuple(kept), tuple(alternatives), tuple(patterns.values()), tuple(faults))


def _compile_rule(rule: Rule, patterns: dict[str, LogPattern]) -> list[Alternative]:
    compiled: list[Alternative] = []
    for index, way in enumerate(rule.ways):
        try:
            compiled += _alternatives(rule, way, patterns)
        except (BadRule, BadTemplate) as error:
            place = f"ways.{index}" if len(rule.ways) > 1 else "when"
            raise BadRule(f"{place}: {error}") from None
    return compiled


def _alternatives(rule: Rule, way: Way, patterns: dict[str, LogPattern]) -> Iterator[Alternative]:
    groups: list[list[Condition]] = []
    none: list[Condition] = []
    for number, item in enumerate(way.when, start=1):
        if len(item) != 1:
            raise BadRule(f"condition {number}: write one `name: {{...}}` per entry, not {sorted(item)}")
        alias, body = next(iter(item.items()))
        if not isinstance(body, dict):
            raise BadRule(f"{alias}: expected {{fact: ...}} or {{log: ...}}")
        if alias == "none":
            none += _conditions(alias, body, patterns)
        else:
            groups.append(_conditions(alias, body, patterns))
    unless = [
        condition
        for item in way.unless
        for alias, body in ([("unless", item)] if _RESERVED & set(item) else item.items())
        for condition in _conditions(alias, body, patterns)
    ]
    if not groups:
        raise BadRule("a rule needs at least one condition that is not `none`")
    if (number := math.prod(len(group) for group in groups)) > MAX_ALTERNATIVES:
        raise BadRule(f"{number} alternatives; at most {MAX_ALTERNATIVES}: split it into several ways")
    for combination in itertools.product(*groups):
        _check_references(combination, (*none, *unless))
        _check_text(way, combination, patterns)
        yield Alternative(rule, way, 0, combination, tuple(none), tuple(unless))


def _conditions(alias: str, body: dict[str, Any], patterns: dict[str, LogPattern]) -> list[Condition]:
    if "any" in body:
        members = body["any"]
        if not isinstance(members, list) or not members:
            raise BadRule(f"{alias}.any: expected a list of conditions")
        outer = {key: value for key, value in body.items() if key != "any"}
        found = [condition for member in members for condition in _conditions(alias, {**outer, **member}, patterns)]
        return _merged(found)
    given = [key for key in ("fact", "log", "regex") if key in body]
    if len(given) != 1:
        raise BadRule(f"{alias}: expected exactly one of fact, log, regex")
    at_least, distinct = body.get("at_least"), body.get("distinct")
    _check_number(alias, body, "at_least", MAX_AT_LEAST)
    _check_number(alias, body, "lines", MAX_LINES)
    if not isinstance(body.get("ignore_case", False), bool):
        raise BadRule(f"{alias}.ignore_case: write true or false, not {body['ignore_case']!r}")
    if given[0] == "fact":
        kind = body["fact"]
        if kind not in KINDS:
            raise BadRule(
                f"{alias}: unknown fact {kind!r}{_similar(kind)}; the kinds are the classes in gpudoctor/facts"
            )
        known = set(KINDS[kind].__struct_fields__)
        keys: tuple[str, ...] = ()
    else:
        kind = "log"
        options = {key: body[key] for key in ("lines", "ignore_case") if key in body}
        if given[0] == "log":
            template = Template.compile(body["log"], **options)
        else:
            if "anchor" not in body:
                raise BadRule(f"{alias}: a regex needs an `anchor`, the fixed text that its lines hold")
            template = Template.from_regex(body["regex"], body["anchor"], **options)
        key = template.text + (f" [{template.lines} lines]" if template.lines > 1 else "")
        if (known_pattern := patterns.get(key)) and known_pattern.template.anchor != template.anchor:
            key += f" [at {template.anchor}]"
        patterns.setdefault(key, LogPattern(key, template))
        known = set(LogLine.__struct_fields__) | set(template.names)
        keys = (key,)
    if distinct is not None and at_least is None:
        raise BadRule(f"{alias}.distinct: needs `at_least`, how many different ones there must be")
    if distinct is not None and distinct not in known:
        raise BadRule(f"{alias}.distinct: {kind} has no field {distinct!r}; it has {', '.join(sorted(known))}")
    tests: list[Test] = []
    for field, test in body.items():
        if field in _RESERVED:
            continue
        name = field + "_" if field in ("class", "value") and field + "_" in known else field
        if name not in known:
            raise BadRule(f"{alias}: {kind} has no field {field!r}; it has {', '.join(sorted(known))}")
        tests += _tests(alias, name, test)
    return [Condition(alias, kind, tuple(tests), keys, at_least, distinct)]


def _check_number(alias: str, body: dict[str, Any], key: str, most: int) -> None:
    number = body.get(key, 1)
    if type(number) is not int or not 1 <= number <= most:
        raise BadRule(f"{alias}.{key}: {number!r} is no whole number from 1 to {most:,}")


def _similar(kind: str) -> str:
    import difflib  # only where a rule is wrong

    near = difflib.get_close_matches(str(kind), [name for name in KINDS if name], 3)
    return f"; similar are {', '.join(near)}" if near else ""


def _merged(conditions: list[Condition]) -> list[Condition]:
    """Join log conditions that differ in their lines alone: one condition with several patterns, not several alternatives."""
    merged: dict[Any, list[Condition]] = {}
    for number, condition in enumerate(conditions):
        same = (condition.tests, condition.at_least, condition.distinct) if condition.kind == "log" else number
        merged.setdefault(same, []).append(condition)
    return [
        replace(alike[0], patterns=tuple(key for condition in alike for key in condition.patterns))
        if len(alike) > 1
        else alike[0]
        for alike in merged.values()
    ]


def _tests(alias: str, field: str, test: Any) -> Iterator[Test]:
    if isinstance(test, dict):
        for operator, value in test.items():
            if operator not in OPERATORS:
                raise BadRule(f"{alias}.{field}: unknown operator {operator!r}; known are {', '.join(OPERATORS)}")
            if operator == "matches":
                yield Test(field, operator, LazyRegex(value))
            else:
                yield Test(field, operator, _value(value))
    elif isinstance(test, list):
        yield Test(field, "in", tuple(test))
    else:
        yield Test(field, "eq", _value(test))


def _value(value: Any) -> Scalar | tuple[Scalar, ...] | Reference:
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, str) and value.startswith("$"):
        alias, _, field = value[1:].partition(".")
        return Reference(alias, field)
    return value  # type: ignore[no-any-return]


def _check_references(conditions: tuple[Condition, ...], negative: tuple[Condition, ...]) -> None:
    known: dict[str, Condition] = {}
    for condition in (*conditions, *negative):
        for test in condition.tests:
            if isinstance(test.value, Reference) and test.value.alias not in known:
                raise BadRule(f"{condition.alias}.{test.field}: ${test.value.alias} is not an earlier condition")
        if condition in conditions:
            known[condition.alias] = condition


def _check_text(way: Way, conditions: tuple[Condition, ...], patterns: dict[str, LogPattern]) -> None:
    by_alias = {condition.alias: condition for condition in conditions}
    texts = [way.because] + ([way.subject.name] if way.subject else [])
    for text in texts:
        for alias, field, _ in _PLACE.findall(text):
            if alias not in by_alias:
                raise BadRule(f"because: {{{alias}.{field}}}: no condition is named {alias}")
            condition = by_alias[alias]
            known = set(KINDS[condition.kind].__struct_fields__)
            for key in condition.patterns:
                known |= patterns[key].template.names
            if field not in known and field + "_" not in known:
                raise BadRule(f"because: {{{alias}.{field}}}: {condition.kind} has no field {field!r}")


def _check_expressions(alternatives: list[Alternative], patterns: dict[str, LogPattern]) -> None:
    from gpudoctor.patterns.backtracking import hazard  # only what nobody has checked yet

    for condition in (c for one in alternatives for c in (*one.all, *one.none, *one.unless)):
        for key in condition.patterns:
            patterns[key].template.check()
        for test in condition.tests:
            if isinstance(test.value, LazyRegex):
                try:
                    reason = hazard(test.value.pattern, re.compile(test.value.pattern).flags)
                except re.error as error:
                    raise BadRule(f"{condition.alias}.{test.field}: {error}") from None
                if reason:
                    raise BadRule(f"{condition.alias}.{test.field}: would take for ever on some texts: {reason}")


def fill(text: str, bound: dict[str, Fact]) -> str:
    """Fill `{alias.field}` from the matched facts; `:size` prints MiB in fitting units, `:name` a product as it is spelled; unknown values read "?"."""

    def place(found: re.Match[str]) -> str:
        fact = bound.get(found[1])
        if fact is None:
            return "?"
        value = fact.value(found[2])
        if value is None:
            value = fact.value(found[2] + "_")
        if value is None:
            return "?"
        if found[3] == "size" and isinstance(value, (int, float)):
            return _size(float(value))
        if found[3] == "bytes" and isinstance(value, (int, float)):
            return _size(float(value) / 2**20)
        if found[3] == "name":
            return _SPELLED.get(str(value), str(value))
        if isinstance(value, float):
            return f"{value:.10g}" if value == int(value) else f"{value:.2f}".rstrip("0").rstrip(".")
        return str(value)

    # A GPU that nobody gave an address is called "GPU 5", and the sentence says "the GPU {gpu.gpu}".
    return _NUMBERED.sub("GPU ", " ".join(_PLACE.sub(place, text).split()))


def _size(mib: float) -> str:
    """Return an amount in the largest unit of which it holds one.

    >>> _size(20480), _size(0), _size(0.5), _size(8 / 2**20)
    ('20.00 GiB', '0 MiB', '512 KiB', '8 bytes')
    """
    if mib >= 1024:
        return f"{mib / 1024:.2f} GiB"
    if mib >= 1 or mib <= 0:
        return f"{mib:.0f} MiB"
    return f"{mib * 1024:.0f} KiB" if mib * 1024 >= 1 else f"{mib * 2**20:.0f} bytes"
