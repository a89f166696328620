"""The keys that work here and now, in one line. Help and quit always fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual import events
from textual.widget import Widget

from gpudoctor.tui.rows import Part, Row
from gpudoctor.tui.widgets.rows import Lines

if TYPE_CHECKING:
    from textual.binding import Binding
    from textual.screen import Screen

_LAST = ("close", "help", "quit")


class KeyBar(Lines):
    """Reads the active bindings of the screen; a click on a key is that key."""

    def on_mount(self) -> None:
        """Follow what the keys mean."""
        self.screen.bindings_updated_signal.subscribe(self, self._changed)
        self._spans: list[tuple[int, int, str]] = []

    def on_resize(self) -> None:
        """Fit more or fewer."""
        self._changed(self.screen)

    def _changed(self, screen: Screen[object]) -> None:
        if screen is not self.screen or not self.is_attached:
            return
        self._spans = []
        parts: list[Part] = []
        used = 0
        first, last = _shown(screen)
        first = [binding for binding in first if _label(self, binding)]
        reserved = sum(_width(self, binding) for binding in last)
        for binding in [*first, *last]:
            width = _width(self, binding)
            if binding not in last and used + width + reserved > self.size.width:
                continue
            self._spans.append((used, used + width, binding.action))
            parts += [(f" {self.app.get_key_display(binding)} ", "key"), (_label(self, binding) + " ", "dim")]
            used += width
        self.show([Row(tuple(parts))])

    async def on_click(self, event: events.Click) -> None:
        """Do what the key does."""
        for start, end, action in self._spans:
            if start <= event.x < end:
                await self.screen.run_action(action)


def _shown(screen: Screen[object]) -> tuple[list[Binding], list[Binding]]:
    """Return the bindings to show, nearest to the focus first, and those that come last whatever happens."""
    by_action: dict[str, Binding] = {}
    order: dict[str, int] = {}
    for active in screen.active_bindings.values():
        node, binding, enabled = active.node, active.binding, active.enabled
        if binding.show and enabled and binding.action not in by_action:
            by_action[binding.action] = binding
            order[binding.action] = 0 if node is not screen and node is not screen.app else 1 if node is screen else 2
    ranked = sorted(by_action.values(), key=lambda binding: order[binding.action])
    last = [binding for name in _LAST for binding in ranked if binding.action.rpartition(".")[2] == name]
    return [binding for binding in ranked if binding not in last], last


def _label(widget: Widget, binding: Binding) -> str:
    """Return what the key does now; empty where it does nothing."""
    words = getattr(widget.screen, "key_words", None)
    said: str | None = words(binding.action) if words else None
    return binding.description if said is None else said


def _width(widget: Widget, binding: Binding) -> int:
    return cell_len(widget.app.get_key_display(binding)) + 2 + cell_len(_label(widget, binding)) + 1
