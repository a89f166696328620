"""Every rule that can be undecided has a rule test that says what it then asks for.

A rule can be undecided where a fact of some kind may not have been asked for: a kind that must be proven absent (`none`), or the
one condition that is missing while all others of a way fit. It can't where those others are enough for another way of the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gpudoctor.diagnosis import Doctor
from gpudoctor.engine.compile import Alternative, Condition, Reference
from gpudoctor.engine.compile import Test as Comparison
from gpudoctor.ruletests import read_tests

# Rules of which the criterion below thinks that they can be, and why they can't.
NEVER = {
    "cuda.illegal-access": "each error number alone is enough for one of two ways",
    "hardware.xid": "the pattern is made of the same Xids, so it is there whenever they are",
    "host.numa-binding": "bindings are made from the GPUs' nodes",
}


def _same(test: Comparison, wanted: Comparison) -> bool:
    """Tell whether a fact that passes `test` passes `wanted`."""
    if test.field != wanted.field:
        return False
    if test == wanted or (wanted.operator == "exists" and wanted.value is True and test.operator != "exists"):
        return True
    if isinstance(test.value, Reference) or isinstance(wanted.value, Reference) or test.operator not in ("eq", "in"):
        return False
    values = set(test.value) if isinstance(test.value, tuple) else {test.value}
    allowed = set(wanted.value) if isinstance(wanted.value, tuple) else {wanted.value}
    return wanted.operator in ("eq", "in") and values <= allowed


def _enough(condition: Condition, wanted: Condition) -> bool:
    """Tell whether what fills `condition` fills `wanted`."""
    return (
        condition.kind == wanted.kind
        and set(condition.patterns) <= set(wanted.patterns)
        and wanted.at_least in (None, condition.at_least)
        and all(any(_same(test, other) for test in condition.tests) for other in wanted.tests)
    )


def can_be_missing(ways: Sequence[Alternative]) -> set[str]:
    """Return the kinds of facts that a rule may have to ask for."""
    kinds = {condition.kind for way in ways for condition in way.none if condition.kind != "log"}
    for way in ways:
        for left_out in way.all if len(way.all) > 1 else ():
            rest = [condition for condition in way.all if condition is not left_out]
            if left_out.kind == "log" or any(condition.kind == left_out.kind for condition in rest):
                continue
            fired = any(
                all(any(_enough(condition, wanted) for condition in rest) for wanted in other.all)
                for other in ways
                if other is not way and all(condition.kind == "log" for condition in other.none)
            )
            if not fired:
                kinds.add(left_out.kind)
    return kinds


@pytest.fixture(scope="module")
def undecidable() -> dict[str, set[str]]:
    ways: dict[str, list[Alternative]] = {}
    for alternative in Doctor().rules.alternatives:
        ways.setdefault(alternative.rule.id, []).append(alternative)
    found = {rule_id: can_be_missing(alternatives) for rule_id, alternatives in ways.items()}
    return {rule_id: kinds for rule_id, kinds in found.items() if kinds}


def test_each_rule_that_can_be_undecided_has_such_a_test(undecidable: dict[str, set[str]]) -> None:
    folder = Path(__file__).parent / "rules"
    tested = {test.rule_id for path in folder.glob("*.yaml") for test in read_tests(path) if test.kind == "undecided"}
    missing = {rule_id: sorted(kinds) for rule_id, kinds in undecidable.items() if rule_id not in {*tested, *NEVER}}
    assert not missing, f"these can lack a fact, and no test says what they ask for: {missing}"
    assert not tested & NEVER.keys(), "a test shows that it can be"
    assert NEVER.keys() <= undecidable.keys(), "the exception is no longer needed"
