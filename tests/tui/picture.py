"""Screens as SVG that people can look at and tests can compare.

Textual's own export changes with every version of Textual and of its themes. This one writes each run of cells with the
names that the stylesheet gives its parts as classes; colours are attributes of their own, which a comparison leaves out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape, unescape

import pytest
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from gpudoctor.tui.app import GpuDoctorApp
from gpudoctor.tui.widgets.styles import Styles

_MARK = "part:"
_CELL, _LINE = 8, 18
# Scroll bars: how Textual draws them is its own affair.
_BARS = str.maketrans(dict.fromkeys("▁▂▃▄▅▆▇▔▏▎▍▌▋▊▉", " "))
_LINES = re.compile(r'<text class="line" y="\d+"[^>]*>(.*?)</text>')
_RUNS = re.compile(r'<tspan class="([^"]*)" x="(\d+)"[^>]*>(.*?)</tspan>')


@contextmanager
def named_parts() -> Iterator[None]:
    """Let every drawn cell carry the names of its styles."""
    with pytest.MonkeyPatch.context() as patch:
        blended = Styles._blended
        patch.setattr(Styles, "_blended", lambda self, name: blended(self, name) + Style(meta={_MARK + name: True}))
        yield


@dataclass
class Sheet:
    """Screens of one terminal, one below the other."""

    width: int
    screens: list[tuple[str, list[str], str]] = field(default_factory=list)  # title, lines, rectangles
    _top: int = 0

    def take(self, title: str, app: GpuDoctorApp) -> None:
        """Add what is on the screen now."""
        self._top += 2
        lines, behind = [], []
        for strip in app.screen._compositor.render_strips():
            self._top += 1
            line, fills = _line(list(strip), self._top * _LINE)
            lines.append(line)
            behind += fills
        self.screens.append((title, lines, "".join(behind)))

    def svg(self) -> str:
        """The sheet."""
        height = (self._top + 1) * _LINE
        wide = self.width * _CELL
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {height}" width="{wide}" height="{height}"'
            ' font-family="monospace" font-size="13" xml:space="preserve">',
            f'<rect width="{wide}" height="{height}" fill="#000000"/>',
        ]
        top = 0
        for title, lines, behind in self.screens:
            parts.append(f'<text class="title" y="{(top + 1) * _LINE}" fill="#ffffff">{escape(title)}</text>')
            parts += [behind, *filter(None, lines)]
            top += 2 + len(lines)
        return "\n".join([*parts, "</svg>"]) + "\n"


def _line(segments: list[Segment], y: int) -> tuple[str, list[str]]:
    """One line of cells as text, and the rectangles behind it."""
    runs: list[tuple[str, str, str, int]] = []
    fills = []
    x = 0
    for text, style, _ in segments:
        size = cell_len(text)
        names = (
            " ".join(sorted(key.removeprefix(_MARK) for key in style.meta if key.startswith(_MARK))) if style else ""
        )
        front, back = _colours(style)
        if back:
            fills.append(f'<rect x="{x * _CELL}" y="{y - 13}" width="{size * _CELL}" height="{_LINE}" fill="{back}"/>')
        shown = text.translate(_BARS)
        if shown.strip():
            looks = f' fill="{front}"' + (' font-weight="bold"' if style and style.bold else "")
            if runs and runs[-1][0] == names and runs[-1][1] == looks and runs[-1][3] + cell_len(runs[-1][2]) == x:
                runs[-1] = (names, looks, runs[-1][2] + shown, runs[-1][3])
            else:
                runs.append((names, looks, shown, x))
        x += size
    spans = [
        f'<tspan class="{names}" x="{start * _CELL}"{looks} textLength="{cell_len(text.rstrip()) * _CELL}">{escape(text.rstrip())}</tspan>'
        for names, looks, text, start in runs
    ]
    return (f'<text class="line" y="{y}">{"".join(spans)}</text>' if spans else ""), fills


def _colours(style: Style | None) -> tuple[str, str]:
    front = style.color.get_truecolor().hex if style and style.color else "#e0e0e0"
    back = style.bgcolor.get_truecolor().hex if style and style.bgcolor else ""
    return (back or "#000000", front) if style and style.reverse else (front, back)


def readable(svg: str) -> list[str]:
    """What a comparison looks at: each line's text, and below it the names of its parts where they are named."""
    said = []
    for line in svg.splitlines():
        if line.startswith('<text class="title"'):
            said.append(re.sub(r"<[^>]*>", "", line))
        elif found := _LINES.match(line):
            text, names = "", []
            for classes, x, shown in _RUNS.findall(found[1]):
                start = int(x) // _CELL
                text += " " * (start - cell_len(text)) + unescape(shown)
                if classes:
                    names.append(f"{start}:{classes}")
            said += [text, "    " + " ".join(names)] if names else [text]
    return said
