"""Marks that say by shape what colour says too; ASCII where the terminal's encoding has no more."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpudoctor.findings.model import Finding

_UNICODE = {
    "critical": "✖",
    "warning": "▲",
    "info": "●",
    "advice": "✚",
    "ok": "✔",
    "unknown": "?",
    "undecided": "?",
    "suppressed": "⊝",
    "open": "▾",
    "closed": "▸",
    "absent": "·",
    "failed": "✖",
    "timeout": "◷",
    "denied": "⊘",
    "skipped": "-",
    "running": "…",
    "cursor": "\u203a",
    "full": "█",
    "empty": "░",
    "link": "■",
    "event": "▪",
    "boot": "┃",
}
_ASCII = {
    "critical": "X",
    "warning": "!",
    "info": "i",
    "advice": "+",
    "ok": "v",
    "unknown": "?",
    "undecided": "?",
    "suppressed": "o",
    "open": "v",
    "closed": ">",
    "absent": ".",
    "failed": "X",
    "timeout": "T",
    "denied": "D",
    "skipped": "-",
    "running": "~",
    "cursor": ">",
    "full": "#",
    "empty": ".",
    "link": "=",
    "event": "*",
    "boot": "|",
}


def _speaks_unicode() -> bool:
    return "utf" in (getattr(sys.__stdout__, "encoding", None) or "utf-8").lower()


SYMBOLS = _UNICODE if _speaks_unicode() else _ASCII


def grade(finding: Finding) -> str:
    """Name the mark and the style of a finding."""
    return "advice" if finding.role == "advice" else finding.severity
