"""Bytes that come in pieces: looked at ahead, taken in portions, produced ahead of who reads them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator

_AHEAD = 3  # pieces that may wait for the reader


class ByteStream:
    """Pieces of bytes, read once from start to end."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._kept = b""
        self._at = 0  # how far the kept piece was read
        self.position = 0

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes (fewer at the end) without taking them."""
        have = len(self._kept) - self._at
        if have < size:
            parts = [self._kept[self._at :]]
            for piece in self._pieces:
                parts.append(piece)
                have += len(piece)
                if have >= size:
                    break
            self._kept, self._at = b"".join(parts), 0
        return self._kept[self._at : self._at + size]

    def portion(self, size: int) -> Iterator[bytes]:
        """Yield the next `size` bytes piece by piece; it ends early where the stream does."""
        while size > 0:
            if self._at >= len(self._kept):
                following = next(self._pieces, None)
                if following is None:
                    return
                self._kept, self._at = following, 0
            piece = self._kept[self._at : self._at + size]
            self._at += len(piece)
            self.position += len(piece)
            size -= len(piece)
            if piece:
                yield piece

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer at the end."""
        return b"".join(self.portion(size))

    def skip(self, size: int) -> bool:
        """Pass over bytes; False where the stream ended before."""
        return sum(map(len, self.portion(size))) == size

    def rest(self) -> Iterator[bytes]:
        """Yield everything that is left."""
        return self.portion(1 << 62)


def ahead(pieces: Iterator[bytes], direct: int = 2) -> Iterator[bytes]:
    """Yield the pieces; behind the first few a thread makes the next ones while the reader looks at this one."""
    for _ in range(direct):
        piece = next(pieces, None)
        if piece is None:
            return
        yield piece
    waiting: queue.Queue[bytes | BaseException | None] = queue.Queue(_AHEAD)
    abandoned = threading.Event()

    def put(thing: bytes | BaseException | None) -> bool:
        while not abandoned.is_set():
            try:
                waiting.put(thing, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def produce() -> None:
        try:
            for piece in pieces:
                if not put(piece):
                    return
        except BaseException as error:  # it belongs to the reader
            put(error)
            return
        put(None)

    threading.Thread(target=produce, daemon=True).start()
    try:
        while (thing := waiting.get()) is not None:
            if isinstance(thing, BaseException):
                raise thing
            yield thing
    finally:
        abandoned.set()
