"""The JSON Schema of the report. `python -m gpudoctor.report.schema` writes it anew after a change of the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from gpudoctor.findings.model import Report
from gpudoctor.report.published import UNPUBLISHED

SCHEMA = Path(__file__).with_name("report.schema.json")


def render_schema() -> str:
    """Return the schema as the file holds it."""
    schema = msgspec.json.schema(Report)
    for definition in schema["$defs"].values():
        properties: dict[str, Any] = definition["properties"]
        for name in UNPUBLISHED:
            properties.pop(name, None)
        definition["required"] = list(properties)  # what is at its default is printed too
        for value in properties.values():
            if "enum" in value:
                value["type"] = "string"
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(render_schema(), encoding="utf-8")
