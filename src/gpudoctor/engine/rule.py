"""A rule as it stands in rules/<area>.yaml: data only, checked when it is loaded."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from gpudoctor.findings.model import Confidence, Risk, Severity

ID = r"^[a-z0-9]+\.[a-z0-9-]+$"

# Contexts that a rung's commands may be given for; see findings/ladder.py for how one is chosen.
CONTEXTS = (
    "apt", "dnf", "zypper", "pacman", "emerge", "apk", "nix", "docker", "podman", "containerd", "kubernetes", "slurm",
    "container", "wsl", "default",
)  # fmt: skip


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FixRung(_Strict):
    """One rung; `commands` is a list, or a list per context (apt, dnf, docker, kubernetes ...)."""

    title: str
    why: str = ""
    commands: list[str] | dict[str, list[str]] = []
    risk: Risk = "safe"
    needs: list[str] = []

    @field_validator("commands")
    @classmethod
    def _known_contexts(cls, value: list[str] | dict[str, list[str]]) -> list[str] | dict[str, list[str]]:
        if isinstance(value, dict) and (unknown := [key for key in value if key not in CONTEXTS]):
            raise ValueError(f"unknown context {unknown[0]!r}; known are {', '.join(CONTEXTS)}")
        return value


class SubjectDeclaration(_Strict):
    """What the finding is about, where it isn't the GPU or node of the matched facts; `name` is filled like because."""

    kind: Literal["gpu", "node", "process", "link", "port", "pod"]
    name: str


class Way(_Strict):
    """One way to see the cause: what must hold, what must not, and the sentence that says so."""

    when: Annotated[list[dict[str, Any]], Field(min_length=1)]
    unless: list[dict[str, Any]] = []
    because: str
    severity: Severity | None = None
    confidence: Confidence | None = None
    role: Literal["cause", "advice"] | None = None
    subject: SubjectDeclaration | None = None


class Rule(_Strict):
    """A cause with one or several ways to see it."""

    id: Annotated[str, Field(pattern=ID)]
    title: str
    severity: Severity
    confidence: Confidence = "likely"
    role: Literal["cause", "advice"] = "cause"
    ways: Annotated[list[Way], Field(min_length=1)]
    explains: list[str] = []
    fix: list[FixRung] = []
    verify: list[str] = []
    references: list[str] = []
    since: str = "0.1"
    about: str = ""

    @model_validator(mode="before")
    @classmethod
    def _single_way(cls, data: Any) -> Any:
        """A rule with one way writes its keys at the top."""
        if isinstance(data, dict) and "ways" not in data:
            data = dict(data)
            keys = ("when", "unless", "because", "subject")
            data["ways"] = [{key: data.pop(key) for key in keys if key in data}]
        return data

    @property
    def area(self) -> str:
        """The part of the id before the dot."""
        return self.id.partition(".")[0]
