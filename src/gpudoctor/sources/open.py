"""Finds out what kind of source a path is, by its content."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpudoctor.sources.base import Document, Source, SourceNotes, SourceUnreadable
from gpudoctor.sources.files import FileSource, FolderSource, SeveralSources


def open_sources(paths: Sequence[str]) -> Source:
    """Return one source for all paths; raises SourceUnreadable with one clear line."""
    if len(paths) == 1:
        return _open(paths[0])
    names = Counter(Path(path).name for path in paths)
    return SeveralSources(
        [_open(path, path if names[Path(path).name] > 1 else Path(path).name) for path in dict.fromkeys(paths)]
    )


def _open(path: str, label: str = "") -> FileSource | FolderSource:
    if path == "-":
        return FileSource(path)
    try:
        is_folder = Path(path).is_dir()
        there = Path(path).exists()
    except OSError as error:
        raise SourceUnreadable(f"{path}: {error.strerror}") from None
    if not there:
        raise SourceUnreadable(f"{path}: no such file or folder")
    return FolderSource(path, label) if is_folder else FileSource(path, label)


class Begun:
    """A source whose first document was asked for: a large archive is unpacked on in a thread while the rules are loaded.

    Raises SourceUnreadable at once where there is nothing to read. The documents can be had only once.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._documents = iter(source.documents())
        self._first = list(itertools.islice(self._documents, 1))

    @property
    def notes(self) -> SourceNotes:
        """What is known of the source as a whole."""
        return self._source.notes

    def documents(self) -> Iterator[Document]:
        """Yield the documents; each must be read before the next is asked for."""
        yield from self._first
        yield from self._documents
