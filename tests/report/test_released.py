"""Programs that read today's reports must read tomorrow's: against the last released schema, only additions."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.findings.model import SCHEMA_VERSION
from gpudoctor.report.schema import SCHEMA

# Replaced by report.schema.json whenever a version is released.
RELEASED: dict[str, Any] = json.loads(
    Path(__file__).with_name("report.schema.released.json").read_text(encoding="utf-8")
)
CURRENT: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))


def departures(old: Any, new: Any, at: str = "") -> list[str]:
    """Return what a reader of the old schema would miss or not understand in what the new one allows."""
    found: list[str] = []
    if not isinstance(old, dict):
        return [] if old == new else [f"{at}: {old!r} became {new!r}"]
    if not isinstance(new, dict):
        return [f"{at}: became {new!r}"]
    for key in ("properties", "$defs"):
        for name, schema in old.get(key, {}).items():
            if name not in new.get(key, {}):
                found.append(f"{at}/{name}: gone")
            else:
                found += departures(schema, new[key][name], f"{at}/{name}")
    for name in old.get("required", ()):
        if name not in new.get("required", ()):
            found.append(f"{at}/{name}: no longer always there")
    if "enum" in old and set(new.get("enum", ())) != set(old["enum"]):
        gone = set(old["enum"]) - set(new.get("enum", ()))
        found += [f"{at}: {value!r} gone" for value in sorted(gone)]
    for key in ("type", "$ref"):
        if old.get(key) != new.get(key):
            found.append(f"{at}: {key} {old.get(key)} became {new.get(key)}")
    if "items" in old:
        found += departures(old["items"], new.get("items"), f"{at}[]")
    kinds = [json.dumps(kind, sort_keys=True) for kind in new.get("anyOf", ())]
    if "anyOf" in old:
        was = [json.dumps(kind, sort_keys=True) for kind in old["anyOf"]]
        found += [f"{at}: may now be {kind}" for kind in kinds if kind not in was]
    return found


def test_only_additions_since_the_last_release():
    assert departures(RELEASED, CURRENT) == []


def test_an_addition_raises_the_version():
    released = RELEASED["$defs"]["Report"]["properties"]["schema_version"]["default"]
    was, now = (tuple(map(int, version.split("."))) for version in (released, SCHEMA_VERSION))
    assert was[0] == now[0], "a new first number breaks every reader"
    assert now >= was
    assert json.dumps(CURRENT, sort_keys=True) == json.dumps(RELEASED, sort_keys=True) or now > was


def _without_key(schema):
    del schema["$defs"]["Finding"]["properties"]["key"]


def _other_type(schema):
    schema["$defs"]["Finding"]["properties"]["count"]["type"] = "string"


def _no_longer_required(schema):
    schema["$defs"]["Finding"]["required"].remove("because")


def _value_gone(schema):
    schema["$defs"]["Finding"]["properties"]["severity"]["enum"].remove("info")


def _may_be_null(schema):
    schema["$defs"]["Finding"]["properties"]["title"] = {"anyOf": [{"type": "string"}, {"type": "null"}]}


@pytest.mark.parametrize("change", [_without_key, _other_type, _no_longer_required, _value_gone, _may_be_null])
def test_what_would_break_a_reader_is_seen(change):
    changed = copy.deepcopy(RELEASED)
    change(changed)
    assert departures(RELEASED, changed)
