"""What the watch knows beyond its own end: how far each log was read, what they told, which findings were announced."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpudoctor.monitor.files import write_whole

FORMAT = 1
NAME = "watch.json"


@dataclass
class State:
    """Plain data. `reads_as` names the rules with which logs were read: with other rules they must be read anew."""

    reads_as: str = ""
    boot: str = ""
    logs: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: dict[str, Any] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        """Write the state; raises OSError."""
        data = {
            "format": FORMAT,
            "reads_as": self.reads_as,
            "boot": self.boot,
            "logs": self.logs,
            "events": self.events,
        }
        write_whole(folder / NAME, json.dumps(data), mode=0o600)


def load_state(folder: Path) -> State:
    """Return the state of the last run; a new one where there is none that can be used."""
    try:
        data = json.loads((folder / NAME).read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            return State()
        return State(str(data["reads_as"]), str(data["boot"]), dict(data["logs"]), dict(data["events"]))
    except (OSError, ValueError, KeyError, TypeError):
        return State()
