"""One run of an examination in a thread of its own; what it finds comes to the app as messages.

The thread is a daemon and nobody waits for it: a driver call that never returns must freeze neither the screen nor the
way out.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from textual.message import Message

from gpudoctor.tui.examination import Examination, Unusable

if TYPE_CHECKING:
    from textual.message_pump import MessagePump

    from gpudoctor.findings.model import ProbeResult, Report


class Run:
    """A started examination. After `stop`, what is known comes as soon as the examination gets round to it."""

    class News(Message):
        """Something of a run."""

        def __init__(self, run: Run) -> None:
            super().__init__()
            self.run = run

    class Probe(News):
        """A probe began (no result) or ended."""

        def __init__(self, run: Run, name: str, result: ProbeResult | None) -> None:
            super().__init__(run)
            self.name, self.result = name, result

    class Reported(News):
        """What is known so far, or (final) all of it."""

        def __init__(self, run: Run, report: Report, final: bool) -> None:
            super().__init__(run)
            self.report, self.final = report, final

    class Failed(News):
        """There will be no report."""

        def __init__(self, run: Run, line: str, status: int) -> None:
            super().__init__(run)
            self.line, self.status = line, status

    def __init__(self, examination: Examination, listener: MessagePump) -> None:
        self._examination = examination
        self._listener = listener
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="examination", daemon=True)
        self.began = time.monotonic()

    def start(self) -> Run:
        """Begin."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Ask it to end with what it knows."""
        self._stop.set()

    @property
    def alive(self) -> bool:
        """Whether it is still at work."""
        return self._thread.is_alive()

    def _work(self) -> None:
        post = self._listener.post_message
        try:
            report = self._examination.run(
                lambda name, result: _ignore(post(self.Probe(self, name, result))),
                lambda report: _ignore(post(self.Reported(self, report, final=False))),
                self._stop.is_set,
            )
        except Unusable as refusal:
            post(self.Failed(self, str(refusal), refusal.status))
        except Exception as error:  # whatever it is, the terminal must come back before it is told
            post(self.Failed(self, f"internal error: {type(error).__name__}: {error}", 70))
        else:
            post(self.Reported(self, report, final=True))


def _ignore(_: object) -> None:
    """Drop a value where none is wanted."""
