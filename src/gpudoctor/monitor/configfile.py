"""Reads a TOML file into a model; every complaint is one line that names file, key and what would be right."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gpudoctor.declared import inert

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_BYTES = 1 << 20
M = TypeVar("M", bound=BaseModel)


class ConfigError(ValueError):
    """A file that can't be used; str() is one line."""


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """Return what a TOML file holds, and its text; raises ConfigError."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{path}: larger than 1 MiB, which is no configuration")
    try:
        text = raw.decode()
        data: dict[str, Any] = inert(tomllib.loads(text))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    return data, text


def check(model: type[M], data: dict[str, Any], path: Path, text: str) -> M:
    """Return the data as the model has it; raises ConfigError."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        # a misspelt key also makes another one missing: name the misspelt one
        first = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
        keys = [str(part) for part in first["loc"]]
        key = ".".join(keys)
        if first["type"] == "extra_forbidden":
            known = _known(model, first["loc"])
            raise ConfigError(
                f"{place(path, text, first['loc'])}: {key}: no such key; known are {', '.join(known)}"
            ) from None
        raise ConfigError(f"{place(path, text, first['loc'])}: {key}: {complaint(model, first)}") from None


def complaint(model: type[BaseModel], error: ErrorDetails) -> str:
    """Say what is wrong with a value; where it has a form, by the example that the model gives."""
    examples = _field_examples(model, error["loc"])
    if error["type"] == "string_pattern_mismatch" and examples:
        return f"{error['input']!r} is not of the form {' or '.join(map(str, examples))}"
    message = error["msg"].removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def place(path: Path, text: str, keys: tuple[int | str, ...]) -> str:
    """Return file:line of a key, as far as it can be found by reading."""
    lines = text.splitlines()
    at = 0
    for key in keys:
        if isinstance(key, int):  # the so-manieth table of an array
            headings = [number for number, line in enumerate(lines) if line.lstrip().startswith("[[")]
            at = headings[key] if key < len(headings) else at
            continue
        wanted = re.compile(rf"\s*\[{{0,2}}\s*[\"']?{re.escape(key)}[\"']?\s*(?:=|\]|\.|$)")
        at = next((number for number in range(at, len(lines)) if wanted.match(lines[number])), at)
    return f"{path}:{at + 1}"


def _field_examples(model: type[BaseModel], keys: tuple[int | str, ...]) -> list[Any]:
    field = _innermost(model, keys).model_fields.get(str(keys[-1])) if keys else None
    return (field.examples if field else None) or []


def _known(model: type[BaseModel], keys: tuple[int | str, ...]) -> list[str]:
    return list(_innermost(model, keys).model_fields)


def _innermost(model: type[BaseModel], keys: tuple[int | str, ...]) -> type[BaseModel]:
    """Return the model that holds the last of the keys, as far as they can be followed."""
    for key in keys[:-1]:
        if isinstance(key, int):
            continue
        field = model.model_fields.get(key)
        if field is None:
            break
        found = [field.annotation, *getattr(field.annotation, "__args__", ())]
        model = next((kind for kind in found if isinstance(kind, type) and issubclass(kind, BaseModel)), model)
    return model
