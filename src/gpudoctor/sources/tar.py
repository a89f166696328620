"""Tar archives, read as a stream: nothing is extracted, links and devices are passed over.

Reads ustar, GNU (long names, sparse files as they are stored) and pax. Python's tarfile is not used: it wants to seek, it
keeps every member, and its older versions loop on made-up headers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpudoctor.sources.stream import ByteStream

BLOCK = 512
_MAX_EXTENSION = 1 << 20  # bytes of a long name or of pax records
_FILES = b"0\x007S"
_NAMES = {b"L": "path", b"K": "link"}


class TarBroken(ValueError):
    """The archive breaks off or holds what is no header; str() says where."""


@dataclass(frozen=True)
class Member:
    """A member. Only regular files have content; it must be read (or left) before the next member is asked for."""

    path: str
    size: int
    is_file: bool
    time: float
    is_link: bool = False


def is_tar(head: bytes) -> bool:
    """Tell by the checksum of the first header."""
    return len(head) >= BLOCK and head[0] != 0 and _checksum_fits(head[:BLOCK])


def members(stream: ByteStream) -> Iterator[Member]:
    """Yield the members; what is not read of one is passed over. Raises TarBroken where the archive ends too soon."""
    extended: dict[str, str] = {}
    while True:
        header = stream.take(BLOCK)
        if not header:
            raise TarBroken("the archive has no end mark")
        if len(header) < BLOCK:
            raise TarBroken("the archive breaks off inside a header")
        if header == bytes(BLOCK):
            return
        if not _checksum_fits(header):
            raise TarBroken(f"no valid header at byte {stream.position - BLOCK}")
        size = _number(header[124:136])
        if size < 0:
            raise TarBroken(f"a negative size at byte {stream.position - BLOCK}")
        type_ = header[156:157]
        padded = -(-size // BLOCK) * BLOCK
        if type_ in (b"x", b"g", b"L", b"K"):
            raw = stream.take(min(size, _MAX_EXTENSION))
            _pass(stream, padded - len(raw))
            if type_ == b"x":
                extended |= _pax(raw)
            elif type_ in _NAMES:
                extended[_NAMES[type_]] = raw.rstrip(b"\0").decode("utf-8", "replace")
            continue
        if type_ == b"S" and header[482]:  # old GNU sparse: the map goes on in further blocks
            while True:
                block = stream.take(BLOCK)
                if len(block) < BLOCK:
                    raise TarBroken("the archive breaks off inside a sparse map")
                if not block[504]:
                    break
        if extended.get("size", "").isdigit() and len(extended["size"]) < 20:
            size = int(extended["size"])
            padded = -(-size // BLOCK) * BLOCK
        yield from _member(stream, header, type_, size, padded, extended)
        extended = {}


def _member(
    stream: ByteStream, header: bytes, type_: bytes, size: int, padded: int, extended: dict[str, str]
) -> Iterator[Member]:
    path = extended.get("GNU.sparse.name") or extended.get("path") or _path(header)
    is_file = type_ in (b"0", b"\0", b"7", b"S") and not path.endswith("/")
    if type_ in (b"1", b"2", b"3", b"4", b"5", b"6"):
        padded = padded if type_ == b"1" else 0  # pax hard links may carry content
    before = stream.position
    time = _number(header[136:148])
    yield Member(path, size, is_file, float(time) if 0 < time < 1 << 40 else 0.0, type_ in (b"1", b"2"))
    _pass(stream, padded - (stream.position - before))


def _pass(stream: ByteStream, size: int) -> None:
    if not stream.skip(max(0, size)):
        raise TarBroken("the archive breaks off inside a member")


def _path(header: bytes) -> str:
    name = header[:100].split(b"\0", 1)[0]
    if header[257:263] == b"ustar\0" and (prefix := header[345:500].split(b"\0", 1)[0]):
        name = prefix + b"/" + name
    return name.decode("utf-8", "replace")


def _checksum_fits(header: bytes) -> bool:
    stored = _number(header[148:156])
    unsigned = sum(header) - sum(header[148:156]) + 8 * 32
    if stored == unsigned:
        return True
    high = sum(byte > 127 for byte in header[:148]) + sum(byte > 127 for byte in header[156:])
    return stored == unsigned - 256 * high  # old archivers added signed bytes


def _number(field: bytes) -> int:
    """Read octal digits, or a binary number where the first bit is set; -1 where it is neither."""
    if field[0] & 0x80:
        return int.from_bytes(field[1:], "big") if field[0] == 0x80 else -1
    digits = field.strip(b" \0").split(b"\0")[0].split(b" ")[0]
    if not digits:
        return 0
    if any(digit not in b"01234567" for digit in digits):
        return -1
    return int(digits, 8)


def _pax(raw: bytes) -> dict[str, str]:
    """Read records `length key=value\\n`."""
    records: dict[str, str] = {}
    position = 0
    while position < len(raw):
        space = raw.find(b" ", position, position + 20)
        if space < 0 or not raw[position:space].isdigit():
            break
        end = position + int(raw[position:space])
        if end <= space or end > len(raw):
            break
        key, _, value = raw[space + 1 : end - 1].partition(b"=")
        records[key.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
        position = end
    return records
