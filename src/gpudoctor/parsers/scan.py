"""The one pass over a text: recognises formats, finds log patterns, and turns both into facts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from gpudoctor.facts.base import Fact, LogLine, Probed, Scalar, Where
from gpudoctor.parsers.base import Format, Malformed, NotThisFormat
from gpudoctor.parsers.windows import Window, windows
from gpudoctor.patterns.database import AnchorDatabase
from gpudoctor.patterns.lazy import LazyRegex
from gpudoctor.patterns.stamp import Stamp, parse_stamp
from gpudoctor.patterns.template import MAX_LINE, Template
from gpudoctor.patterns.text import decode, line_ends, plain

MAX_TEXT = 500  # characters of a line that are kept as evidence
MAX_DISTINCT = 60  # different matches of one pattern in one text; the rest is only counted
MAX_GROUPS = 400  # of facts that are kept apart; those of further groups are of one
MAX_FOLDED = (
    2000  # different facts that are folded; once there are more, one of each group of a format with groups is kept
)
MAX_ALIKE = 50_000  # messages of one text that are remembered so that they need not be read again
# Characters that a format may be given before it gets few lines at a time, and how often over it may be given a text.
_HANDED_FREELY, _HANDED_AGAIN, _FEW_LINES = 4 << 20, 4, 60
_CONTINUATION = LazyRegex(r"^\s*(?:NVRM|nvidia-modeset):\s*")
_REPEATED = LazyRegex(r"message repeated (\d+) times")
# A row of nvidia-smi's process list: the name in it is the program's choice, not a message of anybody.
_PROCESS_ROW = re.compile(rb"\|\s+\d+\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+)?\d+\s+(?:M\+)?[CG](?:\+[CG])?\s")
_KERNEL_BANNER = "Linux version "
_BOOT_MARK = "-- Boot "
_REBOOT_MARK = "-- Reboot --"
_LAYOUT = {ord("\n"): None, ord("\t"): None}


class LogPattern(msgspec.Struct, frozen=True):
    """A template under the name that the rules' conditions use for it."""

    key: str
    template: Template


class Problem(msgspec.Struct):
    """A parser that could not read what it recognised."""

    format: str
    where: Where
    reason: str


class Scanner:
    """Compiled once for all formats and patterns, then used on any number of texts."""

    def __init__(self, formats: Sequence[Format], patterns: Sequence[LogPattern]) -> None:
        self.formats = tuple(formats)
        self.patterns = tuple(patterns)
        users: dict[tuple[str, bool], list[Format | LogPattern | str]] = {}
        for format_ in self.formats:
            for anchor in format_.anchors:
                users.setdefault((anchor.lower(), True), []).append(format_)
        for pattern in self.patterns:
            anchor, either = pattern.template.anchor, pattern.template.caseless
            users.setdefault((anchor.lower() if either else anchor, either), []).append(pattern)
        for mark in (_KERNEL_BANNER, _BOOT_MARK, _REBOOT_MARK):
            users.setdefault((mark.lower(), True), []).append(mark)
        self._users = list(users.values())
        self._database = AnchorDatabase([anchor for anchor, _ in users], [either for _, either in users])

    def scan(
        self,
        source: str,
        chunks: Iterable[bytes],
        first_line: int = 1,
        boot: int = 0,
        reached: Callable[[], int] | None = None,
        until: float | None = None,
    ) -> Scanned:
        """Read a text once, chunk by chunk, and return what was found in it.

        boot: which boot the text ends in, where its heading says so (0 this one, -1 the one before).
        reached: the line in which the chunk ends that was given last, where the source counts lines anyway.
        until: when to give up (time.monotonic): a flood of lines that all tell of trouble takes minutes.
        """
        text_scan = _TextScan(source)
        for window in windows(_without_zeros(plain(chunks)), self._database.scan, first_line, reached):
            if until is not None and text_scan.bytes_read and time.monotonic() >= until:
                text_scan.give_up(window.line)
                break
            text_scan.window(window, self._users)
        return text_scan.finish(boot)


class Scanned(msgspec.Struct):
    """Facts of one text, the formats recognised in it, and what could not be read."""

    facts: list[Fact]
    formats: list[str]
    problems: list[Problem] = []
    bytes_read: int = 0


def _without_zeros(pieces: Iterable[bytes]) -> Iterator[bytes]:
    return (piece.replace(b"\0", b" ") if b"\0" in piece else piece for piece in pieces)


class _Line:
    """A line that an anchor was found on; decoded, stamped and joined only where something asks for it."""

    __slots__ = ("_stamp", "_text", "number", "raw", "start", "stop", "window")

    def __init__(self, window: Window, start: int, number: int) -> None:
        self.window, self.start, self.number = window, start, number
        self.raw = raw = window.block
        stop = raw.find(b"\n", start)
        self.stop = len(raw) if stop < 0 else stop
        self._text: str | None = None
        self._stamp: Stamp | None = None

    @property
    def names_a_process(self) -> bool:
        return self.raw.startswith(b"|", self.start) and _PROCESS_ROW.match(self.raw, self.start) is not None

    @property
    def text(self) -> str:
        if self._text is None:
            self._text = decode(self.raw[self.start : min(self.stop, self.start + 2 * MAX_LINE)])
        return self._text

    @property
    def stamp(self) -> Stamp:
        if self._stamp is None:
            self._stamp = parse_stamp(self.text)
        return self._stamp

    def joined(self, lines: int) -> str:
        """Join a message that was split over several lines, without the prefix that each of them repeats."""
        parts = [self.stamp.message]
        raw, before = self.window.wide
        position = self.start + before
        for _ in range(lines - 1):
            position = raw.find(b"\n", position) + 1
            if position == 0:
                break
            stop = raw.find(b"\n", position)
            line = decode(raw[position : stop if stop >= 0 else len(raw)])
            parts.append(_CONTINUATION.sub("", parse_stamp(line).message).strip())
        return " ".join(parts)


class _TextScan:
    """State of the pass over one text."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.facts: list[Fact] = []
        self.formats: list[str] = []
        self.problems: list[Problem] = []
        self.bytes_read = 0
        self._taken: dict[str, int] = {}  # format -> last line that it has read
        self._folded: dict[tuple[object, ...], LogLine] = {}
        self._equal: dict[tuple[object, ...], Fact] = {}
        self._distinct: dict[object, int] = {}  # pattern, or group of facts -> different ones
        self._alike: dict[tuple[str, int, bytes], list[Fact]] = {}  # what lines of this message gave
        self._handed: dict[str, int] = {}  # format -> characters that it was given to read
        self._last: dict[int, tuple[Fact, int, bytes]] = {}  # fact -> the last line that repeats it
        self._boot = 0
        self._uptime = 0.0

    def window(self, window: Window, users: Sequence[Sequence[Format | LogPattern | str]]) -> None:
        """Look at the lines of a block on which something was found."""
        number, raw, position = window.line, window.block, 0
        self.bytes_read += len(raw)
        line = _Line(window, 0, number)
        seen: set[int] = set()  # anchors found on this line
        tried: set[str] = set()  # formats that were looked for on this line
        for end, anchor in window.hits:
            if end > line.stop:
                start = raw.rfind(b"\n", 0, end) + 1
                number += line_ends(raw[position:start])
                position = start
                line = _Line(window, start, number)
                seen, tried = set(), set()
            if anchor in seen:
                continue
            seen.add(anchor)
            for user in () if line.names_a_process else users[anchor]:
                if isinstance(user, LogPattern):
                    self._match(user, line)
                elif not isinstance(user, Format):
                    self._boundary(user, self._stamp(line))
                elif user.name not in tried and number > self._taken.get(user.name, 0):
                    tried.add(user.name)
                    if user.message is None:
                        self._parse(user, line)
                    else:
                        self._parse_once(user, line, user.message(raw[line.start : line.stop]))

    def _stamp(self, line: _Line) -> Stamp:
        stamp = line.stamp
        if stamp.uptime is not None:
            if stamp.uptime < self._uptime - 1:
                self._boot += 1
            self._uptime = stamp.uptime
        return stamp

    def _boundary(self, mark: str, stamp: Stamp) -> None:
        """A kernel banner or journalctl's own mark begins a new boot, unless the clock just showed it."""
        if mark == _KERNEL_BANNER and not (stamp.kernel and stamp.message.startswith(_KERNEL_BANNER)):
            return
        dated = self._folded or any(fact.time is not None for fact in self.facts)
        if dated and stamp.uptime is None:
            self._boot += 1
        self._uptime = 0.0

    def _match(self, pattern: LogPattern, line: _Line) -> None:
        template = pattern.template
        caught = template.match(line.text if template.lines == 1 else line.joined(template.lines))
        if caught is None:
            return
        stamp = self._stamp(line)
        count = 1
        repeated = _REPEATED.search(line.text)
        if repeated:
            count = min(int(repeated[1]), 1_000_000)
        key: tuple[object, ...] = (pattern.key, self._boot, *_hashable(caught))
        known = self._folded.get(key)
        if known is None:
            self._distinct[pattern.key] = self._distinct.get(pattern.key, 0) + 1
            if self._distinct[pattern.key] > MAX_DISTINCT:
                gpu = caught.get("pci") or caught.get("gpu")
                key = (pattern.key, self._boot, "more", gpu)
                known = self._folded.get(key)
        if known is not None:
            self._repeats(known, count, line)
            return
        text = line.text.strip()[:MAX_TEXT]
        gpu = caught.get("gpu") or caught.get("pci") or caught.get("uuid")
        fact = LogLine(
            pattern=pattern.key,
            text=text,
            fields=caught,
            where=Where(source=self.source, line=line.number, text=text),
            time=stamp.time,
            uptime=stamp.uptime,
            boot=self._boot,
            node=stamp.host,
            gpu=str(gpu) if gpu is not None else None,
            count=count,
        )
        self._folded[key] = fact
        self.facts.append(fact)

    def _repeats(self, fact: Fact, count: int, line: _Line) -> None:
        """Count a repetition; only the last one's place and time are worked out, when all is read."""
        fact.count += count
        self._last[id(fact)] = (fact, line.number, line.raw[line.start : min(line.stop, line.start + 2 * MAX_LINE)])

    def _parse_once(self, format_: Format, line: _Line, message: bytes) -> None:
        """Read a line, or count it where one that says the same was read before."""
        key = (format_.name, self._boot, message)
        known = self._alike.get(key)
        if known is None:
            known = self._parse(format_, line)
            if known and len(self._alike) < MAX_ALIKE:
                self._alike[key] = known
            return
        self._taken[format_.name] = line.number
        for fact in known:
            self._repeats(fact, 1, line)

    def _parse(self, format_: Format, line: _Line) -> list[Fact]:
        """Read a format; returns the facts that it gave or repeated."""
        number = line.number
        handed = self._handed.get(format_.name, 0)
        # What looks like the start of a long format again and again, and is none, must not be read to the end each time.
        much = handed > _HANDED_FREELY + _HANDED_AGAIN * self.bytes_read
        text, first = _text_for(format_, line, min(format_.lines, _FEW_LINES) if much else format_.lines)
        self._handed[format_.name] = handed + len(text)
        lines = text.split("\n")
        last = -1
        stamp: Stamp | None = None
        given: list[Fact] = []
        try:
            for fact in format_.parse(text):
                stamp = stamp or self._stamp(line)
                last = max(last, fact.at, *fact.at_fields.values())
                if fact.boot is None:
                    fact.boot = self._boot
                if fact.time is None:
                    fact.time = stamp.time
                if fact.uptime is None:
                    fact.uptime = stamp.uptime
                known = self._known(fact, format_) if format_.fold else None
                if known is None:
                    fact.where = self._where(lines, first, fact.at)
                    fact.where_fields = {name: self._where(lines, first, at) for name, at in fact.at_fields.items()}
                    self.facts.append(fact)
                elif format_.lines == 1:
                    self._repeats(known, fact.count, line)
                else:
                    known.count += fact.count
                    known.last_time = fact.time or known.last_time
                    known.last_where = self._where(lines, first, fact.at)
                given.append(known or fact)
        except NotThisFormat:
            return given
        except Malformed as error:
            self._problem(format_, first, str(error))
        except Exception as error:  # one broken parser must not take the report with it
            self._problem(format_, first, f"{type(error).__name__}: {error}")
        if last < 0:
            last = number - first
            if not format_.answers:
                return given
        self._taken[format_.name] = max(number, first + last)
        self.formats.append(format_.name)
        self.facts.extend(Probed(what=kind) for kind in format_.answers)
        return given

    def _known(self, fact: Fact, format_: Format) -> Fact | None:
        """Return the fact that is known already and says the same, or stands for all that are too many; None where this one is new."""
        said = (fact.kind, fact.boot, fact.said())
        known = self._equal.get(said)
        if known is not None:
            return known
        group = (fact.kind, *(fact.value(name) for name in format_.apart))
        if group not in self._distinct and len(self._distinct) >= MAX_GROUPS:
            group = (fact.kind,)
        number = self._distinct[group] = self._distinct.get(group, 0) + 1
        keep = 1 if format_.apart and len(self._equal) >= MAX_FOLDED else format_.keep
        key = said if number <= keep else (fact.kind, fact.boot, group)
        if (known := self._equal.get(key)) is None:
            self._equal[key] = fact
        return known

    def _where(self, lines: list[str], first: int, at: int) -> Where:
        shown = lines[at].strip()[:MAX_TEXT] if at < len(lines) else ""
        return Where(source=self.source, line=first + at, text=shown)

    def _problem(self, format_: Format, line: int, reason: str) -> None:
        self.problems.append(Problem(format_.name, Where(source=self.source, line=line), reason))

    def give_up(self, line: int) -> None:
        """Say from which line on nothing was read."""
        where = Where(source=self.source, line=line)
        self.problems.append(Problem("text", where, "the time was over here; what follows was not judged"))

    def finish(self, boot: int) -> Scanned:
        newest = self._boot - boot
        for fact, number, raw in self._last.values():
            text = decode(raw)
            if fact.last_where is None or fact.last_where.line < number:
                fact.last_time = parse_stamp(text).time or fact.last_time
                fact.last_where = Where(source=self.source, line=number, text=text.strip()[:MAX_TEXT])
        for fact in self.facts:
            if fact.boot is not None:
                fact.boot -= newest
        return Scanned(self.facts, self.formats, self.problems, self.bytes_read)


def _text_for(format_: Format, line: _Line, lines: int) -> tuple[str, int]:
    """Return what a format reads from this line on, so many lines, and the number of its first line."""
    first = line.number
    if lines == 1 and not format_.back and line.raw.find(b"\r", line.start, line.stop) < 0:
        return line.text, first
    raw, before = line.window.wide
    start = line.start + before
    for _ in range(format_.back):
        if start == 0:
            break
        start = raw.rfind(b"\n", 0, start - 1) + 1
        first -= 1
    end = start
    for _ in range(lines):
        end = raw.find(b"\n", end) + 1
        if end == 0:
            end = len(raw)
            break
    return decode_lines(raw[start:end]), first


def decode_lines(raw: bytes) -> str:
    r"""Decode several lines; each is cleaned, line ends (also \r\n and progress bars' \r) become \n."""
    if raw.isascii():
        text = raw.decode("ascii")
        if text.translate(_LAYOUT).isprintable():  # nothing to clean
            return text
    return "\n".join(
        decode(line.rsplit(b"\r", 1)[-1] if b"\r" in line.rstrip(b"\r") else line) for line in raw.split(b"\n")
    )


def _hashable(caught: dict[str, Scalar]) -> tuple[object, ...]:
    return tuple(caught.values())
