"""Writes an archive so that it is either whole under its name or not there: private, atomic, nothing left behind."""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import os
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

_PARTIAL = ".gpudoctor-partial"


def write_archive(path: Path, folder: str, files: Iterable[tuple[str, bytes]], when: float) -> None:
    """Write `files` (path, content) below `folder` into a .tar.gz or .tar.xz that only its owner may read."""
    with new_file(path) as out:
        packed: gzip.GzipFile | lzma.LZMAFile
        if path.name.endswith((".xz", ".txz")):
            packed = lzma.LZMAFile(out, "wb", preset=3)  # noqa: SIM115  # closed below
        else:
            packed = gzip.GzipFile("", "wb", fileobj=out, compresslevel=6, mtime=int(when))
        with packed, tarfile.open(fileobj=packed, mode="w") as archive:
            for name, content in files:
                member = tarfile.TarInfo(f"{folder}/{name}")
                member.size, member.mtime, member.mode = len(content), int(when), 0o600
                archive.addfile(member, io.BytesIO(content))


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file without a name; it gets its name once all is written. A run that is killed leaves nothing."""
    _clear(path.parent)
    partial = path.with_name(f".{path.name}.{os.getpid()}{_PARTIAL}")
    nameless = True
    try:
        handle = os.open(path.parent, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:  # not every file system has files without names
        nameless = False
        handle = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "w+b") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
            if nameless:
                _name(out.fileno(), partial)
        partial.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise


def _name(handle: int, path: Path) -> None:
    """Give a file without a name one. Only with a folder's handle does Python call linkat, which follows the link in /proc."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.link(f"/proc/self/fd/{handle}", path.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _clear(folder: Path) -> None:
    """Remove what earlier runs that were killed left, where they could not write a file without a name."""
    with contextlib.suppress(OSError):
        for left in folder.glob(f".*{_PARTIAL}"):
            owner = left.name.removesuffix(_PARTIAL).rpartition(".")[2]
            if owner.isdigit() and not Path(f"/proc/{owner}").exists():
                left.unlink()
