"""supportconfig (SUSE): text files of sections, each `#==[ Command ]====#`, then a line `# ` with the command or path."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from gpudoctor.sources.base import Document
from gpudoctor.sources.stream import ByteStream

_SECTION = re.compile(rb"^#==\[ (?P<kind>[A-Z][^\]\n]{2,40}) \]=*#?[ \t\r]*\n(?:# (?P<what>[^\n]*)\n)?", re.MULTILINE)
_MAX_SECTION = 32 * 2**20
_LONGEST_HEADING = 4096
_ABSENT = ("File not found", "not installed", "Command not found")


def is_supportconfig(head: bytes) -> bool:
    """Tell by the first section heading."""
    return _SECTION.search(head) is not None


def parts(name: str, stream: ByteStream) -> Iterator[Document]:
    """Yield a document per section; lines are counted from the start of the file."""
    title, line, pending = "head", 1, b""
    for piece in itertools.chain(stream.rest(), (None,)):
        pending += piece or b""
        safe = len(pending) if piece is None else len(pending) - _LONGEST_HEADING
        position = 0
        for found in _SECTION.finditer(pending):
            if found.start() > safe:
                break  # the rest of the heading may come with the next piece
            yield from _part(name, title, pending[position : found.start()], line)
            line += pending.count(b"\n", position, found.end())
            title = (found["what"] or found["kind"]).decode("utf-8", "replace").strip()[:120]
            position = found.end()
        pending = pending[position:]
        if len(pending) > _MAX_SECTION:
            cut = pending.rfind(b"\n") + 1 or len(pending)
            yield from _part(name, title, pending[:cut], line)
            line += pending.count(b"\n", 0, cut)
            pending = pending[cut:]
    yield from _part(name, title, pending, line)


def _part(name: str, title: str, body: bytes, line: int) -> Iterator[Document]:
    if body.strip() and not any(title.endswith(words) for words in _ABSENT):
        boot = -1 if re.search(r"-b ?-1\b|\.(?:0|1|old)$", title) else 0
        yield Document(f"{name} § {title}", lambda: (body,), line, boot)
