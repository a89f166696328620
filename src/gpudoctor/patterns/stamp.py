"""The stamp at the start of a log line: when, since which boot, on which host, and the message without it."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from functools import lru_cache
from typing import NamedTuple

# The first three letters decide, in the languages that syslog and journalctl were seen to print.
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan янв oca ocak januari 1月 ene gen sty led 1월",
            "feb fév fev фев şub 2月 lut úno 2월",
            "mar mär mrz мар maa mrt 3月 bře 3월",
            "apr avr апр nis 4月 abr kwi dub 4월",
            "may mai май мая mei 5月 mag maj kvě 5월",
            "jun jui juin июн haz 6月 giu cze čen 6월",
            "jul juil июл tem 7月 lug lip čec 7월",
            "aug aoû aou авг ağu 8月 ago sie srp 8월",
            "sep сен eyl 9月 set wrz zář 9월",
            "oct okt окт eki 10月 out ott paź říj 10월",
            "nov ноя kas 11月 lis 11월",
            "dec dez déc дек ara 12月 dic gru pro 12월",
        ),
        start=1,
    )
    for name in names.split()
}


class Stamp(NamedTuple):
    """What a line's prefix told. time: seconds since the epoch (year 1970 where none is given); uptime: seconds."""

    message: str
    time: float | None = None
    uptime: float | None = None
    host: str | None = None
    kernel: bool = False


_BOOT_MARK = "-- Boot "  # sources put journalctl's mark before the first line of a boot
_ISO = re.compile(
    r"(?:[^\W\d_]{2,4}\.? )?(?P<date>\d{4}-\d\d-\d\d)[T ](?P<clock>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{1,9}))?\s?(?P<zone>Z|[+-]\d\d:?\d\d|UTC)?"
)
_SYSLOG = re.compile(
    r"(?:(?:\w{2,3}\.?,? )?(?P<day1>\d{1,2})\.? )?(?P<month>[^\W\d_]{3,5}|\d{1,2}[月월])\.?(?: +(?P<day2>\d{1,2}))? (?:(?P<year>\d{4}) )?(?P<clock>\d\d:\d\d:\d\d)(?:\.\d+)?(?: (?P<year2>\d{4}))?"
)
_UNIX = re.compile(r"(?P<seconds>1\d{9}\.\d{6}) (?=[\w.-]+ [\w./@-]+(?:\[\d+\])?: )")
_DMESG = re.compile(r"(?:<\d+>)?(?:kern  ?:\w+ *: )?\[ *(?P<uptime>\d+\.\d+)\](?:\[ *[TC]\d+\])? ?")
_HUMAN = re.compile(
    r"(?:kern  ?:\w+ *: )?\[(?:\w{2,4}\.? )?(?P<month>[^\W\d_]{3,5})\.? +(?P<day>\d{1,2}) (?P<clock>\d\d:\d\d:\d\d)(?:\.\d+)? (?P<year>\d{4})\] ?"
)
_TALOS = re.compile(
    r"(?P<host>[\w.:-]+): (?:kern|user|daemon)[\w ]*: +\w+: \[(?P<iso>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z?\]: "
)
_PROCESS = re.compile(r"(?P<host>[\w.-]+) (?P<process>[\w./@-]+)(?:\[\d+\])?: ")
_BARE_KERNEL = re.compile(r"kernel(?:\[\d+\])?: ")
_KERNEL = re.compile(r"(?:<\d+>)?\s*(?:NVRM|nvidia|pcieport|nouveau|nvidia-\w+)\b")


def _seconds(year: int, month: int, day: int, clock: str) -> float | None:
    hour, minute, second = (int(part) for part in clock.split(":"))
    try:
        return datetime(year, month, day, hour, minute, min(second, 59), tzinfo=timezone.utc).timestamp()
    except ValueError:
        return None


def _month(name: str) -> int | None:
    name = name.lower().rstrip(".")
    return _MONTHS.get(name) or _MONTHS.get(name[:4]) or _MONTHS.get(name[:3])


@lru_cache(maxsize=8)  # the scan and the parser that it calls both ask for the line at hand
def parse_stamp(line: str) -> Stamp:
    """Split a log line into stamp and message; a line without a stamp is all message.

    Understands dmesg (raw, human, -x levels), journalctl's short forms (also full, iso, precise, unix), rsyslog's both forms,
    kubectl and talosctl prefixes. Times without a zone are taken as UTC.

    >>> parse_stamp("Dec  3 08:17:02 node kernel: [  885.24] NVRM: x")[2:]
    (885.24, 'node', True)
    >>> parse_stamp("[Wed Aug  7 19:01:36 2024] NVRM: Xid").message
    'NVRM: Xid'
    """
    line = line.lstrip(" \t|>")
    if line.startswith(_BOOT_MARK):
        line = line.partition(" -- ")[2] or line
    if found := _TALOS.match(line):
        date, _, clock = found["iso"].partition("T")
        year, month, day = (int(part) for part in date.split("-"))
        return Stamp(line[found.end() :], _seconds(year, month, day, clock), None, found["host"], True)
    if found := _HUMAN.match(line):
        month_number = _month(found["month"])
        when = _seconds(int(found["year"]), month_number, int(found["day"]), found["clock"]) if month_number else None
        return Stamp(line[found.end() :], when, None, None, True)
    when = None
    position = 0
    if found := _ISO.match(line):
        year, month, day = (int(part) for part in found["date"].split("-"))
        when = _seconds(year, month, day, found["clock"])
        if when is not None and found["fraction"]:
            when += float("0." + found["fraction"])
        zone = found["zone"]
        if when is not None and zone and zone[0] in "+-":
            digits = zone.replace(":", "")
            offset = int(digits[1:3]) * 3600 + int(digits[3:5]) * 60
            when += -offset if zone[0] == "+" else offset
        position = found.end()
    elif found := _UNIX.match(line):
        when, position = float(found["seconds"]), found.end()
    elif (found := _SYSLOG.match(line)) and (number := _month(found["month"])) and (found["day1"] or found["day2"]):
        year = int(found["year"] or found["year2"] or 1970)
        when = _seconds(year, number, int(found["day1"] or found["day2"]), found["clock"])
        position = found.end()
    rest = line[position:].lstrip() if position else line
    host = None
    kernel = False
    if position and (found := _PROCESS.match(rest)):
        host, kernel = found["host"], found["process"] == "kernel"
        rest = rest[found.end() :]
    elif found := _BARE_KERNEL.match(rest):
        kernel, rest = True, rest[found.end() :]
    uptime = None
    if found := _DMESG.match(rest):
        uptime, kernel, rest = float(found["uptime"]), True, rest[found.end() :]
    return Stamp(rest, when, uptime, host, kernel or bool(_KERNEL.match(rest)))
