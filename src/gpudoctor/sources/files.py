"""Files, folders and standard input, as streams of bytes; what is in them is told in `reading`."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from gpudoctor.sources.archive import zip_members
from gpudoctor.sources.base import CHUNK, Document, SourceNotes, SourceUnreadable, printable
from gpudoctor.sources.day import day_in_name
from gpudoctor.sources.limits import MAX_BYTES, MAX_FILES, MAX_FOLDERS
from gpudoctor.sources.reading import archived, documents_in
from gpudoctor.sources.snapshot import MANIFEST
from gpudoctor.sources.stream import ByteStream

_FIRST = 64 * 1024
_ZIP = b"PK\x03\x04"


class FileSource:
    """One file, or standard input for `-`. `label`: the name that it goes by beside other sources."""

    def __init__(self, path: str, label: str = "") -> None:
        self.path = path
        self.label = printable(label)
        self.notes = SourceNotes("log", printable(path))

    def documents(self) -> Iterator[Document]:
        """Yield the file, the sections of a bug report, or what an archive holds."""
        if self.path == "-":
            yield from self._read("stdin", sys.stdin.buffer)
            return
        path = Path(self.path)
        try:
            stream = _open(path)
        except OSError as error:
            raise SourceUnreadable(f"{path}: {_reason(error)}") from None
        with stream:
            self.notes.collected_at = path.stat().st_mtime
            if os.pread(stream.fileno(), 4, 0)[:4] == _ZIP:
                files = zip_members(printable(path.name), stream, self.notes)
                yield from archived(files, f"{self.label}/" if self.label else "", self.notes, 1)
            else:
                yield from self._read(printable(path.name), stream)

    def _read(self, name: str, stream: BinaryIO) -> Iterator[Document]:
        pieces = ByteStream(_pieces(name, stream, self.notes))
        yield from documents_in(self.label or name, pieces, self.notes, top=not self.label)


class FolderSource:
    """All regular files below a folder; links are not followed."""

    def __init__(self, path: str, label: str = "") -> None:
        self.root = Path(path)
        self.label = printable(label)
        self.notes = SourceNotes("folder", printable(path))

    def documents(self) -> Iterator[Document]:
        """Yield every file in path order."""
        try:
            os.scandir(self.root).close()
        except OSError as error:
            raise SourceUnreadable(f"{self.root}: {_reason(error)}") from None
        here = self.root.resolve().name
        for path in self._files():
            if not self.notes.account.file():
                self.notes.incomplete(f"more than {MAX_FILES} files; the rest was not read")
                return
            name = printable(path.relative_to(self.root).as_posix())
            shown = f"{self.label}/{name}" if self.label else name
            try:
                stream = _open(path)
            except OSError as error:
                self.notes.incomplete(f"{name}: {_reason(error)}")
                continue
            day = day_in_name(f"{here}/{name}")  # the times of files are those of copying them, and tell nothing
            with stream:
                for document in documents_in(shown, ByteStream(_pieces(name, stream, self.notes)), self.notes):
                    document.taken = document.taken or day
                    yield document
            if day is not None and not self.notes.dated_by_content:
                self.notes.collected_at = max(self.notes.collected_at or 0.0, day)

    def _files(self) -> Iterator[Path]:
        def failed(error: OSError) -> None:
            self.notes.incomplete(f"{error.filename}: {_reason(error)}")

        for folder, folders, files in os.walk(self.root, onerror=failed):
            here = Path(folder)
            folders.sort()
            if len(here.relative_to(self.root).parts) >= MAX_FOLDERS:
                self.notes.incomplete(f"{folder}: deeper than {MAX_FOLDERS} folders; not read")
                folders.clear()
            for name in sorted(files, key=lambda name: (name != MANIFEST, name)):
                path = here / name
                if path.is_symlink():
                    continue
                if path.is_file():
                    yield path


def _reason(error: OSError) -> str:
    known = {
        errno.ENOENT: "no such file or folder",
        errno.EACCES: "permission denied (run as a user who may read it)",
        errno.EISDIR: "is a folder",
        errno.ENXIO: "not a regular file",
    }
    return known.get(error.errno or 0, error.strerror or str(error))


def _open(path: Path) -> BinaryIO:
    """Open a regular file, never a device or a pipe that would block."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        raise OSError(errno.EISDIR if stat.S_ISDIR(mode) else errno.ENXIO, "not a regular file", str(path))
    return os.fdopen(handle, "rb", buffering=0)


def _pieces(name: str, stream: BinaryIO, notes: SourceNotes) -> Iterator[bytes]:
    """Yield a file's content as it is."""
    done = 0
    size = _FIRST  # most files are small
    seekable = stream.seekable()
    while True:
        if seekable:
            _skip_hole(stream)
        try:
            chunk = stream.read(size)
        except OSError as error:
            notes.incomplete(f"{name}: reading stopped after {done} bytes: {_reason(error)}")
            return
        if not chunk:
            return
        done += len(chunk)
        if done > MAX_BYTES:
            notes.incomplete(f"{name}: reading stopped after {MAX_BYTES >> 30} GiB")
            return
        yield chunk
        size = CHUNK


def _skip_hole(stream: BinaryIO) -> None:
    """Jump over the holes of a sparse file: they are zeros, however long."""
    position = stream.tell()
    try:
        data = os.lseek(stream.fileno(), position, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:  # nothing but a hole up to the end
            os.lseek(stream.fileno(), 0, os.SEEK_END)
        return
    if data != position:
        os.lseek(stream.fileno(), data, os.SEEK_SET)


class SeveralSources:
    """Several files or folders as one source."""

    def __init__(self, sources: list[FileSource | FolderSource]) -> None:
        self.sources = sources
        self.notes = SourceNotes("folder", ", ".join(source.notes.path for source in sources))

    def documents(self) -> Iterator[Document]:
        """Yield the documents of one source after the other."""
        for source in self.sources:
            source.notes.account, source.notes.roots = self.notes.account, self.notes.roots
            source.notes.snapshots = self.notes.snapshots
            yield from source.documents()
            self.notes.problems += source.notes.problems
            self.notes.complete &= source.notes.complete
            self.notes.collected_at = self.notes.collected_at or source.notes.collected_at
