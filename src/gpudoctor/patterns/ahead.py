"""Generators that work ahead of their reader, in threads: for work that lets other threads run, as unpacking and scanning do."""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

T = TypeVar("T")
R = TypeVar("R")
_WAITING = 48 << 20  # bytes that may wait for the reader
_WORTH = 1 << 20  # a first piece of this size is not the last
_WORKERS = 2
_LARGE = (32 << 20) - (64 << 10)  # just below the largest size that glibc may learn from


@cache
def _reuse_memory() -> None:
    """Let glibc keep the memory of pieces for the next ones: it does so for sizes up to the largest that it saw freed.

    Else it gives each piece back and gets the next one page by page from the kernel, which takes as long as scanning it.
    """
    bytes(_LARGE)  # zeros that the kernel need not even write


def ahead(pieces: Iterator[bytes], direct: int = 2) -> Iterator[bytes]:
    """Yield the pieces; once there are more than a few, or a large one, a thread makes the next while the reader looks at this one."""
    for _ in range(direct):
        piece = next(pieces, None)
        if piece is None:
            return
        if len(piece) >= _WORTH:
            pieces = itertools.chain((piece,), pieces)
            break
        yield piece
    _reuse_memory()
    waiting: deque[bytes | BaseException | None] = deque()
    changed = threading.Condition()
    size = 0
    abandoned = False

    def put(thing: bytes | BaseException | None) -> bool:
        nonlocal size
        with changed:
            changed.wait_for(lambda: size < _WAITING or abandoned)
            waiting.append(thing)
            size += len(thing) if isinstance(thing, bytes) else 0
            changed.notify_all()
            return not abandoned

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
        while True:
            with changed:
                changed.wait_for(lambda: waiting)
                thing = waiting.popleft()
                size -= len(thing) if isinstance(thing, bytes) else 0
                changed.notify_all()
            if thing is None:
                return
            if isinstance(thing, BaseException):
                raise thing
            yield thing
    finally:
        with changed:
            abandoned = True
            changed.notify_all()


@cache
def _pool() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    _reuse_memory()
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked process has none of its threads
    return ThreadPoolExecutor(_WORKERS)


def mapped(function: Callable[[T], R], things: Iterator[T]) -> Iterator[tuple[T, R]]:
    """Yield each thing with the function's answer, in order; behind the first one two threads work on the next ones."""
    for thing in itertools.islice(things, 1):
        yield thing, function(thing)
    working: deque[tuple[T, Future[R]]] = deque()
    try:
        for thing in things:
            working.append((thing, _pool().submit(function, thing)))
            if len(working) > _WORKERS:
                done, answer = working.popleft()
                yield done, answer.result()
        for done, answer in working:
            yield done, answer.result()
    finally:
        for _, answer in working:
            answer.cancel()
