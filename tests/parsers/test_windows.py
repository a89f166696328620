"""However a text comes in pieces and is encoded, the same is found on the same lines."""

from __future__ import annotations

import codecs
import gzip
import os
import signal
import time

import pytest

from gpudoctor.diagnosis import Doctor
from gpudoctor.parsers import windows
from gpudoctor.parsers.formats import FORMATS
from gpudoctor.parsers.scan import Scanner
from gpudoctor.sources.open import Begun, open_sources

XID = "[  812.114] NVRM: Xid (PCI:0000:{bus:02x}:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
OS = 'NAME="Ubuntu"\nVERSION="22.04.4 LTS"\nID=ubuntu\nVERSION_ID="22.04"\nPRETTY_NAME="Ubuntu 22.04.4 LTS"'


@pytest.fixture(scope="module")
def scanner() -> Scanner:
    return Scanner(FORMATS, ())


def found(scanner: Scanner, pieces: list[bytes]) -> list[tuple[str, int]]:
    facts = scanner.scan("log", pieces, first_line=100).facts
    return [(fact.kind, fact.where.line) for fact in facts if fact.where]


@pytest.mark.parametrize("step", [1, 7, 50, 333])
def test_the_cut_never_shows(scanner, step, monkeypatch):
    text = "\n".join(
        [*(f"noise {n}" for n in range(30)), XID.format(bus=0x3B), *("x" * 40 for _ in range(9)), OS, "end"]
    )
    raw = text.encode()
    whole = found(scanner, [raw])
    assert ("xid", 130) in whole
    assert ("os", 144) in whole
    monkeypatch.setattr(windows, "_SMALLEST", 64)
    monkeypatch.setattr(windows, "REACH", 300)
    assert found(scanner, [raw[at : at + step] for at in range(0, len(raw), step)]) == whole


def test_a_long_text_is_read_in_order(scanner):
    lines = [XID.format(bus=n // 20_000) if n % 20_000 == 7 else f"[{n}.1] usb 1-1: new device" for n in range(300_000)]
    raw = "\n".join(lines).encode()
    places = [line for kind, line in found(scanner, [raw[at : at + 500_000] for at in range(0, len(raw), 500_000)])]
    assert places == [100 + n for n in range(7, 300_000, 20_000)]


def test_a_forked_process_searches_on_its_own(scanner):
    raw = b"[1.1] usb 1-1: new device number 7\n" * 200_000 + XID.format(bus=0x3B).encode() + b"\n"
    pieces = [raw[at : at + 2**20] for at in range(0, len(raw), 2**20)]
    assert ("xid", 200_100) in found(scanner, pieces)
    child = os.fork()
    if child == 0:
        os._exit(0 if ("xid", 200_100) in found(scanner, pieces) else 1)
    end = time.monotonic() + 60
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < end:
        time.sleep(0.05)
    if ended == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert ended[1] == 0
    assert ended[0] == child


def test_a_long_packed_log_is_read_to_its_end(tmp_path):
    path = tmp_path / "kern.log.gz"
    noise = b"[1.1] usb 1-1: new device number 7\n" * 300_000
    path.write_bytes(gzip.compress(noise + XID.format(bus=0x3B).encode() + b"\n", 1))
    source = Begun(open_sources([str(path)]))
    lead = Doctor().diagnose(source).findings[0]
    assert (lead.id, lead.evidence[0].line) == ("hardware.fell-off-bus", 300_001)


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode("utf-16"),
        lambda text: text.encode("utf-16-le"),
        lambda text: text.encode("utf-16-be"),
        lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
        lambda text: text.encode("utf-32"),
        lambda text: text.encode("utf-32-le"),
        lambda text: text.encode("utf-32-be"),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.replace("\n", "\r").encode(),
        lambda text: (text.replace("\n", "\r") + "\n").encode(),
    ],
    ids=["utf-16", "le", "be", "be with mark", "utf-32", "utf-32 le", "utf-32 be", "crlf", "cr", "cr and one lf"],
)
def test_letters_and_line_ends_of_other_systems(encode, tmp_path, gpudoctor):
    (tmp_path / "kern.log").write_bytes(encode("[ 811.1] usb\n" * 3 + XID.format(bus=0x3B) + "\n[ 812.2] usb"))
    done = gpudoctor("diagnose", "--json", str(tmp_path))
    where = done.report["findings"][0]["evidence"][0]
    assert (done.report["findings"][0]["id"], where["line"]) == ("hardware.fell-off-bus", 4)
    shown = gpudoctor("diagnose", str(tmp_path), "--at", "kern.log:4").out
    assert f">       4  {XID.format(bus=0x3B)}\n" in shown


def test_a_fault_behind_many_of_another_kind_is_kept(scanner):
    lines = [f"[{n}.1] NVRM: Xid (PCI:0000:3b:00): 31, pid={n}, name=p{n}, Ch 00000008" for n in range(3000)]
    lines.append(XID.format(bus=0x5E))
    facts = [fact for fact in scanner.scan("log", ["\n".join(lines).encode()]).facts if fact.kind == "xid"]
    assert (facts[-1].code, facts[-1].gpu, facts[-1].where.line) == (79, "0000:5e:00.0", 3001)
    assert sum(fact.count for fact in facts) == 3001
    assert len(facts) < 400


def test_what_is_kept_of_a_text_is_bounded(scanner):
    lines = [f"NVRM: Xid (PCI:{n:04x}:{n % 256:02x}:00): {n % 200}, pid={n}, name=p" for n in range(20_000)]
    facts = scanner.scan("log", ["\n".join(lines).encode()]).facts
    assert len(facts) < 2500
    assert sum(fact.count for fact in facts) == 20_000
