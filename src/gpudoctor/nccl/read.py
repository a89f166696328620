"""Reading measured tables together with all else that a source holds."""

from __future__ import annotations

from gpudoctor.collect.offline import collect_offline
from gpudoctor.combiners import combine
from gpudoctor.diagnosis import Doctor
from gpudoctor.facts.comms import NcclTest
from gpudoctor.findings.model import Report
from gpudoctor.nccl.graph import machine_graph
from gpudoctor.nccl.judge import Judgement, judge
from gpudoctor.sources.base import Source


def read(doctor: Doctor, source: Source) -> tuple[list[Judgement], Report]:
    """Judge every table of a source, and diagnose the source as a whole."""
    collected = collect_offline(source, doctor.scanner)
    report = doctor.judge(collected, source.notes)
    graph = machine_graph(combine(collected.facts, []))
    return [judge(fact, graph) for fact in collected.facts if isinstance(fact, NcclTest)], report
