"""Every fixture gets the diagnosis that its expected.yaml names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpudoctor.diagnosis import Doctor
from gpudoctor.sources.open import open_sources

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
    report = doctor.diagnose(open_sources([str(FIXTURES / name / expected["input"])]))
    assert report.status == expected["status"], report.summary
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
