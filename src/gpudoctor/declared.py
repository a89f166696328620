"""Reads declarations (YAML), from their parsed form where the build made one.

The build stores each file's data under the hash of its text, so that an edited file is simply not found there and is parsed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

BUILT = "declarations.json"


def declarations(name: str) -> Path:
    """Return the folder of declarations (`rules` or `probes`): inside the installed package, else in the checkout."""
    package = Path(__file__).resolve().parent
    for folder in (package / name, package.parents[1] / name):
        if folder.is_dir() and any(folder.glob("*.yaml")):
            return folder
    raise FileNotFoundError(f"gpudoctor's own {name}/ folder is missing; reinstall gpudoctor")


def parse(text: str) -> Any:
    """Return what a YAML text holds; raises yaml.YAMLError."""
    parsed = _built().get(_hash(text))
    if parsed is not None:
        return parsed
    import yaml

    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # a safe loader either way


def build(folders: Iterable[Path], target: Path) -> None:
    """Parse every *.yaml of the folders into `target`."""
    import yaml

    texts = [path.read_text(encoding="utf-8") for folder in folders for path in sorted(folder.glob("*.yaml"))]
    target.write_text(json.dumps({_hash(text): yaml.safe_load(text) for text in texts}), encoding="utf-8")


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@cache
def _built() -> dict[str, Any]:
    try:
        return dict(json.loads(Path(__file__).with_name(BUILT).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}
