"""The report contract: findings, undecided rules, probes and the node, as every consumer sees them."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from gpudoctor.facts.base import Where

SCHEMA_VERSION = "1.3"

Severity = Literal["info", "warning", "critical"]
Confidence = Literal["certain", "likely", "possible"]
Role = Literal["cause", "consequence", "advice"]
Risk = Literal["read-only", "safe", "restarts-app", "disrupts-node", "data-loss", "vendor"]
Status = Literal["ok", "warning", "critical", "unknown"]
ProbeStatus = Literal["ok", "absent", "failed", "timeout", "denied", "skipped"]

SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")
CONFIDENCES: tuple[Confidence, ...] = ("possible", "likely", "certain")


class Subject(BaseModel, frozen=True):
    """What a finding is about."""

    kind: Literal["gpu", "node", "process", "link", "port", "pod"]
    name: str


class Fix(BaseModel):
    """One rung of the ladder, least disruptive first; the commands are for this machine."""

    title: str
    why: str = ""
    commands: list[str] = []
    risk: Risk = "safe"
    needs: list[str] = []


class Verify(BaseModel):
    """How to see that it worked: the probes to run again."""

    probes: list[str] = []


class Finding(BaseModel):
    """One diagnosis. `key` is the id with its subjects and stays the same from run to run."""

    id: str
    title: str
    severity: Severity
    confidence: Confidence
    role: Role = "cause"
    caused_by: list[str] = []
    explains: list[str] = []
    key: str
    subjects: list[Subject]
    because: str
    evidence: list[Where]
    first_seen: float | None = Field(default=None, description="seconds since the epoch, where the evidence has a time")
    last_seen: float | None = None
    count: int = 1
    history: bool = Field(default=False, description="all evidence lies in earlier boots")
    fixes: list[Fix] = []
    verify: Verify = Verify()
    references: list[str] = []
    specificity: int = Field(default=0, exclude=True)
    boots: tuple[int, ...] = Field(default=(), exclude=True)


class Undecided(BaseModel):
    """A rule that could not be decided, what is missing, and the cheapest way to get it."""

    id: str
    missing: list[str]
    ask: str


class ProbeResult(BaseModel):
    """What became of a probe."""

    name: str
    status: ProbeStatus
    seconds: float = 0.0
    reason: str = ""


class SourceInfo(BaseModel):
    """Where the evidence came from; `complete` is false where it breaks off or parts were unreadable."""

    kind: Literal["live", "nvidia-bug-report", "sosreport", "supportconfig", "must-gather", "snapshot", "folder", "log"]
    path: str
    collected_at: str | None = None
    complete: bool = True
    read: list[str] = Field(default=[], description="parts that were recognised, as `part: format`")
    skipped: list[str] = Field(default=[], description="parts that were passed over because they hold no evidence")
    problems: list[str] = Field(default=[], description="parts that could not be read, and why")


class ProgramInfo(BaseModel):
    """Which gpudoctor made the report."""

    version: str
    engine: Literal["builtin", "durable"]
    rules: int
    python: str


class Suppression(BaseModel, frozen=True):
    """What a site has decided to live with. It counts up to and including the day `expires`."""

    id: str = Field(description="id of a finding, or its area")
    subject: str = Field(default="*", description="pattern with * and ? that the name of every subject must fit")
    reason: str
    expires: str = Field(description="last day, YYYY-MM-DD, or never")


class Suppressed(BaseModel):
    """A finding that is true and does not count, and the suppression that says so."""

    finding: Finding
    suppression: Suppression


class Event(BaseModel):
    """A line of a log that tells of trouble and when; repetitions are folded into one."""

    time: float | None = Field(
        default=None, description="seconds since the epoch (year 1970 where the log has no year)"
    )
    last_time: float | None = Field(default=None, description="of the last repetition")
    uptime: float | None = Field(default=None, description="seconds since its boot")
    boot: int = Field(default=0, description="0 the newest boot that the log holds, -1 the one before it")
    count: int = 1
    gpu: str | None = Field(default=None, description="the GPU that it is about, else the host")
    text: str
    where: Where
    finding: str = Field(default="", description="key of the finding that rests on it")
    severity: Severity | None = Field(default=None, description="of that finding")


class Report(BaseModel):
    """The whole report. `findings` come ranked: the first one is the answer to "what is wrong?"."""

    schema_version: str = SCHEMA_VERSION
    gpudoctor: ProgramInfo
    source: SourceInfo
    node: dict[str, Any]
    status: Status
    summary: str
    findings: list[Finding]
    undecided: list[Undecided]
    probes: list[ProbeResult]
    timeline: list[Event] = Field(default=[], description="what the logs date, oldest boot first")
    suppressed: list[Suppressed] = Field(default=[], description="findings that do not count in status and summary")
    expired_suppressions: list[Suppression] = Field(default=[], description="what they name counts again")
    graph: Any = Field(default=None, exclude=True, description="how the devices reach each other, for drawings")
    nodes: list["Report"] = Field(
        default=[], description="where the source holds several nodes: one report each; the outer findings name theirs"
    )
