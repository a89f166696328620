"""The exit status for every status, severity and option."""

from __future__ import annotations

from argparse import Namespace

import pytest
from msgspec.structs import replace
from report.reports import finding, report

from gpudoctor.cli.output import exit_status
from gpudoctor.findings.model import Undecided

MADE = {
    "ok": report(status="ok"),
    "info": report(finding(severity="info"), status="ok"),
    "advice": report(finding(severity="info", role="advice"), status="ok"),
    "undecided": replace(report(status="ok"), undecided=[Undecided(id="a.b", missing=["gpu"], ask="x")]),
    "warning": report(finding(severity="warning"), status="warning"),
    "critical": report(finding(), status="critical"),
    "unknown": report(status="unknown"),
}
#            ok info advice undecided warning critical unknown
EXPECTED = {
    None: (0, 0, 0, 0, 1, 2, 3),
    "info": (0, 1, 0, 0, 1, 2, 3),
    "warning": (0, 0, 0, 0, 1, 2, 3),
    "critical": (0, 0, 0, 0, 0, 2, 3),
    "undecided": (0, 0, 0, 3, 1, 2, 3),
}


@pytest.mark.parametrize("fail_on", EXPECTED)
def test_exit_status(fail_on):
    given = Namespace(exit_zero=False, fail_on=fail_on)
    assert tuple(exit_status(made, given) for made in MADE.values()) == EXPECTED[fail_on]


def test_exit_zero():
    assert {exit_status(made, Namespace(exit_zero=True, fail_on="info")) for made in MADE.values()} == {0}
