"""Reading measured tables together with all else that a source holds."""

from __future__ import annotations

from dataclasses import dataclass

from gpudoctor.collect.offline import collect_offline
from gpudoctor.combiners import combine
from gpudoctor.diagnosis import Doctor
from gpudoctor.facts.comms import NcclTest
from gpudoctor.findings.model import Report
from gpudoctor.nccl.graph import machine_graph
from gpudoctor.nccl.job import job_lines
from gpudoctor.nccl.judge import Judgement, judge
from gpudoctor.sources.base import Source


@dataclass
class Read:
    """The tables judged, the job in a few lines, and the diagnosis of the whole source."""

    judgements: list[Judgement]
    job: list[str]
    report: Report


def read(doctor: Doctor, source: Source) -> Read:
    """Judge every table of a source, and diagnose the source as a whole."""
    collected = collect_offline(source, doctor.scanner)
    report = doctor.judge(collected, source.notes)
    store = combine(collected.facts, [])
    graph = machine_graph(store)
    judgements = [judge(fact, graph) for fact in collected.facts if isinstance(fact, NcclTest)]
    return Read(judgements, job_lines(store), report)
