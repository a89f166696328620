"""What the machine has of memory, file systems and limits, and how much of it is taken."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudoctor.facts.host import (
    FileSystem,
    HostMemory,
    Limit,
    Pressure,
)
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex

_MEMORY = LazyRegex(r"^(?P<key>\w+(?:\(\w+\))?):\s+(?P<value>\d+)(?: kB)?\s*$")
_MEMORY_FIELDS = {
    "total": "MemTotal",
    "available": "MemAvailable",
    "free": "MemFree",
    "swap_total": "SwapTotal",
    "swap_used": "SwapFree",
    "cma_total": "CmaTotal",
    "huge_pages": "HugePages_Total",
}


def meminfo(text: str) -> Iterator[HostMemory]:
    r"""/proc/meminfo, whole or grepped.

    >>> fact = next(meminfo("CmaTotal:              0 kB\nCmaFree:               0 kB\n")); fact.cma_total
    0.0
    """
    values: dict[str, int] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(text.split("\n")):
        found = _MEMORY.match(line.strip())
        if not found:
            if number:
                break
            raise NotThisFormat
        values[found["key"]] = int(found["value"])
        lines[found["key"]] = number

    def mib(key: str) -> float | None:
        return values[key] / 1024 if key in values else None

    swap_total, swap_free = mib("SwapTotal"), mib("SwapFree")
    yield HostMemory(
        total=mib("MemTotal"),
        available=mib("MemAvailable"),
        free=mib("MemFree"),
        swap_total=swap_total,
        swap_used=swap_total - swap_free if swap_total is not None and swap_free is not None else None,
        cma_total=mib("CmaTotal"),
        huge_pages=values.get("HugePages_Total"),
        at=lines.get("MemTotal", 0),
        at_fields={name: lines[key] for name, key in _MEMORY_FIELDS.items() if key in lines},
    )


_SIZE = LazyRegex(r"^(?P<number>\d+(?:[.,]\d+)?)(?P<unit>[BKMGTPkmgt]?)i?B?$")
_MIB = {"B": 1 / 2**20, "K": 1 / 1024, "M": 1, "G": 1024, "T": 2**20, "P": 2**30}


def mib_of(text: str, default: str) -> float | None:
    """Return a size such as 1.5G, 512Mi or 2048 (in the default unit) in MiB.

    >>> mib_of("1.5G", "K"), mib_of("2048", "K")
    (1536.0, 2.0)
    """
    found = _SIZE.match(text)
    if not found:
        return None
    return float(found["number"].replace(",", ".")) * _MIB[(found["unit"] or default).upper()]


def free(text: str) -> Iterator[HostMemory]:
    r"""`free`, with or without -h, -m, -g; the unit is guessed where it isn't printed.

    >>> sample = '''               total        used        free      shared  buff/cache   available
    ... Mem:            31Gi       3.0Gi        12Gi       0.2Gi        15Gi        27Gi
    ... Swap:          2.0Gi          0B       2.0Gi'''
    >>> fact = next(free(sample)); fact.total, fact.available
    (31744.0, 27648.0)
    """
    lines = text.split("\n")
    header = lines[0].split()
    if "total" not in header or "free" not in header:
        raise NotThisFormat
    header = header[header.index("total") :]
    rows: dict[str, list[str]] = {}
    for line in lines[1:5]:
        parts = line.split()
        if len(parts) < 4 or not parts[0].endswith(":"):
            break
        rows[parts[0].rstrip(":").lower()] = parts[1:]
    memory = rows.get("mem") or rows.get("speicher")
    if not memory:
        raise NotThisFormat
    plain = memory[0].isdigit()
    unit = (
        "K"
        if plain and int(memory[0]) > 2_000_000
        else "M"
        if plain and int(memory[0]) > 2_000
        else "G"
        if plain
        else "B"
    )

    def column(row: list[str] | None, name: str) -> float | None:
        if not row or name not in header or header.index(name) >= len(row):
            return None
        return mib_of(row[header.index(name)], unit)

    swap = rows.get("swap")
    yield HostMemory(
        total=column(memory, "total"),
        available=column(memory, "available"),
        free=column(memory, "free"),
        swap_total=column(swap, "total"),
        swap_used=column(swap, "used"),
        at=1,
    )


_DF = LazyRegex(
    r"^(?P<device>\S+)\s+(?:(?P<type>[a-z][\w.]*)\s+)?(?P<size>[\d.,]+[KMGTPkB]?i?B?)\s+(?P<used>[\d.,]+[KMGTPkB]?i?B?)\s+"
    r"(?P<free>-|[\d.,]+[KMGTPkB]?i?B?)\s+(?P<percent>\d+)%\s+(?P<mount>/\S*)\s*$"
)


def df(text: str) -> Iterator[FileSystem]:
    r"""`df`, with or without -h, -T and -i.

    >>> sample = '''Filesystem      Size  Used Avail Use% Mounted on
    ... /dev/nvme0n1p2  100G  100G     0 100% /'''
    >>> fact = next(df(sample)); fact.mount, fact.use_percent, fact.available
    ('/', 100.0, 0.0)
    """
    lines = text.split("\n")
    if not re.search(r"(?:Use|Capacity|IUse|Uso|Verw|Uti)\S*%?", lines[0]) and "%" not in lines[0]:
        raise NotThisFormat
    inodes = "IUse%" in lines[0] or "Inodes" in lines[0]
    unit = "M" if "1M-blocks" in lines[0] else "K"
    for number, line in enumerate(lines[1:], start=1):
        found = _DF.match(line)
        if not found:
            return
        percent = float(found["percent"])
        if inodes:
            yield FileSystem(mount=found["mount"], device=found["device"], inode_percent=percent, at=number)
            continue
        yield FileSystem(
            mount=found["mount"],
            device=found["device"],
            type=found["type"],
            size=mib_of(found["size"], unit),
            used=mib_of(found["used"], unit),
            available=mib_of(found["free"], unit),
            use_percent=percent,
            at=number,
        )


_ULIMIT = LazyRegex(
    r"^(?P<label>[a-z][\w /-]+?)\s+\((?:(?P<unit>[\w-]+), )?-(?P<flag>\w)\)\s+(?P<value>unlimited|\d+)\s*$"
)
_FLAGS = {
    "l": "memlock",
    "n": "nofile",
    "u": "nproc",
    "s": "stack",
    "v": "as",
    "m": "rss",
    "c": "core",
    "i": "sigpending",
}
_PROC_LIMIT = LazyRegex(
    r"^Max (?P<name>locked memory|open files|processes|stack size|address space)\s+(?P<soft>unlimited|\d+)\s+(?P<hard>unlimited|\d+)"
)
_PROC_NAMES = {
    "locked memory": "memlock",
    "open files": "nofile",
    "processes": "nproc",
    "stack size": "stack",
    "address space": "as",
}
_ASKED = LazyRegex(r"ulimit -(?P<hard>H)?(?:S)?(?P<flag>[lnuvs])\s*$")


def _limit(value: str) -> int:
    return -1 if value == "unlimited" else int(value)


def ulimit(text: str) -> Iterator[Limit]:
    r"""`ulimit -a`.

    >>> sample = '''open files                          (-n) 1024
    ... max locked memory           (kbytes, -l) 64'''
    >>> [(fact.name, fact.soft) for fact in ulimit(sample)]
    [('nofile', 1024), ('memlock', 64)]
    """
    for number, line in enumerate(text.split("\n")):
        found = _ULIMIT.match(line.strip())
        if not found:
            if number:
                return
            raise NotThisFormat
        if name := _FLAGS.get(found["flag"]):
            yield Limit(name=name, soft=_limit(found["value"]), at=number)


def ulimit_one(text: str) -> Iterator[Limit]:
    r"""`ulimit -n` or `ulimit -l` with its answer on the next line.

    >>> next(ulimit_one("$ ulimit -n\n1024\n")).soft
    1024
    """
    lines = text.split("\n")
    asked = _ASKED.search(lines[0])
    if not asked or len(lines) < 2 or not re.fullmatch(r"unlimited|\d+", lines[1].strip()):
        raise NotThisFormat
    value = _limit(lines[1].strip())
    name = _FLAGS[asked["flag"]]
    if asked["hard"]:
        yield Limit(name=f"{name}_hard", soft=value, hard=value, at=1)
    else:
        yield Limit(name=name, soft=value, at=1)


def proc_limits(text: str) -> Iterator[Limit]:
    """/proc/PID/limits.

    >>> fact = next(proc_limits("Max open files            1024                 1048576              files"))
    >>> fact.name, fact.soft, fact.hard
    ('nofile', 1024, 1048576)
    """
    for number, line in enumerate(text.split("\n")):
        if not line.startswith("Max "):
            if number:
                return
            raise NotThisFormat
        if found := _PROC_LIMIT.match(line):
            soft, hard = _limit(found["soft"]), _limit(found["hard"])
            if found["name"] == "locked memory":
                soft, hard = (value // 1024 if value > 0 else value for value in (soft, hard))
            yield Limit(name=_PROC_NAMES[found["name"]], soft=soft, hard=hard, at=number)


_PRESSURE = LazyRegex(
    r"(?P<scope>some|full) avg10=(?P<avg10>\d+(?:\.\d+)?) avg60=(?P<avg60>\d+(?:\.\d+)?) avg300=(?P<avg300>\d+(?:\.\d+)?)"
)
_RESOURCE = LazyRegex(r"pressure[/.](?P<resource>cpu|memory|io)\b")


def pressure(text: str) -> Iterator[Pressure]:
    r"""A file of /proc/pressure under a line that names it.

    >>> next(pressure("$ cat /proc/pressure/io\nsome avg10=91.20 avg60=80.00 avg300=60.00 total=1\n")).resource
    'io'
    """
    lines = text.split("\n")
    named = _RESOURCE.search(lines[0])
    if not named:
        raise NotThisFormat
    for number, line in enumerate(lines[1:5], start=1):
        if found := _PRESSURE.search(line):
            yield Pressure(
                resource=named["resource"],
                scope=found["scope"],
                avg10=float(found["avg10"]),
                avg60=float(found["avg60"]),
                avg300=float(found["avg300"]),
                at=number,
            )


FORMATS = (
    Format("/proc/meminfo", ("MemTotal:  ", "CmaTotal:  "), meminfo, lines=70, answers=("host_memory",)),
    Format(
        "free",
        ("total        used        free", "total       used       free"),
        free,
        lines=5,
        answers=("host_memory",),
    ),
    Format(
        "df",
        ("Mounted on", "Montado en", "Mont\u00e9 sur", "Eingeh\u00e4ngt auf"),
        df,
        lines=200,
        answers=("file_system",),
    ),
    Format("ulimit -a", ("(blocks, -c)", "(-n) ", "(kbytes, -l)"), ulimit, lines=30),
    Format("ulimit", ("ulimit -",), ulimit_one, lines=2),
    Format("/proc/PID/limits", ("Max cpu time", "Max open files ", "Max locked memory "), proc_limits, lines=20),
    Format("/proc/pressure", ("pressure/", "pressure."), pressure, lines=5),
)
