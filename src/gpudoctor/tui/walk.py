"""A walk through the fix of one finding: where one is, what was tried, and what became of it. Kept across restarts."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from gpudoctor.findings.model import Finding, Report

Outcome = Literal["done", "no help", "skipped"]
_KEPT = 50  # walks in the file
_FRESH = 14 * 86_400.0  # seconds after which a walk is not offered again


@dataclass
class Walk:
    """Steps: 0 confirm, 1..n the rungs, n+1 verify.

    last_seen, count: of the finding when the walk began or was last verified; known: the keys of all findings at its beginning.
    """

    host: str
    key: str
    title: str
    rungs: list[str]
    last_seen: float | None = None
    count: int = 1
    known: list[str] = field(default_factory=list)
    position: int = 0
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    began: float = field(default_factory=time.time)
    touched: float = field(default_factory=time.time)

    @property
    def verify_step(self) -> int:
        """The number of the last step."""
        return len(self.rungs) + 1

    @property
    def rung(self) -> int | None:
        """The number of the rung that one is at, from 0."""
        return self.position - 1 if 0 < self.position < self.verify_step else None

    def go(self, step: int) -> None:
        """Go back or on, without a judgement."""
        self.position = max(0, min(self.verify_step, self.position + step))

    def note(self, outcome: Outcome, *, only_looks: bool = False) -> None:
        """Take down what became of the rung. Something done wants verifying, unless it only looked."""
        if (rung := self.rung) is None:
            self.go(1)
            return
        self.outcomes[rung] = outcome
        self.position = self.verify_step if outcome == "done" and not only_looks else self.next_rung()

    def next_rung(self) -> int:
        """Return the step of the next rung that wasn't tried, else verify."""
        here = self.rung if self.rung is not None else -1
        ahead = [rung for rung in range(len(self.rungs)) if rung not in self.outcomes]
        return min((rung for rung in ahead if rung > here), default=min(ahead, default=len(self.rungs))) + 1

    def saw(self, report: Report) -> None:
        """Take down how the finding stands now, so that the next verdict is about what comes later."""
        for finding in report.findings:
            if finding.key == self.key:
                self.last_seen, self.count = finding.last_seen, finding.count

    def did_something(self) -> bool:
        """Whether a rung was carried out."""
        return "done" in self.outcomes.values()


@dataclass(frozen=True)
class Verdict:
    """What an examination after the fix says of the finding.

    quiet: the old evidence is still there and nothing was added to it, as a log that isn't cleared has it.
    """

    state: Literal["resolved", "quiet", "still there"]
    new: tuple[Finding, ...] = ()


def begin(finding: Finding, report: Report) -> Walk:
    """Begin a walk through the fix of a finding."""
    return Walk(
        host=host_of(report),
        key=finding.key,
        title=finding.title,
        rungs=[fix.title for fix in finding.fixes],
        last_seen=finding.last_seen,
        count=finding.count,
        known=[other.key for other in report.findings],
    )


def compare(walk: Walk, after: Report) -> Verdict:
    """Tell what became of the finding since its walk began, also before a restart, and which causes are new."""
    new = tuple(other for other in after.findings if other.key not in walk.known and other.role == "cause")
    now = next((other for other in after.findings if other.key == walk.key), None)
    if now is None or now.history:
        return Verdict("resolved", new)
    dated = walk.last_seen is not None and now.last_seen is not None
    again = now.count > walk.count or (now.last_seen or 0.0) > (walk.last_seen or 0.0)
    return Verdict("quiet" if dated and not again else "still there", new)


class WalkFile:
    """The walks of this user. A file that can't be read or written only means that nothing is kept."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def find(self, host: str, key: str) -> Walk | None:
        """Return the walk for a finding of a machine."""
        return next((walk for walk in self._load() if (walk.host, walk.key) == (host, key)), None)

    def unverified(self, host: str) -> list[Walk]:
        """Return the walks of a machine in which something was done and that did not end, newest first."""
        since = time.time() - _FRESH
        walks = [walk for walk in self._load() if walk.host == host and walk.did_something() and walk.touched > since]
        return sorted(walks, key=lambda walk: -walk.touched)

    def save(self, walk: Walk) -> None:
        """Keep a walk."""
        walk.touched = time.time()
        self._write([walk, *self._others(walk)])

    def forget(self, walk: Walk) -> None:
        """A walk came to its end."""
        self._write(self._others(walk))

    def _others(self, walk: Walk) -> list[Walk]:
        return [other for other in self._load() if (other.host, other.key) != (walk.host, walk.key)]

    def _load(self) -> list[Walk]:
        try:
            entries: list[dict[str, Any]] = json.loads(self.path.read_text(encoding="utf-8"))
            walks = [Walk(**entry) for entry in entries]
            for walk in walks:
                walk.outcomes = {int(rung): outcome for rung, outcome in walk.outcomes.items()}
                walk.go(0)
        except (OSError, ValueError, TypeError, AttributeError):
            return []
        return walks

    def _write(self, walks: list[Walk]) -> None:
        text = json.dumps([asdict(walk) for walk in walks[:_KEPT]], indent=1)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            scratch = self.path.with_suffix(f".{os.getpid()}")
            scratch.write_text(text, encoding="utf-8")
            scratch.replace(self.path)
        except OSError:
            return


def walk_file() -> WalkFile:
    """Return the file where this user's state belongs."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    return WalkFile(Path(base) / "gpudoctor" / "walks.json")


def host_of(report: Report) -> str:
    """Name the machine that a walk belongs to: the live host, or the bundle."""
    if report.source.kind == "live":
        return f"live {report.node.get('host') or ''} {report.source.path}"
    return f"{report.source.kind} {report.source.path}"
