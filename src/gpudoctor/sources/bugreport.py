"""nvidia-bug-report.log: sections separated by lines of underscores.

Each section begins with a heading: `*** /path` (a file; the next line may be `*** ls: ...`), a command line, or
`base64 "..."`. The script has written them in this shape since 2013. One section, "Scanning kernel log files", holds
several logs under indented headings of their own: the same event stands in it up to four times, in different boots.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial

from gpudoctor.patterns.stamp import parse_stamp
from gpudoctor.patterns.text import line_ends
from gpudoctor.sources.base import Document, SourceNotes

_UNDERSCORES = b"_" * 20
_RULE = re.compile(rb"_{20,}[ \t\r]*\n")
_LONGEST_RULE = 4096
_BOOT = re.compile(r"journalctl\b.*\s-b\s*(-\d+)")
_SCAN = b"Scanning kernel log files for NVIDIA kernel messages"
_LOG = re.compile(rb"^  (?P<name>/\S+?|journalctl\b[^\n]*?):?[ \t\r]*\n", re.MULTILINE)
_DATE = re.compile(rb"^Date: (?P<date>[^\r\n]+)", re.MULTILINE)
_UNAME = re.compile(rb"^uname: Linux \S+ (?P<release>\S+)", re.MULTILINE)
_WRITTEN = re.compile(rb"^\*\*\* ls: \S+ +\d+ \S+ \S+ +\d+ (?P<when>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", re.MULTILINE)
_BASE64 = re.compile(rb"^(?:[A-Za-z0-9+/]{76}\r?\n){3}", re.MULTILINE)
_REST_OF_BASE64 = re.compile(rb"(?:[A-Za-z0-9+/]{76}\r?\n)*[A-Za-z0-9+/=]{0,76}\r?\n?")
_MAX_KEPT = 1 << 20  # of a section that is passed on as it comes
_MAX_SECTION = 24 * 2**20  # of one that holds several logs
_END = b"End of NVIDIA bug report log file"
_OLD = timedelta(days=1)  # a log file of an installation that is older says nothing of now


def is_bug_report(head: bytes) -> bool:
    """Tell by the first bytes."""
    return b"Start of NVIDIA bug report log file" in head[:4096] or b"nvidia-bug-report.sh Version" in head[:4096]


@dataclass
class _Report:
    """What the head of the report says, all in the wall clock of the machine."""

    taken: datetime | None = None
    kernel: str = ""

    @property
    def seconds(self) -> float | None:
        """The moment in seconds since the epoch, as log times are read: the wall clock as if it were UTC."""
        return None if self.taken is None else self.taken.replace(tzinfo=timezone.utc).timestamp()


def _read_head(body: bytes) -> _Report:
    date, uname = _DATE.search(body), _UNAME.search(body)
    return _Report(
        taken=wall_clock(date["date"].decode("utf-8", "replace")) if date else None,
        kernel=uname["release"].decode("utf-8", "replace") if uname else "",
    )


def wall_clock(date: str) -> datetime | None:
    """Read what `date` printed, in any of the locales that were seen; the zone is left out.

    >>> wall_clock("Mon Jul  7 06:43:57 PM EDT 2025"), wall_clock("Mo 30. Okt 10:18:57 CET 2023")
    (datetime.datetime(2025, 7, 7, 18, 43, 57), datetime.datetime(2023, 10, 30, 10, 18, 57))
    >>> wall_clock("2025年 03月 11日 星期二 09:05:12 CST"), wall_clock("mar. 09 sept. 2025 10:12:13 CEST")  # on a mardi
    (datetime.datetime(2025, 3, 11, 9, 5, 12), datetime.datetime(2025, 9, 9, 10, 12, 13))
    """
    date = re.sub(r"(\d{1,2})[时時](\d\d)分(\d\d)秒", r"\1:\2:\3", date)
    if numeric := re.search(
        r"(20\d\d)(?:年|[-./]) {0,2}(\d{1,2})(?:月|[-./]) {0,2}(\d{1,2})(?!\d)[^:]*?(\d{1,2}):(\d\d):(\d\d)(?! ?[AP]M)",
        date,
    ):
        try:
            return datetime(*map(int, numeric.groups()))  # type: ignore[arg-type]  # six numbers, none of them a zone
        except ValueError:
            return None
    clock = re.search(r"(\d{1,2}):(\d\d):(\d\d)(?: ([AP]M))?", date)
    year = re.search(r"\b(20\d\d)\b", date)
    if not clock or not year:
        return None
    rest = date.replace(clock[0], " ").replace(year[0], " ")
    day = re.search(r"\b(\d{1,2})\b\.?", rest)
    months = re.findall(r"[^\W\d_]{3,}|\d{1,2}[月월]", rest)
    hour = int(clock[1]) % 12 + 12 * (clock[4] == "PM") if clock[4] else int(clock[1])
    for month in reversed(months):  # the day of the week, before it, may look like one: mar. is mardi and martes
        stamp = parse_stamp(f"{month[:4]} {day[1] if day else 1} {hour:02d}:{clock[2]}:{clock[3]} host x: y").time
        if stamp is not None:
            return datetime.fromtimestamp(stamp, timezone.utc).replace(tzinfo=None, year=int(year[1]))
    return None


def sections(name: str, chunks: Iterable[bytes], notes: SourceNotes) -> Iterator[Document]:
    """Yield one document per section, and per log inside one; lines are counted from the start of the whole report.

    A long section is passed on as it comes; only one that holds several logs is looked at as a whole.
    """
    reader = _Reader(chunks)
    report = _Report()
    heading = "head"
    while (body := reader.section()) is not None:
        line = reader.line
        heading = _heading(body) or heading
        if not report.kernel and b"Date: " in body[:2048]:
            report = _read_head(body)
            if report.seconds is not None:
                notes.collected_at, notes.dated_by_content = report.seconds, True
        if reader.whole:
            reader.passed(body)
            yield from _documents(name, heading, body, line, report, whole=True)
        elif (
            _SCAN in body[:200]
        ):  # longer than can be kept: what is there is cut into its logs, the rest goes by the last
            reader.passed(body)
            last = heading
            for document in _documents(name, heading, body, line, report, whole=False):
                last = document.name.partition(" § ")[2]
                yield document
            yield Document(f"{name} § {last}", reader.rest, reader.line, reached=lambda: reader.line)
        else:
            *before, document = _documents(name, heading, body, line, report, whole=False)
            yield from before
            document.chunks, document.reached = partial(reader.rest, body), lambda: reader.line
            yield document
        reader.drain()
    if not reader.ended:
        notes.incomplete(
            f"{name}: the report has no end mark; it breaks off in or right behind section {heading!r}: copied too early, "
            "or the script hung there, which is a symptom in itself"
        )


class _Reader:
    """Cuts the report at the lines of underscores."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._buffer = b""
        self._at = 0  # what lies before was given
        self._within = False  # what lies there is the rest of a line
        self._more = True  # there may be further chunks
        self._open = True  # a section follows
        self.whole = True  # the section that was given last is complete
        self.line = 1  # of the next section's first line
        self.ended = False  # the end mark was seen

    def section(self) -> bytes | None:
        """Return the next section, or the start of one that is long (`whole` tells); None behind the last."""
        if not self._open:
            return None
        self.whole = True
        searched = 0
        while True:
            rule = self._rule(self._at + searched)
            if rule is not None:
                return self._take(rule.start(), rule.end())
            limit = _MAX_SECTION if _SCAN in self._buffer[self._at : self._at + 200] else _MAX_KEPT
            last = self._buffer.rfind(b"\n", self._at) + 1
            if last and len(self._buffer) - self._at > limit:
                self.whole = False
                return self._take(last, last)
            searched = max(0, last - self._at)
            if not self._fill():
                self._open = False
                return self._take(len(self._buffer), len(self._buffer))

    def passed(self, body: bytes) -> None:
        """Count what was given: the lines of a section, and behind a whole one the line of underscores."""
        self.line += line_ends(body) + self.whole
        self.ended = self.ended or _END in (body if self.whole else body[-_LONGEST_RULE:])

    def rest(self, body: bytes = b"") -> Iterator[bytes]:
        """Yield the start of a long section, then what follows up to its end."""
        if body:
            self.passed(body)
            yield body
        while not self.whole:
            rule = self._rule(self._at)
            if rule is not None:
                self.whole, self._within = True, False
                body = self._take(rule.start(), rule.end())
            else:
                stop = len(self._buffer)
                line = self._buffer.rfind(b"\n", self._at) + 1
                if self._buffer.startswith(b"_", line or self._at) and (line or not self._within):
                    stop = line or self._at  # this may become a line of underscores
                    if stop == self._at and len(self._buffer) - stop > _LONGEST_RULE:
                        stop = len(self._buffer)
                body = self._take(stop, stop)
                if body:
                    self._within = not body.endswith(b"\n")
                if not self._fill():
                    body += self._take(len(self._buffer), len(self._buffer))
                    self.whole, self._open = True, False
            self.passed(body)
            if body:
                yield body

    def drain(self) -> None:
        """Pass over what nobody read of a long section."""
        for _ in self.rest():
            pass

    def _take(self, stop: int, following: int) -> bytes:
        """Return what lies before `stop`; what is given next begins at `following`."""
        taken = self._buffer[self._at : stop] if self._at or stop < len(self._buffer) else self._buffer
        self._at = following
        return taken

    def _fill(self) -> bool:
        chunk = next(self._chunks, None) if self._more else None
        self._more = chunk is not None
        self._buffer, self._at = self._buffer[self._at :] + (chunk or b""), 0
        return self._more

    def _rule(self, start: int) -> re.Match[bytes] | None:
        """Find the next line of underscores that is there with its end; `start` is the start of a line, or within one."""
        within = self._within
        while True:
            if within or not self._buffer.startswith(_UNDERSCORES, start):
                start = self._buffer.find(b"\n" + _UNDERSCORES, start) + 1
                if start == 0:
                    return None
            within = False
            found = _RULE.match(self._buffer, start)
            if found is not None:
                return found
            start += len(_UNDERSCORES)
            if b"\n" not in self._buffer[start : start + _LONGEST_RULE]:
                return None
            start = self._buffer.find(b"\n", start) + 1


def _heading(body: bytes) -> str | None:
    for raw in body.split(b"\n", 8)[:8]:
        text = raw.strip().decode("utf-8", "replace")
        if text:
            return text.removeprefix("*** ").strip()[:120].rstrip(":")
    return None


def _documents(name: str, heading: str, body: bytes, line: int, report: _Report, *, whole: bool) -> Iterator[Document]:
    """Yield the section, or the logs that it holds under headings of their own, each with its boot."""
    marks = list(_LOG.finditer(body)) if _SCAN in body[:200] else []
    if not marks:
        coded = _BASE64.search(body, 0, _MAX_KEPT >> 7)  # what nvidia-debugdump and acpidump wrote to files
        if coded is None:
            yield _document(name, heading, body, line, report, "base64" if heading.startswith("base64 ") else None)
            return
        before, behind = body[: coded.start()], b""
        if before.strip().count(b"\n"):  # more than the heading
            yield _document(name, heading, before, line, report)
        if whole and (rest := _REST_OF_BASE64.match(body, coded.end())):
            behind = body[rest.end() :]
        yield _document(name, heading, body, line, report, "base64")
        if behind.strip():
            yield _document(name, heading, behind, line + line_ends(body[: len(body) - len(behind)]), report)
        return
    logs = [
        (
            mark["name"].decode("utf-8", "replace"),
            mark.end(),
            marks[index + 1].start() if index + 1 < len(marks) else len(body),
        )
        for index, mark in enumerate(marks)
    ]
    starts = _boot_starts(logs, body)
    for log, start, stop in logs:
        for boot, first, last in _by_boot(log, body, start, stop, starts):
            part = body[first:last]
            yield Document(
                name=f"{name} § {log}",
                chunks=lambda part=part: (part,),  # type: ignore[misc]
                first_line=line + body.count(b"\n", 0, first),
                boot=boot,
                taken=report.seconds,
            )


def _boot_starts(logs: list[tuple[str, int, int]], body: bytes) -> dict[int, float]:
    """Return when each boot began whose journal the section holds, in seconds of the year, by the wall clock."""
    starts: dict[int, float] = {}
    for log, start, stop in logs:
        if found := _BOOT.search(log):
            for raw in body[start:stop].split(b"\n", 8)[:8]:
                moment = _moment(raw)
                if moment is not None:
                    starts[int(found[1])] = moment
                    break
    return starts


def _moment(raw: bytes) -> float | None:
    """Return the time of a line in seconds of the year, by the wall clock that it prints."""
    text = raw[:64].decode("utf-8", "replace")
    text = re.sub(r"^(\d{4}-\d\d-\d\dT[\d:]{8})(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?", r"\1", text)
    stamp = parse_stamp(text + " ").time
    if stamp is None:
        return None
    when = datetime.fromtimestamp(stamp, timezone.utc)
    return (when - when.replace(month=1, day=1, hour=0, minute=0, second=0, microsecond=0)).total_seconds()


def _by_boot(log: str, body: bytes, start: int, stop: int, starts: dict[int, float]) -> Iterator[tuple[int, int, int]]:
    """Cut a log file that spans boots where the journal says that they began; yield (boot, first byte, last byte)."""
    if found := _BOOT.search(log):
        yield int(found[1]), start, stop
        return
    if 0 not in starts or "/var/log/" not in log or log.endswith("dmesg"):
        yield (-1 if re.search(r"\.(?:0|1|old)(?:\.gz)?$", log) else 0), start, stop
        return
    boots = sorted(starts)
    position, current, first = start, None, start
    while position < stop:
        end = body.find(b"\n", position, stop)
        end = stop if end < 0 else end + 1
        moment = _moment(body[position:end])
        if moment is not None:
            boot = _boot_at(moment, starts, boots)
            if current is not None and boot != current:
                yield current, first, position
                first = position
            current = boot
        position = end
    yield (0 if current is None else current), first, stop


def _boot_at(moment: float, starts: dict[int, float], boots: list[int]) -> int:
    """Return the boot in which a moment lies: the newest that began before it, else one before all known ones."""
    half = 366 * 43_200
    for boot in reversed(boots):
        behind = moment - starts[boot]
        if behind < -half:  # the year turned in between
            behind += 366 * 86_400
        if -5 <= behind < half:
            return boot
    return boots[0] - 1


def _document(name: str, heading: str, body: bytes, line: int, report: _Report, skipped: str | None = None) -> Document:
    found = _BOOT.search(heading)
    return Document(
        name=f"{name} § {heading}",
        chunks=lambda: (body,),
        first_line=line,
        boot=int(found[1]) if found else _age(heading, body, report),
        skipped=skipped,
        taken=report.seconds,
    )


def _age(heading: str, body: bytes, report: _Report) -> int:
    """Return -1 for logs of an installation or a build that isn't about what runs now."""
    if heading.endswith("/make.log"):
        return -1 if report.kernel and f"/{report.kernel}/" not in heading and heading.count("/") > 6 else 0
    if (
        "/var/log/" in heading.partition(" ")[0]
        and report.taken is not None
        and (found := _WRITTEN.search(body[:1024]))
    ):
        written = wall_clock(found["when"].decode())
        return -1 if written is not None and report.taken - written > _OLD else 0
    if heading.endswith((".log.old", ".old")):
        return -1
    return 0
