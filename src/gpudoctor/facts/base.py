"""What every fact has: a kind, and where it was read.

Facts are msgspec structs: a hundred such classes are made in 20 ms, a tenth of what pydantic's take, at every start.
The constructor checks names, not types (mypy does that); data from outside goes through `facts.fact_from`, which checks both.
"""

from typing import Any, ClassVar

import msgspec

Scalar = str | int | float | bool | None

_PLACE = frozenset(
    ("at", "at_fields", "where", "where_fields", "time", "uptime", "boot", "last_time", "last_where", "count")
)


class Where(msgspec.Struct, frozen=True):
    """A place that a person can open: a file or command of the source, a line (from 1) and the line's text."""

    source: str
    line: int = 1
    text: str = ""

    def __str__(self) -> str:
        return f"{self.source}:{self.line}"


class Fact(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One thing that was read. Subclasses are the vocabulary; fields that were not given stay None (unknown).

    `at` is the line offset (from 0) inside the text that the parser was given; the collector turns it into `where`.
    `boot` counts back from the newest boot that the log holds (0 newest, -1 the one before); `time` is seconds since
    the epoch, `uptime` seconds since that boot, where the log tells them. `count` is above 1 for folded repetitions.
    A fact that gathers many lines gives in `at_fields` the line offset of each field, which becomes `where_fields`, so
    that a finding quotes the line that it rests on.
    """

    kind: ClassVar[str] = ""

    at: int = 0
    at_fields: dict[str, int] = {}
    where: Where | None = None
    where_fields: dict[str, Where] = {}
    time: float | None = None
    uptime: float | None = None
    boot: int | None = None
    last_time: float | None = None
    last_where: Where | None = None
    count: int = 1
    node: str | None = None
    gpu: str | None = None

    def value(self, name: str) -> Scalar | list[str]:
        """Return a field by name; a name that this fact doesn't have is unknown (None)."""
        return getattr(self, name, None)

    def plain(self) -> dict[str, Any]:
        """Return the fields that are not at their defaults as plain data (what JSON can hold)."""
        return msgspec.to_builtins(self)  # type: ignore[no-any-return]  # a struct becomes a dict

    def said(self) -> bytes:
        """Return what the fact says apart from where and when it was read: equal for repetitions of one message."""
        return msgspec.json.encode([None if name in _PLACE else getattr(self, name) for name in self.__struct_fields__])


class LogLine(Fact, kw_only=True):
    """A line that matched a log pattern of a rule; `fields` holds what the pattern's holes caught."""

    kind: ClassVar[str] = "log"

    pattern: str
    text: str
    fields: dict[str, Scalar] = {}

    def value(self, name: str) -> Scalar | list[str]:
        """Return what the hole of that name caught, else the line's own field."""
        if name in self.fields:
            return self.fields[name]
        return getattr(self, name, None)


class Probed(Fact, kw_only=True):
    """Facts of kind `what` were asked for and answered, so that their absence means absence."""

    kind: ClassVar[str] = "probed"

    what: str


class ProbeFailed(Fact, kw_only=True):
    """A probe gave no usable answer. status: failed, timeout, denied, absent (the command or file is not there)."""

    kind: ClassVar[str] = "probe_failed"

    probe: str
    status: str
    reason: str = ""
    command: str | None = None
