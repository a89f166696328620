"""Suppresses a finding: why, and until when it need not be told again."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from gpudoctor.findings.model import Finding, Suppression
from gpudoctor.tui.rows import paragraph, plain
from gpudoctor.tui.symbols import SYMBOLS, grade
from gpudoctor.tui.widgets.keybar import KeyBar
from gpudoctor.tui.widgets.rows import Lines
from gpudoctor.tui.widgets.styles import PARTS

_DAYS = 30  # that are proposed
_SHORTEST = 3  # letters of a reason
_HELP = (
    "Something that you have decided to live with: why, and until when. Until then the finding is shown as suppressed and"
    " counts neither in the verdict nor in the exit status, here and on the command line. Afterwards it counts again."
)


class SuppressScreen(ModalScreen[Suppression | None]):
    """Opened with `x` on a finding; gives back the suppression."""

    COMPONENT_CLASSES = PARTS
    BINDINGS = [Binding("escape", "close", "Leave")]

    def __init__(self, finding: Finding, path: Path) -> None:
        super().__init__()
        self._finding, self._path = finding, path

    def compose(self) -> ComposeResult:
        """Lay the dialog out."""
        with Vertical(classes="dialog small"):
            yield Lines(id="what")
            yield Input(placeholder="why it may stay as it is", id="reason")
            yield Input(value=str(date.today() + timedelta(days=_DAYS)), placeholder="Last day, or never", id="until")
            yield Lines(id="said")
        yield KeyBar()

    def on_mount(self) -> None:
        """Say what it is about."""
        self.query_one(".dialog").border_title = "Suppress a finding"
        self.query_one("#reason", Input).border_title = "Reason"
        self.query_one("#until", Input).border_title = "Last day (YYYY-MM-DD), or never"
        self.query_one("#reason").focus()
        style = grade(self._finding)
        about = "wherever it is found" if self.subject == "*" else f"for {plain(self._finding.subjects[0].name)}"
        self.query_one("#what", Lines).show(
            [
                *paragraph(self._finding.title, self._room, style, indent="  ", first=f"{SYMBOLS[style]} "),
                *paragraph(f"{self._finding.id}, {about}", self._room, "dim", indent="  "),
            ]
        )
        self._say(f"Enter goes on and saves, to {self._path}", "dim")

    def help_words(self) -> str:
        """Say what this screen is for."""
        return _HELP

    @property
    def subject(self) -> str:
        """The pattern that fits what the finding is about: one thing by its name, several by anything."""
        names = {subject.name for subject in self._finding.subjects}
        return names.pop().replace("[", "[[]") if len(names) == 1 else "*"

    @property
    def _room(self) -> int:
        return max(20, min(self.app.size.width * 9 // 10, 100) - 6)

    def _say(self, words: str, style: str) -> None:
        self.query_one("#said", Lines).show(list(paragraph(words, self._room, style)))

    @on(Input.Submitted)
    def _submitted(self) -> None:
        reason, until = self.query_one("#reason", Input), self.query_one("#until", Input)
        day = until.value.strip().lower()
        if len(reason.value.strip()) < _SHORTEST:
            reason.focus()
            self._say("Say why, in a word or more: in half a year somebody will ask.", "warning")
        elif day != "never" and not _is_ahead(day):
            until.focus()
            self._say(f"{until.value or 'Nothing'} is not a day to come, such as {date.today() + timedelta(days=_DAYS)}, nor never.", "warning")  # fmt: skip
        elif reason.has_focus:
            until.focus()
        else:
            words = " ".join(plain(reason.value).split())
            self.dismiss(Suppression(id=self._finding.id, subject=self.subject, reason=words, expires=day))

    def action_close(self) -> None:
        """Suppress nothing."""
        self.dismiss(None)


def _is_ahead(day: str) -> bool:
    try:
        return date.fromisoformat(day) >= date.today()
    except ValueError:
        return False
