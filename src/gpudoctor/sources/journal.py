"""Exports of the systemd journal, turned into the lines that journalctl would print.

`-o export` and `-o json-pretty` take many lines per entry, `-o json`, json-seq and json-sse one. Line numbers stay those of the
file: an entry becomes one line and as many empty ones as it had more. journalctl's own mark leads the first line of each boot.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from datetime import datetime, timezone

from gpudoctor.sources.stream import ByteStream

_WANTED = {
    "__REALTIME_TIMESTAMP", "_SOURCE_MONOTONIC_TIMESTAMP", "_BOOT_ID", "_HOSTNAME", "SYSLOG_IDENTIFIER", "_COMM", "_PID",
    "SYSLOG_PID", "_TRANSPORT", "MESSAGE",
}  # fmt: skip
_MAX_FIELD = 1 << 20
_MAX_LINE = 1 << 16  # bytes
_MAX_LINES = 400  # of an entry that is printed over several


def is_export(head: bytes) -> bool:
    """Tell `journalctl -o export` by its first field."""
    return head.lstrip(b"\n").startswith(b"__CURSOR=") and b"__REALTIME_TIMESTAMP=" in head


def is_json(head: bytes) -> bool:
    """Tell `journalctl -o json` and its kin by the fields of the first entry."""
    start = head[:8].lstrip(b"\x1e").removeprefix(b"data: ")
    return start.startswith(b"{") and b'"__REALTIME_TIMESTAMP"' in head and b'"MESSAGE"' in head


def export_lines(stream: ByteStream) -> Iterator[bytes]:
    """Yield lines from `journalctl -o export`."""
    entry: dict[str, str] = {}
    lines = 0
    boots = _Boots()
    for field, value, taken in _fields(_Lines(stream)):
        lines += taken
        if field is not None:
            if field in _WANTED:
                entry[field] = value
            continue
        yield boots.line(entry) + b"\n" * max(1, lines) if entry else b"\n" * lines
        entry, lines = {}, 0
    if entry:
        yield boots.line(entry) + b"\n"


class _Lines:
    """Lines of a stream, and exact amounts of bytes where a field is binary."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    def line(self) -> bytes | None:
        """Return the next line with its end; None at the end."""
        size = 256
        while True:
            head = self._stream.peek(size)
            end = head.find(b"\n") + 1
            if end:
                return self._stream.take(end)
            if len(head) < size or size > _MAX_FIELD:
                return self._stream.take(len(head)) or None
            size *= 4

    def exactly(self, size: int) -> bytes:
        """Return that many bytes, fewer at the end."""
        return self._stream.take(size)


def _fields(lines: _Lines) -> Iterator[tuple[str | None, str, int]]:
    """Yield (field, value, lines of the file); field None ends an entry."""
    while (line := lines.line()) is not None:
        if line in (b"\n", b"\r\n"):
            yield None, "", 1
            continue
        name, equals, value = line.partition(b"=")
        if equals:
            yield name.decode("ascii", "replace"), value.rstrip(b"\n").decode("utf-8", "replace"), 1
            continue
        raw = lines.exactly(8)
        if len(raw) < 8:
            return
        (size,) = struct.unpack("<Q", raw)
        content = lines.exactly(min(size, _MAX_FIELD))
        breaks = raw.count(b"\n") + content.count(b"\n") + lines.exactly(1).count(b"\n")
        yield name.strip().decode("ascii", "replace"), content.decode("utf-8", "replace"), 1 + breaks


def json_lines(stream: ByteStream) -> Iterator[bytes]:
    """Yield lines from `journalctl -o json`, json-seq, json-sse and json-pretty; what is no entry stays as it is."""
    boots = _Boots()
    pending = b""
    opened: list[bytes] = []  # lines of an entry that is printed over several
    for piece in stream.rest():
        pending += piece
        *whole, pending = pending.split(b"\n")
        given: list[bytes] = []
        for line in whole:
            if opened or line.strip() == b"{":
                opened.append(line)
                if line.startswith(b"}") or len(opened) > _MAX_LINES:
                    given += [_from_json(b"\n".join(opened), boots) + b"\n" * len(opened)]
                    opened = []
            else:
                given.append(_from_json(line, boots) + b"\n")
        yield b"".join(given)
        if len(pending) > 8 * _MAX_FIELD:
            yield pending + b"\n"
            pending = b""
    yield b"".join(line + b"\n" for line in opened) + _from_json(pending, boots)


def _from_json(raw: bytes, boots: _Boots) -> bytes:
    """Return an entry as one line; what is none as it is, without its line ends."""
    text = raw.lstrip(b"\x1e").removeprefix(b"data: ")
    try:
        found = json.loads(text) if text.startswith(b"{") and len(text) <= _MAX_FIELD else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or "MESSAGE" not in found:
        return raw.replace(b"\n", b" ")
    entry: dict[str, str] = {}
    for field in _WANTED & found.keys():
        value = found[field]
        if isinstance(value, list):  # bytes that are not UTF-8 come as numbers, repeated fields as several texts
            small = all(isinstance(part, int) and 0 <= part < 256 for part in value)
            value = bytes(value).decode("utf-8", "replace") if small else " ".join(map(str, value))
        entry[field] = str(value)
    return boots.line(entry)


class _Boots:
    """Marks where a boot begins."""

    def __init__(self) -> None:
        self._boot = ""

    def line(self, entry: dict[str, str]) -> bytes:
        """Return an entry as one line. The first of a boot has the mark in front, and no uptime: it tells nothing more."""
        boot = entry.get("_BOOT_ID", "")
        fresh = bool(self._boot and boot and boot != self._boot)
        self._boot = boot or self._boot
        if fresh:
            entry = {field: value for field, value in entry.items() if field != "_SOURCE_MONOTONIC_TIMESTAMP"}
            return f"-- Boot {boot[:32].replace(' ', '_')} -- ".encode("utf-8", "replace") + _line(entry)
        return _line(entry)


def _line(entry: dict[str, str]) -> bytes:
    """Return an entry as one line `time host process[pid]: [uptime] message`, without its end."""
    micro = entry.get("__REALTIME_TIMESTAMP", "")
    when = "1970-01-01T00:00:00+00:00"
    if micro.isdigit() and len(micro) < 17:
        when = datetime.fromtimestamp(int(micro) / 1e6, timezone.utc).isoformat(timespec="microseconds")
    kernel = entry.get("_TRANSPORT") == "kernel"
    process = "kernel" if kernel else entry.get("SYSLOG_IDENTIFIER") or entry.get("_COMM") or "unknown"
    pid = entry.get("_PID") or entry.get("SYSLOG_PID")
    uptime = ""
    monotonic = entry.get("_SOURCE_MONOTONIC_TIMESTAMP", "")
    if kernel and monotonic.isdigit() and len(monotonic) < 16:
        uptime = f"[{int(monotonic) / 1e6:.6f}] "
    message = entry.get("MESSAGE", "").replace("\r", " ").replace("\n", " ")
    host = entry.get("_HOSTNAME", "host").replace(" ", "_")
    line = f"{when} {host} {process.replace(' ', '_')}{f'[{pid}]' if pid else ''}: {uptime}{message}"
    return line.encode("utf-8", "replace")[:_MAX_LINE]
