"""What the list of rows and the log viewer share: numbered lines under a cursor, of which only those on the screen are drawn."""

from __future__ import annotations

from rich.style import Style
from textual.binding import Binding
from textual.geometry import Region
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gpudoctor.tui.widgets.styles import Styles


class CursorView(ScrollView, can_focus=True):
    """Moves a cursor over lines and keeps it in view."""

    BINDINGS = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "Page up", show=False),
        Binding("pagedown,ctrl+f", "page(1)", "Page down", show=False),
        Binding("home,g", "edge(-1)", "First", show=False),
        Binding("end,G", "edge(1)", "Last", show=False),
    ]

    cursor = reactive(0, repaint=False)

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.parts = Styles(self)
        self.base = Style.null()

    @property
    def length(self) -> int:
        """How many lines there are."""
        raise NotImplementedError

    def tell_moved(self) -> None:
        """Tell the screen that the cursor came to another line."""
        raise NotImplementedError

    @property
    def over_cursor(self) -> Style:
        """What lies over the line of the cursor; it is weaker without the focus."""
        return self.parts["cursor" if self.has_focus else "cursor-blurred"]

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw lines; the style below them is worked out once for all, as that costs more than a line."""
        self.base = self.rich_style
        return super().render_lines(crop)

    def notify_style_update(self) -> None:
        """Look styles up anew after a change of theme."""
        super().notify_style_update()
        self.parts.forget()

    def validate_cursor(self, value: int) -> int:
        """Keep it on a line."""
        return max(0, min(value, self.length - 1))

    def watch_cursor(self, old: int, new: int) -> None:
        """Redraw the two lines and bring the new one into view."""
        self.refresh_line(old)
        self.refresh_line(new)
        self.show_cursor()
        self.tell_moved()

    def watch_has_focus(self, value: bool) -> None:
        """The cursor looks different without the focus."""
        super().watch_has_focus(value)
        self.refresh_line(self.cursor)

    def action_move(self, step: int) -> None:
        """Go up or down."""
        self.cursor += step

    def action_page(self, step: int) -> None:
        """Go a page up or down."""
        self.cursor += step * max(1, self.scrollable_content_region.height - 1)

    def action_edge(self, step: int) -> None:
        """Go to the first or the last line."""
        self.cursor = 0 if step < 0 else self.length - 1

    def refresh_line(self, number: int) -> None:
        """Draw a line anew, if it is on the screen."""
        y = number - self.scroll_offset.y
        if 0 <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def show_cursor(self) -> None:
        """Scroll as far as needed; after a jump the cursor stands in the upper third, with what follows below it."""
        height = self.scrollable_content_region.height
        top = self.scroll_offset.y
        if height and not top <= self.cursor < top + height:
            near = abs(self.cursor - (top if self.cursor < top else top + height - 1)) <= 1
            wanted = self.cursor if self.cursor < top else self.cursor - height + 1
            self.scroll_to(y=wanted if near else self.cursor - height // 3, animate=False, immediate=True, force=True)
