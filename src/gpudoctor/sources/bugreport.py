"""nvidia-bug-report.log: sections separated by lines of underscores.

Each section begins with a heading: `*** /path` (a file; the next line may be `*** ls: ...`), a command line, or
`base64 "..."`. The script has written them in this shape since 2013.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gpudoctor.sources.base import Document, SourceNotes

_RULE = re.compile(rb"^_{20,}[ \t\r]*\n", re.MULTILINE)
_BOOT = re.compile(r"journalctl\b.*\s-b\s*(-\d+)")
_MAX_SECTION = 32 * 2**20  # a longer one goes on as another document of the same name
_END = b"End of NVIDIA bug report log file"


def is_bug_report(head: bytes) -> bool:
    """Tell by the first bytes."""
    return b"Start of NVIDIA bug report log file" in head[:4096] or b"nvidia-bug-report.sh Version" in head[:4096]


def sections(name: str, chunks: Iterable[bytes], notes: SourceNotes) -> Iterator[Document]:
    """Yield one document per section; lines are counted from the start of the whole report."""
    heading = "head"
    line = 1
    pending = b""
    searched = 0
    ended = False
    for chunk in chunks:
        pending += chunk
        position = 0
        for rule in _RULE.finditer(pending, searched):
            body = pending[position : rule.start()]
            heading = _heading(body) or heading
            ended = ended or _END in body
            yield _document(name, heading, body, line)
            line += body.count(b"\n") + 1
            position = rule.end()
        pending = pending[position:]
        searched = pending.rfind(b"\n") + 1  # a rule that is cut by the chunk begins there at the earliest
        if len(pending) > _MAX_SECTION:
            heading = _heading(pending) or heading
            yield _document(name, heading, pending[:searched], line)
            line += pending.count(b"\n", 0, searched)
            pending, searched = pending[searched:], 0
    ended = ended or _END in pending
    heading = _heading(pending) or heading
    yield _document(name, heading, pending, line)
    if not ended:
        notes.incomplete(f"{name}: the report has no end mark; it breaks off in section {heading!r}")


def _heading(body: bytes) -> str | None:
    for raw in body.split(b"\n", 8)[:8]:
        text = raw.strip().decode("utf-8", "replace")
        if text:
            return text.removeprefix("*** ").strip()[:120]
    return None


def _document(name: str, heading: str, body: bytes, line: int) -> Document:
    boot = _BOOT.search(heading)
    return Document(
        name=f"{name} § {heading}",
        chunks=lambda: (body,),
        first_line=line,
        boot=int(boot[1]) if boot else 0,
        skipped="base64" if heading.startswith("base64 ") else None,
    )
