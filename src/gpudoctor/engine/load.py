"""Finds and reads rule files; every complaint names file, line and key."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from gpudoctor.declared import parse
from gpudoctor.engine.rule import Rule


class RuleError(ValueError):
    """A rule file that can't be used; str() is one line: file:line: what is wrong."""


def load_rules(folders: Iterable[Path]) -> tuple[list[Rule], list[str]]:
    """Read every *.yaml of the folders; returns the rules that are in order, and one line per fault."""
    rules: dict[str, Rule] = {}
    faults: list[str] = []
    for folder in folders:
        if not folder.is_dir():
            faults.append(f"{folder}: no such folder of rules")
        for path in sorted(folder.glob("*.yaml")):
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
        text = path.read_text(encoding="utf-8")
        data = parse(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        return [], [f"{path}:{line}: not valid YAML: {error.problem}"]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        return [], [f"{path}:1: can't be read: {error}"]
    if data is None:
        return [], []
    if not isinstance(data, list):
        return [], [f"{path}:1: a rule file is a list of rules (`- id: ...`)"]
    rules: list[Rule] = []
    faults: list[str] = []
    for number, entry in enumerate(data):
        try:
            rules.append(Rule.model_validate(entry))
        except ValidationError as error:
            # a misspelt key also makes another one missing: name the misspelt one
            first = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
            keys = [key for key in first["loc"] if key != "ways" or (isinstance(entry, dict) and "ways" in entry)]
            name = entry.get("id", f"rule {number + 1}") if isinstance(entry, dict) else f"rule {number + 1}"
            where = ".".join(str(key) for key in keys) or "rule"
            faults.append(f"{path}:{line_of(text, [number, *keys])}: {name}: {where}: {first['msg']}")
    return rules, faults


def line_of(text: str, keys: list[Any]) -> int:
    """Return the line (from 1) on which the node at this path of keys begins, as deep as the path can be followed."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    line = 1
    for key in keys:
        found = None
        if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            found = node.value[key]
        elif isinstance(node, yaml.MappingNode):
            for name, value in node.value:
                if name.value == str(key):
                    found, line = value, name.start_mark.line + 1
                    break
        if found is None:
            break
        node = found
        if isinstance(key, int):
            line = node.start_mark.line + 1
    return line
