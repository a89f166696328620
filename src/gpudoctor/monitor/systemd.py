"""Tells systemd how the watch is doing (sd_notify), where systemd asked to be told."""

from __future__ import annotations

import contextlib
import os
import socket
import time


class Notifier:
    """Sends datagrams to NOTIFY_SOCKET; does nothing where there is none."""

    def __init__(self) -> None:
        self._address = os.environ.get("NOTIFY_SOCKET", "")
        microseconds = os.environ.get("WATCHDOG_USEC", "")
        self.watchdog = int(microseconds) / 1e6 / 2 if microseconds.isdigit() else None

    def tell(self, *lines: str) -> None:
        """Send assignments such as READY=1."""
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out,
        ):
            out.sendto("\n".join(lines).encode(), address)

    def reloading(self) -> None:
        """Say that the configuration is read again; READY=1 must follow."""
        self.tell("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")
