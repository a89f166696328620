"""Every fixture gets the diagnosis that its expected.yaml names, also packed in the ways in which such bundles come."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpudoctor.diagnosis import Doctor
from gpudoctor.findings.model import Report
from gpudoctor.sources.open import open_sources
from gpudoctor.sources.packed import zstd_module

FIXTURES = Path(__file__).parents[1] / "fixtures"
NAMES = sorted(path.parent.name for path in FIXTURES.glob("*/expected.yaml"))


@pytest.fixture(scope="module")
def doctor() -> Doctor:
    return Doctor()


def read(name: str) -> dict[str, Any]:
    return yaml.safe_load((FIXTURES / name / "expected.yaml").read_text())


def test_there_are_fixtures() -> None:
    assert len(NAMES) >= 8


@pytest.mark.parametrize("name", NAMES)
def test_fixture(name: str, doctor: Doctor) -> None:
    expected = read(name)
    check(doctor.diagnose(open_sources([str(FIXTURES / name / expected["input"])])), expected)


PACKED = [(name, packing) for name in NAMES for packing in read(name).get("packed", ())]


@pytest.mark.parametrize(("name", "packing"), PACKED)
def test_packed_fixture(name: str, packing: str, doctor: Doctor, tmp_path: Path) -> None:
    if packing == "tar.zst" and zstd_module() is None:
        pytest.skip("no zstd here")
    expected = read(name)
    path = tmp_path / f"bundle.{packing}"
    path.write_bytes(PACK[packing](FIXTURES / name / expected["input"]))
    check(doctor.diagnose(open_sources([str(path)])), expected)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def tarred(folder: Path) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.add(folder, ".")
    return out.getvalue()


def zipped(folder: Path) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return out.getvalue()


PACK: dict[str, Callable[[Path], bytes]] = {
    "tar": tarred,
    "tar.gz": lambda folder: gzip.compress(tarred(folder)),
    "tar.bz2": lambda folder: bz2.compress(tarred(folder)),
    "tar.xz": lambda folder: lzma.compress(tarred(folder)),
    "tar.zst": lambda folder: zstd_module().compress(tarred(folder)),
    "zip": zipped,
}


def check(report: Report, expected: dict[str, Any]) -> None:
    assert report.status == expected["status"], report.summary
    assert report.source.kind == expected.get("kind", report.source.kind)
    for part in expected.get("skipped", ()):
        assert any(part in entry for entry in report.source.skipped), report.source.skipped
    nodes = {node.source.path.replace(report.source.path, ""): node.status for node in report.nodes}
    assert nodes == expected.get("nodes", {})
    assert expected.get("shared", "") in report.findings[0].because if report.findings else True
    if "only" in expected:
        assert [finding.id for finding in report.findings] == expected["only"]
    assert report.source.complete is expected["complete"], report.source.problems
    if "first" not in expected:
        assert [finding.id for finding in report.findings if finding.role != "advice"] == []
        return
    first = report.findings[0]
    assert first.id == expected["first"]
    assert first.role == "cause"
    place, text = expected["evidence"]["place"], expected["evidence"]["text"]
    assert any(place in str(where) and text in where.text for where in first.evidence), first.evidence
    folded = {finding.id for finding in report.findings if finding.role == "consequence"}
    assert set(expected["consequences"]) <= folded


def test_the_made_report_is_current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    namespace: dict[str, Any] = {"__file__": str(FIXTURES / "make_bug_report.py"), "__name__": "make_bug_report"}
    exec((FIXTURES / "make_bug_report.py").read_text(), namespace)
    monkeypatch.setitem(namespace, "HERE", tmp_path)
    (tmp_path / "bug-report-cut" / "input").mkdir(parents=True)
    (tmp_path / "bug-report-lost-gpu").mkdir()
    namespace["write"]()
    for name in ("bug-report-cut/input/nvidia-bug-report.log.gz", "bug-report-lost-gpu/nvidia-bug-report.log.gz"):
        assert _unpacked((tmp_path / name).read_bytes()) == _unpacked((FIXTURES / name).read_bytes()), name


def _unpacked(raw: bytes) -> bytes:
    """The text up to the cut; compressors differ, so packed bytes are not compared, nor the last part."""
    import zlib

    text = b""
    while raw:
        decoder = zlib.decompressobj(wbits=31)
        text += decoder.decompress(raw)
        raw = decoder.unused_data
    return text[:2500]


def test_a_note_beside_the_bundles_is_no_node(tmp_path: Path, doctor: Doctor) -> None:
    shutil.copytree(FIXTURES / "several-nodes/input/rack", tmp_path / "rack")
    (tmp_path / "README.txt").write_text("Collected on Tuesday.\n")
    report = doctor.diagnose(open_sources([str(tmp_path)]))
    assert {node.source.path: node.status for node in report.nodes} == dict.fromkeys(
        ("gpu-r1", "gpu-r2", "gpu-r3"), "critical"
    )
    for log in tmp_path.rglob("*.log"):
        lines = [line for line in log.read_text().splitlines(keepends=True) if "NVRM: Xid" not in line]
        log.write_text("".join(lines))
    assert doctor.diagnose(open_sources([str(tmp_path)])).status == "ok"
