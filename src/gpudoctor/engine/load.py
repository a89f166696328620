"""Finds and reads rule files; every complaint names file, line and key."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import ValidationError

from gpudoctor.declared import DeclarationError, complaint, line_of, read
from gpudoctor.engine.rule import Rule, rule_from


def load_rules(folders: Iterable[Path]) -> tuple[list[Rule], list[str]]:
    """Read every *.yaml of the folders; returns the rules that are in order, and one line per fault."""
    rules: dict[str, Rule] = {}
    faults: list[str] = []
    for folder in folders:
        try:
            paths = sorted(path for path in folder.iterdir() if path.suffix == ".yaml")
        except OSError as error:
            faults.append(f"{folder}: can't be read as a folder of rules: {(error.strerror or str(error)).lower()}")
            continue
        for path in paths:
            found, wrong = read_rule_file(path)
            faults += wrong
            for rule in found:
                if rule.id in rules:
                    faults.append(f"{path}: {rule.id}: declared twice; write a further way below its `ways` instead")
                else:
                    rules[rule.id] = rule
    return list(rules.values()), faults


def read_rule_file(path: Path) -> tuple[list[Rule], list[str]]:
    """Read one file; a fault is one line `file:line: rule: key: what is wrong` and costs only its rule."""
    try:
        text, data = read(path)
    except DeclarationError as error:
        return [], [str(error)]
    if data is None:
        return [], []
    if not isinstance(data, list):
        return [], [f"{path}:1: a rule file is a list of rules (`- id: ...`)"]
    rules: list[Rule] = []
    faults: list[str] = []
    for number, entry in enumerate(data):
        try:
            rules.append(rule_from(entry))
        except ValidationError as error:
            keys, wrong_with_it = complaint(error)
            if keys[:2] == ["ways", 0] and isinstance(entry, dict) and "ways" not in entry:
                keys = keys[2:]
            name = entry.get("id", f"rule {number + 1}") if isinstance(entry, dict) else f"rule {number + 1}"
            where = ".".join(str(key) for key in keys) or "rule"
            if keys == ["id"] and "regex" in wrong_with_it:
                wrong_with_it = "an id is area.name, in small letters, digits and (behind the dot) dashes"
            faults.append(f"{path}:{line_of(text, [number, *keys])}: {name}: {where}: {wrong_with_it}")
    return rules, faults
