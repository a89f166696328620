"""Chooses, for each rung, the commands that fit this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gpudoctor.facts.store import FactStore
from gpudoctor.findings.model import Fix, Risk

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


def ladder(rungs: Sequence[Rung], shown: Sequence[str]) -> list[Fix]:
    """Return the rungs of a rule as the report carries them."""
    return [
        Fix(title=r.title, why=r.why, commands=choose(r.commands, shown), risk=r.risk, needs=list(r.needs))
        for r in rungs
    ]
