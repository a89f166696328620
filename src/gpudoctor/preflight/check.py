"""Puts the preflight together: machine, packages, programs, requirements, try-out."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from gpudoctor.collect.collected import Collected
from gpudoctor.collect.live import run_probes
from gpudoctor.collect.offline import collect_offline
from gpudoctor.collect.probe import load_probes
from gpudoctor.combiners import combine
from gpudoctor.diagnosis import Doctor
from gpudoctor.examine import nvidia_present
from gpudoctor.facts.store import FactStore
from gpudoctor.findings.model import Report
from gpudoctor.preflight.age import check_guide
from gpudoctor.preflight.api import tensorflow_parts
from gpudoctor.preflight.environment import Environment, read_environment
from gpudoctor.preflight.machine import PACKAGES, around, check_framework, check_machine
from gpudoctor.preflight.model import Preflight, Remark
from gpudoctor.preflight.program import Program, ProgramUnreadable, read_program
from gpudoctor.preflight.requirements import check_requirements, wanted
from gpudoctor.preflight.script import check_program
from gpudoctor.preflight.trial import try_framework
from gpudoctor.sources.base import SourceNotes, SourceUnreadable
from gpudoctor.sources.live import LiveHost
from gpudoctor.sources.open import open_sources

_EXAMINING = 15.0  # seconds for the probes
_FIRST = ("pci", "driver_version", "modules", "host", "os", "kernel_version", "cpu", "meminfo", "container_self")
_MAX_REQUIREMENTS = 2_000_000  # bytes
_LISTS = (".txt", ".in", ".yml", ".yaml")  # a line is a requirement; elsewhere only install commands count


class Unreadable(ValueError):
    """A file that was named can't be read."""


def preflight(
    *,
    sources: Sequence[str] = (),
    framework: str | None = None,
    scripts: Sequence[str] = (),
    requirements: Sequence[str] = (),
    interpreter: str | None = None,
    trial: bool = False,
    machine: bool = True,
    timeout: float = 60.0,
    root: str = "/",
    commands: str | None = None,
) -> Preflight:
    """Answer whether training on the GPU will work; raises Unreadable."""
    try:
        programs = [read_program(Path(script)) for script in scripts]
    except ProgramUnreadable as error:
        raise Unreadable(str(error)) from None
    remarks: list[Remark] = []
    store = FactStore()
    environment: Environment | None = None
    framework = framework or _framework_of(programs)
    if machine:
        try:
            store, report = _read(sources, root, commands)
        except SourceUnreadable as error:
            raise Unreadable(str(error)) from None
        remarks += check_machine(store, report, date.today())
        if not sources and commands is None and root == "/":
            environment = read_environment(interpreter or sys.executable)
        else:
            environment = _shown(store)
        remarks += check_framework(store, environment, framework)
    surroundings = around(store, environment)
    if environment is not None:
        installed = environment.version(*PACKAGES["tensorflow"])
        surroundings = replace(surroundings, parts=tensorflow_parts(list(environment.folders), installed))
    for program in programs:
        remarks += check_program(program, surroundings)
        remarks += check_requirements(program.name, _installs(program), environment.python if environment else None)
    for name in [*requirements, *_beside(scripts, requirements)]:
        text = _text(name)
        specs = wanted(text, plain=Path(name).suffix in _LISTS)
        remarks += check_requirements(Path(name).name, specs, environment.python if environment else None)
        if Path(name).suffix not in _LISTS:
            remarks += check_guide(Path(name).name, text, date.today())
    if trial:
        for name in [framework] if framework else _installed(environment):
            remarks += try_framework(interpreter or sys.executable, name, timeout)
    if not machine:
        text = "the machine was not looked at; what was read alone can't say yes"
        remarks.append(Remark("unknown", "machine", text))
    return Preflight(tuple(dict.fromkeys(remarks)))


def _read(sources: Sequence[str], root: str, commands: str | None) -> tuple[FactStore, Report]:
    doctor = Doctor()
    if sources:
        source = open_sources(sources)
        collected, notes = collect_offline(source, doctor.scanner), source.notes
    else:
        host = LiveHost(root, commands)
        collected, notes = Collected(), SourceNotes("live", root, collected_at=time.time())
        probes = [probe for probe in load_probes() if probe.cost in ("cheap", "standard")]
        end = time.monotonic() + _EXAMINING
        run_probes(host, [probe for probe in probes if probe.name in _FIRST], doctor.scanner, collected, end)
        if nvidia_present(collected, host):
            run_probes(host, [probe for probe in probes if probe.name not in _FIRST], doctor.scanner, collected, end)
    report = doctor.judge(collected, notes)
    return combine(collected.facts, []), report


def _framework_of(programs: Sequence[Program]) -> str | None:
    """Tell which framework the programs train with, where they use one only."""
    used = {name for program in programs for name in program.frameworks}
    if used & {"lightning", "pytorch_lightning", "transformers"}:
        used.add("torch")
    if "keras" in used and not used & {"torch", "jax"}:
        used.add("tensorflow")
    found = [
        name
        for name, package in (("tensorflow", "tensorflow"), ("pytorch", "torch"), ("jax", "jax"))
        if package in used
    ]
    return found[0] if len(found) == 1 else None


def _installed(environment: Environment | None) -> list[str]:
    return [name for name, packages in PACKAGES.items() if environment and environment.version(*packages)]


def _shown(store: FactStore) -> Environment:
    """Return the packages that the evidence of another node shows (pip list, conda list, metadata)."""
    packages: dict[str, str] = {}
    for fact in store.of("python_package"):
        local = fact.value("local")
        version = f"{fact.value('version')}{f'+{local}' if local else ''}"
        packages.setdefault(str(fact.value("name")).lower().replace("_", "-"), version)
    python = next((str(fact.value("version")) for fact in store.of("python")), None)
    return Environment("the evidence", python, packages)


def _installs(program: Program) -> list[tuple[str, str, str | None, int]]:
    return [
        (name, extra, version, line)
        for text, line in program.installs
        for name, extra, version, _ in wanted(text, plain=False)
    ]


def _beside(scripts: Sequence[str], named: Sequence[str]) -> list[str]:
    """Return the requirements.txt that lies beside a program, unless it was named."""
    found = dict.fromkeys(str(Path(script).parent / "requirements.txt") for script in scripts)
    return [name for name in found if name not in named and Path(name).is_file()]


def _text(name: str) -> str:
    try:
        with Path(name).open("rb") as stream:
            return stream.read(_MAX_REQUIREMENTS).decode("utf-8", "replace")
    except OSError as error:
        raise Unreadable(f"{name}: {error.strerror or error}") from None
