"""The walk-through: confirm, fix rung by rung, verify. It runs no fix; it remembers where one was."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from rich.text import Text
from textual import on
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import Screen

from gpudoctor.tui.rows import Copy, Goto, OpenLog, plain
from gpudoctor.tui.walk import Outcome, Verdict, Walk, WalkFile, compare
from gpudoctor.tui.widgets.keybar import KeyBar
from gpudoctor.tui.widgets.rows import Lines, RowList
from gpudoctor.tui.widgets.styles import PARTS
from gpudoctor.tui.widgets.walkpage import steps_row, walk_rows

if TYPE_CHECKING:
    from gpudoctor.findings.model import Finding, Fix, Report
    from gpudoctor.tui.app import GpuDoctorApp

_HELP = (
    "Confirm that it is this, then go down the ladder of fixes, least disruptive first, and verify. You run the commands,"
    " in another terminal; say here what became of them. Where you are is kept, also across a reboot."
)


class WalkScreen(Screen[None]):
    """Opened with `w` on a finding."""

    COMPONENT_CLASSES = PARTS
    BINDINGS = [
        Binding("d", "note('done')", "Done", tooltip="you did it: verify"),
        Binding("x", "note('no help')", "No help", tooltip="you did it and it is no better: next step"),
        Binding("s", "note('skipped')", "Skip", tooltip="not this one: next step"),
        Binding("left,b", "go(-1)", "Previous", key_display="←", show=False, tooltip="a step back"),
        Binding("right,n", "go(1)", "Next", key_display="→", tooltip="a step on"),
        Binding("c", "copy", "Copy", tooltip="copy all commands of this step"),
        Binding("p", "plain", "Plain", tooltip="show the commands without the screen, to select them by mouse"),
        Binding("v", "verify", "Verify", tooltip="examine again and compare"),
        Binding("escape,q", "close", "Leave"),
    ]

    def __init__(self, finding: Finding, walk: Walk, kept: WalkFile, verify: Callable[[], None]) -> None:
        super().__init__()
        self._finding = finding
        self.walk, self._kept, self._start_verifying = walk, kept, verify
        self.verdict: Verdict | None = None
        self._verifying_since: float | None = None
        self._page: tuple[int, bool] | None = None

    @property
    def doctor(self) -> GpuDoctorApp:
        """The app, by its own type."""
        return cast("GpuDoctorApp", self.app)

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        yield Lines(id="steps")
        with Vertical(id="walk-pane", classes="pane view"):
            yield RowList(id="walk")
        yield KeyBar()

    def on_mount(self) -> None:
        """Show the step where one was."""
        self.query_one("#walk-pane").border_title = Text(f"Walk-through: {plain(self._finding.title)}")
        self.query_one("#walk").focus()
        self._clock = self.set_interval(0.5, self._draw, pause=True)

    def help_words(self) -> str:
        """Say what this screen is for."""
        return _HELP

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what does something at this step."""
        fix = self._fix()
        if action == "note":
            return fix is not None
        if action in ("copy", "plain"):
            return fix is not None and bool(fix.commands)
        if action == "verify":
            return self._verifying_since is None
        return True

    def key_words(self, action: str) -> str | None:
        """Name Enter by the row."""
        if action != "choose":
            return None
        here = self.query_one("#walk", RowList).current
        match here and here.action:
            case Copy():
                return "Copy"
            case OpenLog():
                return "Open log"
            case Goto():
                return "Go there"
        return ""

    # ---- drawing -----------------------------------------------------------------------------------------------------

    @on(RowList.Resized)
    def _draw(self) -> None:
        page = self.query_one("#walk", RowList)
        self.query_one("#steps", Lines).show([steps_row(self.walk, self.size.width)])
        rows = walk_rows(
            self.walk,
            self._finding,
            self.verdict,
            page.room,
            live=self.doctor.examination.live,
            running=self._progress(),
        )
        shown = (self.walk.position, self._verifying_since is None)
        new = shown != self._page
        page.set_rows(list(rows), top=new)
        if new:  # Enter does something at once
            ready = next((number for number, each in enumerate(page.rows) if each.action), 0)
            page.cursor = ready if ready < page.size.height else 0
        self._page = shown

    def _progress(self) -> str:
        if self._verifying_since is None:
            return ""
        slow = self.doctor.main.book.slowest()
        waiting = f", waiting for {slow[0]}" if slow and slow[1] >= 2 else ""
        return f"Examining again, {time.monotonic() - self._verifying_since:.0f} s{waiting}"

    def _fix(self) -> Fix | None:
        rung = self.walk.rung
        return self._finding.fixes[rung] if rung is not None and rung < len(self._finding.fixes) else None

    def _changed(self) -> None:
        self._draw()
        self.refresh_bindings()

    # ---- keys --------------------------------------------------------------------------------------------------------

    def action_note(self, outcome: Outcome) -> None:
        """Take down what became of this step."""
        fix = self._fix()
        self.walk.note(outcome, only_looks=fix is not None and fix.risk == "read-only")
        self.verdict = None
        self._kept.save(self.walk)
        self._changed()

    def action_go(self, step: int) -> None:
        """Go back, or on; from a verdict that is not good on to the next step that wasn't tried."""
        if step > 0 and self.walk.position == self.walk.verify_step:
            if self.verdict is not None and self.verdict.state != "resolved":
                self.walk.position = self.walk.next_rung()
        else:
            self.walk.go(step)
        self._changed()

    def action_verify(self) -> None:
        """Examine again, in the background."""
        self.walk.position = self.walk.verify_step
        self.verdict = None
        self._verifying_since = time.monotonic()
        self._clock.resume()
        self._start_verifying()
        self._changed()

    def examined(self, report: Report) -> None:
        """The new examination is through."""
        if self._verifying_since is None:
            return
        self._verifying_since = None
        self._clock.pause()
        self.verdict = compare(self.walk, report)
        self.walk.saw(report)
        if self.verdict.state == "resolved":
            self._kept.forget(self.walk)
        self._changed()

    def action_copy(self) -> None:
        """Copy all commands of this step."""
        if (fix := self._fix()) is not None:
            self.doctor.copy("\n".join(fix.commands), "commands")

    def action_plain(self) -> None:
        """Show the commands on the terminal itself, where a mouse can select them."""
        if (fix := self._fix()) is None:
            return
        try:
            with self.app.suspend():
                text = "\n".join(plain(line) for command in fix.commands for line in command.splitlines())
                sys.stdout.write(f"{plain(fix.title)}\n\n{text}\n\nPress Enter to go back. ")
                sys.stdout.flush()
                sys.stdin.readline()
        except SuspendNotSupported:
            self.notify("This terminal can't be left for a moment.", severity="warning", timeout=3)

    def action_close(self) -> None:
        """Leave; where one is stays known once something was said."""
        if self.walk.outcomes and not (self.verdict is not None and self.verdict.state == "resolved"):
            self._kept.save(self.walk)
        self.dismiss()

    # ---- events ------------------------------------------------------------------------------------------------------

    @on(RowList.Moved)
    def _moved(self) -> None:
        self.refresh_bindings()

    @on(RowList.Chosen)
    def _chosen(self, event: RowList.Chosen) -> None:
        match event.row.action:
            case Copy(text, what):
                self.doctor.copy(text, what)
            case OpenLog() as place:
                self.doctor.open_log(place)
            case Goto(key):
                self.action_close()
                self.doctor.main.reveal(key)
