"""The top of the screen: what is wrong, on which machine, how far the examination is, and the views."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message

from gpudoctor.tui.rows import Part, Row, column, fit, plain, row
from gpudoctor.tui.symbols import SYMBOLS
from gpudoctor.tui.widgets.rows import Lines


class Banner(Lines):
    """Three lines that change little."""

    class Picked(Message):
        """A view was clicked."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    _spans: list[tuple[int, int, int]] = []

    def display_state(self, status: str, verdict: str, second: str, tabs: Sequence[str], chosen: int) -> None:
        """Show the verdict, the line below it and the views, of which one is chosen."""
        width = self.size.width or 80
        word = f" {SYMBOLS.get(status, '?')} {status.upper()} "
        parts: list[Part] = [(" ", "")]
        self._spans = []
        used = 1
        for number, tab in enumerate(tabs):
            text = f" {number + 1} {tab} "
            self._spans.append((used, used + len(text), number))
            parts += [(text, "tab-on" if number == chosen else "tab"), (" ", "")]
            used += len(text) + 1
        self.show(
            [
                row((word, f"status-{status}"), " ", (fit(plain(verdict), width - len(word) - 1), "bold")),
                row((column(" " + plain(second), width), "dim")),
                Row(tuple(parts)),
            ]
        )

    def on_click(self, event: events.Click) -> None:
        """Choose a view by mouse."""
        for start, end, number in self._spans:
            if event.y == 2 and start <= event.x < end:
                self.post_message(self.Picked(number))
