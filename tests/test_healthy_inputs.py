"""Routine logs, listings and files of machines that are well: nothing may be found in them, whatever words they hold."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpudoctor.diagnosis import Doctor
from gpudoctor.sources.memory import TextSource

FOLDER = Path(__file__).parent / "healthy"
INPUTS: list[tuple[str, dict[str, Any]]] = [
    (path.stem, entry)
    for path in sorted(FOLDER.glob("*.yaml"))
    for entry in yaml.safe_load(path.read_text(encoding="utf-8"))
]


@pytest.fixture(scope="module")
def doctor() -> Doctor:
    return Doctor()


@pytest.mark.parametrize(("area", "entry"), INPUTS, ids=[f"{area}: {entry['why']}" for area, entry in INPUTS])
def test_nothing_is_found(area: str, entry: dict[str, Any], doctor: Doctor) -> None:
    report = doctor.diagnose(TextSource(entry["files"]))
    assert [(finding.id, finding.because) for finding in report.findings] == []
    assert report.source.problems == []
