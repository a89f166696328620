"""Chooses, for each rung, the commands that fit this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from gpudoctor.facts.store import FactStore
from gpudoctor.findings.model import Fix, Risk, Subject

_ADDRESS = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_PLAIN = r"[0-9A-Za-z][0-9A-Za-z:._-]{0,252}"
_MAX_DEVICES = 16
# In the order in which they win where several fit: what wraps the program decides before what the host runs.
_ORDER = ("wsl", "kubernetes", "slurm", "podman", "containerd", "docker", "container")


def contexts(store: FactStore) -> list[str]:
    """Return the contexts that the facts show, most telling first."""
    shown: list[str] = []
    engines = {str(fact.value("engine")) for fact in store.of("container")}
    engines |= {str(fact.value("name")) for fact in store.of("container_engine")}
    if store.of("k8s_pod") or store.of("k8s_node"):
        engines.add("kubernetes")
    if store.of("slurm_node"):
        engines.add("slurm")
    if store.of("container"):
        engines.add("container")
    shown += [name for name in _ORDER if name in engines]
    managers = [str(fact.value("manager")) for fact in store.of("os") if fact.value("manager")]
    managers += [str(fact.value("manager")) for fact in store.of("package") if fact.value("manager")]
    shown += list(dict.fromkeys(managers))
    return shown


def choose(commands: Sequence[str] | dict[str, list[str]], shown: Sequence[str]) -> list[str]:
    """Return the commands of the first context that is shown, else the default, else all of them, labelled.

    >>> choose({"apt": ["apt-get update"], "dnf": ["dnf makecache"]}, ["dnf"])
    ['dnf makecache']
    >>> choose({"apt": ["apt-get update"], "dnf": ["dnf makecache"]}, [])
    ['# apt:', 'apt-get update', '# dnf:', 'dnf makecache']
    """
    if not isinstance(commands, dict):
        return list(commands)
    for context in (*shown, "default"):
        if context in commands:
            return list(commands[context])
    return [line for context, lines in commands.items() for line in (f"# {context}:", *lines)]


class Rung(Protocol):
    """A rung as a rule declares it."""

    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def why(self) -> str: ...  # noqa: D102
    @property
    def commands(self) -> list[str] | dict[str, list[str]]: ...  # noqa: D102
    @property
    def risk(self) -> Risk: ...  # noqa: D102
    @property
    def needs(self) -> list[str]: ...  # noqa: D102


def ladder(rungs: Sequence[Rung], shown: Sequence[str], subjects: Sequence[Subject] = (), host: str = "") -> list[Fix]:
    """Return the rungs of a rule as the report carries them, `$GPU`, `$PCI` and `$NODE` filled where they are known."""
    names = {
        "$GPU": [subject.name.removeprefix("GPU ") for subject in subjects if subject.kind == "gpu"],
        "$PCI": [
            subject.name for subject in subjects if subject.kind == "gpu" and re.fullmatch(_ADDRESS, subject.name)
        ],
        "$NODE": [subject.name for subject in subjects if subject.kind == "node" and subject.name != "node"]
        or ([host] if host else []),
    }
    return [
        Fix(
            title=r.title,
            why=r.why,
            commands=[line for command in choose(r.commands, shown) for line in _filled(command, names)],
            risk=r.risk,
            needs=list(r.needs),
        )
        for r in rungs
    ]


def _filled(command: str, names: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the command once for each device that it is about; a name that a shell could misread is left to the person.

    >>> _filled("sudo nvidia-smi --gpu-reset -i $GPU", {"$GPU": ["0000:3b:00.0", "5"]})
    ['sudo nvidia-smi --gpu-reset -i 0000:3b:00.0', 'sudo nvidia-smi --gpu-reset -i 5']
    >>> _filled("lspci -s $PCI", {"$PCI": ["x; reboot"]})
    ['lspci -s $PCI']
    """
    for variable, known in names.items():
        words = re.compile(re.escape(variable) + r"\b")
        if known and words.search(command) and all(re.fullmatch(_PLAIN, name) for name in known):
            return [words.sub(name, command) for name in known[:_MAX_DEVICES]]
    return [command]
