"""A probe as it stands in probes/<area>.yaml: what is read, where, and under which limits."""

from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from gpudoctor.declared import DeclarationError, declarations, line_of, read

Cost = Literal["cheap", "standard", "deep"]
COSTS: tuple[Cost, ...] = ("cheap", "standard", "deep")


class LiveSource(BaseModel):
    """Where a live host has it: exactly one of the first four.

    files: paths or globs, each read as a text of its own; tree: globs of one-line files (sysfs), read together as lines
    `path: value` (links as `path: -> target`); command: an argument vector, no shell; child: a module of
    gpudoctor.collect.children, run in a process of its own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    files: list[str] = []
    tree: list[str] = []
    command: list[str] = []
    child: str | None = None
    exits: list[int] = Field(default=[0], description="exit statuses with which the command's output is an answer")
    tail: bool = Field(default=False, description="of a file over the byte cap the end is read, not the start")

    @model_validator(mode="after")
    def _exactly_one(self) -> "LiveSource":
        if sum(map(bool, (self.files, self.tree, self.command, self.child))) != 1:
            raise ValueError("give exactly one of files, tree, command, child")
        return self


class Probe(BaseModel):
    """One declaration. deadline in seconds; `driver` marks what can hang inside the driver and runs in a child process."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = ""
    summary: str
    live: LiveSource
    gives: list[str] = Field(default=[], description="kinds of facts that come from it")
    answers: list[str] = Field(
        default=[], description="kinds whose absence is known once it ran or has nothing to run on"
    )
    cost: Cost = "cheap"
    deadline: Annotated[float, Field(gt=0, le=60)] = 5.0
    max_bytes: Annotated[int, Field(gt=0, le=256 * 2**20)] = 4 * 2**20
    needs: Literal["root", ""] = ""
    driver: bool = False
    bundles: dict[str, list[str]] = Field(
        default={},
        description="kind of bundle -> where the same evidence lies in it: patterns of paths or section headings",
    )
    ask: str = Field(default="", description="what to ask a person for, offline")

    @cached_property
    def what(self) -> str:
        """What is read, for messages."""
        if self.live.command:
            return " ".join(self.live.command)
        return self.live.child or ", ".join(self.live.files or self.live.tree)


def load_probes(folders: list[Path] | None = None) -> list[Probe]:
    """Read all declarations; raises DeclarationError naming file, line and key."""
    probes: dict[str, Probe] = {}
    for folder in folders or [declarations("probes")]:
        for path in sorted(folder.glob("*.yaml")):
            text, data = read(path)
            if not isinstance(data, dict):
                raise DeclarationError(f"{path}:1: a probe file maps names to declarations")
            for name, entry in data.items():
                try:
                    probes[name] = Probe.model_validate({"name": name, **entry})
                except (ValidationError, TypeError) as error:
                    first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": str(error)}
                    line = line_of(text, [name, *first["loc"]])
                    raise DeclarationError(
                        f"{path}:{line}: {name}: {'.'.join(map(str, first['loc']))}: {first['msg']}"
                    ) from None
    return list(probes.values())
