"""The answer as text and as JSON."""

from __future__ import annotations

from typing import Any

from gpudoctor.patterns.text import clean
from gpudoctor.preflight.model import Preflight, Remark

_HEADS = {
    "yes": "YES: this machine can train on its GPU.",
    "no": "NO: training on the GPU will fail here.",
    "unknown": "CAN'T TELL: something that decides it isn't known.",
}
_TITLES = (
    ("no", "What stands in the way"),
    ("unknown", "What isn't known"),
    ("advice", "What could be better"),
    ("yes", "What is fine"),
)


def render_text(result: Preflight) -> str:
    """Return the answer first, then what stands in the way, what isn't known, what could be better, what is fine."""
    lines = [_HEADS[result.verdict]]
    for answer, title in _TITLES:
        remarks = result.of(answer)  # type: ignore[arg-type]
        if not remarks:
            continue
        lines += ["", f"{title}:"]
        for remark in remarks:
            where = f"{clean(remark.where)}: " if remark.where else ""
            lines.append(f"  - {where}{clean(remark.text)}")
            lines += [f"      {clean(fix)}" for fix in remark.fixes]
    return "\n".join(lines) + "\n"


def as_json(result: Preflight) -> dict[str, Any]:
    """Return the answer as plain data."""
    return {
        "schema_version": "1.0",
        "verdict": result.verdict,
        "remarks": [_remark(remark) for remark in result.remarks],
    }


def _remark(remark: Remark) -> dict[str, Any]:
    return {
        "answer": remark.answer,
        "topic": remark.topic,
        "text": remark.text,
        "where": remark.where or None,
        "fixes": list(remark.fixes),
    }
