"""A rule as it stands in rules/<area>.yaml: data only, checked when it is loaded."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gpudoctor.findings.model import Confidence, Risk, Severity

ID = r"^[a-z0-9]+\.[a-z0-9-]+$"

# Contexts that a rung's commands may be given for; see findings/ladder.py for how one is chosen.
CONTEXTS = (
    "apt", "dnf", "zypper", "pacman", "emerge", "apk", "nix", "docker", "podman", "containerd", "kubernetes", "slurm",
    "container", "wsl", "default",
)  # fmt: skip


class FixRung(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rung; `commands` is a list, or a list per context (apt, dnf, docker, kubernetes ...)."""

    title: str
    why: str = ""
    commands: list[str] | dict[str, list[str]] = []
    risk: Risk = "safe"
    needs: list[str] = []

    def __post_init__(self) -> None:
        if isinstance(self.commands, dict) and (unknown := [key for key in self.commands if key not in CONTEXTS]):
            raise ValueError(f"unknown context {unknown[0]!r}; known are {', '.join(CONTEXTS)}")


class SubjectDeclaration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the finding is about, where it isn't the GPU or node of the matched facts; `name` is filled like because."""

    kind: Literal["gpu", "node", "process", "link", "port", "pod"]
    name: str


class Way(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to see the cause: what must hold, what must not, and the sentence that says so."""

    when: Annotated[list[dict[str, Any]], Meta(min_length=1)]
    unless: list[dict[str, Any]] = []
    because: str
    severity: Severity | None = None
    confidence: Confidence | None = None
    role: Literal["cause", "advice"] | None = None
    subject: SubjectDeclaration | None = None


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cause with one or several ways to see it."""

    id: Annotated[str, Meta(pattern=ID)]
    title: str
    severity: Severity
    confidence: Confidence = "likely"
    role: Literal["cause", "advice"] = "cause"
    ways: Annotated[list[Way], Meta(min_length=1)]
    explains: list[str] = []
    fix: list[FixRung] = []
    verify: list[str] = []
    references: list[str] = []
    since: str = "0.1"
    about: str = ""

    @property
    def area(self) -> str:
        """The part of the id before the dot."""
        return self.id.partition(".")[0]


def rule_from(data: Any) -> Rule:
    """Check a declaration; a rule with one way writes its keys at the top. Raises msgspec.ValidationError."""
    if isinstance(data, dict) and "ways" not in data:
        data = dict(data)
        data["ways"] = [{key: data.pop(key) for key in ("when", "unless", "because", "subject") if key in data}]
    return msgspec.convert(data, Rule)
