"""The site configuration: what a machine should be, where limits lie, which rules and probes are the site's own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from gpudoctor.facts.base import Fact, Where
from gpudoctor.facts.gpu import GpuCount
from gpudoctor.facts.site import SiteExpectation
from gpudoctor.monitor.configfile import ConfigError, check, place, read_toml

NAME = "gpudoctor.toml"
SUPPRESSIONS = "suppressions.toml"
SYSTEM = "/etc/gpudoctor"

Positive = Annotated[float, Field(gt=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Expect(_Strict):
    """What the machine should be."""

    gpus: Annotated[int, Field(ge=0, le=256)] | None = Field(default=None, description="number of GPUs")
    gpu: Annotated[str, Field(min_length=2)] | None = Field(default=None, description="part of every GPU's name")
    driver: Annotated[str, Field(pattern=r"^\d+(\.\d+){0,2}$")] | None = Field(
        default=None, description="version of the driver, or its first parts", examples=["570", "570.86.15"]
    )
    nvlinks: Annotated[int, Field(ge=0, le=36)] | None = Field(default=None, description="active NVLinks of every GPU")


class Thresholds(_Strict):
    """Limits of the site's own; a value above one is a finding."""

    temperature: Positive | None = Field(default=None, description="GPU, degrees Celsius")
    memory_temperature: Positive | None = Field(default=None, description="GPU memory, degrees Celsius")
    ecc_correctable: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="corrected memory errors since the driver was loaded"
    )
    remapped_rows: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="memory rows remapped after errors, of either kind"
    )
    pcie_replays: Annotated[int, Field(ge=0)] | None = Field(default=None, description="PCIe replays")
    file_system_use: Annotated[float, Field(gt=0, le=100)] | None = Field(
        default=None, description="percent of any file system"
    )


class WatchOptions(_Strict):
    """How `gpudoctor watch` runs."""

    interval: Annotated[float, Field(ge=1, le=86_400)] = Field(default=60.0, description="seconds between two cycles")
    jitter: Annotated[float, Field(ge=0, le=0.5)] = Field(
        default=0.1, description="share of the interval by which cycles are moved, so that a fleet does not act at once"
    )
    deadline: Annotated[float, Field(ge=2, le=600)] = Field(default=20.0, description="seconds for one cycle")
    appear: Annotated[int, Field(ge=1, le=100)] = Field(
        default=1, description="cycles in a row that a finding must be there before it is announced"
    )
    resolve: Annotated[int, Field(ge=1, le=100)] = Field(
        default=3, description="cycles in a row that it must be away before it is resolved"
    )
    forget: Annotated[float, Field(ge=60)] = Field(
        default=7 * 86_400.0, description="seconds after which an event of a log is forgotten"
    )
    logs: list[str] = Field(default=[], description="further logs to read, such as that of a training job")
    textfile: str | None = Field(default=None, description="metrics for node_exporter's textfile collector")
    listen: Annotated[str, Field(pattern=r"^(.+:)?\d{1,5}$")] | None = Field(
        default=None,
        description="[address:]port for /metrics, /healthz and /report; without an address 127.0.0.1",
        examples=["9109", "127.0.0.1:9109"],
    )
    syslog: bool = False
    on_change: Annotated[list[str], Field(min_length=1)] | None = Field(
        default=None, description="command that gets each event as JSON on its standard input"
    )
    webhook: Annotated[str, Field(pattern=r"^https?://\S+$")] | None = Field(
        default=None, description="address that each event is posted to", examples=["https://alerts.example.com/gpu"]
    )


class Site(_Strict):
    """The configuration file."""

    profile: Literal["quick", "standard", "deep"] | None = None
    timeout: Annotated[float, Field(ge=2, le=600)] | None = None
    rules: list[str] = Field(default=[], description="folders of the site's own rules")
    probes: list[str] = Field(default=[], description="folders of the site's own probes")
    suppressions: str | None = Field(default=None, description="default: suppressions.toml beside this file")
    only: list[str] = []
    skip: list[str] = []
    expect: Expect = Expect()
    thresholds: Thresholds = Thresholds()
    watch: WatchOptions = WatchOptions()


@dataclass
class Loaded:
    """A configuration with the files that it came from; later files override earlier ones key by key."""

    site: Site = field(default_factory=Site)
    files: list[tuple[Path, str]] = field(default_factory=list)
    suppressions: list[Path] = field(default_factory=list)
    new_suppressions: Path | None = None  # the file to add one to

    def facts(self) -> Iterator[Fact]:
        """What is expected, as facts that rules compare with what is there."""
        expect = self.site.expect
        if expect.gpus is not None:
            yield GpuCount(seen_by="expected", number=expect.gpus, where=self._where("expect", "gpus"))
        for section, model in (("expect", expect), ("thresholds", self.site.thresholds)):
            for name, value in model.model_dump(exclude_none=True).items():
                if (section, name) != ("expect", "gpus"):
                    number = None if isinstance(value, str) else float(value)
                    text = value if isinstance(value, str) else None
                    where = self._where(section, name)
                    yield SiteExpectation(section=section, what=name, number=number, text=text, where=where)

    def _where(self, *keys: str) -> Where | None:
        for path, text in reversed(self.files):
            file, _, line = place(path, text, keys).rpartition(":")
            shown = text.splitlines()[int(line) - 1] if text else ""
            if keys[-1] in shown:
                return Where(source=file, line=int(line), text=shown.strip())
        return None


def places(root: Path, environ: Mapping[str, str]) -> list[Path]:
    """Return the folders that may hold a configuration, the site's before the person's."""
    folders = [root / SYSTEM.lstrip("/")]
    home = environ.get("XDG_CONFIG_HOME") or (f"{environ['HOME']}/.config" if environ.get("HOME") else "")
    if root == Path("/") and home:
        folders.append(Path(home) / "gpudoctor")
    return folders


def load(root: Path, given: str | None, suppressions: str | None, environ: Mapping[str, str] = os.environ) -> Loaded:
    """Read the configuration that holds here; raises ConfigError.

    given, suppressions: files named on the command line; else GPUDOCTOR_CONFIG and GPUDOCTOR_SUPPRESSIONS name them (empty:
    none); else they lie in the usual folders.
    """
    found = places(root, environ)
    named = given if given is not None else environ.get("GPUDOCTOR_CONFIG")
    files = [folder / NAME for folder in found] if named is None else [Path(named)] if named else []
    loaded = Loaded()
    merged: dict[str, object] = {}
    for path in files:
        if named is None and not _there(path):
            continue
        data, text = read_toml(path)
        _resolve(check(Site, data, path, text), data, path)
        for key, value in data.items():
            known = merged.get(key)
            merged[key] = {**known, **value} if isinstance(known, dict) and isinstance(value, dict) else value
        loaded.files.append((path, text))
    loaded.site = Site.model_validate(merged)
    listed = suppressions if suppressions is not None else environ.get("GPUDOCTOR_SUPPRESSIONS")
    if listed is not None:
        loaded.suppressions = possible = [Path(listed)] if listed else []
    elif loaded.site.suppressions:
        loaded.suppressions = possible = [Path(loaded.site.suppressions)]
    else:
        possible = [file.with_name(SUPPRESSIONS) for file in files]
        loaded.suppressions = [path for path in possible if _there(path)]
    loaded.new_suppressions = possible[-1] if possible else None
    return loaded


def _there(path: Path) -> bool:
    """Tell whether there is such a file; a folder that may not be entered, as another user's home, holds none."""
    try:
        return path.is_file()
    except OSError:
        return False


def _resolve(site: Site, data: dict[str, object], path: Path) -> None:
    """Paths in a file are relative to its folder; a folder that isn't there is an error, not silence."""
    for name, folders in (("rules", site.rules), ("probes", site.probes)):
        resolved = [str(path.parent / folder) for folder in folders]
        for folder in resolved:
            if not Path(folder).is_dir():
                raise ConfigError(f"{path}: {name}: {folder}: no such folder")
        if resolved:
            data[name] = resolved
    if site.suppressions:
        data["suppressions"] = str(path.parent / site.suppressions)


def unknown(names: Sequence[str], ids: Sequence[str]) -> str | None:
    """Return a complaint about the first name that is neither an area nor an id."""
    known = {*ids, *(finding_id.partition(".")[0] for finding_id in ids)}
    for name in names:
        if name not in known:
            import difflib

            near = difflib.get_close_matches(name, sorted(known), n=1)
            return f"{name}: no such area or id{f'; did you mean {near[0]}?' if near else ''} (gpudoctor rules list)"
    return None
