"""SXid errors of NVSwitches."""

from functools import cache
from typing import Literal

import msgspec

from gpudoctor.knowledge.fixes import Step, ladder
from gpudoctor.knowledge.tables import Row, sources, table, words

Fatality = Literal["fatal", "potentially-fatal", "non-fatal", "unknown"]
Severity = Literal["info", "warning", "critical"]

LINE = (
    r"(?P<device>nvidia-nvswitch\d+)?:? *SXid \(PCI:(?P<pci>[0-9a-fA-F:.]+)\): (?P<number>\d{4,6}),? *"
    r"(?:(?P<fatality>Fatal|Non-fatal),? *)?(?:Link (?P<link>\d+) *)?(?P<text>.{0,300})"
)


class SXid(msgspec.Struct, frozen=True):
    """One NVSwitch error. The word in the log line outranks the fatality of the table."""

    number: int
    symbol: str | None
    title: str
    block: str
    event: str
    fatality: Fatality
    severity: Severity
    whole_switch: bool | None
    chips: tuple[str, ...]
    log_text: tuple[str, ...]
    fix: tuple[Step, ...]
    sources: tuple[str, ...]


def _sxid(row: Row) -> SXid:
    return SXid(
        number=row["sxid"],
        symbol=row.get("symbol"),
        title=row["title"],
        block=row["block"],
        event=row["event"],
        fatality=row["fatality"],
        severity=row["severity"],
        whole_switch=row.get("whole_switch"),
        chips=words(row, "chips"),
        log_text=words(row, "log_text"),
        fix=ladder(words(row, "fix")),
        sources=sources("sxid", row["source"]),
    )


@cache
def _rows() -> dict[int, Row]:
    return {row["sxid"]: row for row in table("sxid").rows}


def numbers() -> tuple[int, ...]:
    """All known numbers."""
    return tuple(_rows())


@cache
def sxid(number: int) -> SXid | None:
    """Look an SXid up.

    >>> sxid(20034).event
    'an active link went down'
    """
    row = _rows().get(number)
    return _sxid(row) if row else None


def neighbours(number: int, count: int = 2) -> tuple[int, ...]:
    """Nearest known numbers of the same block of thousand."""
    near = [item for item in numbers() if item // 1000 == number // 1000]
    return tuple(sorted(sorted(near, key=lambda item: abs(item - number))[: 2 * count]))
