"""Rows of plain text: what every list, table and page on the screens is made of.

A row is a sequence of parts, each a text and the name of a style; text is never markup. What can be done with a row (open
a log, copy, go to a finding) travels with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from rich.cells import cell_len, set_cell_size

Part = tuple[str, str]

# Controls and the marks that reorder or hide what a person sees. Tabs become spaces, so that widths hold.
_UNSAFE = {
    **dict.fromkeys([*range(0x20), *range(0x7F, 0xA0), 0x200B, 0x200E, 0x200F, 0x2028, 0x2029, 0xFEFF]),
    **dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)]),
    ord("\t"): "    ",
    ord("\n"): " ",
}
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")


@dataclass(frozen=True)
class OpenLog:
    """Open the log viewer where a piece of evidence lies."""

    source: str
    line: int
    text: str = ""


@dataclass(frozen=True)
class Copy:
    """Copy a text; `what` names it in the message that says so."""

    text: str
    what: str


@dataclass(frozen=True)
class Goto:
    """Go to a finding."""

    key: str


@dataclass(frozen=True)
class Fold:
    """Fold or unfold what lies under a row."""

    key: str


@dataclass(frozen=True)
class OpenNode:
    """Show one of several nodes."""

    number: int


Action = OpenLog | Copy | Goto | Fold | OpenNode


@dataclass(frozen=True)
class Row:
    """One line on the screen. `key` stays the same while the list around it changes."""

    parts: tuple[Part, ...]
    key: str = ""
    action: Action | None = None

    @property
    def text(self) -> str:
        """The row as a person reads it, without styles."""
        return "".join(text for text, _ in self.parts).rstrip()


def row(*parts: Part | str, key: str = "", action: Action | None = None) -> Row:
    """Make a row; a bare string has the plain style."""
    return Row(tuple((part, "") if isinstance(part, str) else part for part in parts), key, action)


def plain(text: object) -> str:
    r"""Make text from a machine safe to show.

    >>> plain("\x1b[31mred\x1b[0m\tand\x00 \u202eleft")
    'red    and left'
    """
    shown = str(text)
    if shown.isascii() and shown.isprintable():
        return shown
    return _ESCAPES.sub("", shown).translate(_UNSAFE)


def fit(text: str, width: int) -> str:
    """Cut to the width, with an ellipsis where something is lost.

    >>> fit("GPU fell off the bus", 10)
    'GPU fell…'
    """
    if cell_len(text) <= width:
        return text
    if width <= 1:
        return "…"[:width]
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 0 else ""


def column(text: str, width: int, *, right: bool = False) -> str:
    """Fit and pad to exactly the width.

    >>> column("ab", 4, right=True)
    '  ab'
    """
    shown = fit(text, width)
    padding = " " * (width - cell_len(shown))
    return padding + shown if right else shown + padding


def chop(text: str, width: int) -> list[str]:
    """Break a command or a log line without changing it: after a space where one is near the edge, else anywhere.

    >>> chop("abcdef", 4)
    ['abcd', 'ef']
    >>> chop("tail -50 /var/log/syslog", 12)
    ['tail -50 ', '/var/log/sys', 'log']
    """
    width = max(width, 2)
    lines = []
    while len(text) > width or cell_len(text) > width:
        end = width if text.isascii() else _cells(text, width)
        space = text.rfind(" ", end // 2, end)
        end = space + 1 if 0 <= space < end - 1 and text[end : end + 1] not in ("", " ") else end
        lines.append(text[:end])
        text = text[end:]
    return [*lines, text] if text or not lines else lines


def _cells(text: str, width: int) -> int:
    """Return how many characters fit; a wide one counts twice."""
    used = 0
    for number, character in enumerate(text):
        used += cell_len(character)
        if used > width:
            return max(number, 1)
    return len(text)


def wrap(text: str, width: int) -> list[str]:
    """Break between words; a word that is longer than a line is broken anywhere.

    >>> wrap("the driver lost contact", 12)
    ['the driver', 'lost contact']
    """
    width = max(width, 4)
    lines: list[str] = []
    line = ""
    for word in text.split():
        if line and cell_len(line) + 1 + cell_len(word) <= width:
            line += " " + word
            continue
        if line:
            lines.append(line)
        *whole, line = chop(word, width)
        lines += whole
    return [*lines, line] if line or not lines else lines


def paragraph(text: str, width: int, style: str = "", *, indent: str = "", first: str | None = None) -> Iterator[Row]:
    """Yield wrapped rows; `first` stands in place of the indent on the first one."""
    lead = indent if first is None else first
    for line in wrap(plain(text), width - len(indent)):
        yield row((lead, style), (line, style))
        lead = indent


def quoted(text: str, width: int, style: str, *, indent: str, action: Action | None = None) -> Iterator[Row]:
    """Yield a text as it stands, broken only at the edge of the screen."""
    for line in chop(plain(text), width - len(indent)):
        yield row((indent, "dim"), (line, style), action=action)


def heading(text: str, width: int) -> Row:
    """Return a heading with a rule to the edge."""
    shown = fit(text, width)
    rule = "─" * max(0, width - cell_len(shown) - 1)
    return row((shown, "heading"), " ", (rule, "rule"))


def acting(rows: Iterable[Row], action: Action) -> Iterator[Row]:
    """Give every row the same action."""
    return (replace(each, action=action) for each in rows)
