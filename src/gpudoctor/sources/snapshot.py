"""gpudoctor's own snapshot: what each probe gave, as files, and a manifest that says which file is which answer.

`manifest.json` comes first in the archive and is read first in a folder. The report and the facts in the snapshot are for people and
programs; a diagnosis starts from the raw outputs again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Literal

import msgspec

from gpudoctor.sources.base import Document, SourceNotes
from gpudoctor.sources.stream import ByteStream

MANIFEST = "manifest.json"
FORMAT = 1
_MARK = b'"gpudoctor_snapshot"'
_MAX_MANIFEST = 16 * 2**20
_OWN = ("facts.json", "report.json", "report.txt", MANIFEST)


class Part(msgspec.Struct, kw_only=True):
    """One answer of a probe. `name` is what the live report calls it; `file` is where its text lies in the snapshot."""

    name: str
    status: Literal["ok", "absent", "failed", "timeout", "denied", "skipped"]
    file: str | None = None
    reason: str = ""
    exit_code: int | None = None


class Asked(msgspec.Struct, kw_only=True):
    """One probe as it ran."""

    name: str
    command: list[str] = []
    answers: list[str] = []
    seconds: float = 0.0
    parts: list[Part] = []


class FileEntry(msgspec.Struct, kw_only=True):
    """A file of the snapshot."""

    size: int
    sha256: str


class Manifest(msgspec.Struct, kw_only=True):
    """What a snapshot holds. `redacted` counts the replacements by kind; it never holds what was replaced."""

    gpudoctor_snapshot: int = FORMAT
    version: str
    created: float
    profile: str
    probes: list[Asked] = []
    files: dict[str, FileEntry] = {}
    redacted: dict[str, int] | None = None
    root: bool = True
    complete: bool = True

    def as_json(self) -> bytes:
        """Return the manifest as its file holds it."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


def is_manifest(name: str, head: bytes) -> bool:
    """Tell by name and first key."""
    return PurePosixPath(name).name == MANIFEST and _MARK in head[:256]


def kept_parts(name: str, stream: ByteStream, notes: SourceNotes) -> Iterator[Document]:
    """Read the manifest; the files that it names come later, as files of the same folder."""
    raw = stream.take(_MAX_MANIFEST)
    folder = name[: -len(MANIFEST)]
    try:
        manifest = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        notes.incomplete(f"{name}: the snapshot's manifest can't be read ({str(error).partition(chr(10))[0]})")
        return
    if manifest.gpudoctor_snapshot > FORMAT:
        notes.problems.append(f"{name}: made by a newer gpudoctor ({manifest.version}); what it adds is not understood")
    notes.snapshots[folder] = manifest
    notes.collected_at, notes.dated_by_content = manifest.created, True
    yield Document(name, lambda: (), skipped="the snapshot's manifest")


def own_file(name: str, notes: SourceNotes) -> bool:
    """Tell whether a file is the snapshot's own summary, which is not evidence."""
    return any(name.startswith(folder) and name[len(folder) :] in _OWN for folder in notes.snapshots)
