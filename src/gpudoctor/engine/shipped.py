"""Our own rules, compiled; kept from run to run, because compiling them takes longer than a diagnosis."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from gpudoctor import __version__, kept
from gpudoctor.declared import declarations
from gpudoctor.engine.compile import RuleSet, compile_rules
from gpudoctor.engine.load import load_rules

_PACKAGE = Path(__file__).parents[1]
_CODE = (
    "engine",
    "facts",
    "patterns",
    "parsers/scan.py",
    "findings/model.py",
    "declared.py",
)  # what a compiled rule is made of


def shipped_rules() -> RuleSet:
    """Return all rules that ship, compiled; what is wrong with one is in `faults`."""
    folder = declarations("rules")
    key = _key(folder)
    if (known := kept.load("rules", key)) is not None:
        with contextlib.suppress(Exception):  # cut short, say by a crash of the machine: pickle may then raise anything
            return pickle.loads(known)  # type: ignore[no-any-return]  # noqa: S301  # ours, from beside our own bytecode
    compiled = rules_with(())
    kept.store("rules", key, pickle.dumps(compiled))
    return compiled


def rules_with(folders: Sequence[Path]) -> RuleSet:
    """Return the rules that ship and those of further folders, compiled."""
    folder = declarations("rules")
    rules, faults = load_rules([folder, *folders])
    ours = load_rules([folder])[0] if folders else rules
    compiled = compile_rules(rules, trusted={rule.id for rule in ours})
    return replace(compiled, faults=(*faults, *compiled.faults))


def _key(folder: Path) -> str:
    """Name the state of the rules and of the code that compiles them."""
    versions = f"{__version__} {msgspec.__version__}"
    state = hashlib.blake2b(versions.encode(), digest_size=16)
    for path in sorted(folder.glob("*.yaml")):
        state.update(path.read_bytes())
    for name in _CODE:
        place = _PACKAGE / name
        for path in sorted(place.glob("*.py")) if place.is_dir() else [place]:
            about = path.stat()
            state.update(f"{path.name} {about.st_mtime_ns} {about.st_size}".encode())
    return state.hexdigest()
