"""Help: the keys of the screen that it opens over, and what the marks mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen

from gpudoctor.tui.rows import Row, column, heading, paragraph, row
from gpudoctor.tui.symbols import SYMBOLS
from gpudoctor.tui.widgets.keybar import KeyBar
from gpudoctor.tui.widgets.rows import RowList
from gpudoctor.tui.widgets.styles import PARTS

_MOVES = (
    ("up down  k j", "line by line"),
    ("PgUp PgDn", "page by page"),
    ("Home End  g G", "first and last line"),
    ("Tab", "next part of the screen"),
    ("Enter", "open, copy or go to what the line is about"),
)
_MARKS = (
    ("critical", "critical: it does not work"),
    ("warning", "warning: it works, but not as it should"),
    ("info", "for your information, or trouble of an earlier boot"),
    ("advice", "advice: worth doing, explains no fault"),
    ("suppressed", "suppressed: true, but somebody lives with it until a day"),
    ("undecided", "could not be decided; says what would decide it"),
)
_RISKS = (
    ("read-only", "only looks"),
    ("safe", "changes something that disturbs nobody"),
    ("restarts-app", "programs on the GPU must be stopped"),
    ("disrupts-node", "the whole machine is out for a while"),
    ("data-loss", "data can be lost"),
    ("vendor", "a case for the vendor's support"),
)


class HelpScreen(ModalScreen[None]):
    """Opened with `?` over any screen."""

    COMPONENT_CLASSES = PARTS
    BINDINGS = [Binding("escape,question_mark,q,f1", "dismiss", "Close")]

    def __init__(self, below: Screen[object], words: str) -> None:
        super().__init__()
        self._below, self._words = below, words

    def compose(self) -> ComposeResult:
        """Lay the page out."""
        with Vertical(classes="dialog"):
            yield RowList(id="help")
        yield KeyBar()

    def key_words(self, action: str) -> str | None:
        """Enter does nothing here."""
        return "" if action == "choose" else None

    def on_mount(self) -> None:
        """Give the page its title."""
        self.query_one(".dialog").border_title = "Help"
        self.query_one(RowList).focus()

    @on(RowList.Resized)
    def _wrap(self, event: RowList.Resized) -> None:
        event.rows.set_rows(list(self._rows(event.rows.room)))

    def _bindings_below(self) -> Iterator[Binding]:
        """Yield what the screen and the widget with the focus declare, also what does nothing at this moment."""
        nodes = [node for node in (self._below.focused, self._below, self.app) if node is not None]
        for node in nodes:
            yield from (binding for binding in type(node).BINDINGS if isinstance(binding, Binding))

    def _display(self, binding: Binding, key: str) -> str:
        return self.app.get_key_display(replace(binding, key=key, key_display=None))

    def _rows(self, width: int) -> Iterator[Row]:
        yield from paragraph(self._words, width)
        yield row("")
        yield heading("Keys here", width)
        told: set[str] = set()
        taken: set[str] = set()  # by what lies further in: the key doesn't reach the others
        for binding in self._bindings_below():
            if binding.action in told or binding.system or not (binding.show or binding.tooltip):
                continue
            told.add(binding.action)
            free = [key for key in binding.key.split(",") if key not in taken]
            if not free:
                continue
            taken.update(free)
            words = binding.tooltip or binding.description
            keys = " ".join(self._display(binding, key) for key in free)
            yield from paragraph(words, width, indent=" " * 16, first=column(binding.key_display or keys, 16))
        yield row("")
        yield heading("Moving", width)
        for keys, words in _MOVES:
            yield row((column(keys, 16), ""), words)
        yield row("")
        yield heading("Marks", width)
        for mark, words in _MARKS:
            yield row((f"{SYMBOLS[mark]} ", mark), words)
        yield row("")
        yield heading("Risk of a step", width)
        for risk, words in _RISKS:
            yield row((column(f" {risk} ", 16), f"badge-{risk}"), " ", words)
        yield row("")
        yield from paragraph(
            "gpudoctor only reads. It runs none of the commands that it shows: copy the one you want and run it yourself.",
            width,
            "dim",
        )
