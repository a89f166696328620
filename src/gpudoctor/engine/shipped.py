"""Our own rules, compiled; kept from run to run, because compiling them takes longer than a diagnosis."""

from __future__ import annotations

import contextlib
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
    made_from = _made_from(folder)
    if (known := kept.load("rules", made_from)) is not None:
        with contextlib.suppress(Exception):  # cut short, say by a crash of the machine: pickle may then raise anything
            return pickle.loads(known)  # type: ignore[no-any-return]  # noqa: S301  # ours, from beside our own bytecode
    compiled = rules_with(())
    kept.store("rules", made_from, pickle.dumps(compiled))
    return compiled


def rules_with(folders: Sequence[Path]) -> RuleSet:
    """Return the rules that ship and those of further folders, compiled."""
    folder = declarations("rules")
    rules, faults = load_rules([folder, *folders])
    ours = load_rules([folder])[0] if folders else rules
    compiled = compile_rules(rules, trusted={rule.id for rule in ours})
    return replace(compiled, faults=(*faults, *compiled.faults))


def _made_from(folder: Path) -> str:
    """Name the state of the rules and of the code that compiles them."""
    places = [_PACKAGE / name for name in _CODE]
    code = [path for place in places for path in (sorted(place.glob("*.py")) if place.is_dir() else [place])]
    return f"{__version__} {msgspec.__version__}\n{kept.state_of([*sorted(folder.glob('*.yaml')), *code])}"
