"""Coverage-guided fuzzing of everything that reads what others wrote. Needs the package atheris.

usage: python fuzz/run.py {bundle,report,text,redact} [options of libFuzzer, e.g. -runs=100000 -max_total_time=600]

bundle   archives, compression and every kind of bundle: first byte says how the rest is packed, second how much is cut off
report   sections of nvidia-bug-report.log, cut into pieces anywhere: the cut must not show
text     the scan, and every parser on the texts that it recognises
redact   what `collect` takes out

A crash, an input that takes more than two seconds, and a file that appears in the working folder end the run; the input
is then kept as crash-* or slow-* beside the corpus. Starts from fuzz/seeds/TARGET and from the texts of the rules' tests.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import shutil
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import atheris

HERE = Path(__file__).parent
ROOT = HERE.parent
LONGEST = 2.0  # seconds for one input
SIZES = {
    "bundle": 16_384,
    "report": 2_000,
    "text": 4_000,
    "redact": 2_000,
}  # bytes of an input; a longer one tells no more

with atheris.instrument_imports(
    include=["gpudoctor.sources", "gpudoctor.parsers", "gpudoctor.patterns", "gpudoctor.bundle"]
):
    from gpudoctor.bundle.redact import Redactor
    from gpudoctor.parsers.base import Malformed, NotThisFormat
    from gpudoctor.parsers.formats import FORMATS
    from gpudoctor.parsers.scan import Scanner, decode_lines
    from gpudoctor.patterns.text import plain
    from gpudoctor.sources import bugreport
    from gpudoctor.sources.base import SourceNotes
    from gpudoctor.sources.reading import documents_in
    from gpudoctor.sources.stream import ByteStream


def _tar(content: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo("node/file")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def _zip(content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("node/file", content)
    return out.getvalue()


PACK: tuple[Callable[[bytes], bytes], ...] = (
    bytes,
    lambda content: gzip.compress(content, 1),
    lambda content: gzip.compress(content[: len(content) // 2], 1) + gzip.compress(content[len(content) // 2 :], 1),
    bz2.compress,
    lambda content: lzma.compress(content, preset=0),
    _tar,
    _zip,
    lambda content: gzip.compress(_tar(content), 1),
    lambda content: _tar(gzip.compress(content, 1)),
)


def bundle(data: bytes) -> None:
    """Read a packed input as a bundle."""
    if len(data) < 2:
        return
    content = PACK[data[0] % len(PACK)](data[2:])
    if data[1]:
        content = content[: len(content) * data[1] // 256]
    for document in documents_in("bundle", ByteStream([content]), SourceNotes("log", "bundle"), top=True):
        assert not document.name.startswith("/"), document.name
        assert ".." not in document.name.split(" § ")[0].split("/"), document.name
        for _ in document.chunks():
            pass


def report(data: bytes) -> None:
    """Read an input as a bug report, whole and in pieces."""
    if not data:
        return
    step, content = data[0] * 7 + 1, data[1:]
    bugreport._MAX_KEPT = 400
    whole = _sections([content])
    assert _sections([content[at : at + step] for at in range(0, len(content), step)]) == whole
    lines = content.split(b"\n")
    for first, body in whole:
        given = body.split(b"\n")[:-1]
        assert lines[first - 1 : first - 1 + len(given)] == given, first


def _sections(pieces: list[bytes]) -> list[tuple[int, bytes]]:
    notes = SourceNotes("log", "r")
    return [(each.first_line, b"".join(each.chunks())) for each in bugreport.sections("r", pieces, notes)]


SCANNER = Scanner(FORMATS, ())


def text(data: bytes) -> None:
    """Scan an input; give every parser whose anchor is in it the text from there on."""
    SCANNER.scan("text", [data])
    raw = b"".join(plain([data])).replace(b"\0", b" ")
    for end, anchor in SCANNER._database.scan(raw)[:40]:
        for user in SCANNER._users[anchor]:
            if isinstance(user, str) or not hasattr(user, "parse"):
                continue
            start = raw.rfind(b"\n", 0, end) + 1
            for _ in range(user.back):
                start = raw.rfind(b"\n", 0, max(0, start - 1)) + 1
            try:
                for fact in user.parse(decode_lines(raw[start:])):
                    fact.said()
                    fact.plain()
            except (NotThisFormat, Malformed):
                pass


def redact(data: bytes) -> None:
    """Redact an input; a second time nothing is left to do."""
    redactor = Redactor()
    content = data.decode("utf-8", "surrogateescape")
    redactor.learn(content)
    once = redactor.redact(content)
    once.encode("utf-8", "surrogateescape")


TARGETS = {"bundle": bundle, "report": report, "text": text, "redact": redact}


def main() -> None:
    """Run one target until it is through or something is found."""
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        raise SystemExit(__doc__)
    name = sys.argv.pop(1)
    target = TARGETS[name]
    found = Path(os.environ.get("GPUDOCTOR_FUZZ_FOUND", tempfile.gettempdir())) / f"gpudoctor-fuzz-{name}"
    corpus = found / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    _seed(name, corpus)
    private = found / "private"  # libFuzzer ends the process without a chance to tidy up, so the next run does
    shutil.rmtree(private, ignore_errors=True)
    private.mkdir()
    os.chdir(private)
    tempfile.tempdir = str(private)
    inputs = 0

    def one(data: bytes) -> None:
        nonlocal inputs
        inputs += 1
        started = time.process_time()
        target(data)
        if time.process_time() - started > LONGEST:
            (found / f"slow-{inputs}").write_bytes(data)
            raise AssertionError(f"took {time.process_time() - started:.1f} s")
        if inputs % 1000 == 0:
            assert not list(private.iterdir()), "a file was left behind"

    atheris.Setup(
        [*sys.argv, f"-artifact_prefix={found}/", f"-max_len={SIZES[name]}", str(corpus), str(HERE / "seeds" / name)],
        one,
    )
    atheris.Fuzz()


def _seed(name: str, corpus: Path) -> None:
    """Put the texts of the rules' tests and the fixtures into the corpus, as the target takes them."""
    import hashlib

    import yaml

    texts: list[bytes] = []
    for path in sorted((ROOT / "tests" / "rules").glob("*.yaml")):
        for cases in yaml.load(
            path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        ).values():
            for case in (case for kind in cases.values() for case in kind):
                texts += [content.encode() for content in case["files"].values()]
    for path in sorted((ROOT / "fixtures").rglob("*")):
        if path.is_file() and path.stat().st_size < 65_000:
            texts.append(path.read_bytes())
    wanted = {"bundle": texts[::20], "report": [t for t in texts if b"____" in t], "text": texts, "redact": texts[::10]}
    for content in wanted[name]:
        lead = {"bundle": bytes((len(content) % len(PACK), 0)), "report": b"\x07"}.get(name, b"")
        (corpus / hashlib.sha256(lead + content).hexdigest()[:16]).write_bytes(lead + content)


if __name__ == "__main__":
    main()
