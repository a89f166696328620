"""Processes, as ps shows them."""

from __future__ import annotations

from collections.abc import Iterator

from gpudoctor.facts.host import (
    Process,
)
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex

_PS = LazyRegex(
    r"^(?:(?P<user>[a-z_][\w-]*\+?)\s+)?(?P<pid>\d+)\s.*?\s(?P<state>D[sLl+<N]{0,3})\s.*?(?P<name>\[?nvidia[\w./-]*\]?|nv_queue|nv_open_q|python3?\S*)(?:\s|$)"
)


def stuck_process(text: str) -> Iterator[Process]:
    """A line of `ps aux`, `ps -ef` or top in which a process of the driver is in state D.

    >>> fact = next(stuck_process("root      4711  0.0  0.0  12345  1234 ?  D  10:01  0:00 nvidia-smi -q")); fact.state, fact.name
    ('D', 'nvidia-smi')
    """
    line = text.partition("\n")[0].strip()
    found = _PS.match(line)
    if not found or ("nvidia" not in line and "nv_" not in line):
        raise NotThisFormat
    yield Process(pid=int(found["pid"]), name=found["name"].strip("[]"), state="D", user=found["user"])


_OF_DRIVER = LazyRegex(r"\[?(?:nvidia|nv_|nv-)")
_LSTART = 5  # words of a start time as `lstart` prints it; as `start` it is one


def ps(text: str) -> Iterator[Process]:
    """What `ps aux` and its kind show of processes that have ended or hang in the driver.

    One program of the driver in state D may just be at work, so it takes two. The table is no proof that another process is gone:
    bundles ask nvidia-smi at another moment.

    >>> rows = "root 7 0.0 0.0 9 9 ? D Jun01 0:00 nvidia-smi -q\\nroot 8 0.0 0.0 9 9 ? Ds 05:44 0:00 /usr/bin/nvidia-smi"
    >>> [(p.pid, p.name, p.state) for p in ps("USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND\\n" + rows)]
    [(7, 'nvidia-smi', 'D'), (8, 'nvidia-smi', 'D')]
    """
    lines = text.split("\n")
    columns = lines[0].split()
    state = next((name for name in ("STAT", "S") if name in columns), None)
    if state is None or "PID" not in columns or columns[-1] not in ("COMMAND", "CMD"):
        raise NotThisFormat
    if "STARTED" in columns:
        at = columns.index("STARTED")
        columns[at : at + 1] = [f"STARTED{word}" for word in range(_LSTART)]
    ended: list[Process] = []
    stuck: list[Process] = []
    for number, line in enumerate(lines[1:], start=1):
        values = line.split(None, len(columns) - 1)
        if len(values) < len(columns):
            break
        row = dict(zip(columns, values, strict=True))
        letter = row[state][0]
        if not row["PID"].isdigit() and row["PID"] != "-":  # the next table
            break
        if letter not in "DZX" or row["PID"] == "-":
            continue
        name = row[columns[-1]].split()[0].rpartition("/")[2]
        wchan = row.get("WCHAN", "-")
        process = Process(at=number, pid=int(row["PID"]), name=name, state=letter, user=row.get("USER"), wchan=None if wchan == "-" else wchan)  # fmt: skip
        if letter != "D":
            ended.append(process)
        elif _OF_DRIVER.match(name):
            stuck.append(process)
    yield from ended
    if len({process.pid for process in stuck}) > 1:
        yield from stuck


FORMATS = (
    Format("ps", ("PID %CPU %MEM", "ADDR    SZ WCHAN", "ADDR SZ WCHAN", "WCHAN  STAT TTY"), ps, lines=200_000),
    Format("stuck process", (" D ", " D+ ", " Ds ", " Dl ", " DN "), stuck_process, lines=1),
)
