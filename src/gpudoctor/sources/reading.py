"""From a stream to documents: unpacks, opens archives, and tells by the content what kind of text it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gpudoctor.sources.archive import Packed, archive_kind, tar_files, zip_files
from gpudoctor.sources.base import Document, SourceNotes
from gpudoctor.sources.bugreport import is_bug_report, sections
from gpudoctor.sources.day import day_in_name
from gpudoctor.sources.journal import export_lines, is_export, is_json, json_lines
from gpudoctor.sources.limits import MAX_FILES, MAX_LAYERS, MAX_TOTAL
from gpudoctor.sources.packed import packing, unpack
from gpudoctor.sources.snapshot import MANIFEST, is_manifest, kept_parts, own_file
from gpudoctor.sources.sosreport import boot_of, is_record_of_sos, root_of
from gpudoctor.sources.stream import ByteStream
from gpudoctor.sources.supportconfig import is_supportconfig, parts

_HEAD = 4096
# What is no text and would be searched in vain, or worse: libraries and core dumps hold every message of their program.
_NO_TEXT = (
    (b"\x7fELF", "a program, library or core dump"),
    (b"LPKSHHRH", "a binary journal (to have it read: journalctl --file FILE -o export > journal.export)"),
    (b"!<arch>\n", "a package or static library"),
    (b"\xed\xab\xee\xdb", "a package"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"%PDF-", "a PDF"),
    (b"SQLite format 3\0", "a database"),
    (b"KDUMP   ", "a kernel dump"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive, which is not read (repack it as .tar.gz)"),
    (b"Rar!\x1a\x07", "a rar archive, which is not read (repack it as .tar.gz)"),
)
_PICKLE = re.compile(rb"\x80[\x02-\x05][}\](\x95]")  # of protocol 2 to 5: its first instruction, and what may follow it
_FLIGHT_RECORDER = (b"pg_config", b"pg_status", b"collective_seq_id")  # keys of PyTorch's dump
_MUST_GATHER = re.compile(
    r"(?:^|/)(?:gpu_operand_pods\.(?:status|yaml)|gpu_nodes\.(?:descr|status|labels)|cluster_policy\.(?:yaml|missing)|cluster-scoped-resources/)"
)


def documents_in(
    name: str, stream: ByteStream, notes: SourceNotes, depth: int = 0, *, top: bool = False
) -> Iterator[Document]:
    """Yield the documents of one file. `top`: it is the source itself, so what it holds goes by its own path."""
    head = stream.peek(_HEAD)
    while (kind := packing(head)) is not None:
        if depth >= MAX_LAYERS:
            notes.incomplete(f"{name}: packed more than {MAX_LAYERS} times over; not read")
            return
        depth += 1
        stream = ByteStream(_counted(unpack(name, kind, stream, notes), notes))
        head = stream.peek(_HEAD)
    archive = archive_kind(head)
    if archive is not None:
        if depth >= MAX_LAYERS:
            notes.incomplete(f"{name}: packed more than {MAX_LAYERS} times over; not read")
            return
        files = (tar_files if archive == "tar" else zip_files)(name, stream, notes)
        yield from archived(files, "" if top else f"{name}/", notes, depth + 1)
        return
    yield from _texts(name, head, stream, notes)


def archived(files: Iterable[Packed], prefix: str, notes: SourceNotes, depth: int) -> Iterator[Document]:
    """Yield the documents of the files of an archive."""
    if notes.kind == "log":
        notes.kind = "folder"
    newest = 0.0
    for file in files:
        if not notes.account.file():
            notes.incomplete(f"more than {MAX_FILES} files; the rest was not read")
            break
        path = prefix + file.path
        taken = min(filter(None, (file.time, day_in_name(path))), default=None)
        newest = max(newest, taken or 0.0)
        for document in documents_in(path, file.stream, notes, depth):
            document.taken = document.taken or taken
            yield document
    if newest:
        notes.collected_at = max(notes.collected_at or 0.0, newest) if notes.dated_by_content else newest
        notes.dated_by_content = True


def _texts(name: str, head: bytes, stream: ByteStream, notes: SourceNotes) -> Iterator[Document]:
    for magic, what in _NO_TEXT:
        if head.startswith(magic):
            yield Document(name, lambda: (), skipped=what)
            return
    if is_bug_report(head):
        notes.root(name, "nvidia-bug-report")
        yield from sections(name, stream.rest(), notes)
        return
    if (root := root_of(name)) is not None:
        notes.root(root, "sosreport")
        if is_record_of_sos(name.removeprefix(root)):
            yield Document(name, lambda: (), skipped="sos's own record of what it did")
            return
    elif _MUST_GATHER.search(name):
        notes.kind = "must-gather"
    if is_manifest(name, head):
        notes.root(name[: -len(MANIFEST)], "snapshot")
        yield from kept_parts(name, stream, notes)
    elif notes.snapshots and own_file(name, notes):
        yield Document(name, lambda: (), skipped="the snapshot's own summary")
    elif is_supportconfig(head):
        notes.root(name[: len(name) - len(name.rpartition("/")[2])], "supportconfig")
        yield from parts(name, stream)
    elif is_export(head):
        yield Document(name, lambda: export_lines(stream))
    elif _PICKLE.match(head):
        yield _plain_data(name, stream, notes)
    elif is_json(head):
        yield Document(name, lambda: json_lines(stream))
    else:
        yield Document(name, stream.rest, boot=boot_of(name))


def _plain_data(name: str, stream: ByteStream, notes: SourceNotes) -> Document:
    """Return a pickle's data as JSON. Of one that is refused it is said where it is evidence, as of a rank's flight recorder."""
    from gpudoctor.sources.pickled import NotPlain, as_json

    recorder = any(sign in stream.peek(_HEAD) for sign in _FLIGHT_RECORDER)
    try:
        text = as_json(stream)
    except NotPlain as error:
        reason = f"a Python pickle that is not read: {error}"
        if recorder:
            notes.incomplete(f"{name}: {reason}")
        return Document(name, lambda: (), skipped=reason)
    return Document(name, lambda: (text,))


def _counted(pieces: Iterable[bytes], notes: SourceNotes) -> Iterator[bytes]:
    for piece in pieces:
        if not notes.account.read(len(piece)):
            notes.incomplete(f"more than {MAX_TOTAL >> 30} GiB in all; the rest was not read")
            return
        yield piece
