"""Hands events on: to a command, a webhook, the system's log. Whoever is slow or away loses events, never delays the watch."""

from __future__ import annotations

import contextlib
import logging
import logging.handlers
import queue
import subprocess
import threading
import time
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
    """A queue with a thread behind it. The oldest event gives way where there are too many."""

    def __init__(self, send: Callable[[Event], None], pause: float = 2.0) -> None:
        self.failed = 0
        self._send = send
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

    def stop(self, patience: float = 2.0) -> None:
        """Deliver what waits, for a moment."""
        until = time.monotonic() + patience
        with contextlib.suppress(queue.Full):
            self._waiting.put(None, timeout=patience)
        self._thread.join(max(0.0, until - time.monotonic()))

    def _work(self) -> None:
        while (event := self._waiting.get()) is not None:
            for attempt in range(TRIES):
                try:
                    self._send(event)
                    break
                except Exception:  # whatever a receiver does wrong: try again, then count it
                    if attempt + 1 < TRIES:
                        time.sleep(self._pause * 2**attempt)
            else:
                self.failed += 1


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
    """Post the event as JSON."""

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
