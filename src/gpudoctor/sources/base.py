"""What a source is: named texts, each read once, as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

CHUNK = 4 * 1024 * 1024


class SourceUnreadable(Exception):
    """The source can't be read at all; str() is one line: what, where, what to do."""


@dataclass
class Document:
    """One text of a source. `name` is a path that a person can open (`file § section` inside a bug report).

    boot: the boot in which the text ends, where its heading says so. skipped: why the content is not read.
    taken: when the evidence was taken, where the source itself says so; times without a year are dated from it.
    """

    name: str
    chunks: Callable[[], Iterable[bytes]]
    first_line: int = 1
    boot: int = 0
    probe: str | None = None
    skipped: str | None = None
    taken: float | None = None


@dataclass
class SourceNotes:
    """What turned out while reading."""

    kind: str
    path: str
    complete: bool = True
    problems: list[str] = field(default_factory=list)
    collected_at: float | None = None

    def incomplete(self, problem: str) -> None:
        """Note that a part could not be read."""
        self.complete = False
        self.problems.append(problem)


class Source(Protocol):
    """Texts in reading order. `notes` is complete once all documents were read."""

    @property
    def notes(self) -> SourceNotes:
        """What is known of the source as a whole."""
        ...

    def documents(self) -> Iterator[Document]:
        """Yield the documents; each must be read before the next is asked for."""
        ...
