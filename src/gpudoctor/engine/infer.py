"""From facts to raw findings: every match of every rule, and the rules that could not be decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from msgspec.structs import replace

from gpudoctor.engine.compile import Alternative, RuleSet, fill
from gpudoctor.engine.evaluate import Match, Vetoes, matches, unproven
from gpudoctor.facts.base import Fact, Where
from gpudoctor.facts.store import FactStore
from gpudoctor.findings.model import CONFIDENCES, SEVERITIES, Finding, Subject, Verify
from gpudoctor.findings.resolve import Inferred

MAX_EVIDENCE = 8
_UNNAMED = "node"
# Facts that happen, in a boot; the others are states, which hold now.
_EVENTS = ("log", "xid", "sxid", "kernel_trace", "gpu_refusal", "module_load_error", "host_oom_kill")

# Answers which facts fill the positive conditions of which alternative.
Evaluator = Callable[[Iterable[Alternative], FactStore], Iterable[Match]]


class Missing(msgspec.Struct):
    """An undecided rule: all else fits, these kinds were not read."""

    rule_id: str
    kinds: list[str]
    given: tuple[str, ...]  # kinds of the facts that fitted


class Inference(msgspec.Struct):
    """What the engine found; `failures` are rules that broke."""

    findings: list[Inferred]
    undecided: list[Missing]
    failures: list[str] = []


def builtin(alternatives: Iterable[Alternative], store: FactStore) -> Iterable[Match]:
    """The built-in evaluator."""
    for alternative in alternatives:
        yield from matches(alternative, store)


def infer(rules: RuleSet, store: FactStore, evaluator: Evaluator = builtin) -> Inference:
    """Evaluate all rules against the facts."""
    raw: dict[str, Inferred] = {}
    met: dict[str, set[int]] = {}
    undecided: dict[str, Missing] = {}
    failures: list[str] = []
    fired: set[str] = set()
    try:
        found = list(evaluator(rules.alternatives, store))
    except Exception as error:  # an engine that breaks must not take the report with it
        failures.append(f"engine: {type(error).__name__}: {error}; the built-in evaluator took over")
        found = []
        for alternative in rules.alternatives:
            try:
                found += matches(alternative, store)
            except Exception as broken:
                failures.append(f"{alternative.rule.id}: {type(broken).__name__}: {broken}")
    host = _host(store)
    vetoes = Vetoes(store)
    for match in found:
        alternative = match.alternative
        if vetoes.against(alternative, match.bound):
            continue
        if missing := unproven(alternative, store):
            _note(undecided, alternative, missing, match.bound.values())
            continue
        inferred = _inferred(match, host)
        finding = inferred.finding
        fired.add(finding.id)
        known = raw.get(finding.key)
        events = {id(fact) for fact in (*match.bound.values(), *match.more) if fact.kind in _EVENTS}
        fresh = bool(events - met.setdefault(finding.key, set()))  # else another way to see the same events
        met[finding.key] |= events
        if known is not None:
            inferred = _merged(known, inferred, fresh or (not events and finding.because != known.finding.because))
        raw[finding.key] = inferred
    for alternative in rules.alternatives:
        if alternative.rule.id not in fired:
            _half_matched(alternative, store, vetoes, undecided)
    ordered = [missing for rule_id, missing in undecided.items() if rule_id not in fired]
    return Inference(list(raw.values()), ordered, failures)


def _half_matched(alternative: Alternative, store: FactStore, vetoes: Vetoes, undecided: dict[str, Missing]) -> None:
    """Note a rule of which everything fits but the one fact that nobody asked for."""
    if len(alternative.all) < 2:
        return
    for condition in alternative.all:
        if condition.kind == "log" or store.probed(condition.kind) or store.of(condition.kind):
            continue
        for match in matches(alternative, store, skip=frozenset({condition.alias})):
            if not vetoes.against(alternative, match.bound):
                kinds = sorted({condition.kind, *unproven(alternative, store)})
                _note(undecided, alternative, kinds, match.bound.values())
                return


def _note(undecided: dict[str, Missing], alternative: Alternative, kinds: list[str], bound: Iterable[Fact]) -> None:
    known = undecided.get(alternative.rule.id)
    if known is None or len(kinds) < len(known.kinds):
        given = tuple(fact.kind for fact in bound)
        undecided[alternative.rule.id] = Missing(alternative.rule.id, kinds, given)


def _inferred(match: Match, host: str) -> Inferred:
    rule, way, bound = match.alternative.rule, match.alternative.way, match.bound
    facts = [*bound.values(), *match.more]
    if way.subject:
        name = fill(way.subject.name, bound)
        unnamed = name == _UNNAMED or (way.subject.kind == "node" and name == "?")  # what fill says of unknown values
        subjects = [Subject(kind=way.subject.kind, name=host if unnamed else name)]
    else:
        gpus = dict.fromkeys(fact.gpu for fact in facts if fact.gpu)
        subjects = [Subject(kind="gpu", name=name) for name in gpus] or [_node(facts, host)]
    times = [time for fact in facts for time in (fact.time, fact.last_time) if time is not None]
    boots = [fact.boot for fact in facts if fact.boot is not None and fact.kind in _EVENTS]
    finding = Finding(
        id=rule.id,
        title=rule.title,
        severity=way.severity or rule.severity,
        confidence=way.confidence or rule.confidence,
        role=way.role or rule.role,
        explains=rule.explains,
        key=f"{rule.id}@{','.join(subject.name for subject in subjects)}",
        subjects=subjects,
        because=fill(way.because, bound),
        evidence=_evidence(match),
        first_seen=min(times, default=None),
        last_seen=max(times, default=None),
        count=max((fact.count for fact in facts), default=1),
        history=bool(boots) and max(boots) < 0,
        verify=Verify(probes=rule.verify),
        references=rule.references,
    )
    conditions = len(match.alternative.all) + len(match.alternative.none)
    return Inferred(finding, conditions, tuple(sorted(set(boots))))


def _host(store: FactStore) -> str:
    """Return the name of the node where all texts that name one agree: texts that don't are about the same node."""
    names = {fact.node for fact in store if fact.node}
    return names.pop() if len(names) == 1 else _UNNAMED


def _node(facts: list[Fact], host: str) -> Subject:
    return Subject(kind="node", name=next((fact.node for fact in facts if fact.node), host))


def _evidence(match: Match) -> list[Where]:
    """The lines that the conditions looked at: a field's own line where the fact knows it."""
    tested: dict[str, list[str]] = {}
    for condition in match.alternative.all:
        tested.setdefault(condition.alias, []).extend(test.field for test in condition.tests)
    places: list[Where | None] = []
    for alias, fact in match.bound.items():
        lines = [fact.where_fields[name] for name in tested.get(alias, ()) if name in fact.where_fields]
        places += lines or [fact.where]
    places += [fact.where for fact in match.more]
    return list(dict.fromkeys(place for place in places if place is not None))[:MAX_EVIDENCE]


def _merged(one: Inferred, two: Inferred, fresh: bool) -> Inferred:
    """Join two matches of one rule on one subject: the stronger speaks, the evidence adds up, `fresh` events count."""
    known, other = one.finding, two.finding
    strongest = two if _strength(two) > _strength(one) else one
    strong, weak = (other, known) if strongest is two else (known, other)
    evidence = list(dict.fromkeys([*strong.evidence, *weak.evidence]))[:MAX_EVIDENCE]
    firsts = [time for time in (known.first_seen, other.first_seen) if time is not None]
    lasts = [time for time in (known.last_seen, other.last_seen) if time is not None]
    merged = replace(
        strong,
        evidence=evidence,
        first_seen=min(firsts, default=None),
        last_seen=max(lasts, default=None),
        count=known.count + other.count if fresh else max(known.count, other.count),
        history=known.history and other.history,
    )
    return Inferred(merged, strongest.specificity, tuple(sorted({*one.boots, *two.boots})))


def _strength(inferred: Inferred) -> tuple[bool, int, int, int]:
    finding = inferred.finding
    return (
        not finding.history,
        SEVERITIES.index(finding.severity),
        CONFIDENCES.index(finding.confidence),
        inferred.specificity,
    )
