"""Lines of a log under a cursor, with the findings' lines marked and a map of them at the edge."""

from __future__ import annotations

from collections.abc import Mapping

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from gpudoctor.tui.logtext import LogText
from gpudoctor.tui.rows import Part, plain
from gpudoctor.tui.symbols import SYMBOLS
from gpudoctor.tui.widgets.cursor import CursorView

_MAP = 2  # columns of the map of findings
_SIDEWAYS = 16
_GRADES = ("critical", "warning", "info", "advice")


class LogView(CursorView):
    """Only the lines on the screen are read."""

    BINDINGS = [
        Binding("space", "page(1)", "Page down", show=False),
        Binding("left,h", "sideways(-1)", "Left", show=False),
        Binding("right,l", "sideways(1)", "Right", show=False),
    ]

    class Moved(Message):
        """The cursor came to another line."""

    def __init__(self, text: LogText, marks: Mapping[int, str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.text = text
        self.marks = dict(marks)  # line from 0 -> grade of the finding that quotes it
        self.needle = ""
        self._left = 0
        self._mapped, self._complete = 0, False
        self._window: tuple[int, list[str]] = (0, [])  # first line, lines
        self._map: tuple[tuple[int, int], list[Part]] = ((0, 0), [])

    @property
    def length(self) -> int:
        """How many lines are known so far."""
        return self.text.lines

    def tell_moved(self) -> None:
        """Tell the screen."""
        self.post_message(self.Moved())

    def grow(self) -> None:
        """Take in the lines that were counted meanwhile."""
        size = Size(self.scrollable_content_region.width, self.text.lines)
        if size == self.virtual_size and self.text.complete == self._complete:
            return
        self._window = (0, [])  # its last line may have been cut
        end = self.virtual_size.height
        self.virtual_size = size
        # The map stands for all lines: draw it anew from time to time, not ten times a second.
        if self.text.complete or end < self.scroll_offset.y + self.size.height or size.height > 1.5 * self._mapped:
            self._mapped, self._complete = size.height, self.text.complete
            self.refresh()

    def seek(self, needle: str) -> None:
        """Highlight a text."""
        self.needle = needle.lower()
        self.refresh()

    def on_resize(self) -> None:
        """Keep the scroll bar right."""
        self.grow()
        self.show_cursor()

    def action_sideways(self, step: int) -> None:
        """Look further right, or back."""
        self._left = max(0, self._left + step * _SIDEWAYS)
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Move to the line, or on the map to the place."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if offset.x >= self.scrollable_content_region.width - _MAP:
            self.cursor = round(offset.y / max(1, self.size.height) * self.text.lines)
        else:
            self.cursor = offset.y + self.scroll_offset.y

    def render_line(self, y: int) -> Strip:
        """Draw one line: its number, its mark, its text, and the map."""
        region = self.scrollable_content_region
        base = self.base
        number = y + self.scroll_offset.y
        map_part = self._map_parts(region.height)[y]
        end = [Segment(map_part[0], base + self.parts[map_part[1]])]
        if number >= self.text.lines:
            return Strip([Segment(" " * (region.width - _MAP), base), *end])
        line = self._line(number)
        here = number == self.cursor
        over = self.over_cursor if here else Style.null()
        grade = self.marks.get(number)
        wide = len(str(self.text.first_line + self.text.lines))
        segments = [
            Segment(f"{SYMBOLS['cursor']} " if here else "  ", base + over),
            Segment(f"{self.text.first_line + number:>{wide}} ", base + self.parts["dim"] + over),
            Segment(f"{SYMBOLS[grade]} " if grade else "  ", base + self.parts[grade or ""] + over),
        ]
        shown = plain(line)[self._left :]
        segments += [Segment(part, base + self.parts[style] + over) for part, style in self._split(shown, grade)]
        return Strip([*Strip(segments).adjust_cell_length(max(0, region.width - _MAP), base + over), *end])

    def _split(self, shown: str, grade: str | None) -> list[Part]:
        style = "bold" if grade else ""
        if not self.needle:
            return [(shown, style)]
        parts: list[Part] = []
        low = shown.lower()
        if len(low) != len(shown):  # a letter whose lower case is longer: positions would not fit
            return [(shown, style)]
        position = 0
        while (hit := low.find(self.needle, position)) >= 0:
            parts += [(shown[position:hit], style), (shown[hit : hit + len(self.needle)], "match")]
            position = hit + len(self.needle)
        return [*parts, (shown[position:], style)]

    def _line(self, number: int) -> str:
        """Return a line; those around it are read with it, as they are drawn next."""
        first, lines = self._window
        if not first <= number < first + len(lines):
            first = self.scroll_offset.y if 0 <= number - self.scroll_offset.y < self.size.height else number
            lines = self.text.read(first, max(1, self.size.height))
            self._window = (first, lines)
        return lines[number - first] if number - first < len(lines) else ""

    def _map_parts(self, height: int) -> list[Part]:
        """Return what stands at each height of the map: the gravest mark among the lines that it stands for."""
        lines = self.text.lines
        if self._map[0] != (height, lines):
            gravest: dict[int, str] = {}
            for line, grade in self.marks.items():
                if line < lines:
                    y = line * height // lines
                    gravest[y] = min(gravest.get(y, grade), grade, key=_GRADES.index)
            parts = [(f" {SYMBOLS[gravest[y]]}", gravest[y]) if y in gravest else ("  ", "") for y in range(height)]
            self._map = ((height, lines), parts)
        return self._map[1]
