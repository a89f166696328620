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
