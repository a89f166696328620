"""Loads rule declarations, checks them, compiles them, infers."""

from __future__ import annotations

from functools import cache
from typing import Literal

from gpudoctor.engine.infer import Evaluator, builtin

EngineName = Literal["builtin", "durable"]


@cache
def available_engines() -> tuple[EngineName, ...]:
    """Return the engines that can run here, the preferred one first."""
    try:
        import durable_rules_engine  # noqa: F401  # the C extension; it has no wheels
    except ImportError:
        return ("builtin",)
    return ("durable", "builtin")


def evaluator(engine: EngineName) -> Evaluator:
    """Return the evaluator of that engine; raises ImportError where it isn't installed."""
    if engine == "builtin":
        return builtin
    from gpudoctor.engine.durable import durable

    return durable
