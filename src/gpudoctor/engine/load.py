"""Finds and reads rule files; every complaint names file, line and key."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from gpudoctor.engine.rule import Rule

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class RuleError(ValueError):
    """A rule file that can't be used; str() is one line: file:line: what is wrong."""


def declarations(name: str) -> Path:
    """Return the folder of declarations (`rules` or `probes`): inside the installed package, else in the checkout."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / name, package.parents[1] / name):
        if folder.is_dir() and any(folder.glob("*.yaml")):
            return folder
    raise FileNotFoundError(f"gpudoctor's own {name}/ folder is missing; reinstall gpudoctor")


def load_rules(folders: Iterable[Path]) -> list[Rule]:
    """Read every *.yaml of the folders; raises RuleError at the first fault."""
    rules: list[Rule] = []
    for folder in folders:
        for path in sorted(folder.glob("*.yaml")):
            rules += read_rule_file(path)
    seen: dict[str, Rule] = {}
    for rule in rules:
        if rule.id in seen:
            raise RuleError(f"{rule.id}: declared twice; write a second way below the first `ways` instead")
        seen[rule.id] = rule
    return rules


def read_rule_file(path: Path) -> list[Rule]:
    """Read one file; raises RuleError naming file, line and key."""
    try:
        text = path.read_text(encoding="utf-8")
        data = yaml.load(text, Loader=Loader)  # noqa: S506  # a safe loader either way
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise RuleError(f"{path}:{line}: not valid YAML: {error.problem}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RuleError(f"{path}:1: can't be read: {error}") from None
    if data is None:
        return []
    if not isinstance(data, list):
        raise RuleError(f"{path}:1: a rule file is a list of rules (`- id: ...`)")
    rules = []
    for number, entry in enumerate(data):
        try:
            rules.append(Rule.model_validate(entry))
        except ValidationError as error:
            first = error.errors()[0]
            keys = [
                key for key in first["loc"] if key != "ways" or "ways" in (entry if isinstance(entry, dict) else {})
            ]
            name = entry.get("id", f"rule {number + 1}") if isinstance(entry, dict) else f"rule {number + 1}"
            line = line_of(text, [number, *keys])
            where = ".".join(str(key) for key in keys) or "rule"
            raise RuleError(f"{path}:{line}: {name}: {where}: {first['msg']}") from None
    return rules


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
