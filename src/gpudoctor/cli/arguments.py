"""Types of arguments that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def seconds(least: float, most: float) -> Callable[[str], float]:
    """Return a type for argparse: a number of seconds between the two."""

    def convert(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds between {least:g} and {most:g}")
        return value

    return convert


def count(text: str) -> int:
    """A whole number from 1."""
    if not text.isdecimal() or len(text) > 9 or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(text)
