"""What the command line and the site configuration together ask for."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from gpudoctor.collect.collected import Collected
    from gpudoctor.diagnosis import Doctor
    from gpudoctor.engine import EngineName
    from gpudoctor.engine.infer import Evaluator
    from gpudoctor.findings.model import Suppression
    from gpudoctor.monitor.site import Loaded

Profile = Literal["quick", "standard", "deep"]
EXIT_USAGE, EXIT_CONFIG = 64, 78
PROFILE: Profile = "standard"
TIMEOUT = 20.0


class Refused(Exception):
    """Nothing can be examined like this; str() is one line, `status` the exit status."""

    def __init__(self, line: str, status: int) -> None:
        super().__init__(line)
        self.status = status


class Settings(msgspec.Struct):
    """The command line where it says something, else the configuration, else the defaults."""

    profile: Profile = PROFILE
    timeout: float = TIMEOUT
    rules: list[Path] = []
    probes: list[Path] = []
    only: list[str] = []
    skip: list[str] = []
    suppressions: list[Suppression] = []
    loaded: Loaded | None = None

    def doctor(self, engine: EngineName | None = None, evaluate: Evaluator | None = None) -> Doctor:
        """Return the doctor; refuses names in only and skip that no rule has."""
        from gpudoctor.diagnosis import Doctor
        from gpudoctor.findings.policy import Policy

        policy = Policy(self.only, self.skip, self.suppressions)
        doctor = Doctor(self.rules, engine, policy, evaluate)
        if self.only or self.skip:
            from gpudoctor.monitor.site import unknown

            complaint = unknown([*self.only, *self.skip], [rule.id for rule in doctor.rules.rules])
            if complaint:
                raise Refused(complaint, EXIT_USAGE)
        return doctor

    def expected(self) -> Collected:
        """Return a collection that holds what the site expects of this machine."""
        from gpudoctor.collect.collected import Collected

        return Collected(facts=list(self.loaded.facts()) if self.loaded else [])


def settings(args: argparse.Namespace, *, live: bool) -> Settings:
    """Read the configuration; raises Refused.

    Evidence of another machine is judged without this machine's configuration, unless one is named.
    """
    result = Settings(rules=[Path(folder) for folder in args.rules], only=args.only, skip=args.skip)
    if live or args.config is not None or args.suppressions is not None:
        _from_files(result, args, live=live)
    if live:
        result.profile = args.profile or result.profile
        result.timeout = args.timeout or result.timeout
    return result


def _from_files(result: Settings, args: argparse.Namespace, *, live: bool) -> None:
    root = Path(args.root if live else "/")
    named = args.config if live else args.config or ""
    if named is None and args.suppressions is None and not _any(root):
        return  # the usual case costs no import
    from gpudoctor.monitor.configfile import ConfigError
    from gpudoctor.monitor.site import load
    from gpudoctor.monitor.suppressions import read_suppressions

    try:
        loaded = load(root, named, args.suppressions if live else args.suppressions or ("" if not named else None))
        result.suppressions = [entry for path in loaded.suppressions for entry in read_suppressions(path)]
    except ConfigError as error:
        raise Refused(str(error), EXIT_CONFIG) from None
    site = loaded.site
    result.loaded = loaded
    result.profile, result.timeout = site.profile or PROFILE, site.timeout or TIMEOUT
    result.rules += [Path(folder) for folder in site.rules]
    result.probes = [Path(folder) for folder in site.probes]
    result.only = result.only or site.only
    result.skip = [*result.skip, *site.skip]
    if result.probes:
        from gpudoctor.collect.probe import load_probes
        from gpudoctor.declared import DeclarationError

        try:
            load_probes(result.probes)
        except DeclarationError as error:
            raise Refused(str(error), EXIT_CONFIG) from None


def _any(root: Path) -> bool:
    if os.environ.get("GPUDOCTOR_CONFIG") is not None or os.environ.get("GPUDOCTOR_SUPPRESSIONS") is not None:
        return True
    folders = [root / "etc/gpudoctor"]
    home = os.environ.get("XDG_CONFIG_HOME") or f"{os.environ.get('HOME', '')}/.config"
    return any(os.path.isdir(folder) for folder in (*folders, Path(home) / "gpudoctor"))  # noqa: PTH112  # no right to look is no
