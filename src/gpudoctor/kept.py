"""Keeps what takes long to compile beside this package's bytecode, on the terms on which Python keeps that.

Rules and the database of anchors take a third of a run to compile. They are written where Python writes bytecode and
only where it would (not with -B, not into a folder that isn't ours to write), and are used only under the key of all
that they were made from; else they are compiled anew. Who can write there can change the program itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from pathlib import Path


def load(name: str, key: str) -> bytes | None:
    """Return what was kept under this name, or None where there is nothing made from the same things."""
    path = _path(name)
    try:
        stored = path.read_bytes() if path else b""
    except OSError:
        return None
    given, _, data = stored.partition(b"\n")
    return data if given == _heading(key, data) else None


def store(name: str, key: str, data: bytes) -> None:
    """Keep it, where that is possible."""
    path = _path(name)
    if path is None or sys.dont_write_bytecode or not path.parent.is_dir():
        return
    new = path.with_suffix(f".{os.getpid()}")
    try:
        new.write_bytes(_heading(key, data) + b"\n" + data)
        new.replace(path)
    except OSError:  # read-only, full: the next run compiles again
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)


def _heading(key: str, data: bytes) -> bytes:
    """What it was made from, and what it must still be: disks forget."""
    return f"{key} {hashlib.blake2b(data, digest_size=16).hexdigest()}".encode()


def _path(name: str) -> Path | None:
    cached = __spec__.cached
    return Path(cached.removesuffix(".pyc") + f"-{name}.bin") if cached else None
