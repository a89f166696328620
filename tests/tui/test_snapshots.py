"""Every screen, at three sizes, of seven machines, against what it looked like when somebody last looked at it.

    GPUDOCTOR_SNAPSHOTS=write pytest tests/tui/test_snapshots.py

writes the pictures anew: look at them in a browser, then commit them. Compared are the letters and the names of their styles,
not colours: Textual's own SVG export (and what compares it, pytest-textual-snapshot) differs from version to version, and
these tests hold with each version that the package allows.

The reports in scenes/ were made by `gpudoctor diagnose --json` from the folders beside them, from fixtures/ and (hung) from the
fake NVML's scenario of that name, and are kept as they were: a better wording in a rule is no change of a screen. The logs are
made up after messages of the kernel driver, PyTorch and NCCL as public reports show them.
"""

from __future__ import annotations

import difflib
import os
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from msgspec.structs import replace
from textual.events import Key
from tui.picture import Sheet, named_parts, readable
from tui.scene import Fixed, Hanging, drive, screen_text

from gpudoctor.cli.screens import OfflineExamination
from gpudoctor.cli.site import Settings
from gpudoctor.findings.model import ProbeResult, Report
from gpudoctor.tui.screens.log import LogScreen
from gpudoctor.tui.screens.walk import WalkScreen
from gpudoctor.tui.widgets.rows import RowList

HERE = Path(__file__).parent
FIXTURES = HERE.parents[1] / "fixtures"
SIZES = [(80, 24), (120, 40), (200, 50)]
SCENES = {
    "healthy": FIXTURES / "healthy-h100" / "input",
    "oom": FIXTURES / "training-oom" / "input",
    "mismatch": HERE / "scenes" / "mismatch",
    "xid": HERE / "scenes" / "xid",
    "slow": HERE / "scenes" / "slow",
    "hung": None,
    "bundle": FIXTURES / "bug-report-lost-gpu" / "nvidia-bug-report.log.gz",
}


class Bundle(Fixed):
    """A kept report; its texts are read from the packed bundle itself."""

    def __init__(self, report: Report, path: Path) -> None:
        super().__init__(report)
        self._packed = OfflineExamination(Namespace(source=[str(path)]), Settings())

    def text(self, source):
        return self._packed.text(source)


class Hung(Hanging):
    """A machine whose driver hangs: one probe is running, then its time is over."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self.reports = [report]

    def run(self, progress, on_report, stop):
        self.runs += 1
        if self.runs > 1:
            return self.reports[0]
        for name in ("os", "host", "pci"):
            progress(name, None)
            progress(name, ProbeResult(name=name, status="ok", seconds=0.1))
        for name in ("nvml", "processes"):
            progress(name, None)
        on_report(
            replace(self.reports[0], findings=[], status="ok", summary="Nothing wrong found", probes=[], undecided=[])
        )
        self.release.wait(30)
        return self.reports[0]


def examination(scene: str) -> Fixed:
    report = msgspec.json.decode((HERE / "scenes" / f"{scene}.json").read_bytes(), type=Report)
    place = SCENES[scene]
    if place is None:
        return Hung(report)
    return Fixed(report, folder=place) if place.is_dir() else Bundle(report, place)


async def press(pilot, *keys):
    """Press keys without the pauses that a pilot makes to be on the safe side: a picture is taken when it stands still."""
    for key in keys:
        pilot.app.post_message(Key(key, key if len(key) == 1 else None))
        for _ in range(3):
            await pilot.pause(0)


async def until(pilot, condition):
    for _ in range(500):
        await pilot.pause(0.01)
        if condition():
            return


async def take(title, app, pilot, sheet):
    """Take a picture of the screen once it stands still."""
    before = None
    while (now := screen_text(app)) != before:
        before = now
        await pilot.pause(0.02)
    sheet.take(title, app)


async def tour(app, pilot, sheet: Sheet, examination: Fixed) -> None:
    """Look at every screen that this machine has."""
    if isinstance(examination, Hung):
        app.main._clock.pause()
        app.main._tick()
        await pilot.pause()
        await take("probing", app, pilot, sheet)
        await press(pilot, "4")
        await take("probes while probing", app, pilot, sheet)
        await press(pilot, "1")
        examination.release.set()
        await until(pilot, lambda: bool(app.report.findings))
    await press(pilot, "right")
    await take("findings", app, pilot, sheet)
    findings = app.report.findings
    if findings:
        await press(pilot, "enter", "end")
        await take("end of the detail", app, pilot, sheet)
        await press(pilot, "escape")
    for key, view in (("2", "node"), ("3", "timeline"), ("4", "probes")):
        await press(pilot, key)
        await take(view, app, pilot, sheet)
    await press(pilot, "1", "question_mark")
    await take("help", app, pilot, sheet)
    await press(pilot, "escape", "s")
    await until(pilot, lambda: app.focused.id == "path")
    app.focused.value = "report.html"
    await pilot.pause()
    await take("save", app, pilot, sheet)
    await press(pilot, "escape")
    if not findings:
        return
    await press(pilot, "slash", *"gpu")
    await take("filter", app, pilot, sheet)
    await press(pilot, "escape", "escape", "home", "x")
    await until(pilot, lambda: app.focused.id == "reason")
    app.screen.query_one("#until").value = "2030-01-31"
    await press(pilot, *"known")
    await take("suppress", app, pilot, sheet)
    await press(pilot, "escape")
    await log(app, pilot, sheet)
    await walk(app, pilot, sheet)


async def log(app, pilot, sheet: Sheet) -> None:
    page = app.main.query_one("#detail", RowList)
    page.focus()
    place = app.main.chosen().evidence[0]
    page.cursor = next((number for number, row in enumerate(page.rows) if f":{place.line}" in row.text), 0)
    await press(pilot, "enter")
    await until(pilot, lambda: app._notifications or (isinstance(app.screen, LogScreen) and app.screen._wanted is None))
    if not isinstance(app.screen, LogScreen):
        await take("a text that is gone", app, pilot, sheet)
    else:
        await take("log", app, pilot, sheet)
        await press(pilot, "slash", *"nvidia", "enter")
        await until(pilot, lambda: app.screen._view.needle == "nvidia")
        await pilot.pause(0.1)
        await take("log, searched", app, pilot, sheet)
        await press(pilot, "escape")
    await press(pilot, "escape")


async def walk(app, pilot, sheet: Sheet) -> None:
    await press(pilot, "w")
    await until(pilot, lambda: isinstance(app.screen, WalkScreen))
    await take("walk-through, confirm", app, pilot, sheet)
    while app.screen._fix() is None or app.screen._fix().risk == "read-only":
        await press(pilot, "right")
    await take("walk-through, a step", app, pilot, sheet)
    await press(pilot, "d")
    await take("walk-through, before verifying", app, pilot, sheet)
    await press(pilot, "v")
    await until(pilot, lambda: app.screen.verdict is not None)
    await take("walk-through, verified", app, pilot, sheet)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("scene", SCENES)
def test_screens(scene, size, tmp_path, monkeypatch):
    clock = [0.0]
    for module in ("widgets.probes", "screens.main", "screens.walk"):
        monkeypatch.setattr(f"gpudoctor.tui.{module}.time", SimpleNamespace(monotonic=lambda: clock[0]))
    given = examination(scene)
    monkeypatch.setattr(given, "suppressions_file", lambda: Path("suppressions.toml"))
    sheet = Sheet(size[0])

    async def script(app, pilot):
        clock[0] = 12.0
        await tour(app, pilot, sheet, given)

    with named_parts():
        drive(script, given, size, tmp_path / "walks.json")
    path = HERE / "snapshots" / f"{scene}-{size[0]}x{size[1]}.svg"
    if os.environ.get("GPUDOCTOR_SNAPSHOTS") == "write":
        path.write_text(sheet.svg(), encoding="utf-8")
    before, now = readable(path.read_text(encoding="utf-8")), readable(sheet.svg())
    difference = "\n".join(difflib.unified_diff(before, now, "as it was", "as it is", lineterm="", n=2))
    assert not difference, f"{path.name} looks different:\n{difference[:6000]}"
