"""What our rules say of a finding id, for `explain`: read from the declarations as they stand, without compiling them."""

from __future__ import annotations

import re
from typing import Any

from gpudoctor.declared import declarations, read
from gpudoctor.knowledge.explain import Explanation
from gpudoctor.knowledge.fixes import Step


def finding_ids() -> list[str]:
    """Return every id that a rule declares."""
    return [entry["id"] for path in sorted(declarations("rules").glob("*.yaml")) for entry in read(path)[1]]


def explain_finding(finding_id: str) -> Explanation | None:
    """Return what is known of an id, or None where no rule declares it."""
    path = declarations("rules") / f"{finding_id.partition('.')[0]}.yaml"
    if not path.is_file():
        return None
    entry = next((entry for entry in read(path)[1] if entry["id"] == finding_id), None)
    if entry is None:
        return None
    ways = entry.get("ways") or [entry]
    return Explanation(
        subject=finding_id,
        kind="finding",
        title=f"{finding_id}: {entry['title']}",
        meaning=" ".join(str(entry.get("about", "")).split()) or _because(ways[0]),
        severity=entry["severity"],
        causes=(),
        check=tuple(f"the report says: {_because(way)}" for way in ways[:6]),
        fix=tuple(_step(rung) for rung in entry.get("fix", ())),
        references=tuple(entry.get("references", ())),
        related=tuple(entry.get("explains", ())),
    )


def _because(way: dict[str, Any]) -> str:
    """The sentence of a way, with dots where the report puts what it read."""
    return re.sub(r"\{[^}]*\}", "…", " ".join(str(way.get("because", "")).split()))


def _step(rung: dict[str, Any]) -> Step:
    commands = rung.get("commands", ())
    if isinstance(commands, dict):
        commands = [line for context, lines in commands.items() for line in (f"# {context}:", *lines)]
    return Step(
        title=rung["title"],
        why=" ".join(str(rung.get("why", "")).split()),
        commands=tuple(commands),
        risk=rung.get("risk", "safe"),
        needs=tuple(rung.get("needs", ())),
    )
