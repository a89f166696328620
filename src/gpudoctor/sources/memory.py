"""Texts that are already in memory, as rule tests write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpudoctor.sources.base import Document, SourceNotes
from gpudoctor.sources.bugreport import is_bug_report, sections


class TextSource:
    """Named texts as one folder."""

    def __init__(self, files: Mapping[str, str], path: str = "texts") -> None:
        self.files = files
        self.notes = SourceNotes("folder", path)

    def documents(self) -> Iterator[Document]:
        """Yield each text as a file of its own."""
        for name, text in self.files.items():
            raw = text.encode()
            if is_bug_report(raw):
                yield from sections(name, (raw,), self.notes)
            else:
                yield _document(name, raw)


def _document(name: str, raw: bytes) -> Document:
    return Document(name, lambda: (raw,))
