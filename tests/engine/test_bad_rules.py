"""A rule that can't be compiled is one line and costs only itself."""

import pytest

from gpudoctor.engine.compile import compile_rules
from gpudoctor.engine.rule import Rule, rule_from

_LINE = {"log": "NVRM: Xid (PCI:{pci}): {n:int}, {detail}"}
_TWO = [{"fact": "gpu"}, {"fact": "xid"}]
WHENS = {
    "a table for a text": [{"x": {"log": {"regex": "a"}}}],
    "a list for a kind": [{"x": {"fact": ["gpu"]}}],
    "a number for a condition": [{"x": {"any": [3]}}],
    "a list for an anchor": [{"x": {"regex": "a", "anchor": [1]}}],
    "alternatives without end": [{f"x{number}": {"any": _TWO}} for number in range(40)],
}


def rule(name: str, when: list) -> Rule:
    return rule_from({"id": name, "title": "t", "severity": "info", "when": when, "because": "b"})


@pytest.mark.parametrize("when", WHENS.values(), ids=WHENS)
def test_a_condition_of_the_wrong_kind_costs_only_its_rule(when: list) -> None:
    compiled = compile_rules([rule("mine.wrong", when), rule("mine.right", [{"x": _LINE}])])
    assert [kept.id for kept in compiled.rules] == ["mine.right"]
    assert len(compiled.faults) == 1
    assert compiled.faults[0].startswith("mine.wrong: ")


REFUSED = {
    "at_least: -1 is no whole number": {**_LINE, "at_least": -1},
    "at_least: 0 is no whole number": {**_LINE, "at_least": 0},
    "at_least: 2.5 is no whole number": {**_LINE, "at_least": 2.5},
    "at_least: True is no whole number": {**_LINE, "at_least": True},
    "at_least: 'many' is no whole number": {**_LINE, "at_least": "many"},
    "at_least: 1000000000000 is no whole number": {**_LINE, "at_least": 10**12},
    "lines: 0 is no whole number": {**_LINE, "lines": 0},
    "lines: 10000000 is no whole number": {**_LINE, "lines": 10_000_000},
    "distinct: log has no field 'gpus'": {**_LINE, "at_least": 2, "distinct": "gpus"},
    "distinct: needs `at_least`": {**_LINE, "distinct": "n"},
    "ignore_case: write true or false": {**_LINE, "ignore_case": "maybe"},
}


@pytest.mark.parametrize("reason", REFUSED)
def test_a_value_that_makes_no_sense_is_refused_by_name(reason: str) -> None:
    compiled = compile_rules([rule("mine.wrong", [{"x": REFUSED[reason]}])])
    assert not compiled.rules
    [fault] = compiled.faults
    assert f"x.{reason}" in fault


@pytest.mark.parametrize(
    "expression", [r"NVRM: (\w+ ?)+failed", r"(a|b|ab)*c", r"(\s*\w+)*$", r"x.*a.*b.*c.*d", r"(a+)\1+b(\d*)*z"]
)
def test_an_expression_that_takes_for_ever_on_some_lines_is_refused(expression: str) -> None:
    line = rule("mine.line", [{"x": {"regex": expression, "anchor": "NVRM: "}}])
    field = rule("mine.field", [{"x": {"fact": "os", "name": {"matches": expression}}}])
    compiled = compile_rules([line, field, rule("mine.right", [{"x": _LINE}])])
    assert [kept.id for kept in compiled.rules] == ["mine.right"]
    assert all("would take for ever on some" in fault for fault in compiled.faults)


@pytest.mark.parametrize(
    "expression",
    [
        r"(?:\d+,)*end",
        r"\w+\s*=\s*\w+ z",
        r"foo.*bar.*baz",
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{12}",
        r"failed: .*.*.*.*",  # may end anywhere, so it never goes back
        r"(?=(?P<all>.*?foo))(?P=all)\d+",
        r"(?i)fehler: [äöü]+ (?!nicht)\w+",
    ],
)
def test_an_expression_that_ends_soon_is_taken(expression: str) -> None:
    compiled = compile_rules([rule("mine.right", [{"x": {"fact": "os", "name": {"matches": expression}}}])])
    assert not compiled.faults
