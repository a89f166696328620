"""The day on which a bundle was made, as its name tells it: the times of its files are often those of copying them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

# As sos, supportconfig and the must-gather of the GPU operator write it.
_DAY = re.compile(r"-(20\d\d)-(\d\d)-(\d\d)(?:-|/|$)|_((?:20)?\d\d)(\d\d)(\d\d)_\d{4}(?:/|$)")


def day_in_name(name: str) -> float | None:
    """Return the end of the day that the name of a bundle tells, in seconds since the epoch; None where it tells none.

    >>> day_in_name("sosreport-node1-2024-01-02-abc/") == day_in_name("scc_node1_240102_0905/") == 1704239999.0
    True
    """
    if not (found := _DAY.search(name)):
        return None
    year, month, day = (int(part) for part in found.groups() if part)
    try:
        start = datetime(year if year > 99 else 2000 + year, month, day, tzinfo=timezone.utc)
    except ValueError:
        return None
    return (start + timedelta(days=1, seconds=-1)).timestamp()
