"""Whatever a bundle holds: no crash, no hang, nothing outside it; and the cut of the pieces never shows.

More examples: GPUDOCTOR_FUZZ=100000 python -m pytest tests/sources/test_fuzz.py
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpudoctor.bundle.redact import Redactor
from gpudoctor.sources import bugreport
from gpudoctor.sources.base import SourceNotes
from gpudoctor.sources.bugreport import sections
from gpudoctor.sources.reading import documents_in
from gpudoctor.sources.stream import ByteStream

from .test_archives import EXPORT, SUPPORTCONFIG, XID, tar, zipped  # isort: skip
from .test_bundles import bug_report, sosreport  # isort: skip

EXAMPLES = int(os.environ.get("GPUDOCTOR_FUZZ", "60"))
fuzz = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))

MANIFEST = json.dumps({"gpudoctor_snapshot": 1, "version": "1", "created": 1.0, "profile": "deep"}).encode()
SEEDS = (
    tar({"a/b.log": XID, "c": b"x" * 700}),
    tar({"deep/" * 30 + "x" * 120: XID}),
    gzip.compress(tar({"a.log": XID, "b.gz": gzip.compress(XID)})),
    gzip.compress(XID) + gzip.compress(XID),
    lzma.compress(XID),
    bz2.compress(XID),
    b"\x28\xb5\x2f\xfd\x04\x00" + XID,
    zipped({"a.log": XID, "b/c.log": XID * 20}),
    bug_report("n", XID),
    tar(sosreport("n")),
    EXPORT,
    SUPPORTCONFIG,
    b'{"__REALTIME_TIMESTAMP":"1","MESSAGE":[1,2]}\n',
    tar({"s/manifest.json": MANIFEST, "s/root/x": XID}),
)


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """A valid input with some bytes changed, cut out or put in."""
    raw = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(raw)))
        match draw(st.sampled_from(("set", "cut", "put", "end"))):
            case "set":
                raw[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case "cut":
                del raw[at : at + draw(st.integers(1, 600))]
            case "put":
                raw[at:at] = draw(st.one_of(st.binary(max_size=20), st.sampled_from(SEEDS)))
            case _:
                del raw[at:]
    return bytes(raw)


@st.composite
def pieces(draw: st.DrawFn, content: bytes) -> list[bytes]:
    """The content cut anywhere."""
    cuts = sorted(draw(st.lists(st.integers(0, len(content)), max_size=8)))
    return [content[a:b] for a, b in zip([0, *cuts], [*cuts, len(content)], strict=True)]


def read_all(content: list[bytes], name: str = "bundle") -> list[tuple[str, int, bytes]]:
    notes = SourceNotes("log", name)
    return [
        (document.name, document.first_line, b"".join(document.chunks()))
        for document in documents_in(name, ByteStream(content), notes, top=True)
    ]


@fuzz
@given(st.one_of(broken(), st.binary(max_size=3000)))
def test_anything_can_be_read(content):
    started = time.monotonic()
    for name, _, _ in read_all([content]):
        assert not name.startswith("/")
        assert ".." not in name.split("/")
    assert time.monotonic() - started < 2


@fuzz
@given(st.data())
def test_the_cut_of_the_pieces_never_shows(data):
    content = data.draw(broken())
    assert read_all(data.draw(pieces(content))) == read_all([content])


REPORT = st.lists(
    st.sampled_from(
        (
            b"_" * 44 + b"\n",
            b"_" * 19 + b"\n",
            b"_" * 30,
            b"\n",
            b"*** /proc/x\n",
            b"text\n",
            b"x" * 300 + b"\n",
            XID,
            b"\r\n",
        )
    ),
    max_size=60,
)


@fuzz
@given(st.data())
def test_sections_are_the_report(
    data,
):
    content = b"".join(data.draw(REPORT))
    documents = list_sections([content])
    assert list_sections(data.draw(pieces(content))) == documents
    lines = content.split(b"\n")
    for _, first, body in documents:
        for number, line in enumerate(body.split(b"\n")[:-1]):
            assert lines[first - 1 + number] == line


@fuzz
@given(st.data())
def test_long_sections_are_the_same_passed_on(data):
    content = b"".join(data.draw(REPORT))
    whole = [entry[1:] for entry in list_sections([content])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bugreport, "_MAX_KEPT", 2500)
        assert [entry[1:] for entry in list_sections(data.draw(pieces(content)))] == whole


def list_sections(content: list[bytes]) -> list[tuple[str, int, bytes]]:
    notes = SourceNotes("log", "r")
    return [(d.name, d.first_line, b"".join(d.chunks())) for d in sections("r", content, notes)]


@fuzz
@given(st.text(max_size=400))
def test_redaction_takes_any_text_and_settles(text):
    redactor = Redactor()
    redactor.learn(text)
    once = redactor.redact(text)
    assert once.count("\n") <= text.count("\n") + 2
