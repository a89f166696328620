"""Cuts a text that comes in pieces into blocks of whole lines, and shows those in which something was found with what surrounds them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import msgspec

from gpudoctor.patterns.ahead import mapped
from gpudoctor.patterns.text import line_ends

_SMALLEST = 1 << 20  # bytes of a block, but for the last
_LONGEST = 4 << 20  # bytes without an end of line: not text, don't pile it up
REACH = 1 << 20  # what a format may reach beyond the block that its first line is in
BACK = 1 << 16  # what it may reach back into the block before

Hits = Sequence[tuple[int, int]]


class Window(msgspec.Struct, dict=True):
    """A block, the number of its first line, and what was found in it: (end offset, number of the anchor)."""

    line: int
    block: bytes
    hits: Hits
    before: bytes = b""
    behind: Sequence[bytes] = ()

    @cached_property
    def wide(self) -> tuple[bytes, int]:
        """The block with what surrounds it, and where in that it begins; put together only where a format asks for it."""
        if not self.before and not self.behind:
            return self.block, 0
        return b"".join((self.before, self.block, *_first(self.behind, REACH))), len(self.before)


def windows(
    pieces: Iterable[bytes], find: Callable[[bytes], Hits], line: int = 1, reached: Callable[[], int] | None = None
) -> Iterator[Window]:
    """Yield every block once, in order; `find` returns the hits of a block.

    line: number of the text's first line. reached: the number of the line in which the piece ends that was given last, where
    who gives the pieces counts lines anyway.
    """

    def search(numbered: tuple[int, bytes]) -> Hits:
        return find(numbered[1])

    searched = mapped(search, _numbered(pieces, line, reached))
    waiting: deque[tuple[tuple[int, bytes], Hits]] = deque()
    before = b""
    while (found := waiting.popleft() if waiting else next(searched, None)) is not None:
        (line, block), hits = found
        if hits:
            while sum(len(more) for (_, more), _ in waiting) < REACH and (found := next(searched, None)) is not None:
                waiting.append(found)
        yield Window(line, block, hits, before, [more for (_, more), _ in waiting])
        before = block if len(block) <= BACK else block[block.find(b"\n", -BACK) + 1 :]


def _numbered(pieces: Iterable[bytes], line: int, reached: Callable[[], int] | None) -> Iterator[tuple[int, bytes]]:
    """Yield (number of the first line, block)."""
    for block in blocks(pieces):
        yield line, block
        line = line + line_ends(block) if reached is None else reached()


def _first(following: Iterable[bytes], size: int) -> Iterator[memoryview]:
    """Yield the first `size` bytes of blocks."""
    for block in following:
        yield memoryview(block)[:size]
        size -= len(block)
        if size <= 0:
            return


def blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the text in blocks that end where a line does, the last one apart."""
    kept: list[bytes] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        cut = piece.rfind(b"\n") + 1 if size >= _SMALLEST else 0
        if cut == 0 and size < _LONGEST:
            kept.append(piece)
            continue
        cut = cut or len(piece)
        yield b"".join((*kept, memoryview(piece)[:cut])) if kept or cut < len(piece) else piece
        size = len(piece) - cut
        kept = [piece[cut:]] if size else []
    if kept:
        yield b"".join(kept)
