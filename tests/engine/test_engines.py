"""Both engines give the same matches, on generated facts and rules (fixtures and rule tests are compared elsewhere)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudoctor.engine import available_engines, evaluator
from gpudoctor.engine.compile import compile_rules
from gpudoctor.engine.rule import rule_from
from gpudoctor.facts.driver import DriverLibrary, KernelModule
from gpudoctor.facts.gpu import Gpu, Xid
from gpudoctor.facts.store import FactStore

pytestmark = pytest.mark.skipif(
    "durable" not in available_engines(),
    reason="durable-rules has no build for this Python: there is nothing to compare",
)

_versions = st.sampled_from(["535.104.05", "550.54.15", "560.28.03", None])
_gpus = st.sampled_from(["0000:3b:00.0", "0000:5e:00.0", None])
_facts = st.lists(
    st.one_of(
        st.builds(KernelModule, name=st.sampled_from(["nvidia", "nouveau", 'quote"d']), version=_versions),
        st.builds(DriverLibrary, name=st.sampled_from(["libcuda", "libnvidia-ml"]), version=_versions),
        st.builds(Xid, code=st.sampled_from([13, 48, 79]), gpu=_gpus),
        st.builds(
            Gpu, gpu=_gpus, mig=st.sampled_from([True, False, None]), temperature=st.sampled_from([4e-7, 40, 1e19])
        ),
    ),
    max_size=12,
)
_WHENS = [
    [{"m": {"fact": "kernel_module", "name": "nvidia"}}],
    [{"m": {"fact": "kernel_module"}}, {"l": {"fact": "driver_library", "version": {"not": "$m.version"}}}],
    [{"m": {"fact": "kernel_module"}}, {"l": {"fact": "driver_library", "version": "$m.version"}}],
    [{"x": {"fact": "xid", "code": [48, 79]}}, {"g": {"fact": "gpu", "gpu": "$x.gpu", "mig": True}}],
    [{"x": {"fact": "xid", "at_least": 2}}, {"g": {"fact": "gpu", "temperature": {"gt": 30}}}],
    [{"l": {"fact": "driver_library", "version": {"lt": "551"}}}, {"none": {"fact": "xid"}}],
    [{"g": {"fact": "gpu", "mig": {"exists": False}}}, {"h": {"fact": "gpu", "gpu": "$g.gpu"}}],
]


@settings(max_examples=200, deadline=None)
@given(facts=_facts, whens=st.lists(st.sampled_from(_WHENS), min_size=1, max_size=7))
def test_same_matches_in_the_same_order(facts: list, whens: list) -> None:
    rules = [
        rule_from({"id": f"x.r{n}", "title": "t", "severity": "info", "when": when, "because": "b"})
        for n, when in enumerate(whens)
    ]
    ruleset = compile_rules(rules)
    store = FactStore(facts)
    answers = [
        [(m.alternative.key, [(alias, id(fact)) for alias, fact in m.bound.items() if fact.count == 1]) for m in found]
        for found in (list(evaluator(name)(ruleset.alternatives, store)) for name in ("builtin", "durable"))
    ]
    counted = {a.key for a in ruleset.alternatives if any(c.at_least for c in a.all)}  # folded anew each time
    assert [key for key, _ in answers[0]] == [key for key, _ in answers[1]]
    assert [a for a in answers[0] if a[0] not in counted] == [a for a in answers[1] if a[0] not in counted]


def test_hundreds_of_rules_on_one_fact_are_not_refused() -> None:
    rules = [
        rule_from(
            {
                "id": f"x.r{n}",
                "title": "t",
                "severity": "info",
                "when": [{"m": {"fact": "kernel_module"}}],
                "because": "b",
            }
        )
        for n in range(700)
    ]
    found = list(evaluator("durable")(compile_rules(rules).alternatives, FactStore([KernelModule(name="nvidia")])))
    assert len(found) == 700
