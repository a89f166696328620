"""What a collection yields: facts, and an account of what was read and what wasn't."""

from __future__ import annotations

import msgspec

from gpudoctor.collect.clock import with_year
from gpudoctor.facts.base import Fact
from gpudoctor.findings.model import ProbeResult
from gpudoctor.parsers.scan import Scanned
from gpudoctor.sources.base import Document


class Collected(msgspec.Struct):
    """Facts of one node and where they came from."""

    facts: list[Fact] = []
    read: list[str] = []
    problems: list[str] = []
    skipped: list[str] = []
    probes: list[ProbeResult] = []
    bytes_read: int = 0

    def join(self, other: Collected) -> None:
        """Take over all that another collection holds."""
        self.facts += other.facts
        self.read += other.read
        self.problems += other.problems
        self.skipped += other.skipped
        self.probes += other.probes
        self.bytes_read += other.bytes_read

    def add(self, document: Document, scanned: Scanned) -> None:
        """Take over what was found in one document."""
        if document.taken is not None:
            for fact in scanned.facts:
                fact.time = with_year(fact.time, document.taken)
                fact.last_time = with_year(fact.last_time, document.taken)
        self.facts += scanned.facts
        self.bytes_read += scanned.bytes_read
        self.read += [f"{document.name}: {name}" for name in dict.fromkeys(scanned.formats)]
        self.problems += [f"{problem.where}: {problem.format}: {problem.reason}" for problem in scanned.problems]
