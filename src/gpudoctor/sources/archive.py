"""Archives: tar (packed or not) as a stream, zip; each member is a text, or an archive again. Nothing is extracted.

Only a zip archive that comes as a stream (inside another archive, or on standard input) has to be kept for a moment, because
its directory stands at its end: in memory, or in a file without a name, which is gone with the process.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, BinaryIO

from gpudoctor.sources.base import CHUNK, SourceNotes, printable
from gpudoctor.sources.limits import MAX_BYTES, MAX_FOLDERS, MAX_PATH, MAX_RATIO, MAX_TOTAL, RATIO_FROM
from gpudoctor.sources.stream import ByteStream
from gpudoctor.sources.tar import TarBroken, is_tar, members

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_IN_MEMORY = 16 * 2**20
_MAX_ZIP = 4 * 2**30  # of a zip archive that has to be kept


def archive_kind(head: bytes) -> str | None:
    """Name the archive format by its first bytes."""
    if head[:4] in _ZIP:
        return "zip"
    return "tar" if is_tar(head) else None


@dataclass(frozen=True)
class Packed:
    """A file in an archive. `stream` must be read, or left, before the next file is asked for."""

    path: str
    stream: ByteStream
    time: float


def tar_files(name: str, stream: ByteStream, notes: SourceNotes) -> Iterator[Packed]:
    """Yield the regular files of a tar archive; what can't be read is noted."""
    try:
        for member in members(stream):
            if not member.is_file:
                continue
            path = safe_path(member.path)
            if path is None:
                notes.incomplete(f"{name}: member {member.path[:80]!r} has no safe path; not read")
                continue
            if member.size > MAX_BYTES:
                notes.incomplete(f"{path}: larger than {MAX_BYTES >> 30} GiB; not read")
                continue
            yield Packed(path, ByteStream(stream.portion(member.size)), member.time)
    except TarBroken as error:
        notes.incomplete(f"{name}: {error}; read up to there")


def zip_files(name: str, stream: ByteStream, notes: SourceNotes) -> Iterator[Packed]:
    """Yield the files of a zip archive that comes as a stream."""
    kept: IO[bytes] = io.BytesIO()
    size = 0
    for piece in stream.rest():
        size += len(piece)
        if size > _MAX_ZIP:
            notes.incomplete(f"{name}: a zip archive of more than {_MAX_ZIP >> 30} GiB inside another file; not read")
            return
        if size > _IN_MEMORY and isinstance(kept, io.BytesIO):
            in_memory = kept.getvalue()
            try:
                kept = tempfile.TemporaryFile()  # noqa: SIM115  # closed below
            except OSError as error:
                notes.incomplete(f"{name}: no room to keep a zip archive ({error.strerror}); not read")
                return
            kept.write(in_memory)
        kept.write(piece)
    with kept:
        yield from zip_members(name, kept, notes)


def zip_members(name: str, file: IO[bytes] | BinaryIO, notes: SourceNotes) -> Iterator[Packed]:
    """Yield the files of a zip archive."""
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        notes.incomplete(f"{name}: the zip archive can't be read ({error}); cut while it was copied?")
        return
    packed = file.seek(0, io.SEEK_END)
    before = notes.account.total
    for entry in archive.infolist():
        mode = entry.external_attr >> 16
        if entry.filename.endswith("/") or (mode & 0o170000) not in (0, 0o100000):
            continue
        unpacked = notes.account.total - before
        if unpacked > RATIO_FROM and unpacked > MAX_RATIO * packed:  # its members may lie over each other
            notes.incomplete(f"{name}: unpacks to suspiciously much; reading stopped after {unpacked >> 20} MiB")
            return
        path = safe_path(entry.filename)
        if path is None:
            notes.incomplete(f"{name}: member {entry.filename[:80]!r} has no safe path; not read")
        elif entry.flag_bits & 1:
            notes.incomplete(f"{path}: encrypted; not read")
        elif entry.file_size > MAX_BYTES or (
            entry.file_size > RATIO_FROM and entry.file_size > MAX_RATIO * max(1, entry.compress_size)
        ):
            notes.incomplete(f"{path}: unpacks to suspiciously much; not read")
        else:
            yield Packed(path, ByteStream(_zip_pieces(archive, entry, path, notes)), 0.0)


def _zip_pieces(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: str, notes: SourceNotes) -> Iterator[bytes]:
    done = 0
    try:
        with archive.open(entry) as member:
            while piece := member.read(CHUNK):
                done += len(piece)
                if not notes.account.read(len(piece)):
                    notes.incomplete(f"{path}: more than {MAX_TOTAL >> 30} GiB in all; the rest was not read")
                    return
                yield piece
                if done > entry.file_size:
                    notes.incomplete(f"{path}: longer than the archive says; reading stopped")
                    return
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        notes.incomplete(f"{path}: broken after {done} bytes ({error}); read up to there")


def safe_path(path: str) -> str | None:
    """Return a member's path in one spelling, or None for one that leaves the archive or is out of all proportion.

    >>> safe_path("./a//b"), safe_path("../a"), safe_path("/etc/passwd")
    ('a/b', None, None)
    """
    if path.startswith("/") or len(path) > MAX_PATH or "\\" in path[:3]:
        return None
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or ".." in parts or len(parts) > MAX_FOLDERS:
        return None
    return printable("/".join(parts))
