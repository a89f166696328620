"""A generator that works ahead of its reader, in a thread: for work that lets other threads run, as unpacking and scanning do."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")
_AHEAD = 3  # pieces that may wait for the reader


def ahead(pieces: Iterator[T], direct: int = 2) -> Iterator[T]:
    """Yield the pieces; behind the first few a thread makes the next ones while the reader looks at this one."""
    for _ in range(direct):
        piece = next(pieces, None)
        if piece is None:
            return
        yield piece
    waiting: queue.Queue[T | BaseException | None] = queue.Queue(_AHEAD)
    abandoned = threading.Event()

    def put(thing: T | BaseException | None) -> bool:
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
