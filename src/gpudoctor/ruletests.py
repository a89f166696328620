"""Runs rule tests: YAML files that say, per rule, on which texts it fires, stays silent or is undecided.

hardware.fell-off-bus:
  fires:
    - why: the classic line
      files: {dmesg.txt: "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."}
      because: ["0000:3b:00.0"]        # words that the sentence must hold
      role: cause                      # cause (default), consequence or advice
      first: true                      # optional: it must lead the report
  silent:
    - why: another Xid
      files: {dmesg.txt: "NVRM: Xid (PCI:0000:3b:00): 13, ..."}
  undecided:
    - why: ...
      files: {...}
      asks: kernel_module              # a kind of fact that is named as missing
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gpudoctor.declared import DeclarationError, line_of, read
from gpudoctor.diagnosis import Doctor
from gpudoctor.findings.model import Report
from gpudoctor.sources.memory import TextSource


class _Case(BaseModel):
    model_config = ConfigDict(extra="forbid")

    why: str
    files: Annotated[dict[str, str], Field(min_length=1)]


class Fires(_Case):
    """The rule must be reported."""

    because: list[str] = []
    role: Literal["cause", "consequence", "advice"] = "cause"
    subject: str | None = None
    severity: str | None = None
    confidence: str | None = None
    first: bool = False


class Undecided(_Case):
    """The rule must be undecided, with this kind of fact missing."""

    asks: str


class RuleTests(BaseModel):
    """The tests of one rule."""

    model_config = ConfigDict(extra="forbid")

    fires: list[Fires] = []
    silent: list[_Case] = []
    undecided: list[Undecided] = []


@dataclass(frozen=True)
class RuleTest:
    """One text and what is expected of one rule on it."""

    rule_id: str
    kind: Literal["fires", "silent", "undecided"]
    number: int
    case: _Case

    @property
    def name(self) -> str:
        """A readable name."""
        return f"{self.rule_id}: {self.kind} {self.number}: {self.case.why}"


def read_tests(path: Path) -> Iterator[RuleTest]:
    """Read the tests of one file; raises DeclarationError naming file, line and key."""
    text, data = read(path)
    if data is None:
        return
    if not isinstance(data, dict):
        raise DeclarationError(f"{path}:1: a test file maps rule ids to their tests")
    for rule_id, entry in data.items():
        try:
            tests = RuleTests.model_validate(entry)
        except ValidationError as error:
            first = error.errors()[0]
            line = line_of(text, [rule_id, *first["loc"]])
            raise DeclarationError(
                f"{path}:{line}: {rule_id}: {'.'.join(map(str, first['loc']))}: {first['msg']}"
            ) from None
        for kind in ("fires", "silent", "undecided"):
            for number, case in enumerate(getattr(tests, kind), start=1):
                yield RuleTest(rule_id, kind, number, case)


def run_test(test: RuleTest, doctor: Doctor) -> str | None:
    """Run one test; returns None where it holds, else what went wrong in one line."""
    report = doctor.diagnose(TextSource(test.case.files))
    if report.source.problems:
        return f"problems while reading: {report.source.problems[0]}"
    found = [finding for finding in report.findings if finding.id == test.rule_id]
    match test.case:
        case Undecided(asks=asks):
            missing = next((entry.missing for entry in report.undecided if entry.id == test.rule_id), None)
            if found:
                return f"fired instead: {found[0].because}"
            if missing is None:
                return f"not among the undecided ({_seen(report)})"
            return None if asks in missing else f"asks for {', '.join(missing)}, not {asks}"
        case Fires() as fires:
            return _check_fires(fires, report, test.rule_id)
    return f"fired: {found[0].because}" if found else None


def _check_fires(fires: Fires, report: Report, rule_id: str) -> str | None:
    found = [finding for finding in report.findings if finding.id == rule_id]
    if not found:
        return f"did not fire ({_seen(report)})"
    finding = next((f for f in found if f.role == fires.role), None)
    if finding is None:
        return f"role is {found[0].role} (caused by {', '.join(found[0].caused_by)}), not {fires.role}"
    if fires.first and report.findings[0].id != rule_id:
        return f"{report.findings[0].id} leads the report"
    if fires.severity and finding.severity != fires.severity:
        return f"severity is {finding.severity}, not {fires.severity}"
    if fires.confidence and finding.confidence != fires.confidence:
        return f"confidence is {finding.confidence}, not {fires.confidence}"
    if fires.subject and fires.subject not in [s.name for f in found for s in f.subjects]:
        return f"subjects are {[s.name for f in found for s in f.subjects]}, not {fires.subject}"
    texts = " ".join(f.because for f in found)
    missing = [words for words in fires.because if words not in texts]
    return f"because {missing[0]!r} is not in {texts!r}" if missing else None


def _seen(report: Report) -> str:
    ids = ", ".join(f"{finding.id}={finding.role}" for finding in report.findings)
    return f"findings: {ids or 'none'}; read: {'; '.join(report.source.read) or 'nothing recognised'}"
