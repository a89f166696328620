"""A text of any size, read only where it is looked at.

A thread counts lines in the background and remembers where every block of the file begins; whatever is shown is read
from the file at that moment. What must be unpacked or produced first goes to a temporary file on the way.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import IO

from gpudoctor.tui.examination import Text

BLOCK = 256 * 1024
LONGEST = 4096  # bytes of a line that are shown
MOST = 4 * 2**30  # bytes that are unpacked


class LogText:
    """Lines by number, counted from 0; `lines` and `size` grow until `complete`."""

    def __init__(self, text: Text) -> None:
        self.name = text.name
        self.first_line = text.first_line
        self.problem = ""
        self.complete = False
        self.size = 0
        self._newlines = 0
        self._before: list[int] = []  # newlines before each block
        self._ends_open = False  # the last line has no newline
        self._closed = threading.Event()
        self._file: IO[bytes]
        if text.path is not None:
            self._file = text.path.open("rb", buffering=0)
            work: Callable[[], None] = self._index_file
        else:
            self._file = tempfile.TemporaryFile(prefix="gpudoctor-")  # noqa: SIM115  # closed with the viewer
            chunks = text.chunks or (lambda: ())
            work = lambda: self._take(chunks())  # noqa: E731
        self._thread = threading.Thread(target=work, name=f"lines of {text.name}", daemon=True)
        self._thread.start()

    @property
    def lines(self) -> int:
        """How many lines are known so far."""
        return self._newlines + (1 if self._ends_open else 0)

    def close(self) -> None:
        """Stop reading."""
        self._closed.set()
        with contextlib.suppress(OSError):
            self._file.close()

    def wait(self, seconds: float) -> bool:
        """Wait until all lines are counted; tells whether they are."""
        self._thread.join(seconds)
        return self.complete

    def read(self, first: int, count: int) -> list[str]:
        """Return lines, decoded, long ones cut; fewer where there are no more."""
        found: list[str] = []
        last = min(first + count, self.lines)
        position = self.start(first)
        data = b""
        for number in range(first, last):
            end = data.find(b"\n")
            if end < 0:
                data = self._at(position, BLOCK if count > 1 else LONGEST)
                end = data.find(b"\n")
            raw = data if end < 0 else data[:end]
            found.append(raw[:LONGEST].decode("utf-8", "replace"))
            if end < 0:
                position, data = self.start(number + 1), b""
            else:
                position, data = position + end + 1, data[end + 1 :]
        return found

    def start(self, line: int) -> int:
        """Return the offset at which a line begins."""
        if line <= 0:
            return 0
        before = self._before
        block = bisect_left(before, line) - 1
        if block < 0:
            return 0
        data = self._at(block * BLOCK, BLOCK)
        position = -1
        for _ in range(line - before[block]):
            position = data.find(b"\n", position + 1)
            if position < 0:
                return self.size
        return block * BLOCK + position + 1

    def line_at(self, offset: int) -> int:
        """Return the number of the line in which an offset lies."""
        block = min(offset // BLOCK, len(self._before) - 1)
        return self._before[block] + self._at(block * BLOCK, offset - block * BLOCK).count(b"\n") if block >= 0 else 0

    def find(self, needle: str, line: int, step: int, stop: Callable[[], bool] = lambda: False) -> int | None:
        """Return the next line (step 1) or the one before (-1) that holds a text, whatever its case; goes round once."""
        wanted = needle.encode().lower()
        if not wanted or not self.size:
            return None
        here = self.start(line + 1) if step > 0 else self.start(line)
        spans = [(here, self.size), (0, here)] if step > 0 else [(0, here), (here, self.size)]
        for begin, end in spans:
            offset = self._scan(wanted, begin, end, step, stop)
            if offset is not None:
                return self.line_at(offset)
        return None

    def _scan(self, wanted: bytes, begin: int, end: int, step: int, stop: Callable[[], bool]) -> int | None:
        """Look at one block after the other, each with enough of the next to see a hit across the edge."""
        blocks = (
            range(begin, end, BLOCK)
            if step > 0
            else range(begin + (max(0, end - begin - 1) // BLOCK) * BLOCK, begin - 1, -BLOCK)
        )
        for position in blocks:
            if stop() or self._closed.is_set():
                return None
            data = self._at(position, min(BLOCK + len(wanted) - 1, end - position)).lower()
            hit = data.find(wanted) if step > 0 else data.rfind(wanted)
            if hit >= 0:
                return position + hit
        return None

    def _at(self, offset: int, length: int) -> bytes:
        try:
            return os.pread(self._file.fileno(), max(0, length), offset)
        except (OSError, ValueError):
            return b""  # closed, or gone with its file system

    def _index_file(self) -> None:
        position = 0
        while not self._closed.is_set():
            data = self._at(position, BLOCK)
            if not data:
                break
            self._count(data)
            position += len(data)
        self.complete = True

    def _take(self, chunks: Iterable[bytes]) -> None:
        rest = b""
        try:
            for chunk in chunks:
                if self._closed.is_set():
                    return
                self._file.write(chunk)
                self._file.flush()
                rest += chunk
                while len(rest) >= BLOCK:
                    self._count(rest[:BLOCK])
                    rest = rest[BLOCK:]
                if self.size > MOST:
                    self.problem = f"cut after {MOST >> 30} GiB"
                    break
        except Exception as error:  # whatever a source has against being read again
            self.problem = f"reading stopped: {error}"
        if rest:
            self._count(rest)
        self.complete = True

    def _count(self, data: bytes) -> None:
        self._before.append(self._newlines)
        self._newlines += data.count(b"\n")
        self._ends_open = not data.endswith(b"\n")
        self.size += len(data)
