"""What is printed of a report and of its findings: JSON, as report.schema.json describes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from gpudoctor.findings.model import Finding, Report

UNPUBLISHED = ("graph",)  # a tree of Python objects that serves the drawings


def published_report(report: Report) -> str:
    """Return the report as JSON, indented, with a line feed at its end."""
    return msgspec.json.format(msgspec.json.encode(_fields(report)), indent=1).decode() + "\n"


def published_findings(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return findings as plain data, for the JSON of other commands."""
    return msgspec.to_builtins(findings)  # type: ignore[no-any-return]  # a list of structs becomes a list of dicts


def _fields(report: Report) -> dict[str, Any]:
    fields = {name: getattr(report, name) for name in report.__struct_fields__ if name not in UNPUBLISHED}
    return fields | {"nodes": [_fields(node) for node in report.nodes]}
