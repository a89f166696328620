"""The log viewer: a text that evidence was read from, opened at the line."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input

from gpudoctor.tui.logtext import LogText
from gpudoctor.tui.rows import chop, plain, row
from gpudoctor.tui.widgets.keybar import KeyBar
from gpudoctor.tui.widgets.logview import LogView
from gpudoctor.tui.widgets.rows import Lines
from gpudoctor.tui.widgets.styles import PARTS

_WHOLE = 3  # rows for the line under the cursor
_HELP = (
    "The text that evidence was read from, as it stands; lines that findings quote are marked, at the right edge is a map"
    " of them. Below stands the line under the cursor in full. Nothing is loaded but what is on the screen, so it may be of any size."
)


class LogScreen(Screen[None]):
    """Opened on a piece of evidence; Escape goes back to it."""

    COMPONENT_CLASSES = PARTS
    BINDINGS = [
        Binding("escape,q", "close", "Back"),
        Binding("slash", "search", "Search", priority=True, tooltip="find a text, or :NUMBER to go to a line"),
        Binding("n", "next(1)", "Next", tooltip="next line that was searched for"),
        Binding("N", "next(-1)", "Previous", show=False, tooltip="the one before"),
        Binding("right_square_bracket", "evidence(1)", "Evidence", tooltip="next line that a finding quotes"),
        Binding("left_square_bracket", "evidence(-1)", "Evidence before", show=False, tooltip="the one before"),
        Binding("y", "copy", "Copy", tooltip="copy the line"),
    ]

    class Found(Message):
        """A search came to an end."""

        def __init__(self, line: int | None, needle: str) -> None:
            super().__init__()
            self.line, self.needle = line, needle

    def __init__(self, text: LogText, line: int, quoted: str, marks: Mapping[int, str]) -> None:
        super().__init__()
        self._text = text
        self._wanted: int | None = max(0, line - text.first_line)
        self._quoted = plain(quoted).strip()[:80]
        first = text.first_line
        self._view = LogView(text, {number - first: grade for number, grade in marks.items()}, id="log")
        self._needle = ""
        self._stop = threading.Event()
        self._missed = False

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        with Vertical(id="log-pane", classes="pane view"):
            yield self._view
        yield Lines(id="whole")
        yield KeyBar()

    def on_mount(self) -> None:
        """Go to the line as soon as it is known where it is."""
        self._view.focus()
        self._clock = self.set_interval(0.1, self._grow)
        self._text.wait(0.05)
        self.call_after_refresh(self._grow)

    def on_unmount(self) -> None:
        """Let go of the file."""
        self._stop.set()
        self._text.close()

    def help_words(self) -> str:
        """Say what this screen is for."""
        return _HELP

    def key_words(self, action: str) -> str | None:
        """Offer the next hit only after a search."""
        return "" if action == "next(1)" and not self._needle else None

    def _grow(self) -> None:
        self._view.grow()
        if self._wanted is not None and (self._text.lines > self._wanted or self._text.complete):
            line, self._wanted = min(self._wanted, max(0, self._text.lines - 1)), None
            self._view.cursor = line
            self._check(line)
        if self._text.complete:
            self._clock.pause()
        self._title()

    def _check(self, line: int) -> None:
        """What a command prints now may have moved since: look for the quoted text then."""
        there = plain((self._text.read(line, 1) or [""])[0])
        if self._quoted and self._quoted not in there and self._quoted[:40] not in there:
            self._missed = True
            self._find(self._quoted[:40], max(-1, line - 1), 1)

    def _title(self) -> None:
        text = self._text
        place = f"line {text.first_line + self._view.cursor} of {text.first_line + max(0, text.lines - 1)}"
        if not text.complete:
            place += ", still counting"
        if self._wanted is not None:
            place = f"looking for line {self._wanted + text.first_line}"
        parts = [plain(text.name), place, plain(text.problem), f"/{plain(self._needle)}" if self._needle else ""]
        self.query_one("#log-pane").border_title = Text(" · ".join(part for part in parts if part))

    @on(LogView.Moved)
    def _moved(self) -> None:
        self._title()
        self._show_whole()

    def on_resize(self) -> None:
        """The line breaks elsewhere."""
        self._show_whole()

    def _show_whole(self) -> None:
        """Show the line under the cursor in full below the others, as what matters often stands at its end."""
        whole = self.query_one("#whole", Lines)
        line = plain((self._text.read(self._view.cursor, 1) or [""])[0])
        whole.show([row((part, "quote")) for part in chop(line, self.size.width - 2)[:_WHOLE]])

    # ---- searching ---------------------------------------------------------------------------------------------------

    async def action_search(self) -> None:
        """Ask for the text."""
        if not self.query("#search"):
            box = Input(value=self._needle, placeholder="text, or :NUMBER for a line", id="search", compact=True)
            await self.query_one("#log-pane").mount(box, before=0)
        self.set_focus(self.query_one("#search"))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A slash inside the search is a letter."""
        return action != "search" or not (self.focused is not None and self.focused.id == "search")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Search, or go to a line."""
        self.query("#search").remove()
        self._view.focus()
        words = event.value
        if words.startswith(":") and words[1:].strip().isdecimal():
            self._view.cursor = int(words[1:]) - self._text.first_line
            return
        self._needle = words
        self._view.seek(words)
        self.refresh_bindings()
        if words:
            self._find(words, self._view.cursor - 1, 1)

    def action_next(self, step: int) -> None:
        """Go to the next hit."""
        if self._needle:
            self._find(self._needle, self._view.cursor, step)

    def action_evidence(self, step: int) -> None:
        """Go to the next line that a finding quotes, round and round."""
        lines = sorted(self._view.marks)
        if not lines:
            self.notify("No finding quotes this text.", timeout=3)
            return
        here = self._view.cursor
        ahead = [line for line in lines if (line > here if step > 0 else line < here)]
        self._view.cursor = (ahead or lines)[0 if step > 0 else -1]

    def _find(self, needle: str, line: int, step: int) -> None:
        self._stop.set()
        self._stop = stop = threading.Event()

        def work() -> None:
            found = self._text.find(needle, line, step, stop.is_set)
            if not stop.is_set():
                self.post_message(self.Found(found, needle))

        threading.Thread(target=work, name="search", daemon=True).start()

    @on(Found)
    def _found(self, event: Found) -> None:
        if event.line is not None:
            self._view.cursor = event.line
        elif self._missed and not self._needle:
            self.notify("The quoted line is not in the text any more.", severity="warning", timeout=4)
        else:
            self.notify(f"Not found: {plain(event.needle)}", severity="warning", timeout=3, markup=False)
        self._missed = False

    def action_copy(self) -> None:
        """Copy the line."""
        from gpudoctor.tui.app import GpuDoctorApp

        if isinstance(self.app, GpuDoctorApp):
            self.app.copy((self._text.read(self._view.cursor, 1) or [""])[0], "line")

    def action_close(self) -> None:
        """Leave the search, or the viewer."""
        if self.query("#search"):
            self.query("#search").remove()
            self._view.focus()
        else:
            self.dismiss()
