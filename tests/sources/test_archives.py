"""Archives of all kinds give their texts, and nothing that is wrong with one does harm."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import stat
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

from gpudoctor.diagnosis import Doctor
from gpudoctor.sources import archive, packed, reading
from gpudoctor.sources.base import Source
from gpudoctor.sources.open import open_sources
from gpudoctor.sources.tar import is_tar

XID = b"[  812.114] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"


def tar(files: dict[str, bytes], format: int = tarfile.GNU_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as made:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(content), 1_700_000_000
            made.addfile(member, io.BytesIO(content))
    return out.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in files.items():
            made.writestr(name, content)
    return out.getvalue()


def texts(source: Source) -> dict[str, bytes]:
    return {document.name: b"".join(document.chunks()) for document in source.documents() if not document.skipped}


@pytest.fixture
def read(tmp_path):
    """Write a file, read it as a source; returns its texts and its notes."""

    def run(content: bytes, name: str = "bundle.bin"):
        path = tmp_path / name
        path.write_bytes(content)
        source = open_sources([str(path)])
        return texts(source), source.notes

    return run


FILES = {"node/var/log/kern.log": XID * 3, "node/empty": b"", "node/" + "deep/" * 20 + "x" * 120: b"long path\n"}


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress, "zstd"])
@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tar_in_every_packing(read, pack, format):
    if pack == "zstd":
        zstd = packed.zstd_module() or pytest.skip("no zstd here")
        pack = zstd.compress
    files = dict(list(FILES.items())[:2]) if format == tarfile.USTAR_FORMAT else FILES
    found, notes = read(pack(tar(files, format)))
    assert found == files
    assert notes.problems == []
    assert (notes.kind, notes.collected_at) == ("folder", 1_700_000_000)


def test_zip(read):
    assert read(zipped(FILES))[0] == FILES


def test_zstd_without_a_library_is_one_clear_line(read, monkeypatch):
    monkeypatch.setattr(packed, "zstd_module", lambda: None)
    found, notes = read(b"\x28\xb5\x2f\xfd" + bytes(40), "x.log.zst")
    assert found in ({}, {"x.log.zst": b""})
    assert notes.problems == [
        "x.log.zst: zstd needs Python 3.14 or the package backports.zstd (pip install backports.zstd)"
    ]
    assert not notes.complete


def test_archives_in_archives(read):
    inner = gzip.compress(tar({"a.log": XID, "b.log.gz": gzip.compress(XID)}))
    outer = lzma.compress(tar({"top/inner.tgz": inner, "top/other.zip": zipped({"c.log.xz": lzma.compress(XID)})}))
    assert set(read(outer)[0]) == {"top/inner.tgz/a.log", "top/inner.tgz/b.log.gz", "top/other.zip/c.log.xz"}


def test_endless_nesting_ends(read):
    content = tar({"a.log": XID})
    for _ in range(30):
        content = gzip.compress(tar({"inner.tar.gz": content}))
    found, notes = read(content)
    assert found == {}
    assert "packed more than 8 times over" in notes.problems[0]
    content = XID
    for _ in range(30):
        content = gzip.compress(content)
    assert "packed more than 8 times over" in read(content)[1].problems[0]


def test_unsafe_members_are_named_and_not_read(read, tmp_path):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for name in ("../../evil", "/etc/evil", "a/../../evil", "ok.log", "n/" * 60 + "deep"):
            member = tarfile.TarInfo(name)
            member.size = len(XID)
            made.addfile(member, io.BytesIO(XID))
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE):
            member = tarfile.TarInfo(f"special-{kind!r}")
            member.type, member.linkname = kind, "/etc/passwd"
            made.addfile(member)
    found, notes = read(out.getvalue())
    assert found == {"ok.log": XID}
    assert len(notes.problems) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["bundle.bin"]


def test_a_zip_with_a_link(read):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        link = zipfile.ZipInfo("link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        made.writestr(link, "/etc/passwd")
        made.writestr("a.log", XID)
    assert read(out.getvalue())[0] == {"a.log": XID}


def test_a_zip_member_without_a_name(read):
    content = zipped({"a": XID, "b.log": XID})
    index = content.index(b"PK\1\2")
    content = content[: index + 46] + b"\0" + content[index + 47 :]
    found, notes = read(content)
    assert found == {"b.log": XID}
    assert "no safe path" in notes.problems[0]


@pytest.mark.parametrize("cut", [100, 600, 1100, 1700])
def test_a_cut_tar_is_read_as_far_as_it_goes(read, cut):
    found, notes = read(tar({"a.log": XID, "b.log": XID * 9})[:cut])
    assert not notes.complete or cut < 512
    assert set(found) <= {"a.log", "b.log", "bundle.bin"}


def test_a_cut_xz(read):
    _, notes = read(lzma.compress(tar({f"{n}.log": XID * 99 for n in range(50)}))[:-200])
    assert not notes.complete
    assert "breaks off" in notes.problems[0]


def test_a_member_that_claims_to_be_huge(read):
    header = bytearray(tar({"a": b"x"})[:512])
    header[124:136] = b"\x80" + (1 << 60).to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    assert is_tar(bytes(header))
    found, notes = read(bytes(header) + b"y" * 4000)
    assert found == {}
    assert "larger than" in notes.problems[0]


def test_a_zip_bomb(read, monkeypatch):
    monkeypatch.setattr(archive, "RATIO_FROM", 1000)
    found, notes = read(zipped({"bomb": bytes(10_000_000)}))
    assert found == {}
    assert "suspiciously much" in notes.problems[0]


def test_a_zip_whose_members_lie_over_each_other(read, monkeypatch):
    monkeypatch.setattr(archive, "RATIO_FROM", 1 << 20)
    content = zipped({"a.log": b"x" * 500_000})
    directory, end = content.index(b"PK\1\2"), content.index(b"PK\5\6")
    many = content[directory:end] * 200
    tail = content[end : end + 8] + struct.pack("<HHI", 200, 200, len(many)) + content[end + 16 :]
    _, notes = read(content[:directory] + many + tail)
    assert re.search("suspiciously much|Overlapped entries", notes.problems[0])  # newer Pythons refuse it themselves
    assert notes.account.total < 8 << 20


def test_a_tar_bomb(read, monkeypatch):
    monkeypatch.setattr(packed, "RATIO_FROM", 1 << 20)
    _, notes = read(gzip.compress(tar({"bomb": bytes(60_000_000)})))
    assert "suspiciously much" in notes.problems[0]


def test_too_many_files(read, monkeypatch):
    monkeypatch.setattr("gpudoctor.sources.limits.MAX_FILES", 10)
    monkeypatch.setattr(reading, "MAX_FILES", 10)
    found, notes = read(tar({f"{n}.log": XID for n in range(20)}))
    assert len(found) == 10
    assert notes.problems == ["more than 10 files; the rest was not read"]


def test_programs_in_a_bundle_are_passed_over(read):
    assert read(tar({"libcuda.so": b"\x7fELF" + XID, "a.log": XID}))[0] == {"a.log": XID}


def test_a_bzh_text_is_text(read):
    assert read(b"BZhello\n", "a.txt")[0] == {"a.txt": b"BZhello\n"}


EXPORT = (
    b"""__CURSOR=s=1;i=1
__REALTIME_TIMESTAMP=1700000000000000
_BOOT_ID=aa
_TRANSPORT=kernel
_HOSTNAME=gpu-node-7
_SOURCE_MONOTONIC_TIMESTAMP=812114000
MESSAGE=NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.

__CURSOR=s=1;i=2
__REALTIME_TIMESTAMP=1700000001000000
SYSLOG_IDENTIFIER=app
MESSAGE
"""
    + struct.pack("<Q", 9)
    + b"two\nlines\n\n"
)


def test_a_journal_export(read):
    found, _ = read(EXPORT, "journal.export")
    lines = found["journal.export"].split(b"\n")
    assert lines[0].startswith(b"2023-11-14T22:13:20.000000+00:00 gpu-node-7 kernel: [812.114000] NVRM: Xid")
    assert lines[8] == b"2023-11-14T22:13:21.000000+00:00 host app: two lines"


def test_a_journal_in_json(read):
    line = b'{"__CURSOR":"x","__REALTIME_TIMESTAMP":"1700000000000000","_TRANSPORT":"kernel","MESSAGE":[78,86,82,77]}\n'
    assert read(line * 2)[0]["bundle.bin"].split(b"\n")[1] == b"2023-11-14T22:13:20.000000+00:00 host kernel: NVRM"


ENTRIES = [
    {"__CURSOR": f"s=1;i={n}", "__REALTIME_TIMESTAMP": str(1_700_000_000_000_000 + n * 1_000_000), "_BOOT_ID": boot, "_TRANSPORT": "kernel",
     "_HOSTNAME": "gpu-node-7", "_SOURCE_MONOTONIC_TIMESTAMP": str(n * 1_000_000), "MESSAGE": message}
    for n, (boot, message) in enumerate(
        [("aa", XID.decode().partition("] ")[2].strip()), ("bb", "nvidia: loading out-of-tree module taints kernel."), ("bb", "x")]
    )
]  # fmt: skip


@pytest.mark.parametrize("how", ["export", "json", "json-pretty", "json-seq", "json-sse"])
def test_boots_of_a_journal(read, tmp_path, how):
    match how:
        case "export":
            content = "".join("".join(f"{key}={value}\n" for key, value in entry.items()) + "\n" for entry in ENTRIES)
        case "json-pretty":
            content = "".join(json.dumps(entry, indent=8) + "\n" for entry in ENTRIES)
        case _:
            before, behind = {"json": ("", "\n"), "json-seq": ("\x1e", "\n"), "json-sse": ("data: ", "\n\n")}[how]
            content = "".join(before + json.dumps(entry) + behind for entry in ENTRIES)
    found, _ = read(content.encode(), "journal")
    lines = found["journal"].decode().split("\n")
    assert len(lines) == len(content.split("\n"))
    report = Doctor().diagnose(open_sources([str(tmp_path / "journal")]))
    assert [(each.id, each.history, each.first_seen) for each in report.findings] == [
        ("hardware.fell-off-bus", True, 1_700_000_000.0)
    ]


SUPPORTCONFIG = (
    b"""=============================================================================
                     Support Utilities - Supportconfig
=============================================================================

#==[ Command ]======================================#
# /usr/bin/uname -a
Linux gpu-node-7 5.14.21 #1 SMP x86_64 GNU/Linux

#==[ Configuration File ]===========================#
# /etc/motd - File not found

#==[ Log File ]=====================================#
# /var/log/messages - Last 500 Lines
"""
    + XID
)


def test_supportconfig(read):
    found, notes = read(tar({"scc_node_1/messages.txt": SUPPORTCONFIG}))
    assert list(found)[1:] == [
        "scc_node_1/messages.txt § /usr/bin/uname -a",
        "scc_node_1/messages.txt § /var/log/messages - Last 500 Lines",
    ]
    assert notes.kind == "supportconfig"


def test_several_sources_keep_their_names_apart(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.log").write_bytes(XID)
    found = texts(open_sources([str(tmp_path / "a" / "x.log"), str(tmp_path / "b" / "x.log")]))
    assert list(found) == [str(tmp_path / "a" / "x.log"), str(tmp_path / "b" / "x.log")]


def test_nothing_is_written(read, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "_IN_MEMORY", 10)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert len(read(tar({"in.zip": zipped(FILES)}))[0]) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["bundle.bin"]


def test_standard_input(gpudoctor):
    done = gpudoctor("diagnose", "--json", "-", stdin=gzip.compress(tar({"kern.log": XID})))
    assert set(done.causes()) == {"hardware.fell-off-bus"}
    assert done.report["findings"][0]["evidence"][0]["source"] == "kern.log"


def test_folders_are_read_like_archives(tmp_path):
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(tar({"kern.log": XID})))
    Path(tmp_path / "b.zip").write_bytes(zipped({"kern.log": XID}))
    assert set(texts(open_sources([str(tmp_path)]))) == {"a.tar.gz/kern.log", "b.zip/kern.log"}
