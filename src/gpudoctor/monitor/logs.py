"""Logs read on from where the last reading ended, across rotation, truncation and restarts of the watch."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Protocol

from msgspec import Struct

PIECE = 2**20  # bytes in memory at a time
MAX_PIECES = 64  # of one log in one cycle; the rest is read in the next
FIRST_READING = 64 * 2**20  # how far back the first reading goes
MAX_LINE = 1 << 20  # a line longer than this is no line
_HEAD = 512  # bytes by which a file is known again


class Position(Struct, kw_only=True):
    """Where reading goes on. `head` is a hash of the file's first bytes, `known` how many of them."""

    inode: int = 0
    offset: int = 0
    line: int = 1
    head: str = ""
    known: int = 0
    sequence: int = -1  # of kernel records


class Piece(Struct, kw_only=True):
    """New whole lines of a log, and the number of the first one."""

    text: bytes
    first_line: int = 1


class Follower(Protocol):
    """A log that is read on."""

    name: str
    position: Position
    lost: int  # times that something was overwritten before it could be read

    def read(self) -> Iterator[Piece]:
        """Yield what came since the last reading; raises OSError."""
        ...


class FollowedFile:
    """A log file below the root."""

    def __init__(self, path: Path, name: str, position: Position | None = None) -> None:
        self.path = path
        self.name = name
        self.position = position or Position()
        self.lost = 0

    def read(self) -> Iterator[Piece]:
        """Yield the rest of the file that was rotated away, if one was, and what is new in the current one."""
        try:
            stream = self.path.open("rb", buffering=0)
        except FileNotFoundError:
            if self.position.inode:  # between the two steps of a rotation
                yield from self._rest()
            return
        with stream:
            status = os.fstat(stream.fileno())
            if not self.position.inode:
                self._begin(stream.fileno(), status)
            elif not _same(stream.fileno(), status, self.position):
                yield from self._rest()
                self.position = Position(inode=status.st_ino)
            self.position.inode = status.st_ino
            yield from _pieces(stream.fileno(), self.position)

    def _begin(self, descriptor: int, status: os.stat_result) -> None:
        """The first reading starts so far back that what happened before the watch is seen, too."""
        start = max(0, status.st_size - FIRST_READING)
        if start:
            skipped = os.pread(descriptor, MAX_LINE, start).find(b"\n") + 1
            self.position = Position(inode=status.st_ino, offset=start + skipped)
            _know(descriptor, self.position)

    def _rest(self) -> Iterator[Piece]:
        """Find the file that was read so far under its new name and read it to its end."""
        old, self.position = self.position, Position()
        for path in _siblings(self.path):
            try:
                with path.open("rb", buffering=0) as stream:
                    status = os.fstat(stream.fileno())
                    if not _continues(stream.fileno(), status, old):
                        continue
                    try:
                        yield from _pieces(stream.fileno(), old, last=True)
                    finally:
                        self.lost += (
                            old.offset < status.st_size
                        )  # more than there is time for: the new file comes first
                    return
            except OSError:
                continue
        self.lost += bool(old.known)


def _continues(descriptor: int, status: os.stat_result, old: Position) -> bool:
    """Tell whether a file is the one that was read so far, renamed or copied; of an empty one only a renaming is seen."""
    if not old.known:
        return status.st_ino == old.inode
    return status.st_size >= old.offset and _hash(descriptor, old.known) == old.head


def _same(descriptor: int, status: os.stat_result, position: Position) -> bool:
    return (
        status.st_ino == position.inode
        and status.st_size >= position.offset
        and (not position.known or _hash(descriptor, position.known) == position.head)
    )


def _siblings(path: Path) -> list[Path]:
    """Return what rotation may have made of a file, newest first: messages.1, messages-20270115, kern.log.0."""
    found = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(path.parent):
            if entry.name.startswith(path.name) and entry.name != path.name and not entry.name.endswith((".gz", ".xz")):
                with contextlib.suppress(OSError):
                    found.append((entry.stat().st_mtime, entry.path))
    return [Path(name) for _, name in sorted(found, reverse=True)[:8]]


def _pieces(descriptor: int, position: Position, *, last: bool = False) -> Iterator[Piece]:
    for _ in range(MAX_PIECES):
        piece = _read_on(descriptor, position, last=last)
        if piece is None:
            return
        yield piece


def _read_on(descriptor: int, position: Position, *, last: bool = False) -> Piece | None:
    """Read whole lines from the position on, and move it. last: nobody writes here any more, so half a line is a line."""
    text = os.pread(descriptor, PIECE, position.offset)
    end = text.rfind(b"\n") + 1
    if (end == 0 and len(text) >= MAX_LINE) or (last and len(text) < PIECE):
        end = len(text)
    if end == 0:
        return None
    piece = Piece(text=text[:end], first_line=position.line)
    position.offset += end
    position.line += piece.text.count(b"\n")
    if position.known < _HEAD:
        _know(descriptor, position)
    return piece


def _know(descriptor: int, position: Position) -> None:
    position.known = min(_HEAD, position.offset)
    position.head = _hash(descriptor, position.known)


def _hash(descriptor: int, size: int) -> str:
    return hashlib.blake2b(os.pread(descriptor, size, 0), digest_size=12).hexdigest()


_RECORD = re.compile(rb"(\d+),(\d+),(\d+),[^;]*;([^\n]*)")
_RECORD_SIZE = 1 << 14
_MAX_RECORDS = 200_000


class FollowedKernel:
    """The kernel's own ring of records (/dev/kmsg), each of which has a number. Every open file reads all of it."""

    def __init__(self, path: Path, position: Position | None = None, boot: Callable[[], float] | None = None) -> None:
        self.path = path
        self.name = "kernel log"
        self.position = position or Position()
        self.lost = 0
        self._boot = boot or (lambda: time.time() - time.clock_gettime(time.CLOCK_BOOTTIME))
        self._host = os.uname().nodename
        self._descriptor: int | None = None

    def read(self) -> Iterator[Piece]:
        """Yield the records that came since, as the journal would print them."""
        descriptor = self.descriptor()
        booted = self._boot()
        lines: list[bytes] = []
        first = self.position.line
        for _ in range(_MAX_RECORDS):
            try:
                record = os.read(descriptor, _RECORD_SIZE)
            except BlockingIOError:
                break
            except BrokenPipeError:  # overwritten before it was read; the next read goes on behind the gap
                self.lost += 1
                continue
            if not record:
                break
            lines += self._line(record, booted)
        self.position.line += len(lines)
        if lines:
            yield Piece(text=b"".join(lines), first_line=first)

    def descriptor(self) -> int:
        """Open the device where that was not done yet; raises OSError."""
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        return self._descriptor

    def close(self) -> None:
        """Close the device."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _line(self, record: bytes, booted: float) -> list[bytes]:
        match = _RECORD.match(record)
        if match is None or int(match[2]) <= self.position.sequence:
            return []
        if int(match[1]) >> 3:  # written by a program, not by the kernel
            self.position.sequence = int(match[2])
            return []
        if 0 <= self.position.sequence < int(match[2]) - 1:
            self.lost += 1
        self.position.sequence = int(match[2])
        uptime = int(match[3]) / 1e6
        when = datetime.fromtimestamp(booted + uptime, timezone.utc).isoformat(timespec="microseconds")
        return [f"{when} {self._host} kernel: [{uptime:.6f}] ".encode() + match[4] + b"\n"]
