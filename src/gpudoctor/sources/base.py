"""What a source is: named texts, each read once, as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

import msgspec

from gpudoctor.sources.limits import Account

if TYPE_CHECKING:
    from gpudoctor.sources.snapshot import Manifest

CHUNK = 4 * 1024 * 1024


def printable(path: str) -> str:
    """Return a path fit for a report and a terminal: file names may hold line ends, escape sequences and bytes that are no text.

    >>> printable("a\\x1b[2J/b\\udcff")
    'a?[2J/b?'
    """
    return path if path.isprintable() else "".join(char if char.isprintable() else "?" for char in path)


class SourceUnreadable(Exception):
    """The source can't be read at all; str() is one line: what, where, what to do."""


class Document(msgspec.Struct):
    """One text of a source. `name` is a path that a person can open (`file § section` inside a bug report).

    boot: the boot in which the text ends, where its heading says so. skipped: why the content is not read.
    taken: when the evidence was taken, where the source itself says so; times without a year are dated from it.
    reached: the line in which the chunk ends that was given last, where the source counts lines anyway.
    """

    name: str
    chunks: Callable[[], Iterable[bytes]]
    first_line: int = 1
    boot: int = 0
    probe: str | None = None
    skipped: str | None = None
    taken: float | None = None
    reached: Callable[[], int] | None = None


class SourceNotes(msgspec.Struct):
    """What turned out while reading.

    roots: the bundles that were met, each about one node, by the folder (with its slash) or file that holds them, with
    their kind. dated_by_content: `collected_at` comes from what was read, not from the file's own time.
    """

    kind: str
    path: str
    complete: bool = True
    problems: list[str] = []
    collected_at: float | None = None
    dated_by_content: bool = False
    roots: dict[str, str] = {}
    snapshots: dict[str, Manifest] = {}
    account: Account = msgspec.field(default_factory=Account)

    def root(self, place: str, kind: str) -> None:
        """Note a bundle; what the whole source is called follows the first one."""
        self.roots.setdefault(place, kind)
        if self.kind in ("log", "folder"):
            self.kind = kind

    def incomplete(self, problem: str) -> None:
        """Note that a part could not be read."""
        self.complete = False
        self.problems.append(printable(problem))


class Source(Protocol):
    """Texts in reading order. `notes` is complete once all documents were read."""

    @property
    def notes(self) -> SourceNotes:
        """What is known of the source as a whole."""
        ...

    def documents(self) -> Iterator[Document]:
        """Yield the documents; each must be read before the next is asked for."""
        ...
