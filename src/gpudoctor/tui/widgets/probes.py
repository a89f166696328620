"""The probes: which are running and for how long, what became of the others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpudoctor.tui.rows import Row, column, fit, plain, row
from gpudoctor.tui.symbols import SYMBOLS

if TYPE_CHECKING:
    from gpudoctor.findings.model import ProbeResult

_STYLES = {
    "ok": "ok",
    "absent": "dim",
    "failed": "critical",
    "timeout": "critical",
    "denied": "warning",
    "skipped": "dim",
}
_TROUBLE = ("timeout", "failed", "denied")


class ProbeBook:
    """What is known of each probe so far. Written from the examination's messages, read by the screen."""

    def __init__(self) -> None:
        self.running: dict[str, float] = {}
        self.done: dict[str, ProbeResult] = {}

    def note(self, name: str, result: ProbeResult | None) -> None:
        """Take down that a probe began, or what became of it."""
        if result is None:
            self.running.setdefault(name, time.monotonic())
        else:
            self.running.pop(name, None)
            self.done[name] = result

    def settle(self, results: list[ProbeResult]) -> None:
        """Take over the account of a finished report."""
        self.running.clear()
        self.done = {result.name: result for result in results}

    def slowest(self) -> tuple[str, float] | None:
        """Return the probe that has been running longest, and since when in seconds."""
        if not self.running:
            return None
        name = min(self.running, key=self.running.__getitem__)
        return name, time.monotonic() - self.running[name]


def probe_rows(book: ProbeBook, width: int, summaries: dict[str, str] | None = None) -> Iterator[Row]:
    """Yield one row per probe: running ones first, then those that gave no answer, then the rest in order."""
    now = time.monotonic()
    names = [*book.running, *book.done]
    wide = min(max((len(name) for name in names), default=8), 26)
    for name, since in sorted(book.running.items(), key=lambda item: item[1]):
        seconds = now - since
        yield _row(name, "running", "warning" if seconds > 3 else "", "running", seconds, "", width, wide)
    results = sorted(book.done.values(), key=lambda result: result.status not in _TROUBLE)
    for result in results:
        style = _STYLES[result.status]
        yield _row(result.name, result.status, style, result.status, result.seconds, result.reason, width, wide)


def _row(name: str, mark: str, style: str, word: str, seconds: float, reason: str, width: int, wide: int) -> Row:
    took = f"{seconds:5.1f} s" if seconds >= 0.05 or mark == "running" else "       "
    used = 2 + wide + 1 + 8 + 1 + 7 + 2
    return row(
        (f"{SYMBOLS[mark]} ", style),
        (column(plain(name), wide) + " ", "bold" if mark == "running" else ""),
        (column(word, 8) + " ", style),
        (took + "  ", "dim"),
        (fit(plain(reason), max(0, width - used)), "dim"),
        key=f"probe:{name}",
    )
