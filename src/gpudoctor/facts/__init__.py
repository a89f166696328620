"""The vocabulary: every kind of fact, by the name that rules use for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gpudoctor.facts import comms, container, driver, framework, gpu, host, memory, site
from gpudoctor.facts.base import Fact, LogLine, Probed, ProbeFailed, Where


def _kinds() -> dict[str, type[Fact]]:
    rooms = (gpu, driver, host, framework, memory, comms, container, site)
    members = [LogLine, Probed, ProbeFailed, *(member for room in rooms for member in vars(room).values())]
    found = [m for m in members if isinstance(m, type) and issubclass(m, Fact) and m is not Fact]
    return {kind.kind: kind for kind in found}


def fact_from(kind: str, values: Mapping[str, Any]) -> Fact:
    """Return the fact of that kind from plain data; raises KeyError (no such kind) or ValueError (it doesn't fit)."""
    return msgspec.convert(values, KINDS[kind], strict=False)


KINDS: dict[str, type[Fact]] = _kinds()

__all__ = ["KINDS", "Fact", "LogLine", "ProbeFailed", "Probed", "Where", "fact_from"]
