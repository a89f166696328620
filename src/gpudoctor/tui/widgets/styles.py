"""The styles that parts of rows name, as the stylesheet has them."""

from __future__ import annotations

from rich.style import Style
from textual.widget import Widget

STYLES = [
    "critical",
    "warning",
    "info",
    "advice",
    "ok",
    "unknown",
    "undecided",
    "suppressed",
    "dim",
    "bold",
    "heading",
    "rule",
    "quote",
    "command",
    "link",
    "badge-read-only",
    "badge-safe",
    "badge-restarts-app",
    "badge-disrupts-node",
    "badge-data-loss",
    "badge-vendor",
    "match",
    "event",
    "numa-0",
    "numa-1",
    "key",
    "tab",
    "tab-on",
    "status-ok",
    "status-warning",
    "status-critical",
    "status-unknown",
    "status-examining",
]
# Screens have these as component classes: held once for all widgets, as each costs time where it appears.
PARTS = {f"rows--{name}" for name in STYLES} | {"rows--cursor", "rows--cursor-blurred"}


class Styles:
    """The styles that parts of rows name, as the stylesheet has them, over one widget's background."""

    def __init__(self, widget: Widget) -> None:
        self._widget = widget
        self._known: dict[str, Style] = {"": Style.null()}

    def __getitem__(self, name: str) -> Style:
        style = self._known.get(name)
        if style is None:
            style = self._known[name] = self._blended(name)
        return style

    def forget(self) -> None:
        """Look everything up anew, after a change of theme."""
        self._known = {"": Style.null()}

    def _blended(self, name: str) -> Style:
        styles = self._widget.screen.get_component_styles(f"rows--{name}")
        below = self._widget.background_colors[1]
        background = below + styles.background if styles.has_rule("background") else None
        color = (background or below) + styles.color if styles.has_rule("color") else None
        return (
            Style(color=color.rich_color if color else None, bgcolor=background.rich_color if background else None)
            + styles.text_style
        )
