"""Keeps what takes long to compile beside this package's bytecode, on the terms on which Python keeps that.

Rules and the database of anchors take a third of a run to compile. They are written where Python writes bytecode and
only where it would (not with -B, not into a folder that isn't ours to write), and are used only where all that they were
made from is the same; else they are compiled anew. Who can write there can change the program itself.
"""

from __future__ import annotations

import contextlib
import os
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path


def load(name: str, made_from: str) -> bytes | None:
    """Return what was kept under this name, or None where there is nothing made from the same things."""
    path = _path(name)
    try:
        stored = path.read_bytes() if path else b""
    except OSError:
        return None
    checksum, _, rest = stored.partition(b"\n")
    origin = made_from.encode()
    if not rest.startswith(origin):
        return None
    data = rest[len(origin) :]
    return data if checksum == _checksum(data) else None


def store(name: str, made_from: str, data: bytes) -> None:
    """Keep it, where that is possible."""
    path = _path(name)
    if path is None or sys.dont_write_bytecode or not path.parent.is_dir():
        return
    new = path.with_suffix(f".{os.getpid()}")
    try:
        new.write_bytes(_checksum(data) + b"\n" + made_from.encode() + data)
        new.replace(path)
    except OSError:  # read-only, full: the next run compiles again
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)


def state_of(paths: Iterable[Path]) -> str:
    """Name the state of files as Python names that of its sources: by time and size."""
    lines = []
    for path in paths:
        about = path.stat()
        lines.append(f"{path.name} {about.st_mtime_ns} {about.st_size}\n")
    return "".join(lines)


def _checksum(data: bytes) -> bytes:
    """Disks forget, and machines go down while they write."""
    return b"%08x %d" % (zlib.crc32(data), len(data))


def _path(name: str) -> Path | None:
    cached = __spec__.cached
    return Path(cached.removesuffix(".pyc") + f"-{name}.bin") if cached else None
