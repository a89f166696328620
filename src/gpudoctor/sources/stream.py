"""Bytes that come in pieces: looked at ahead, taken in portions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


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
