"""Hands events on: to a command, a webhook, the system's log. Whoever is slow or away loses events, never delays the watch."""

from __future__ import annotations

import contextlib
import logging
import logging.handlers
import queue
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

from gpudoctor.monitor.events import Event

MAX_WAITING = 100
TRIES = 3
COMMAND_TIMEOUT = 30.0
WEBHOOK_TIMEOUT = 10.0
_LEVELS = {"critical": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO}


class Delivery:
    """A queue with a thread behind it. The oldest event gives way where there are too many.

    complain: gets one line when the receiver begins to refuse events, not one for each of them.
    """

    def __init__(
        self, send: Callable[[Event], None], pause: float = 2.0, complain: Callable[[str], None] = lambda line: None
    ) -> None:
        self.failed = 0
        self._send = send
        self.complain = complain
        self._refusing = False
        self._pause = pause
        self._waiting: queue.Queue[Event | None] = queue.Queue(MAX_WAITING)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def put(self, event: Event) -> None:
        """Queue an event; never waits."""
        while True:
            try:
                self._waiting.put_nowait(event)
                return
            except queue.Full:
                with contextlib.suppress(queue.Empty):
                    self._waiting.get_nowait()
                    self.failed += 1

    def stop(self, patience: float = 2.0) -> int:
        """Deliver what waits, for a moment; returns how many events are left."""
        until = time.monotonic() + patience
        with contextlib.suppress(queue.Full):
            self._waiting.put(None, timeout=patience)
        self._thread.join(max(0.0, until - time.monotonic()))
        return self._waiting.qsize() if self._thread.is_alive() else 0  # the end's mark stands for the one in work

    def _work(self) -> None:
        while (event := self._waiting.get()) is not None:
            for attempt in range(TRIES):
                try:
                    self._send(event)
                except Exception as error:  # whatever a receiver does wrong: try again, then count it
                    if attempt + 1 < TRIES:
                        time.sleep(self._pause * 2**attempt)
                    else:
                        self._refused(error)
                else:
                    self._refusing = False
                    break

    def _refused(self, error: Exception) -> None:
        self.failed += 1
        if not self._refusing:
            self.complain(f"{reason(error)}; the event is lost")
        self._refusing = True


def reason(error: Exception) -> str:
    """Say in words why an event was not taken.

    >>> reason(urllib.error.URLError(ConnectionRefusedError(111, "Connection refused"))), reason(TimeoutError("timed out"))
    ('connection refused', 'timed out')
    """
    match error:
        case urllib.error.HTTPError():
            return f"it answers {error.code} {error.reason}"
        case urllib.error.URLError(reason=Exception() as inner):
            return reason(inner)
        case subprocess.TimeoutExpired():
            return f"it has not ended after {error.timeout:g} seconds"
        case subprocess.CalledProcessError():
            return f"it ended with status {error.returncode}"
        case OSError(strerror=str() as words):
            return words.lower()
    return str(error) or type(error).__name__


def to_command(words: Sequence[str]) -> Callable[[Event], None]:
    """Run a command, without a shell, with the event as JSON on its standard input."""

    def send(event: Event) -> None:
        subprocess.run(
            list(words),
            input=event.as_json().encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=COMMAND_TIMEOUT,
            check=True,
        )

    return send


def to_webhook(url: str) -> Callable[[Event], None]:
    """Post the event as JSON; raises ValueError where nothing can be posted to that address."""
    parts = urllib.parse.urlsplit(url)
    if not parts.hostname or parts.port == 0:  # a port beyond 65535 raises here
        raise ValueError("it names no host")
    if parts.username is not None:
        raise ValueError("a name and a password in it are not sent; let a command of --on-change do that")
    if not url.isascii():
        raise ValueError("write it with ASCII letters alone (%C3%BC for ü, xn-- for names)")

    def send(event: Event) -> None:
        request = urllib.request.Request(  # noqa: S310  # the scheme was checked where the option was read
            url,
            data=event.as_json().encode(),
            headers={"Content-Type": "application/json", "User-Agent": "gpudoctor"},
            method="POST",
        )
        with urllib.request.urlopen(request, timeout=WEBHOOK_TIMEOUT) as answer:  # noqa: S310
            answer.read(1 << 16)

    return send


def to_syslog(address: str = "/dev/log") -> Callable[[Event], None]:
    """Write one line to the system's log; journald reads the same socket."""
    if not Path(address).exists():
        raise FileNotFoundError(2, "no such socket; nothing collects the system's log here", address)
    handler = logging.handlers.SysLogHandler(address, logging.handlers.SysLogHandler.LOG_DAEMON)
    handler.ident = "gpudoctor: "

    def send(event: Event) -> None:
        severity = event.finding.severity if event.finding and event.event != "resolved" else "info"
        handler.emit(
            logging.makeLogRecord(
                {
                    "msg": sentence(event),
                    "levelno": _LEVELS[severity],
                    "levelname": logging.getLevelName(_LEVELS[severity]),
                }
            )
        )

    return send


def sentence(event: Event) -> str:
    """Say in one line what happened."""
    if event.finding is None:
        return f"status {event.status}"
    names = ", ".join(subject.name for subject in event.finding.subjects)
    line = f"{event.event} {event.finding.severity} {event.finding.id} [{names}]: {event.finding.because}"
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(line.split()))[:900]
