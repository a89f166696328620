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

_MARK, _LOOK = "part:", "look"
_CELL, _LINE = 8, 18
# Scroll bars: how Textual draws them is its own affair.
_BARS = str.maketrans(dict.fromkeys("▁▂▃▄▅▆▇▔▏▎▍▌▋▊▉", " "))
_LINES = re.compile(r'<text class="line" y="\d+"[^>]*>(.*?)</text>')
_RUNS = re.compile(r'<tspan class="([^"]*?) ?look\d+" x="(\d+)">(.*?)</tspan>')


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
    _parts: list[str] = field(default_factory=list)
    _looks: dict[str, str] = field(default_factory=dict)  # declarations -> name of the class that has them
    _rows: int = 0

    def take(self, title: str, app: GpuDoctorApp) -> None:
        """Add what is on the screen now."""
        strips = [list(strip) for strip in app.screen._compositor.render_strips()]
        self._parts.append(f'<text class="title" y="{(self._rows + 1) * _LINE}">{escape(title)}</text>')
        top = self._rows + 2
        fills: dict[str, list[str]] = {}
        for number, segments in enumerate(strips):
            for back, x, size in _backs(segments):
                fills.setdefault(back, []).append(f"M{x * _CELL} {(top + number - 1) * _LINE + 4}h{size * _CELL}v{_LINE}h-{size * _CELL}z")  # fmt: skip
        self._parts += [f'<path fill="{back}" d="{"".join(shapes)}"/>' for back, shapes in fills.items()]
        self._parts += [self._line(segments, (top + number) * _LINE) for number, segments in enumerate(strips)]
        self._rows = top + len(strips)

    def _line(self, segments: list[Segment], y: int) -> str:
        """One line of cells: a run of them for each look."""
        runs: list[tuple[str, str, int]] = []  # classes, text, column
        x = 0
        for text, style, _ in segments:
            shown = text.translate(_BARS)
            if shown.strip():
                front, _back = _colours(style)
                declared = f"fill:{front}" + (";font-weight:bold" if style and style.bold else "")
                look = self._looks.setdefault(declared, f"{_LOOK}{len(self._looks)}")
                classes = " ".join([*_names(style), look])
                if runs and runs[-1][0] == classes and runs[-1][2] + cell_len(runs[-1][1]) == x:
                    runs[-1] = (classes, runs[-1][1] + shown, runs[-1][2])
                else:
                    runs.append((classes, shown, x))
            x += cell_len(text)
        spans = [f'<tspan class="{classes}" x="{column * _CELL}">{escape(text.rstrip())}</tspan>' for classes, text, column in runs]  # fmt: skip
        return f'<text class="line" y="{y}">{"".join(spans)}</text>' if spans else ""

    def svg(self) -> str:
        """The sheet."""
        wide, high = self.width * _CELL, (self._rows + 1) * _LINE
        looks = "".join(f".{name}{{{declared}}}" for declared, name in self._looks.items())
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}"'
            ' font-family="monospace" font-size="13" xml:space="preserve">'
        )
        style = f"<style>.title{{fill:#fff}}{looks}</style>"
        ground = f'<rect width="{wide}" height="{high}"/>'
        return "\n".join([head, style, ground, *filter(None, self._parts), "</svg>"]) + "\n"


def _names(style: Style | None) -> list[str]:
    """The names that the stylesheet gives a part, without those of Textual's own parts."""
    return sorted(key.removeprefix(_MARK) for key in style.meta if key.startswith(_MARK) and key != _MARK) if style else []  # fmt: skip


def _backs(segments: list[Segment]) -> Iterator[tuple[str, int, int]]:
    """Stretches of one background: colour, first column, columns."""
    x = start = 0
    colour = ""
    for text, style, _ in segments:
        back = _colours(style)[1]
        if back != colour:
            if colour and x > start:
                yield colour, start, x - start
            colour, start = back, x
        x += cell_len(text)
    if colour and x > start:
        yield colour, start, x - start


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
