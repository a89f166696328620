"""The process table, as `ps axo user,pid,stat,wchan,comm` prints it.

Read from /proc/<pid>/stat alone: `cmdline`, which ps and psutil read too, hangs for a process that hangs with its memory locked.
"""

from __future__ import annotations

import os
import sys
from functools import cache


def main() -> None:
    """Print every process: only a whole table shows that a process no longer exists."""
    root = sys.argv[sys.argv.index("--root") + 1] if "--root" in sys.argv else "/"
    if root != "/":
        return
    lines = ["USER         PID STAT WCHAN  COMMAND"]
    for name in sorted(filter(str.isdigit, os.listdir("/proc")), key=int):  # noqa: PTH208  # one path fewer to build for each
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                owner = os.fstat(file.fileno()).st_uid
                stat = file.read()
        except OSError:  # it has just ended
            continue
        command, _, rest = stat.partition(b"(")[2].rpartition(b") ")
        state = rest[:1].decode("ascii", "replace")
        wchan = _wchan(name) if state == "D" else "-"
        shown = "".join(c if c.isprintable() else "?" for c in command.decode("utf-8", "replace"))
        lines.append(f"{_user(owner)[:12]:<12} {name:>5} {state}    {wchan}  {shown}")
    print("\n".join(lines))


@cache
def _user(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _wchan(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/wchan", encoding="ascii") as file:  # noqa: PTH123
            return file.read().strip("\0\n 0") or "-"
    except OSError:
        return "-"


if __name__ == "__main__":
    main()
