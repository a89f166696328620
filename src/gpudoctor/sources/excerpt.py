"""Shows a place of a source in its surroundings: a file or section, and the lines around one of them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import NamedTuple

from gpudoctor.patterns.text import decode, plain
from gpudoctor.sources.base import Source

AROUND = 10
_WHOLE = 40  # lines shown of a section where no line is named
_LONGEST = 2000
_HEADING = " § "


class NoSuchPlace(LookupError):
    """The place isn't in the source; str() is one line, with the nearest names."""


class Excerpt(NamedTuple):
    """Lines of a document: (number, text), and the number that was asked for."""

    name: str
    lines: list[tuple[int, str]]
    asked: int | None


def excerpt(source: Source, place: str) -> Excerpt:
    """Return the lines around `FILE:LINE` or `SECTION:LINE`, or the start of a file or section."""
    found = re.fullmatch(r"(?P<name>.+?):(?P<line>\d{1,12})", place, re.DOTALL)
    name, line = (found["name"], int(found["line"])) if found else (place, None)
    seen: list[str] = []
    for document in source.documents():
        if document.skipped is not None:
            continue
        seen.append(document.name)
        if _is_meant(document.name, name):
            wanted = (
                (line - AROUND, line + AROUND)
                if line is not None
                else (document.first_line, document.first_line + _WHOLE)
            )
            lines = _lines(document.chunks(), document.first_line, *wanted)
            if line is None or any(number == line for number, _ in lines):
                return Excerpt(document.name, lines, line)
        for _ in document.chunks():
            pass
    if line is not None and any(_is_meant(each, name) for each in seen):
        raise NoSuchPlace(f"{name} has no line {line}")
    shorter = (
        short for each in seen for short in (each, each.rpartition("/")[2], each.partition(_HEADING)[2]) if short
    )
    near = difflib.get_close_matches(name, dict.fromkeys(shorter), n=3, cutoff=0.4)
    raise NoSuchPlace(
        f"{name} is not in {source.notes.path}" + (f"; did you mean {' or '.join(near)}?" if near else "")
    )


def _is_meant(document: str, name: str) -> bool:
    """A document goes by its whole name, its section's heading, or the end of its path."""
    path, _, heading = document.partition(_HEADING)
    return name in (document, heading) or (not heading and f"/{path}".endswith(f"/{name}"))


def _lines(chunks: Iterable[bytes], first: int, start: int, stop: int) -> list[tuple[int, str]]:
    kept: list[tuple[int, str]] = []
    number, rest = first, b""
    for chunk in plain(chunks):
        rest += chunk
        if number + rest.count(b"\n") < start:
            number += rest.count(b"\n")
            rest = rest[rest.rfind(b"\n") + 1 :][-_LONGEST:]
            continue
        *whole, rest = rest.split(b"\n")
        for raw in whole:
            if start <= number <= stop:
                kept.append((number, decode(raw[:_LONGEST])))
            number += 1
        if number > stop:
            break
    else:
        if rest and start <= number <= stop:
            kept.append((number, decode(rest[:_LONGEST])))
    return kept
