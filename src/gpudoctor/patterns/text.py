"""Making text from machines safe to keep and show."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links, clipboard
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"  # DCS and friends
    r"|\x1b[@-Z\\-_]?"
)
# C0 and C1 controls, and the bidirectional marks that reorder what a person sees
_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    r"""Remove escape sequences and control characters; tabs stay.

    >>> clean("\x1b[31mred\x1b[0m\x00 text\x07")
    'red text'
    """
    if text.isprintable():  # nearly every line: no control character, no escape
        return text
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def decode(raw: bytes) -> str:
    """Decode bytes of unknown provenance: UTF-8 with replacement, UTF-16 where a byte-order mark says so, cleaned."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return clean(raw.decode("utf-16", "replace"))
    return clean(raw.decode("utf-8", "replace"))
