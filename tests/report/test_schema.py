"""The shipped schema is the model's, and real reports fit it."""

import json

import jsonschema
import pytest

from gpudoctor.diagnosis import Doctor
from gpudoctor.report.published import published_report
from gpudoctor.report.schema import SCHEMA, render_schema
from gpudoctor.sources.memory import TextSource

TEXTS = {
    "a lost GPU": "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    "nothing known": "hello\n",
    "empty": "",
}


def test_the_shipped_schema_is_current() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == render_schema(), "run python -m gpudoctor.report.schema"


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_reports_fit_the_schema(text: str) -> None:
    report = Doctor().diagnose(TextSource({"a.log": text}))
    jsonschema.validate(json.loads(published_report(report)), json.loads(SCHEMA.read_text(encoding="utf-8")))
