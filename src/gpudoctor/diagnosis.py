"""The one way through the house: source, probes, parsers, facts, engine, findings, report."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from datetime import date, datetime, timezone
from functools import cached_property
from pathlib import Path

from msgspec.structs import replace

from gpudoctor import __version__
from gpudoctor.collect.collected import Collected
from gpudoctor.collect.offline import collect_parts
from gpudoctor.combiners import combine
from gpudoctor.engine import EngineName, available_engines, evaluator
from gpudoctor.engine.compile import RuleSet
from gpudoctor.engine.infer import Evaluator, infer
from gpudoctor.engine.shipped import rules_with, shipped_rules
from gpudoctor.facts.store import FactStore
from gpudoctor.findings.ladder import contexts, ladder
from gpudoctor.findings.model import Finding, ProgramInfo, Report, SourceInfo, Status
from gpudoctor.findings.nodes import joined
from gpudoctor.findings.policy import Policy
from gpudoctor.findings.resolve import resolve
from gpudoctor.node import describe_node, graph_of, sees_gpu_evidence, smi_failures
from gpudoctor.parsers.formats import FORMATS
from gpudoctor.parsers.scan import Scanner
from gpudoctor.sources.base import Source, SourceNotes
from gpudoctor.timeline import timeline
from gpudoctor.undecided import undecided


class Doctor:
    """Rules and scanner, compiled once and used on any number of sources."""

    def __init__(
        self,
        rule_folders: Iterable[Path] = (),
        engine: EngineName | None = None,
        policy: Policy | None = None,
        evaluate: Evaluator | None = None,
    ) -> None:
        self.engine: EngineName = engine or available_engines()[0]
        self._evaluate = evaluate or evaluator(self.engine)
        self.rule_folders = list(rule_folders)
        self.policy = policy or Policy()

    @cached_property
    def rules(self) -> RuleSet:
        """All rules that are in order; what is wrong with others is in `faults`, and in every report's problems."""
        return rules_with(self.rule_folders) if self.rule_folders else shipped_rules()

    @cached_property
    def scanner(self) -> Scanner:
        """The scanner for all formats and all log patterns of the rules."""
        return Scanner(FORMATS, self.rules.patterns)

    def diagnose(self, source: Source) -> Report:
        """Read an offline source and judge it; where it holds several nodes, each of them and what they share."""
        parts = collect_parts(source, self.scanner)
        if len(parts) == 1:
            return self.judge(parts[0].collected, source.notes)
        reports = []
        for part in parts:
            notes = replace(source.notes, kind=part.kind, problems=[], path=part.name or source.notes.path)
            reports.append((part.name, self.judge(part.collected, notes)))
        return joined(reports, _source_info(source.notes, Collected(), []))

    def judge(self, collected: Collected, notes: SourceNotes) -> Report:
        """Infer and resolve: from what was collected to the report."""
        failures: list[str] = [f"rule left out: {fault}" for fault in self.rules.faults]
        if self.policy.suppressions:
            failures += self.policy.astray(rule.id for rule in self.rules.rules)
        store = combine(collected.facts, failures)
        inference = infer(self.rules, store, self._evaluate)
        failures += inference.failures
        findings = resolve(inference.findings, notes.collected_at)
        shown = contexts(store)
        by_id = {rule.id: rule for rule in self.rules.rules}
        host = next((str(name) for fact in store.of("kernel") if (name := fact.value("node"))), "")
        findings = [
            replace(finding, fixes=ladder(by_id[finding.id].fix, shown, finding.subjects, host)) for finding in findings
        ]
        graph = graph_of(store)
        today = date.today()  # a site's last day is a day of its own calendar
        findings, suppressed = self.policy.apply(findings, today)
        status = judge_status(findings, store, collected, notes)
        if status == "unknown" and suppressed:
            status = "ok"
        return Report(
            gpudoctor=ProgramInfo(
                version=__version__, engine=self.engine, rules=len(self.rules.rules), python=platform.python_version()
            ),
            source=_source_info(notes, collected, failures),
            node=describe_node(store, graph),
            graph=graph,
            status=status,
            summary=summarise(status, findings, store, notes, len(suppressed)),
            findings=findings,
            undecided=undecided(
                (missing for missing in inference.undecided if self.policy.selects(missing.rule_id)), store
            ),
            probes=collected.probes,
            timeline=timeline(store, findings),
            suppressed=suppressed,
            expired_suppressions=self.policy.expired(today),
        )


def judge_status(findings: list[Finding], store: FactStore, collected: Collected, notes: SourceNotes) -> Status:
    """Worst severity of what is wrong; unknown where nothing about a GPU could be read."""
    severities = {finding.severity for finding in findings if finding.role != "advice"}
    if "critical" in severities:
        return "critical"
    if "warning" in severities:
        return "warning"
    if not findings and _unexplained(store):
        return "unknown"
    if findings or sees_gpu_evidence(store):
        return "ok"
    return "ok" if collected.read and notes.kind not in ("live", "snapshot") else "unknown"


def _unexplained(store: FactStore) -> str | None:
    """Name what failed where no rule can say why: nothing was found wrong, yet it isn't in order."""
    if smi_failures(store):
        return "nvidia-smi or NVML fails"
    if store.of("cuda_error"):
        return "A CUDA program fails"
    return None


def summarise(
    status: Status, findings: list[Finding], store: FactStore, notes: SourceNotes, suppressed: int = 0
) -> str:
    """Say in one sentence how things are."""
    causes = [finding for finding in findings if finding.role == "cause" and finding.severity != "info"]
    if causes:
        remarks = ["possible, not certain"] if causes[0].confidence == "possible" else []
        same = [subject for cause in causes if cause.id == causes[0].id for subject in cause.subjects]
        on_gpus = len(set(same)) if all(subject.kind == "gpu" for subject in same) else 0
        remarks += [f"on {on_gpus} GPUs"] if on_gpus > 1 else []
        others = len({cause.id for cause in causes}) - 1
        remarks += [f"and {others} more"] if others else []
        return causes[0].title + (f" ({'; '.join(remarks)})" if remarks else "")
    if status == "unknown" and (failure := _unexplained(store)):
        return f"{failure}, and what was read doesn't tell why"
    if status == "unknown" and notes.kind in ("live", "snapshot"):
        return "No NVIDIA device, driver or library on this machine: nothing to examine (for a bundle or log: gpudoctor diagnose FILE)"
    if status == "unknown":
        return "Too little could be read to judge this machine"
    gpus = len({fact.gpu for fact in store.of("gpu") if fact.gpu})
    beside = f" beside {suppressed} suppressed finding{'s' if suppressed > 1 else ''}" if suppressed else ""
    return f"Nothing wrong found{f' on {gpus} GPU' + ('s' if gpus > 1 else '') if gpus else ''}{beside}"


def _source_info(notes: SourceNotes, collected: Collected, failures: list[str]) -> SourceInfo:
    when = None
    if notes.collected_at is not None:
        when = datetime.fromtimestamp(notes.collected_at, timezone.utc).isoformat(timespec="seconds")
    return SourceInfo(
        kind=notes.kind,  # type: ignore[arg-type]  # checked by pydantic
        path=notes.path,
        collected_at=when,
        complete=notes.complete,
        read=collected.read,
        skipped=collected.skipped,
        problems=[*notes.problems, *collected.problems, *failures],
    )
