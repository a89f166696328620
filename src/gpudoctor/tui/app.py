"""The app: holds the examination, hands its news to the screens, and gives the terminal back whatever happens."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from textual.app import App, SystemCommand
from textual.binding import Binding
from textual.message import Message
from textual.screen import Screen

from gpudoctor.tui.examination import Examination
from gpudoctor.tui.rows import OpenLog, plain
from gpudoctor.tui.running import Run
from gpudoctor.tui.screens.main import MainScreen, part_of
from gpudoctor.tui.symbols import grade
from gpudoctor.tui.walk import WalkFile, begin, compare, host_of, walk_file

if TYPE_CHECKING:
    from gpudoctor.findings.model import Finding, Report, Suppression
    from gpudoctor.tui.logtext import LogText
    from gpudoctor.tui.screens.walk import WalkScreen

_AFTER_HANGUP = 2.0  # seconds that an orderly end has


class GpuDoctorApp(App[int]):
    """The screens around one examination."""

    CSS_PATH = "gpudoctor.tcss"
    TITLE = "gpudoctor"
    BINDINGS = [
        Binding("question_mark,f1", "help", "Help", key_display="?"),
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", "Quit", show=False, priority=True, system=True),
    ]

    class LogOpened(Message):
        """A text is there to be shown, or there is a reason why not."""

        def __init__(self, place: OpenLog, text: LogText | None, problem: str) -> None:
            super().__init__()
            self.place, self.text, self.problem = place, text, problem

    class Suppressed(Message):
        """A finding was suppressed and everything judged anew, or there is a reason why not."""

        def __init__(self, report: Report | None, said: str) -> None:
            super().__init__()
            self.report, self.said = report, said

    def __init__(self, examination: Examination, walks: WalkFile | None = None) -> None:
        super().__init__()
        self.examination = examination
        self.report: Report | None = None
        self.failure: tuple[str, int] | None = None
        self._run: Run | None = None
        self._walk: WalkScreen | None = None
        self._walks = walks or walk_file()
        self._told = False
        self._main = MainScreen()
        if self.no_color:
            self._without_colour()

    @property
    def main(self) -> MainScreen:
        """The screen that lies under all others."""
        return self._main

    def get_default_screen(self) -> Screen[None]:
        """Begin with the main screen."""
        return self._main

    def on_mount(self) -> None:
        """Examine once the screen was painted."""
        self.set_class(self.no_color, "no-colour")
        if _light_terminal():
            self.theme = "textual-light"
        self._catch_signals()
        self.call_after_refresh(self.examine)

    # ---- the examination ---------------------------------------------------------------------------------------------

    def examine(self) -> None:
        """Start an examination unless one is running."""
        if self._run is not None and self._run.alive:
            return
        again = self._run is not None
        self._run = Run(self.examination, self).start()
        if again:
            self._main.begin()

    def stop_examining(self) -> None:
        """Give what is known so far."""
        if self._run is not None:
            self._run.stop()
        self._main.stop_waiting()

    @property
    def examining(self) -> bool:
        """Whether a thread is still at work."""
        return self._run is not None and self._run.alive

    def on_run_probe(self, news: Run.Probe) -> None:
        """Take down what became of a probe."""
        if news.run is self._run:
            self._main.book.note(news.name, news.result)
            self._main.probe_news()

    def on_run_reported(self, news: Run.Reported) -> None:
        """Show what is known."""
        if news.run is self._run:
            self.report = news.report
            if news.final and self._walk is not None:
                self._walk.examined(part_of(news.report, self._main.report))
            elif news.final and not self._told:
                self._told = True
                self.call_after_refresh(self._tell_of_walks, news.report)
            self._main.show_report(news.report, final=news.final)

    def on_run_failed(self, news: Run.Failed) -> None:
        """Leave, with one line on standard error."""
        if news.run is self._run:
            self.failure = (news.line, news.status)
            self.exit(news.status)

    # ---- what screens ask for ----------------------------------------------------------------------------------------

    def copy(self, text: str, what: str) -> None:
        """Copy by OSC 52, which reaches the clipboard of the terminal that one sits at, also over SSH."""
        self.copy_to_clipboard(text)
        shown = text.strip().splitlines()[0] if text.strip() else ""
        self.notify(shown[:120], title=f"Copied the {what}", timeout=3, markup=False)

    def open_log(self, place: OpenLog) -> None:
        """Open the log viewer there; finding the text can take a while, so a thread does it."""

        def work() -> None:
            try:
                text = LogText(self.examination.text(place.source))
            except (LookupError, OSError) as error:
                said = error.args[0] if isinstance(error, LookupError) and error.args else error
                self.post_message(self.LogOpened(place, None, str(said)))
            else:
                self.post_message(self.LogOpened(place, text, ""))

        from gpudoctor.tui.logtext import LogText

        threading.Thread(target=work, name="open log", daemon=True).start()

    def on_gpu_doctor_app_log_opened(self, event: LogOpened) -> None:
        """Show the text, or say why not."""
        if event.text is None:
            self.notify(plain(event.problem), title="Can't open it", severity="warning", timeout=6, markup=False)
            return
        from gpudoctor.tui.screens.log import LogScreen

        marks = quoted_lines(self._main.report, event.place.source)
        self.push_screen(LogScreen(event.text, event.place.line, event.place.text, marks))

    def open_walk(self, finding: Finding) -> None:
        """Open the walk-through of a finding, where it was left if it was begun before."""
        from gpudoctor.tui.screens.walk import WalkScreen

        report = self._main.report
        if report is None:
            return
        new = begin(finding, report)
        walk = self._walks.find(new.host, new.key)
        if walk is None or walk.rungs != new.rungs:
            walk = new
        self._walk = WalkScreen(finding, walk, self._walks, self.examine)
        self.push_screen(self._walk)

    @cached_property
    def can_suppress(self) -> bool:
        """Whether there is a file that a suppression would be added to."""
        try:
            self.examination.suppressions_file()
        except LookupError:
            return False
        return True

    def open_suppress(self, finding: Finding) -> None:
        """Ask why and until when, and suppress the finding."""
        from gpudoctor.tui.screens.suppress import SuppressScreen

        try:
            path = self.examination.suppressions_file()
        except LookupError as error:
            self.post_message(self.Suppressed(None, str(error.args[0])))
            return

        def work(suppression: Suppression) -> None:
            try:
                report = self.examination.suppress(suppression)
            except (LookupError, OSError) as error:
                said = error.args[0] if isinstance(error, LookupError) else f"{path}: {error.strerror or error}"
                self.post_message(self.Suppressed(None, str(said)))
            else:
                until = "for good" if suppression.expires == "never" else f"until {suppression.expires}"
                self.post_message(self.Suppressed(report, f"{finding.title}, {until}. Written to {path}"))

        def asked(suppression: Suppression | None) -> None:
            if suppression is not None:
                threading.Thread(target=work, args=(suppression,), name="suppress", daemon=True).start()

        self.push_screen(SuppressScreen(finding, path), asked)

    def on_gpu_doctor_app_suppressed(self, event: Suppressed) -> None:
        """Show what counts now, or say why nothing changed."""
        if event.report is None:
            self.notify(plain(event.said), title="Not suppressed", severity="warning", timeout=8, markup=False)
            return
        self.report = event.report
        self._main.show_report(event.report, final=True)
        self.notify(plain(event.said), title="Suppressed", timeout=6, markup=False)

    def _tell_of_walks(self, report: Report) -> None:
        """After a restart, such as the reboot that a fix asked for: what became of what was being fixed."""
        for walk in self._walks.unverified(host_of(report)):
            verdict = compare(walk, report)
            if verdict.state == "resolved":
                self._walks.forget(walk)
                title, words = "Resolved", f"{walk.title} is not found any more."
            elif verdict.state == "quiet":
                title, words = "No new sign of it", f"{walk.title}. Press w to go on with its walk-through and verify."
            else:
                title, words = "Still there", f"{walk.title}. Press w to go on with its walk-through."
            if verdict.state != "resolved":
                self._main.reveal(walk.key)
            severity: Literal["information", "warning"] = "warning" if title == "Still there" else "information"
            self.notify(plain(words), title=title, severity=severity, timeout=15, markup=False)

    def open_save(self, report: Report) -> None:
        """Open the dialog that saves the report."""
        from gpudoctor.tui.screens.save import SaveScreen

        host = "".join(
            letter if letter.isalnum() or letter in "-." else "-" for letter in str(report.node.get("host") or "")
        )
        name = (
            f"gpudoctor-{host}-{time.strftime('%Y%m%d-%H%M')}" if host else f"gpudoctor-{time.strftime('%Y%m%d-%H%M')}"
        )

        def saved(path: str | None) -> None:
            if path:
                self.notify(plain(path), title="Saved", markup=False)

        self.push_screen(SaveScreen(report, name, self.examination.forms()), saved)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Offer in the palette what the keys do, and every finding by its title."""
        if screen is self._main:
            yield from self._main.commands()
        yield SystemCommand("Help", "Explain this screen", self.action_help)
        yield SystemCommand("Theme", "Light, dark and other colours", self.action_change_theme)
        yield SystemCommand("Quit", "Leave gpudoctor", self.action_quit)

    def action_help(self) -> None:
        """Explain the screen that is open."""
        from gpudoctor.tui.screens.help import HelpScreen

        words = getattr(self.screen, "help_words", None)
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.screen, words() if words else ""))

    async def action_quit(self) -> None:
        """Leave with the status that the text report would have given."""
        self.exit(self.examination.exit_status(self.report))

    # ---- terminal ----------------------------------------------------------------------------------------------------

    def _without_colour(self) -> None:
        """NO_COLOR: no colour codes at all. Textual alone would send shades of grey."""
        from textual.filter import Monochrome, NoColor

        self._filters = [NoColor() if isinstance(each, Monochrome) else each for each in self._filters]

    def _fatal_error(self) -> None:
        """An error inside the screens: give the terminal back and say it in one line, as the rest of the program does."""
        if self.is_headless or os.environ.get("GPUDOCTOR_TRACEBACK"):
            super()._fatal_error()
            return
        error = self._exception
        self.failure = (
            f"internal error: {type(error).__name__}: {error} (GPUDOCTOR_TRACEBACK=1 shows where; please report it)",
            70,
        )
        self._close_messages_no_wait()

    def _catch_signals(self) -> None:
        """A polite end gives the terminal back."""
        if self.is_headless or sys.platform == "win32":
            return
        import asyncio

        for number in (signal.SIGTERM, signal.SIGHUP):
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                asyncio.get_running_loop().add_signal_handler(number, self.exit, 128 + number)
        threading.Thread(target=self._end_with_terminal, name="terminal", daemon=True).start()

    def _end_with_terminal(self) -> None:
        """End once the terminal is gone, also where Textual waits forever for it to take the rest of the output."""
        watched = select.poll()
        for each in (0, 1, 2):
            if os.isatty(each):  # standard input may be a log
                watched.register(each, 0)  # a hang-up is told unasked
        watched.poll()
        time.sleep(_AFTER_HANGUP)
        self.examination.abandon()
        os._exit(128 + signal.SIGHUP)


def _light_terminal() -> bool:
    """Whether the terminal says that its background is light (7 and 15 are white); TEXTUAL_THEME has the last word."""
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return background in ("7", "15") and "TEXTUAL_THEME" not in os.environ


def quoted_lines(report: Report | None, source: str) -> dict[int, str]:
    """Return the lines of a text that findings quote, each with the grade of the gravest."""
    marks: dict[int, str] = {}
    for finding in report.findings if report else []:
        for where in finding.evidence:
            if where.source == source:
                marks.setdefault(where.line, grade(finding))
    return marks


def run(examination: Examination) -> int:
    """Show the screens until they are left; returns the exit status. An examination that hangs is left behind."""
    app = GpuDoctorApp(examination)
    status = app.run()
    if app.failure is not None:
        sys.stderr.write(f"gpudoctor: {app.failure[0]}\n")
    if status is None:
        status = app.failure[1] if app.failure is not None else 70
    if app.examining:
        examination.abandon()
        # A thread that hangs in the kernel would keep the interpreter from ending.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status
