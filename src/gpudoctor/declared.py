"""Reads declarations (YAML), from their parsed form where the build made one.

The build stores each file's data under the hash of its text, so that an edited file is simply not found there and is parsed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

BUILT = "declarations.json"
_KEY = re.compile(r"\.(\w+)|\[(\d+)\]")
_OF_KEY = re.compile(r"Object (?:contains unknown field|missing required field) `(?P<key>[^`]*)`")
_MAX_BYTES = 4 << 20


def declarations(name: str) -> Path:
    """Return the folder of declarations (`rules` or `probes`): inside the installed package, else in the checkout."""
    package = Path(__file__).resolve().parent
    for folder in (package / name, package.parents[1] / name):
        if folder.is_dir() and any(folder.glob("*.yaml")):
            return folder
    raise FileNotFoundError(f"gpudoctor's own {name}/ folder is missing; reinstall gpudoctor")


class DeclarationError(ValueError):
    """A declaration that can't be used; str() is one line: file:line: what is wrong."""


def read(path: Path) -> tuple[str, Any]:
    """Return a file's text and what it holds; raises DeclarationError where it can't be read or isn't YAML."""
    try:
        if path.exists() and not path.is_file():
            raise DeclarationError(f"{path}:1: not a regular file")
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise DeclarationError(f"{path}:1: can't be read: {error}") from None
    if len(data) > _MAX_BYTES:
        raise DeclarationError(f"{path}:1: larger than {_MAX_BYTES >> 20} MiB, which is no declaration")
    parsed = _built().get(_hash(text))
    if parsed is not None:
        return text, parsed
    import yaml  # takes longer to load than all declarations that the build parsed

    try:
        data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # a safe loader either way
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise DeclarationError(f"{path}:{mark.line + 1 if mark else 1}: not valid YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise DeclarationError(f"{path}:1: can't be read: {error}") from None
    return text, inert(data)


def inert(data: Any, done: dict[int, Any] | None = None) -> Any:
    """Return data without what a terminal would obey in its texts; lines stay lines.

    done: what was made of each list and table so far: YAML's aliases name them in several places, also within themselves.
    """
    from gpudoctor.patterns.text import clean

    done = {} if done is None else done
    if isinstance(data, str):
        return data if data.isprintable() else "\n".join(map(clean, data.split("\n")))
    if not isinstance(data, (list, dict)) or id(data) in done:
        return done.get(id(data), data)
    if isinstance(data, list):
        entries = done[id(data)] = []
        entries += (inert(entry, done) for entry in data)
        return entries
    pairs = done[id(data)] = {}
    pairs.update((inert(key, done), inert(value, done)) for key, value in data.items())
    return pairs


def complaint(error: Exception) -> tuple[list[str | int], str]:
    """Split what msgspec says of a value into the path of keys to it and what is wrong with it."""
    message, _, place = str(error).partition(" - at `$")
    keys: list[str | int] = [int(number) if number else name for name, number in _KEY.findall(place)]
    if found := _OF_KEY.fullmatch(message):
        return [*keys, found["key"]], "no such key" if "unknown" in message else "is missing"
    return keys, message[:1].lower() + message[1:]


def line_of(text: str, keys: list[Any]) -> int:
    """Return the line (from 1) on which the node at this path of keys begins, as deep as the path can be followed."""
    import yaml

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


def build(folders: Iterable[Path], target: Path) -> None:
    """Parse every *.yaml of the folders into `target`."""
    import yaml

    texts = [path.read_text(encoding="utf-8") for folder in folders for path in sorted(folder.glob("*.yaml"))]
    target.write_text(json.dumps({_hash(text): yaml.safe_load(text) for text in texts}), encoding="utf-8")


def _hash(text: str) -> str:
    import hashlib  # loads a library of ciphers

    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@cache
def _built() -> dict[str, Any]:
    try:
        return dict(json.loads(Path(__file__).with_name(BUILT).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}
