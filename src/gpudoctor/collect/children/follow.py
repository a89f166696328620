"""Ends a child when gpudoctor itself is gone, however it ended: a call that hangs in the driver would outlive it."""

from __future__ import annotations

import os
import select
import threading


def follow_parent() -> None:
    """Watch standard input, a pipe that gpudoctor holds open as long as it lives; end this process when it closes."""
    threading.Thread(target=_watch, daemon=True).start()


def _watch() -> None:
    poll = select.poll()
    poll.register(0, 0)  # no events but the one that can't be refused: the other end was closed
    while not any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll()):
        pass
    os._exit(1)
