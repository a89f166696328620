"""Makes a snapshot: runs the probes, keeps what they gave, takes out what must not leave the machine, and writes one file."""

from __future__ import annotations

import errno
import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpudoctor import __version__
from gpudoctor.bundle import machine
from gpudoctor.bundle.redact import Redactor
from gpudoctor.bundle.write import write_archive
from gpudoctor.collect.booking import is_root
from gpudoctor.collect.collected import Collected
from gpudoctor.collect.live import Parts, Progress, why
from gpudoctor.collect.offline import collect_parts
from gpudoctor.collect.probe import Probe
from gpudoctor.diagnosis import Doctor
from gpudoctor.examine import Profile, examine
from gpudoctor.findings.model import Report
from gpudoctor.report.published import published_report
from gpudoctor.report.text import render_text
from gpudoctor.sources.archive import archive_kind
from gpudoctor.sources.base import Document, SourceNotes
from gpudoctor.sources.live import LiveHost, recording_name
from gpudoctor.sources.packed import packing, unpack
from gpudoctor.sources.reading import documents_in
from gpudoctor.sources.snapshot import MANIFEST, Asked, FileEntry, Manifest, Part
from gpudoctor.sources.stream import ByteStream

MAX_LOG = 64 * 2**20  # of a log that is given with --with, its end is kept
# Their four-part numbers are versions of libraries, not addresses.
_VERSIONS = {"python_envs", "packages_dpkg", "packages_rpm", "linker", "nvcc", "cuda_folders", "module_file", "dkms"}


@dataclass
class Kept:
    """One answer of a probe as it came."""

    probe: Probe
    seconds: float
    parts: Parts


@dataclass
class Snapshot:
    """A snapshot in memory: the manifest, the evidence, and the report on that evidence."""

    manifest: Manifest
    evidence: dict[str, bytes]
    report: Report
    live: Report
    summary: dict[str, bytes] = field(default_factory=dict)

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield all files, the manifest first."""
        yield MANIFEST, self.manifest.as_json()
        yield from self.evidence.items()
        yield from self.summary.items()

    @property
    def differs(self) -> list[str]:
        """Ids of findings that the live run had and the snapshot has not, or the other way round."""
        before = {(finding.id, finding.role) for finding in self.live.findings}
        after = {(finding.id, finding.role) for finding in self.report.findings}
        return sorted({finding_id for finding_id, _ in before ^ after})


def take(
    doctor: Doctor,
    host: LiveHost,
    *,
    profile: Profile = "deep",
    timeout: float = 60.0,
    logs: Sequence[Path] = (),
    since: str | None = None,
    redacted: bool = True,
    progress: Progress = lambda name, result: None,
) -> Snapshot:
    """Examine the machine and keep everything. Raises OSError where an extra log can't be read."""
    extra = {f"with/{number}-{_plain_name(log)}": _end_of(log) for number, log in enumerate(logs, start=1)}
    answers: list[Kept] = []
    notes = SourceNotes("live", str(host.root))
    collected = _read_extra(extra, doctor, notes)
    created = time.time()
    live = examine(
        doctor,
        host,
        timeout=timeout,
        profile=profile,
        progress=progress,
        keep=lambda probe, seconds, parts: answers.append(Kept(probe, seconds, list(parts))),
        collected=collected,
        everything=True,
        since=since,
    )
    redactor = _redactor(answers, extra, host) if redacted else None
    manifest = Manifest(version=__version__, created=created, profile=profile, root=is_root())
    evidence: dict[str, bytes] = {}
    for kept in answers:
        manifest.probes.append(_keep(kept, evidence, redactor))
    for name, content in extra.items():
        evidence[_clean(name, redactor)] = _redact(content, redactor)
    manifest.files = {
        name: FileEntry(size=len(content), sha256=hashlib.sha256(content).hexdigest())
        for name, content in evidence.items()
    }
    manifest.redacted = dict(redactor.counts) if redactor else None
    snapshot = Snapshot(manifest, evidence, live, live)
    source = _SnapshotInMemory(snapshot)
    parts = collect_parts(source, doctor.scanner, apart=False)
    snapshot.report = doctor.judge(parts[0].collected, source.notes)
    facts = [{"kind": fact.kind, **fact.plain()} for fact in parts[0].collected.facts]
    snapshot.summary = {
        "facts.json": json.dumps(facts, indent=0).encode(),
        "report.json": published_report(snapshot.report).encode(),
        "report.txt": render_text(snapshot.report).encode(),
    }
    return snapshot


def write(snapshot: Snapshot, path: Path) -> None:
    """Write the archive, readable by its owner alone, whole or not at all."""
    folder = path.name.partition(".tar")[0].partition(".t")[0] or "gpudoctor"
    write_archive(path, folder, snapshot.files(), snapshot.manifest.created)


def write_fixture(snapshot: Snapshot, folder: Path) -> None:
    """Write the snapshot unpacked, with the diagnosis that it must get, for a test. Raises FileExistsError."""
    folder.mkdir(parents=True)
    for name, content in snapshot.files():
        if name in snapshot.summary:
            continue
        path = folder / "input" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    report = snapshot.report
    causes = [finding for finding in report.findings if finding.role == "cause"]
    lines = [
        "what: (say what it shows)",
        "origin: made by gpudoctor collect --fixture",
        "input: input",
        f"status: {report.status}",
        f"complete: {str(report.source.complete).lower()}",
    ]
    if causes:
        where = causes[0].evidence[0] if causes[0].evidence else None
        consequences = sorted({finding.id for finding in report.findings if finding.role == "consequence"})
        lines += [
            f"first: {causes[0].id}",
            f"evidence: {json.dumps({'place': where.source if where else '', 'text': where.text[:200] if where else ''})}",
            f"consequences: {json.dumps(consequences)}",
        ]
    (folder / "expected.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


class _SnapshotInMemory:
    """The snapshot as a source: what `diagnose` will read of it."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.notes = SourceNotes("folder", "snapshot")

    def documents(self) -> Iterator[Document]:
        """Yield the documents that the archive will give."""
        for name, content in self.snapshot.files():
            yield from documents_in(name, ByteStream([content]), self.notes)


def _read_extra(extra: dict[str, bytes], doctor: Doctor, notes: SourceNotes) -> Collected:
    collected = Collected()
    for name, content in extra.items():
        for document in documents_in(name, ByteStream([content]), notes):
            if document.skipped is None:
                collected.add(
                    document, doctor.scanner.scan(document.name, document.chunks(), document.first_line, document.boot)
                )
    return collected


def _plain_name(log: Path) -> str:
    return log.stem if log.suffix in (".gz", ".xz", ".bz2", ".zst") else log.name


def _end_of(log: Path) -> bytes:
    """Return the text of a log, unpacked, its end where it is long. Raises OSError where it is no text."""
    if log.exists() and not log.is_file():
        raise OSError(errno.EINVAL, "not a regular file; save the log in one", str(log))
    with log.open("rb") as stream:
        head = stream.read(512)
        kind = packing(head)
        if kind is None:
            if archive_kind(head) is not None:
                raise OSError(errno.EINVAL, "an archive; give the logs in it", str(log))
            size = log.stat().st_size
            if size > MAX_LOG:
                stream.seek(size - MAX_LOG)
                stream.readline()
            else:
                stream.seek(0)
            return stream.read(MAX_LOG)
        stream.seek(0)
        notes = SourceNotes("log", str(log))
        text = bytearray()
        for piece in unpack(log.name, kind, ByteStream(iter(lambda: stream.read(1 << 20), b"")), notes):
            if not text and archive_kind(piece) is not None:
                raise OSError(errno.EINVAL, "an archive; give the logs in it", str(log))
            text += piece
            del text[: max(0, len(text) - MAX_LOG)]
        return bytes(text)


def _redactor(answers: Sequence[Kept], extra: dict[str, bytes], host: LiveHost) -> Redactor:
    """Make a redactor that knows this machine's names, and those that its answers mention."""
    redactor = Redactor()
    if host.is_this_machine:
        redactor = Redactor(machine.host_names(), machine.user_names(), machine.addresses())
    for kept in answers:
        for _, answer in kept.parts:
            redactor.learn(_text(answer.output))
    for content in extra.values():
        redactor.learn(_text(content))
    return redactor


def _keep(kept: Kept, evidence: dict[str, bytes], redactor: Redactor | None) -> Asked:
    """Put the texts of a probe's answers among the evidence; return what the manifest says of it."""
    asked = Asked(
        name=kept.probe.name,
        command=kept.probe.live.command,
        answers=kept.probe.answers,
        seconds=round(kept.seconds, 3),
    )
    for name, answer in kept.parts:
        file = None
        if answer.output:
            file = _file_name(kept.probe, _clean(name, redactor), evidence)
            evidence[file] = _redact(answer.output, redactor, versions=kept.probe.name in _VERSIONS)
        reason = _clean(why(answer), redactor)
        asked.parts.append(
            Part(
                name=_clean(name, redactor), status=answer.status, file=file, reason=reason, exit_code=answer.exit_code
            )
        )
    return asked


def _file_name(probe: Probe, name: str, taken: dict[str, bytes]) -> str:
    """Name a text as a recording does: root/… for files, commands/… for what programs printed, trees/… for many files."""
    if probe.live.tree:
        file = f"trees/{recording_name([name])}"
    elif name.startswith("/"):
        file = f"root{name}"
    else:
        file = f"commands/{recording_name(probe.live.command or [probe.live.child or name])}"
    number = 1
    unique = file
    while unique in taken:
        number += 1
        unique = f"{file}.{number}"
    return unique


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def _redact(content: bytes, redactor: Redactor | None, *, versions: bool = False) -> bytes:
    if redactor is None:
        return content
    return redactor.redact(_text(content), versions=versions).encode("utf-8", "surrogateescape")


def _clean(text: str, redactor: Redactor | None) -> str:
    return redactor.redact(text) if redactor else text
