"""No regular expression of the product takes for ever on some line: logs are hostile."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpudoctor.patterns.backtracking import hazard

ROOT = Path(__file__).parents[1]
CALLS = {"LazyRegex", "compile", "search", "match", "fullmatch", "findall", "finditer", "sub", "split"}
# Addresses of IPv6: at most eight times four letters either way, so it ends after some thousand steps.
BOUNDED = r"(?<![\w:.])(?:[0-9a-fA-F]{1,4}:|"


def of_rules(data: Any) -> Iterator[str]:
    if isinstance(data, dict):
        for key, value in data.items():
            if key in ("regex", "matches") and isinstance(value, str):
                yield value
            else:
                yield from of_rules(value)
    elif isinstance(data, list):
        for entry in data:
            yield from of_rules(entry)


def of_code(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the expressions that are written down as such, with their flags."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and node.args):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        module = getattr(getattr(node.func, "value", None), "id", "")
        pattern = node.args[0]
        if not (name in CALLS and (name == "LazyRegex" or module == "re")) or not isinstance(pattern, ast.Constant):
            continue
        flags = [getattr(re, f.attr, 0) for arg in node.args[1:] for f in ast.walk(arg) if isinstance(f, ast.Attribute)]
        text = pattern.value.decode("latin-1") if isinstance(pattern.value, bytes) else str(pattern.value)
        yield text, sum(flag for flag in flags if isinstance(flag, int))


@pytest.mark.parametrize("path", sorted((ROOT / "rules").glob("*.yaml")), ids=lambda path: path.stem)
def test_rules(path):
    expressions = list(of_rules(yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)))
    assert [expression for expression in expressions if hazard(expression)] == []


def test_code():
    found = [
        (path.name, expression)
        for path in sorted((ROOT / "src").rglob("*.py"))
        for expression, flags in of_code(ast.parse(path.read_text(encoding="utf-8")))
        if not expression.startswith(BOUNDED) and hazard(expression, flags)
    ]
    assert found == []
