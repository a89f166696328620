"""The few pieces of HTML that every part of the page is made of. Whatever comes from a machine goes through `text`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from gpudoctor.patterns.text import clean

_MARKS = {"critical": "✖", "warning": "▲", "info": "●", "advice": "✚", "ok": "✔", "unknown": "?", "undecided": "?"}


def text(given: object) -> str:
    r"""Make text inert: no markup, no control character, nothing that a browser would refuse or reorder.

    >>> text("<b>\x00\u202etxt</b> & \"it\"")
    '&lt;b&gt;txt&lt;/b&gt; &amp; &quot;it&quot;'
    """
    cleaned = clean(str(given)).encode("utf-8", "replace").decode()
    return escape("".join(char for char in cleaned if ord(char) & 0xFFFE != 0xFFFE))


def prose(given: object) -> str:
    """Return a sentence; what stands between backticks becomes code.

    >>> prose("send the output of `lspci -vv`")
    'send the output of <code>lspci -vv</code>'
    """
    parts = text(given).split("`")
    if len(parts) % 2 == 0:
        return "`".join(parts)
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))


def mark(grade: str) -> str:
    """Return the sign that says by shape what colour says too."""
    return f'<span class="mark {grade}" aria-hidden="true">{_MARKS[grade]}</span>' if grade in _MARKS else ""


def graded(said: tuple[str, str]) -> str:
    """Return a value with the sign and colour that it deserves."""
    words, grade = said
    if not grade:
        return text(words)
    return f'<span class="{grade}">{mark(grade)} {text(words)}</span>'


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, kind: str = "") -> Iterator[str]:
    """Yield a table that scrolls by itself where it is too wide; cells are HTML, the first of each row names the row.

    The caption is for those who hear the page: a heading before the table says the same.
    """
    yield from scrolling(caption, _table(caption, heads, rows, kind))


def scrolling(name: str, inside: Iterable[str]) -> Iterator[str]:
    """Yield a part of the page that scrolls by itself where it is too wide, also by key."""
    yield f'<section class="scroll" tabindex="0" aria-label="{text(name)}">'
    yield from inside
    yield "</section>"


def _table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], kind: str) -> Iterator[str]:
    yield f'<table class="{kind}">' if kind else "<table>"
    yield f"<caption>{text(caption)}</caption>"
    yield "<thead><tr>" + "".join(f'<th scope="col">{text(head)}</th>' for head in heads) + "</tr></thead><tbody>"
    for first, *rest in rows:
        yield f'<tr><th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in rest) + "</tr>"
    yield "</tbody></table>"


def listed(entries: Iterable[object]) -> str:
    """Return a plain list."""
    return "<ul>" + "".join(f"<li>{text(entry)}</li>" for entry in entries) + "</ul>"
