"""The report contract: findings, undecided rules, probes and the node, as every consumer sees them.

`report/published.py` makes of it what is printed; `graph` alone is not published.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

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


class Subject(Struct, frozen=True):
    """What a finding is about."""

    kind: Literal["gpu", "node", "process", "link", "port", "pod"]
    name: str


class Fix(Struct, kw_only=True):
    """One rung of the ladder, least disruptive first; the commands are for this machine."""

    title: str
    why: str = ""
    commands: list[str] = []
    risk: Risk = "safe"
    needs: list[str] = []


class Verify(Struct, frozen=True):
    """How to see that it worked: the probes to run again."""

    probes: list[str] = []


class Finding(Struct, kw_only=True):
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
    first_seen: Annotated[float | None, Meta(description="seconds since the epoch, where the evidence has a time")] = (
        None
    )
    last_seen: float | None = None
    count: int = 1
    history: Annotated[bool, Meta(description="all evidence lies in earlier boots")] = False
    fixes: list[Fix] = []
    verify: Verify = Verify()
    references: list[str] = []


class Undecided(Struct, kw_only=True):
    """A rule that could not be decided, what is missing, and the cheapest way to get it."""

    id: str
    missing: list[str]
    ask: str


class ProbeResult(Struct, kw_only=True):
    """What became of a probe."""

    name: str
    status: ProbeStatus
    seconds: float = 0.0
    reason: str = ""


class SourceInfo(Struct, kw_only=True):
    """Where the evidence came from; `complete` is false where it breaks off or parts were unreadable."""

    kind: Literal["live", "nvidia-bug-report", "sosreport", "supportconfig", "must-gather", "snapshot", "folder", "log"]
    path: str
    collected_at: str | None = None
    complete: bool = True
    read: Annotated[list[str], Meta(description="parts that were recognised, as `part: format`")] = []
    skipped: Annotated[list[str], Meta(description="parts that were passed over because they hold no evidence")] = []
    problems: Annotated[list[str], Meta(description="parts that could not be read, and why")] = []


class ProgramInfo(Struct, kw_only=True):
    """Which gpudoctor made the report."""

    version: str
    engine: Literal["builtin", "durable"]
    rules: int
    python: str


class Suppression(Struct, frozen=True, kw_only=True):
    """What a site has decided to live with. It counts up to and including the day `expires`."""

    id: Annotated[str, Meta(description="id of a finding, or its area")]
    subject: Annotated[str, Meta(description="pattern with * and ? that the name of every subject must fit")] = "*"
    reason: str
    expires: Annotated[str, Meta(description="last day, YYYY-MM-DD, or never")]


class Suppressed(Struct, kw_only=True):
    """A finding that is true and does not count, and the suppression that says so."""

    finding: Finding
    suppression: Suppression


class Event(Struct, kw_only=True):
    """A line of a log that tells of trouble and when; repetitions are folded into one."""

    time: Annotated[float | None, Meta(description="seconds since the epoch (year 1970 where the log has no year)")] = (
        None
    )
    last_time: Annotated[float | None, Meta(description="of the last repetition")] = None
    uptime: Annotated[float | None, Meta(description="seconds since its boot")] = None
    boot: Annotated[int, Meta(description="0 the newest boot that the log holds, -1 the one before it")] = 0
    count: int = 1
    gpu: Annotated[str | None, Meta(description="the GPU that it is about, else the host")] = None
    text: str
    where: Where
    finding: Annotated[str, Meta(description="key of the finding that rests on it")] = ""
    severity: Annotated[Severity | None, Meta(description="of that finding")] = None


class Report(Struct, kw_only=True):
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
    timeline: Annotated[list[Event], Meta(description="what the logs date, oldest boot first")] = []
    suppressed: Annotated[list[Suppressed], Meta(description="findings that do not count in status and summary")] = []
    expired_suppressions: Annotated[list[Suppression], Meta(description="what they name counts again")] = []
    graph: Any = None  # how the devices reach each other, for drawings
    nodes: Annotated[
        "list[Report]",
        Meta(description="where the source holds several nodes: one report each; the outer findings name theirs"),
    ] = []
