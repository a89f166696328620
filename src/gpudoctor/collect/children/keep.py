"""Runs one of the other children again and again, for the loop that watches a machine: starting Python costs more than reading.

Reads a line of arguments (JSON) from standard input, runs the module's main(), prints a line that holds `MARK` alone, waits for
the next. Between two rounds the driver's library is shut down, so that an idle watch keeps no GPU awake and no module busy.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import sys
import threading

from gpudoctor.collect.children.follow import follow_parent

MARK = "-- gpudoctor: end of round --"
_PATIENCE = 0.2  # seconds after which the output of a round that still runs is handed on


class _Gathered(io.TextIOBase):
    """Standard output that is handed on in large pieces: a write per line would cost more than the reading itself.

    A thread hands on what there is while a round takes long, so that the line before a call that hangs is known outside.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._lock = threading.Lock()
        self._running = threading.Event()
        threading.Thread(target=self._patient, daemon=True).start()

    def write(self, text: str) -> int:
        self._parts.append(text)
        return len(text)

    def begin(self) -> None:
        self._running.set()

    def end(self) -> None:
        self._running.clear()
        self.hand_on()

    def hand_on(self) -> None:
        with self._lock:
            parts, self._parts = self._parts, []
            left = memoryview("".join(parts).encode("utf-8", "replace"))
            while left:
                left = left[os.write(1, left) :]

    def _patient(self) -> None:
        while True:
            self._running.wait()
            threading.Event().wait(_PATIENCE)
            if self._running.is_set():
                with contextlib.suppress(OSError):
                    self.hand_on()


def main() -> None:
    """Serve until standard input ends."""
    follow_parent()
    name = sys.argv[1]
    module = importlib.import_module(f"gpudoctor.collect.children.{name}")
    out = _Gathered()
    sys.stdout = out
    for line in sys.stdin:
        sys.argv = [name, *json.loads(line)]
        out.begin()
        try:
            module.main()
        except Exception as error:
            out.write(f"{type(error).__name__}: {error}\n")
        finally:
            if name == "nvml":
                with contextlib.suppress(Exception):
                    module.nv.nvmlShutdown()
            out.write(f"\n{MARK}\n")
            out.end()


if __name__ == "__main__":
    main()
