"""The real program in a real terminal: pexpect gives it one, pyte shows what a person would see."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pexpect
import pyte

# What leaves the terminal as it was found: main screen, cursor shown, mouse and paste reports off.
RESTORED = ("\x1b[?1049l", "\x1b[?25h", "\x1b[?1000l", "\x1b[?2004l")


class Terminal:
    """One run of gpudoctor in a terminal of that size."""

    def __init__(
        self,
        *arguments: str,
        size: tuple[int, int] = (80, 24),
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        program: str = "",
        state: Path | None = None,
    ) -> None:
        width, height = size
        self.screen = pyte.Screen(width, height)
        self._stream = pyte.Stream(self.screen)
        # COLUMNS and LINES, which parallel test runners set, would overrule the size of the terminal itself
        ours = ("NO_COLOR", "COLORTERM", "COLUMNS", "LINES")
        variables = {name: value for name, value in os.environ.items() if name not in ours}
        self._state = tempfile.TemporaryDirectory(prefix="gpudoctor-test-")  # removed with this object
        variables["XDG_STATE_HOME"] = str(state or self._state.name)
        self.began = time.monotonic()
        started = ["-c", program] if program else ["-m", "gpudoctor"]
        command = shlex.join([sys.executable, *started, *arguments])
        self.child = pexpect.spawn(
            "/bin/sh",
            ["-c", f"exec {command}" + (f" < {shlex.quote(stdin)}" if stdin else "")],
            dimensions=(height, width),
            env={**variables, "TERM": "xterm-256color", **(env or {})},
            encoding="utf-8",
            codec_errors="replace",
        )
        self.sent = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.child.close(force=True)
        self._state.cleanup()

    def read(self) -> None:
        """Take in what has come."""
        try:
            while True:
                part = self.child.read_nonblocking(65536, timeout=0.05)
                self.sent += part
                # pyte knows neither kitty's keyboard protocol nor mode queries
                self._stream.feed(part.replace("\x1b[>1u", "").replace("\x1b[<u", ""))
        except (pexpect.TIMEOUT, pexpect.EOF):
            pass

    @property
    def text(self) -> str:
        """The screen as plain text."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def until(self, shown: str | Callable[[str], bool], timeout: float = 30.0) -> str:
        """Wait for a text, or for a condition, on the screen."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            self.read()
            if (shown in self.text) if isinstance(shown, str) else shown(self.text):
                return self.text
        raise AssertionError(f"{shown!r} did not appear in {timeout} s:\n{self.text}")

    def resize(self, width: int, height: int) -> None:
        """Make the terminal larger or smaller."""
        self.screen.resize(height, width)
        self.child.setwinsize(height, width)

    def press(self, keys: str) -> None:
        """Send keys."""
        self.child.send(keys)

    def end(self, timeout: float = 15.0) -> int:
        """Wait for the program to end; returns its exit status (negative: the signal)."""
        end = time.monotonic() + timeout
        while self.child.isalive() and time.monotonic() < end:
            self.read()
        self.read()
        assert not self.child.isalive(), "it did not end"
        self.child.close()
        return self.child.exitstatus if self.child.exitstatus is not None else -self.child.signalstatus

    def restored(self) -> bool:
        """Tell whether everything that was switched on was switched off again, last."""
        return all(code in self.sent[self.sent.rfind("\x1b[?1049h") :] for code in RESTORED)


def write_folder(folder: Path, files: Mapping[str, str]) -> str:
    """Write files of a folder to diagnose."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return str(folder)
