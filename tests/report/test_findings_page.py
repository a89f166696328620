"""The page of findings is the rules', whole and current."""

from pathlib import Path

from gpudoctor.diagnosis import Doctor
from gpudoctor.report.findings_page import render_page

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_page(Doctor().rules.rules), (
        "run gpudoctor rules page > docs/findings.md"
    )
