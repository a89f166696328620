"""Plain files, folders of loose files and standard input; gzip is unpacked on the way."""

from __future__ import annotations

import errno
import os
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from gpudoctor.sources.base import CHUNK, Document, SourceNotes, SourceUnreadable
from gpudoctor.sources.bugreport import is_bug_report, sections

MAX_FILES = 5_000
MAX_DEPTH = 12
MAX_BYTES = 8 * 2**30  # read from one file, after unpacking
MAX_RATIO = 400  # unpacked to packed, once RATIO_FROM bytes came out; real reports pack 10 to 40 times
RATIO_FROM = 256 * 2**20
_GZIP = b"\x1f\x8b"


class FileSource:
    """One file, or standard input for `-`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.notes = SourceNotes("log", path)

    def documents(self) -> Iterator[Document]:
        """Yield the file, or the sections of a bug report."""
        if self.path == "-":
            yield from _read("stdin", sys.stdin.buffer, self.notes)
            return
        path = Path(self.path)
        try:
            stream = _open(path)
        except OSError as error:
            raise SourceUnreadable(f"{path}: {_reason(error)}") from None
        with stream:
            self.notes.collected_at = path.stat().st_mtime
            yield from _read(path.name, stream, self.notes)


class FolderSource:
    """All regular files below a folder; links are not followed."""

    def __init__(self, path: str) -> None:
        self.root = Path(path)
        self.notes = SourceNotes("folder", path)

    def documents(self) -> Iterator[Document]:
        """Yield every file in path order."""
        try:
            os.scandir(self.root).close()
        except OSError as error:
            raise SourceUnreadable(f"{self.root}: {_reason(error)}") from None
        kinds: set[str] = set()
        for number, path in enumerate(self._files()):
            if number >= MAX_FILES:
                self.notes.incomplete(f"more than {MAX_FILES} files; the rest was not read")
                return
            name = path.relative_to(self.root).as_posix()
            try:
                stream = _open(path)
            except OSError as error:
                self.notes.incomplete(f"{name}: {_reason(error)}")
                continue
            with stream:
                inner = SourceNotes("log", name)
                yield from _read(name, stream, inner)
                kinds.add(inner.kind)
                self.notes.problems += inner.problems
                self.notes.complete &= inner.complete
                self.notes.collected_at = self.notes.collected_at or inner.collected_at

    def _files(self) -> Iterator[Path]:
        def failed(error: OSError) -> None:
            self.notes.incomplete(f"{error.filename}: {_reason(error)}")

        for folder, folders, files in os.walk(self.root, onerror=failed):
            here = Path(folder)
            folders.sort()
            if len(here.relative_to(self.root).parts) >= MAX_DEPTH:
                self.notes.incomplete(f"{folder}: deeper than {MAX_DEPTH} folders; not read")
                folders.clear()
            for name in sorted(files):
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


def _read(name: str, stream: BinaryIO, notes: SourceNotes) -> Iterator[Document]:
    first = _fill(stream, 64 * 1024)
    if first[:2] == _GZIP:
        chunks: Iterable[bytes] = _gunzip(name, first, stream, notes)
    else:
        chunks = _plain(name, first, stream, notes)
    iterator = iter(chunks)
    head = b""
    for chunk in iterator:
        head += chunk
        if len(head) >= 4096:
            break
    rest = _chained(head, iterator)
    if is_bug_report(head):
        notes.kind = "nvidia-bug-report"
        yield from sections(name, rest, notes)
    else:
        yield Document(name, lambda: rest)


def _chained(head: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if head:
        yield head
    yield from rest


def _fill(stream: BinaryIO, size: int) -> bytes:
    """Read up to size bytes; a pipe gives less at a time."""
    parts = b""
    while len(parts) < size:
        part = stream.read(size - len(parts))
        if not part:
            break
        parts += part
    return parts


def _plain(name: str, first: bytes, stream: BinaryIO, notes: SourceNotes) -> Iterator[bytes]:
    yield first
    done = len(first)
    seekable = stream.seekable()
    while True:
        if seekable:
            _skip_hole(stream)
        try:
            chunk = stream.read(CHUNK)
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


def _gunzip(name: str, first: bytes, stream: BinaryIO, notes: SourceNotes) -> Iterator[bytes]:
    """Unpack concatenated gzip members as far as they go; nvidia-bug-report.sh appends one per section."""
    packed, unpacked = 0, 0
    decoder = zlib.decompressobj(wbits=31)
    data = first
    while True:
        if not data:
            if not decoder.eof:
                notes.incomplete(
                    f"{name}: the compressed data breaks off after {unpacked} bytes of text (cut while it was written or copied)"
                )
            return
        packed += len(data)
        while data:
            try:
                text = decoder.decompress(data, CHUNK)
            except zlib.error as error:
                notes.incomplete(
                    f"{name}: the compressed data is broken after {unpacked} bytes of text ({error}); read up to there"
                )
                return
            unpacked += len(text)
            if text:
                yield text
            if unpacked > MAX_BYTES or (unpacked > RATIO_FROM and unpacked > MAX_RATIO * packed):
                notes.incomplete(f"{name}: unpacks to suspiciously much; reading stopped after {unpacked >> 20} MiB")
                return
            if decoder.eof:
                data = decoder.unused_data.lstrip(b"\0")
                if data and data[:2] != _GZIP:
                    notes.problems.append(f"{name}: {len(data)} bytes behind the compressed data are not gzip; ignored")
                    return
                decoder = zlib.decompressobj(wbits=31) if data else decoder
            else:
                data = decoder.unconsumed_tail
        data = stream.read(CHUNK)
        if data and decoder.eof:
            data = data.lstrip(b"\0")
            if data[:2] == _GZIP:
                decoder = zlib.decompressobj(wbits=31)
            elif data:
                notes.problems.append(f"{name}: bytes behind the compressed data are not gzip; ignored")
                return


class SeveralSources:
    """Several files or folders as one source: they describe one node."""

    def __init__(self, sources: list[FileSource | FolderSource]) -> None:
        self.sources = sources
        self.notes = SourceNotes("folder", ", ".join(source.notes.path for source in sources))

    def documents(self) -> Iterator[Document]:
        """Yield the documents of one source after the other."""
        for source in self.sources:
            yield from source.documents()
            self.notes.problems += source.notes.problems
            self.notes.complete &= source.notes.complete
            self.notes.collected_at = self.notes.collected_at or source.notes.collected_at
