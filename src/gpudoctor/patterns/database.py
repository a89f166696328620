"""One multi-pattern database for all anchors: each byte of a text is read once."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from functools import cached_property

import hyperscan

from gpudoctor import kept

_WORTH_KEEPING = 500  # anchors; fewer are compiled in no time, and would displace what is kept


class AnchorDatabase:
    """Finds which of many literals occur where; `caseless` tells which of them match in either case (all by default)."""

    def __init__(self, anchors: Sequence[str], caseless: Sequence[bool] | None = None) -> None:
        self.anchors = tuple(anchors)
        self.caseless = tuple(caseless) if caseless is not None else (True,) * len(self.anchors)
        self._room = threading.local()  # each thread needs room of its own to work in

    @cached_property
    def _database(self) -> hyperscan.Database:
        if len(self.anchors) < _WORTH_KEEPING:
            return self._compiled()
        made_from = repr((self.anchors, self.caseless))
        if (known := kept.load("anchors", made_from)) is not None:
            with contextlib.suppress(hyperscan.error):  # made by another version or on another kind of processor
                return hyperscan.loadb(known, hyperscan.HS_MODE_BLOCK)
        database = self._compiled()
        kept.store("anchors", made_from, hyperscan.dumpb(database))
        return database

    def _compiled(self) -> hyperscan.Database:
        database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        # Plain literals go to Hyperscan's literal matcher, which compiles a thousand of them in 20 ms;
        # the same words joined by \s+ would take it two seconds.
        database.compile(
            literal=True,
            expressions=[anchor.encode() for anchor in self.anchors],
            ids=list(range(len(self.anchors))),
            elements=len(self.anchors),
            flags=[hyperscan.HS_FLAG_CASELESS if either else 0 for either in self.caseless],
        )
        return database

    def scan(self, text: bytes) -> list[tuple[int, int]]:
        """Return (end offset, anchor number) of every occurrence, by offset; several threads may scan at a time."""
        hits: list[tuple[int, int]] = []
        if not self.anchors or not text:
            return hits

        def on_match(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            hits.append((end, number))

        database = self._database
        scratch = getattr(self._room, "scratch", None)
        if scratch is None:
            scratch = self._room.scratch = hyperscan.Scratch(database)
        database.scan(text, match_event_handler=on_match, scratch=scratch)
        hits.sort()
        return hits
