"""Moments and spans as people read them."""

from __future__ import annotations

import time

YEAR_KNOWN = 10**9  # stamps without a year count from 1970


def stamp(seconds: float) -> str:
    """Say a moment in UTC; without a year where the log had none.

    >>> stamp(1_700_000_000.0)
    '2023-11-14 22:13:20 UTC'
    >>> stamp(8_000_000.0)
    '04-03 14:13:20'
    """
    form = "%Y-%m-%d %H:%M:%S UTC" if seconds > YEAR_KNOWN else "%m-%d %H:%M:%S"
    try:
        return time.strftime(form, time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return f"{seconds:.0f}"


def span(seconds: float) -> str:
    """Say how long, in the two greatest units.

    >>> [span(value) for value in (0.25, 42, 8121.4, 200_000)]
    ['0.2 s', '42 s', '2 h 15 min', '2 d 7 h']
    """
    whole = round(seconds)
    if seconds < 10:
        return f"{seconds:.1f} s"
    if whole < 60:
        return f"{whole} s"
    for unit, below, size, part in (("d", "h", 86_400, 3_600), ("h", "min", 3_600, 60), ("min", "s", 60, 1)):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // part} {below}"
    return f"{whole} s"
