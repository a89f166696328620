"""Widgets made of rows: a few fixed lines, and a list with a cursor that draws only what is on the screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from gpudoctor.tui.rows import Row
from gpudoctor.tui.symbols import SYMBOLS
from gpudoctor.tui.widgets.cursor import CursorView
from gpudoctor.tui.widgets.styles import Styles

_GUTTER = 2


class Lines(Widget):
    """Rows that stand still, without a cursor."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: list[Row] = []
        self._parts = Styles(self)

    def show(self, rows: Sequence[Row]) -> None:
        """Show rows; those that did not change are not drawn again."""
        old, self._rows = self._rows, list(rows)
        for number in range(max(len(old), len(rows))):
            if old[number : number + 1] != self._rows[number : number + 1]:
                self.refresh(Region(0, number, self.size.width, 1))

    def notify_style_update(self) -> None:
        """Look styles up anew after a change of theme."""
        super().notify_style_update()
        self._parts.forget()

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        base = self.rich_style
        if y >= len(self._rows):
            return Strip.blank(self.size.width, base)
        segments = [Segment(text, base + self._parts[name]) for text, name in self._rows[y].parts]
        return Strip(segments).adjust_cell_length(self.size.width, base)


class RowList(CursorView):
    """Rows under a cursor. The row's own action, or its key, tells the screen what Enter means."""

    BINDINGS = [Binding("enter", "choose", "Open")]

    class Moved(Message):
        """The cursor came to another row."""

        def __init__(self, rows: RowList, row: Row) -> None:
            super().__init__()
            self.rows, self.row = rows, row

        @property
        def control(self) -> RowList:
            """The list."""
            return self.rows

    class Chosen(Moved):
        """Enter, or a click on the row under the cursor."""

    class Resized(Message):
        """Rows have more or less room."""

        def __init__(self, rows: RowList) -> None:
            super().__init__()
            self.rows = rows

        @property
        def control(self) -> RowList:
            """The list."""
            return self.rows

    def __init__(self, rows: Iterable[Row] = (), *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.rows: list[Row] = list(rows)

    @property
    def length(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def tell_moved(self) -> None:
        """Tell the screen which row the cursor is on."""
        if (row := self.current) is not None:
            self.post_message(self.Moved(self, row))

    @property
    def room(self) -> int:
        """The width that a row's text has."""
        return max(10, self.scrollable_content_region.width - _GUTTER)

    @property
    def current(self) -> Row | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def set_rows(self, rows: Sequence[Row], *, top: bool = False, follow: bool = True) -> None:
        """Show other rows; the cursor stays on the row of the same key (follow), else at the same place. top: start anew."""
        before = self.current
        if rows == self.rows and not top:
            return
        old, self.rows = self.rows, list(rows)
        self.virtual_size = Size(self.scrollable_content_region.width, len(self.rows))
        place = min(self.cursor, max(0, len(self.rows) - 1))
        if top:
            place = 0
            self.scroll_to(y=0, animate=False, immediate=True)
        elif follow and before is not None and before.key:
            place = next((n for n, row in enumerate(self.rows) if row.key == before.key), place)
        moved = place != self.cursor
        self.set_reactive(CursorView.cursor, place)
        if top or len(old) != len(self.rows):
            self.refresh()
        else:
            for number, (was, now) in enumerate(zip(old, self.rows, strict=True)):
                if was != now:
                    self.refresh_line(number)
            if moved:
                self.refresh()
        if not top:
            self.show_cursor()
        now_current = self.current
        if now_current is not None and (top or before is None or before.key != now_current.key):
            self.post_message(self.Moved(self, now_current))

    def select(self, key: str) -> bool:
        """Put the cursor on the row of that key."""
        for number, row in enumerate(self.rows):
            if row.key == key:
                self.cursor = number
                return True
        return False

    def on_resize(self) -> None:
        """Keep the scroll bar right, and let the owner make its rows fit."""
        self.virtual_size = Size(self.scrollable_content_region.width, len(self.rows))
        self.show_cursor()
        self.post_message(self.Resized(self))

    def action_choose(self) -> None:
        """Act on the row."""
        if (row := self.current) is not None:
            self.post_message(self.Chosen(self, row))

    def on_click(self, event: events.Click) -> None:
        """Move to the row; a click on the row that the cursor is on acts."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        number = offset.y + self.scroll_offset.y
        if number >= len(self.rows):
            return
        if number == self.cursor and event.chain > 1:
            self.action_choose()
        self.cursor = number

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        width = self.scrollable_content_region.width
        number = y + self.scroll_offset.y
        base = self.base
        if number >= len(self.rows):
            return Strip.blank(width, base)
        here = number == self.cursor
        over = self.over_cursor if here else Style.null()
        segments = [Segment(f"{SYMBOLS['cursor']} " if here else "  ", base + over)]
        segments += [Segment(text, base + self.parts[name] + over) for text, name in self.rows[number].parts]
        return Strip(segments).adjust_cell_length(width, base + over)
