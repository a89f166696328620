"""The rungs of the fix ladders that the tables of error codes name by key."""

from collections.abc import Iterable
from functools import cache
from typing import Literal

import msgspec

from gpudoctor.knowledge.tables import table, words

Risk = Literal["read-only", "safe", "restarts-app", "disrupts-node", "data-loss", "vendor"]


class Step(msgspec.Struct, frozen=True):
    """One rung: what to do, why, with which commands, and what it costs."""

    title: str
    why: str = ""
    commands: tuple[str, ...] = ()
    risk: Risk = "safe"
    needs: tuple[str, ...] = ()


@cache
def _steps() -> dict[str, Step]:
    return {
        row["key"]: Step(row["title"], row["why"], words(row, "commands"), row["risk"], words(row, "needs"))
        for row in table("fixes").rows
    }


def step(key: str) -> Step:
    """Look one rung up by its key.

    >>> step("reboot").commands
    ('sudo reboot',)
    """
    return _steps()[key]


def ladder(keys: Iterable[str]) -> tuple[Step, ...]:
    """Turn keys into rungs, in their order."""
    return tuple(step(key) for key in keys)
