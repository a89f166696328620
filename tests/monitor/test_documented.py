"""docs/monitoring.md shows what works."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from gpudoctor.cli.main import parse
from gpudoctor.monitor.events import Kind
from gpudoctor.monitor.site import Expect, Site, Thresholds, WatchOptions, load
from gpudoctor.monitor.suppressions import read_suppressions

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")
CONFIG, SUPPRESSIONS = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)


def test_the_configuration_is_whole_and_loads(tmp_path):
    for name in ("rules", "probes"):
        (tmp_path / name).mkdir()
    (tmp_path / "gpudoctor.toml").write_text(CONFIG)
    site = load(Path("/"), str(tmp_path / "gpudoctor.toml"), None, {}).site
    for shown, model in ((site.expect, Expect), (site.thresholds, Thresholds), (site.watch, WatchOptions)):
        assert shown.model_fields_set == set(model.model_fields)
    assert site.model_fields_set == set(Site.model_fields) - {"only"}
    assert site.watch.model_copy(update={"logs": []}).interval == WatchOptions().interval


def test_the_suppressions_load(tmp_path):
    (tmp_path / "suppressions.toml").write_text(SUPPRESSIONS)
    assert [entry.id for entry in read_suppressions(tmp_path / "suppressions.toml")] == ["pcie.width-degraded"]


def test_the_commands_parse():
    commands = re.findall(r"^    gpudoctor (.+)$|`gpudoctor ((?:watch )?--[^`]+)`", TEXT, re.MULTILINE)
    given = [words for pair in commands for words in pair if words and "FILE" not in words]
    assert len(given) > 3
    for words in given:
        parse(words.split())


def test_the_files_are_there():
    for name in re.findall(r"contrib/[\w./-]+\.\w+", TEXT):
        assert (ROOT / name).exists(), name


def test_every_event_is_explained():
    kinds = get_args(Kind)
    assert all(f"| `{kind}` |" in TEXT for kind in kinds)


def test_every_metric_is_explained():
    source = (ROOT / "src/gpudoctor/report/prometheus.py").read_text() + (
        ROOT / "src/gpudoctor/cli/watch.py"
    ).read_text()
    names = set(re.findall(r'"(gpudoctor_\w+)"', source))
    assert len(names) > 12
    assert {name for name in names if f"`{name}" not in TEXT} == set()
