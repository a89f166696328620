"""Compressed streams, told by their first bytes and unpacked as far as they go."""

from __future__ import annotations

import bz2
import importlib
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any

from gpudoctor.patterns.ahead import ahead
from gpudoctor.sources.base import CHUNK, SourceNotes
from gpudoctor.sources.limits import MAX_BYTES, MAX_RATIO, RATIO_FROM
from gpudoctor.sources.stream import ByteStream

_MAGICS = (
    (b"\x1f\x8b", "gzip"),
    (b"\xfd7zXZ\0", "xz"),
    (b"BZh", "bzip2"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)
_BLOCK = b"1AY&SY"  # behind "BZh" and the level; "BZh" alone is also text
_MEMORY = 256 * 2**20  # that an xz stream may ask for
_MAX_BROKEN = 1000  # members of a gzip file, one per section of a bug report
_MEMBER = re.compile(rb"\x1f\x8b\x08[\x00\x08]", re.DOTALL)  # of a gzip stream, with a name or without
_INPUT = 1 << 18  # packed bytes given to a decompressor at a time


def packing(head: bytes) -> str | None:
    r"""Name how something is compressed.

    >>> packing(b"\x1f\x8b\x08"), packing(b"BZh is no archive")
    ('gzip', None)
    """
    for magic, name in _MAGICS:
        if head.startswith(magic) and (name != "bzip2" or head[4:10] == _BLOCK):
            return name
    return None


@cache
def fastest_zlib() -> ModuleType:
    """Return the fastest of the zlib modules that are installed; they have the same interface."""
    for name in ("isal.isal_zlib", "zlib_ng.zlib_ng"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return zlib


def zstd_module() -> ModuleType | None:
    """Return the standard library's zstd module (Python 3.14) or its backport, where there is one."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def unpack(name: str, kind: str, stream: ByteStream, notes: SourceNotes) -> Iterator[bytes]:
    """Yield the text of a compressed stream; what is cut or broken is noted, and read up to there."""
    if kind == "gzip":
        module = fastest_zlib()
        return ahead(_guarded(name, _gunzip(name, module, stream, notes), stream, notes))
    if kind == "zstd":
        zstd = zstd_module()
        if zstd is None:
            notes.incomplete(
                f"{name}: zstd needs Python 3.14 or the package backports.zstd (pip install backports.zstd)"
            )
            return iter(())
        new, error = zstd.ZstdDecompressor, zstd.ZstdError
    elif kind == "xz":
        new, error = (lambda: lzma.LZMADecompressor(memlimit=_MEMORY)), lzma.LZMAError
    else:
        new, error = bz2.BZ2Decompressor, OSError
    return ahead(_guarded(name, _members(name, kind, new, error, stream, notes), stream, notes))


def _guarded(name: str, pieces: Iterator[bytes], packed: ByteStream, notes: SourceNotes) -> Iterator[bytes]:
    """Stop where it unpacks to suspiciously much."""
    unpacked = 0
    for piece in pieces:
        unpacked += len(piece)
        yield piece
        if unpacked > MAX_BYTES or (unpacked > RATIO_FROM and unpacked > MAX_RATIO * packed.position):
            notes.incomplete(f"{name}: unpacks to suspiciously much; reading stopped after {unpacked >> 20} MiB")
            return


def _cut(name: str, unpacked: int, notes: SourceNotes) -> None:
    notes.incomplete(
        f"{name}: the compressed data breaks off after {unpacked} bytes of text (cut while it was written or copied)"
    )


def _broken(name: str, unpacked: int, error: Exception, notes: SourceNotes) -> None:
    notes.incomplete(
        f"{name}: the compressed data is broken after {unpacked} bytes of text ({error}); read up to there"
    )


def _gunzip(name: str, module: Any, stream: ByteStream, notes: SourceNotes) -> Iterator[bytes]:
    """Unpack concatenated gzip members as far as they go; nvidia-bug-report.sh appends one per section."""
    unpacked = 0
    broken = 0
    decoder = module.decompressobj(wbits=31)
    while data := stream.take(_INPUT):
        while data:
            if decoder.eof:  # the next member, behind padding
                data = data.lstrip(b"\0")
                if not data:
                    break
                if len(data) < 2:
                    data += stream.take(1)
                if data[:2] != b"\x1f\x8b":
                    notes.problems.append(f"{name}: {len(data)} bytes behind the compressed data are not gzip; ignored")
                    return
                decoder = module.decompressobj(wbits=31)
            try:
                text = decoder.decompress(data, CHUNK)
            except (zlib.error, module.error) as error:
                if not broken:
                    _broken(name, unpacked, error, notes)
                broken += 1
                if broken > _MAX_BROKEN:
                    return
                data = _next_member(data[1:], stream)
                decoder = module.decompressobj(wbits=31)
                continue
            unpacked += len(text)
            if text:
                yield text
            data = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
            if not data and len(text) == CHUNK and not decoder.eof:
                more = decoder.decompress(b"", CHUNK)  # output that waits inside
                unpacked += len(more)
                if more:
                    yield more
    if not decoder.eof and not broken:
        _cut(name, unpacked, notes)


def _next_member(data: bytes, stream: ByteStream) -> bytes:
    """Return the data from where the next gzip member seems to begin; nothing where none does."""
    while data:
        found = _MEMBER.search(data)
        if found:
            return data[found.start() :]
        more = stream.take(_INPUT)
        data = data[-3:] + more if more else b""
    return b""


def _members(
    name: str,
    kind: str,
    new: Callable[[], Any],
    broken: type[Exception],
    stream: ByteStream,
    notes: SourceNotes,
) -> Iterator[bytes]:
    """Unpack concatenated xz, bzip2 or zstd streams."""
    unpacked = 0
    decoder: Any = None
    while data := stream.take(_INPUT):
        while data or not (decoder is None or decoder.eof or decoder.needs_input):
            if decoder is None or decoder.eof:
                data = data.lstrip(b"\0")
                if len(data) < 16:
                    data += stream.take(16 - len(data))
                if not data:
                    break
                if packing(data) != kind:
                    notes.problems.append(
                        f"{name}: {len(data)} bytes behind the compressed data are not {kind}; ignored"
                    )
                    return
                decoder = new()
            try:
                text = decoder.decompress(data, CHUNK)
            except (broken, EOFError, ValueError) as error:
                _broken(name, unpacked, error, notes)
                return
            unpacked += len(text)
            if text:
                yield text
            data = decoder.unused_data if decoder.eof else b""
    if decoder is not None and not decoder.eof:
        _cut(name, unpacked, notes)
