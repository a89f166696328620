"""What a collection yields: facts, and an account of what was read and what wasn't."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpudoctor.collect.clock import with_year
from gpudoctor.facts.base import Fact
from gpudoctor.findings.model import ProbeResult
from gpudoctor.parsers.scan import Scanned, Scanner
from gpudoctor.sources.base import Document, Source


@dataclass
class Collected:
    """Facts of one node and where they came from."""

    facts: list[Fact] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    probes: list[ProbeResult] = field(default_factory=list)
    bytes_read: int = 0

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


def scan_documents(documents: Iterable[Document], scanner: Scanner) -> Collected:
    """Scan documents one after the other; those marked skipped are passed over."""
    collected = Collected()
    for document in documents:
        if document.skipped is None:
            collected.add(document, scanner.scan(document.name, document.chunks(), document.first_line, document.boot))
    return collected


def collect_offline(source: Source, scanner: Scanner) -> Collected:
    """Read everything that an offline source holds."""
    return scan_documents(source.documents(), scanner)
