"""Processes that hang or work on GPUs, and the machine's load, as `ps` and `free` would print them (through psutil)."""

from __future__ import annotations

import os
import sys

import psutil


def main() -> None:
    """Print host memory, then the processes that matter: those in uninterruptible sleep and those with a GPU open."""
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
        if info["status"] == psutil.STATUS_DISK_SLEEP or _has_gpu_open(info["pid"]):
            state = "D" if info["status"] == psutil.STATUS_DISK_SLEEP else "S"
            print(
                f"{(info['username'] or '?')[:12]:<12} {info['pid']:>5} {state}    {_wchan(info['pid'])}  {info['name']}"
            )


def _wchan(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/wchan", encoding="ascii") as file:  # noqa: PTH123
            return file.read().strip("\0\n 0") or "-"
    except OSError:
        return "-"


def _has_gpu_open(pid: int) -> bool:
    """Look at the open files as links: psutil lists regular files only."""
    folder = f"/proc/{pid}/fd"
    try:
        numbers = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return False
    for number in numbers:
        try:
            if os.readlink(f"{folder}/{number}").startswith("/dev/nvidia"):  # noqa: PTH115
                return True
        except OSError:
            continue
    return False


if __name__ == "__main__":
    main()
