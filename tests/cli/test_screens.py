"""What the screens are given."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from gpudoctor.cli.screens import OfflineExamination
from gpudoctor.cli.site import Settings

FIXTURE = Path(__file__).parents[2] / "fixtures" / "dmesg-xid79"


def test_a_report_can_be_saved_in_every_form_that_people_read():
    args = Namespace(source=[str(FIXTURE)], exit_zero=False)
    examination = OfflineExamination(args, Settings())
    report = examination.run(lambda name, result: None, lambda report: None, lambda: False)
    saved = {ending: form(report) for ending, form in examination.forms().items()}
    assert list(saved) == ["md", "html", "txt", "json"]
    assert all("GPU fell off the bus" in text for text in saved.values())
    assert saved["html"].startswith("<!DOCTYPE html>")
