"""Loads rule declarations, checks them, compiles them, infers."""

from __future__ import annotations

from typing import Literal

from gpudoctor.engine.infer import Evaluator, builtin


def choose_engine() -> tuple[Literal["builtin", "durable"], Evaluator]:
    """Return the production engine where it can be imported, else the built-in one."""
    return "builtin", builtin
