"""The vocabulary of facts."""

from __future__ import annotations

import pytest

from gpudoctor.facts import KINDS, Fact, fact_from
from gpudoctor.facts.gpu import Xid


def below(kind):
    for child in kind.__subclasses__():
        yield child
        yield from below(child)


def test_every_kind_has_a_name_of_its_own():
    kinds = list(below(Fact))
    assert len(kinds) > 100
    assert [kind.__name__ for kind in kinds if not kind.__dict__.get("kind")] == []
    assert sorted(kind.kind for kind in kinds) == sorted(KINDS)


def test_data_from_outside_is_checked():
    kept = Xid(code=79, gpu="0000:3b:00.0", time=1.5)
    assert fact_from("xid", kept.plain()) == kept
    with pytest.raises(ValueError, match="Expected"):
        fact_from("gpu", {"index": "first"})
    with pytest.raises(ValueError, match="unknown field"):
        fact_from("gpu", {"colour": "green"})
    with pytest.raises(KeyError):
        fact_from("no such kind", {})
