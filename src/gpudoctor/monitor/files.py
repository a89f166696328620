"""Files that others read while we write: whole or not at all. And the lock that keeps a second instance away."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path


def write_whole(path: Path, content: str, mode: int = 0o644) -> None:
    """Replace a file in one step; raises OSError and leaves the old one as it was."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content.encode("utf-8", "replace"))
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            scratch.unlink()
        raise


class Held(Exception):
    """Somebody else has the lock; str() says who."""


class Lock:
    """A lock on a file, held until the process ends or `release` is called."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            raise Held(f"{path} is held by process {owner or '?'}, which has not ended yet") from None
        os.ftruncate(self._descriptor, 0)
        with contextlib.suppress(OSError):  # the lock holds on a full disk as well, it only can't say whose it is
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Give it back."""
        os.close(self._descriptor)
