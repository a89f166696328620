"""Host memory and the process table, as `ps` and `free` would print them (through psutil)."""

from __future__ import annotations

import sys

import psutil

_STATES = {
    psutil.STATUS_RUNNING: "R",
    psutil.STATUS_SLEEPING: "S",
    psutil.STATUS_IDLE: "I",
    psutil.STATUS_DISK_SLEEP: "D",
    psutil.STATUS_STOPPED: "T",
    psutil.STATUS_ZOMBIE: "Z",
    psutil.STATUS_DEAD: "X",
}


def main() -> None:
    """Print host memory, then every process: only a whole table shows that a process no longer exists."""
    root = sys.argv[sys.argv.index("--root") + 1] if "--root" in sys.argv else "/"
    if root != "/":
        return
    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    print("               total        used        free      shared  buff/cache   available")
    shared = getattr(memory, "shared", 0)
    cache = getattr(memory, "cached", 0) + getattr(memory, "buffers", 0)
    rows = (memory.total, memory.used, memory.free, shared, cache, memory.available)
    print("Mem:    " + " ".join(f"{value // 1024:>11}" for value in rows))
    print("Swap:   " + " ".join(f"{value // 1024:>11}" for value in (swap.total, swap.used, swap.free)))
    print()
    print("USER         PID STAT WCHAN  COMMAND")
    for process in psutil.process_iter(["pid", "name", "status", "username"]):
        info = process.info
        state = _STATES.get(info["status"], "?")
        wchan = _wchan(info["pid"]) if state == "D" else "-"
        print(f"{(info['username'] or '?')[:12]:<12} {info['pid']:>5} {state}    {wchan}  {info['name']}")


def _wchan(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/wchan", encoding="ascii") as file:  # noqa: PTH123
            return file.read().strip("\0\n 0") or "-"
    except OSError:
        return "-"


if __name__ == "__main__":
    main()
