"""Saves the report: the ending of the name decides the form."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from gpudoctor.tui.rows import paragraph, row
from gpudoctor.tui.widgets.keybar import KeyBar
from gpudoctor.tui.widgets.rows import Lines
from gpudoctor.tui.widgets.styles import PARTS

if TYPE_CHECKING:
    from gpudoctor.findings.model import Report


class SaveScreen(ModalScreen[str | None]):
    """Opened with `s`; gives back the path that was written."""

    COMPONENT_CLASSES = PARTS
    BINDINGS = [Binding("escape", "close", "Leave")]

    def __init__(self, report: Report, name: str, forms: dict[str, Callable[[Report], str]]) -> None:
        super().__init__()
        self._report, self._suggested, self._forms = report, name, forms
        self._asked = ""

    def compose(self) -> ComposeResult:
        """Lay the dialog out."""
        with Vertical(classes="dialog small"):
            yield Input(value=f"{self._suggested}.{next(iter(self._forms))}", id="path")
            yield Lines(id="said")
        yield KeyBar()

    def on_mount(self) -> None:
        """Say what can be asked for."""
        self.query_one(".dialog").border_title = "Save the report"
        self.query_one("#path").focus()
        endings = ", ".join(f".{ending}" for ending in self._forms)
        self._say(f"Enter saves. The ending decides the form: {endings}.", "dim")

    def _say(self, words: str, style: str) -> None:
        said = self.query_one("#said", Lines)
        room = min(self.size.width * 9 // 10, 100) - 8  # the dialog, without its margin, border and padding
        said.show(list(paragraph(words, max(20, room), style)) or [row("")])

    @on(Input.Submitted)
    def _save(self, event: Input.Submitted) -> None:
        path = Path(event.value).expanduser()
        form = self._forms.get(path.suffix.removeprefix("."))
        if form is None:
            fault = f"No form has the ending {path.suffix}" if path.suffix else "The name has no ending"
            self._say(f"{fault}: use one of {', '.join(f'.{ending}' for ending in self._forms)}.", "warning")
            return
        if path.exists() and self._asked != event.value:
            self._asked = event.value
            self._say(f"{path} is there already. Enter again overwrites it.", "warning")
            return
        try:
            # A report names hosts and processes: it is for its maker to show around.
            with open(path, "w", encoding="utf-8", opener=_private) as stream:  # pathlib has no opener
                stream.write(form(self._report))
        except OSError as error:
            self._say(f"{path}: {error.strerror or error}", "critical")
            return
        self.dismiss(str(path.resolve()))

    def action_close(self) -> None:
        """Save nothing."""
        self.dismiss(None)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
