"""Generators that work ahead of their reader, in threads: for work that lets other threads run, as unpacking and scanning do."""

from __future__ import annotations

import itertools
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
_AHEAD = 3  # pieces that may wait for the reader
_WORKERS = 2
_LARGE = (32 << 20) - (64 << 10)  # just below the largest size that glibc may learn from


def _reuse_memory() -> None:
    """Let glibc keep the memory of pieces for the next ones: it does so for sizes up to the largest that it saw freed.

    Else it gives each piece back and gets the next one page by page from the kernel, which takes as long as scanning it.
    """
    bytearray(_LARGE)  # never touched, so it costs nothing


def ahead(pieces: Iterator[T], direct: int = 2) -> Iterator[T]:
    """Yield the pieces; behind the first few a thread makes the next ones while the reader looks at this one."""
    for _ in range(direct):
        piece = next(pieces, None)
        if piece is None:
            return
        yield piece
    _reuse_memory()
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


def mapped(function: Callable[[T], R], things: Iterator[T], direct: int = 2) -> Iterator[tuple[T, R]]:
    """Yield each thing with the function's answer, in order; behind the first few two threads work on the next ones."""
    for thing in itertools.islice(things, direct):
        yield thing, function(thing)
    first = list(itertools.islice(things, 1))
    if not first:
        return
    from concurrent.futures import Future, ThreadPoolExecutor

    _reuse_memory()
    pool = ThreadPoolExecutor(_WORKERS)
    working: deque[tuple[T, Future[R]]] = deque()
    try:
        for thing in itertools.chain(first, things):
            working.append((thing, pool.submit(function, thing)))
            if len(working) > _WORKERS:
                done, answer = working.popleft()
                yield done, answer.result()
        for done, answer in working:
            yield done, answer.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
