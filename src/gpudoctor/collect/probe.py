"""A probe as it stands in probes/<area>.yaml: what is read, where, and under which limits."""

from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gpudoctor import kept
from gpudoctor.declared import DeclarationError, complaint, declarations, line_of, read

Cost = Literal["cheap", "standard", "deep"]
COSTS: tuple[Cost, ...] = ("cheap", "standard", "deep")


class LiveSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a live host has it: exactly one of the first four.

    files: paths or globs, each read as a text of its own; tree: globs of one-line files (sysfs), read together as lines
    `path: value` (links as `path: -> target`); command: an argument vector, no shell; child: a module of
    gpudoctor.collect.children, run in a process of its own.
    """

    files: list[str] = []
    tree: list[str] = []
    command: list[str] = []
    child: str | None = None
    exits: tuple[int, ...] = (0,)  # exit statuses with which the command's output is an answer
    tail: bool = False  # of a file over the byte cap the end is read, not the start

    def __post_init__(self) -> None:
        if sum(map(bool, (self.files, self.tree, self.command, self.child))) != 1:
            raise ValueError("give exactly one of files, tree, command, child")


class Probe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One declaration. deadline in seconds; `driver` marks what can hang inside the driver and runs in a child process."""

    name: str = ""
    summary: str
    live: LiveSource
    gives: list[str] = []  # kinds of facts that come from it
    answers: list[str] = []  # kinds whose absence is known once it ran or has nothing to run on
    cost: Cost = "cheap"
    deadline: Annotated[float, Meta(gt=0, le=60)] = 5.0
    max_bytes: Annotated[int, Meta(gt=0, le=256 * 2**20)] = 4 * 2**20
    needs: Literal["root", ""] = ""
    driver: bool = False
    # kind of bundle -> where the same evidence lies in it: patterns of paths or section headings
    bundles: dict[str, list[str]] = {}
    ask: str = ""  # what to ask a person for, offline

    @property
    def what(self) -> str:
        """What is read, for messages."""
        if self.live.command:
            return " ".join(self.live.command)
        return self.live.child or ", ".join(self.live.files or self.live.tree)


def load_probes(folders: list[Path] | None = None) -> list[Probe]:
    """Read all declarations; raises DeclarationError naming file, line and key."""
    return _read(folders) if folders else _shipped()


@cache
def _shipped() -> list[Probe]:
    """Our own; kept from run to run, because checking them takes longer than running some."""
    folder = declarations("probes")
    sources = [Path(__file__), Path(msgspec.__file__), *sorted(folder.glob("*.yaml"))]
    made_from = kept.state_of(sources)
    if (known := kept.load("probes", made_from)) is not None:
        return msgspec.msgpack.decode(known, type=list[Probe])
    probes = _read([folder])
    kept.store("probes", made_from, msgspec.msgpack.encode(probes))
    return probes


def _read(folders: list[Path]) -> list[Probe]:
    probes: dict[str, Probe] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.yaml")):
            text, data = read(path)
            if not isinstance(data, dict):
                raise DeclarationError(f"{path}:1: a probe file maps names to declarations")
            for name, entry in data.items():
                try:
                    probes[name] = msgspec.convert({"name": name, **entry}, Probe)
                except (msgspec.ValidationError, TypeError) as error:
                    keys, wrong = complaint(error)
                    where = ".".join(map(str, keys)) or "probe"
                    raise DeclarationError(f"{path}:{line_of(text, [name, *keys])}: {name}: {where}: {wrong}") from None
    return list(probes.values())
