"""The live host as the watch asks it: children are kept, and what hung in the last cycle is not asked again while it hangs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from gpudoctor.monitor.children import KeptChild
from gpudoctor.sources.live import Answer, LiveHost


class WatchedHost(LiveHost):
    """Same answers as LiveHost, for less."""

    def __init__(self, root: str = "/", recorded: str | None = None) -> None:
        super().__init__(root, recorded)
        self.children: dict[str, KeptChild] = {}
        self._asked: set[str] = set()
        self._lock = threading.Lock()

    def run_child(self, module: str, deadline: float, max_bytes: int, arguments: tuple[str, ...] = ()) -> Answer:
        """Run a round of a kept child."""
        if not self.is_this_machine:
            return super().run_child(module, deadline, max_bytes, arguments)
        child = self.children.setdefault(module, KeptChild(module))
        return child.ask(["--root", str(self.root), *arguments], deadline, max_bytes)

    def read(self, path: Path, max_bytes: int, *, tail: bool = False) -> Answer:
        """Read a file, unless an earlier reading of it still hangs."""
        return self._once(str(path), lambda: super(WatchedHost, self).read(path, max_bytes, tail=tail))

    def tree(self, patterns: list[str], max_bytes: int) -> Answer:
        """Read many small files, unless an earlier reading of them still hangs."""
        return self._once(patterns[0], lambda: super(WatchedHost, self).tree(patterns, max_bytes))

    def stop(self) -> None:
        """End the kept children."""
        for child in self.children.values():
            child.stop()

    def _once(self, what: str, read: Callable[[], Answer]) -> Answer:
        with self._lock:
            if what in self._asked:
                return Answer("timeout", reason="an earlier reading still hangs")
            self._asked.add(what)
        try:
            return read()
        finally:
            with self._lock:
                self._asked.discard(what)
