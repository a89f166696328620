"""Gives a year to the times of logs that print none, from the moment when the evidence was taken."""

from __future__ import annotations

from datetime import datetime, timezone

_YEARLESS = 366 * 86_400.0  # such times were read as of 1970
_SLACK = 86_400.0  # the evidence may have been taken in another time zone than its logs are in


def with_year(time: float | None, taken: float) -> float | None:
    """Return the time in the last year that is not later than the evidence; times that have a year stay.

    >>> taken = datetime(2024, 1, 2, tzinfo=timezone.utc).timestamp()
    >>> moment = datetime(1970, 12, 31, 23, 0, tzinfo=timezone.utc).timestamp()
    >>> datetime.fromtimestamp(with_year(moment, taken), timezone.utc).isoformat()
    '2023-12-31T23:00:00+00:00'
    """
    if time is None or not 0 <= time < _YEARLESS:
        return time
    moment = datetime.fromtimestamp(time, timezone.utc)
    latest = datetime.fromtimestamp(taken, timezone.utc).year
    for year in (latest + 1, latest, latest - 1):
        try:
            dated = moment.replace(year=year).timestamp()
        except ValueError:  # 29 February
            continue
        if dated <= taken + _SLACK:
            return dated
    return time
