"""Every key that a screen or a widget declares is pressed here, with what must follow; a new key without a test fails."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode
from tui import scene
from tui.scene import Fixed, drive, report, screen_text

import gpudoctor.tui
from gpudoctor.facts.base import Where
from gpudoctor.tui.app import GpuDoctorApp
from gpudoctor.tui.screens.help import HelpScreen
from gpudoctor.tui.screens.log import LogScreen
from gpudoctor.tui.screens.main import MainScreen
from gpudoctor.tui.screens.save import SaveScreen
from gpudoctor.tui.screens.suppress import SuppressScreen
from gpudoctor.tui.screens.walk import WalkScreen
from gpudoctor.tui.walk import Walk
from gpudoctor.tui.widgets.cursor import CursorView
from gpudoctor.tui.widgets.findings import FindingList
from gpudoctor.tui.widgets.logview import LogView
from gpudoctor.tui.widgets.rows import RowList

TESTED = [App, GpuDoctorApp, MainScreen, LogScreen, WalkScreen, SaveScreen, SuppressScreen, HelpScreen]
TESTED += [CursorView, RowList, FindingList, LogView]
LINES = [f"[{n:5}.000000] line number {n + 1}, and more of it to the right of what fits" for n in range(500)]


def own_keys(owner: type) -> set[str]:
    """The keys that a class itself declares."""
    bindings = [entry if isinstance(entry, Binding) else Binding(*entry) for entry in vars(owner).get("BINDINGS", ())]
    return {key for binding in bindings for key in binding.key.split(",")}


class Keys:
    """Presses keys, and tells in the end which ones were left out."""

    def __init__(self, pilot, *owners: type) -> None:
        self.pilot = pilot
        self.left = set().union(*(own_keys(owner) for owner in owners))

    async def __call__(self, *keys: str) -> None:
        for key in keys:
            self.left.discard(key)
            await self.pilot.press(key)
        await self.pilot.pause()

    async def until(self, condition) -> None:
        for _ in range(200):
            if condition():
                return
            await self.pilot.pause(0.02)
        raise AssertionError("it did not come to that")


def declared() -> Iterator[type]:
    """The classes of the screens that declare keys."""
    for module in pkgutil.walk_packages(gpudoctor.tui.__path__, "gpudoctor.tui."):
        for value in vars(importlib.import_module(module.name)).values():
            ours = isinstance(value, type) and value.__module__.startswith("gpudoctor.tui")
            if ours and issubclass(value, DOMNode) and own_keys(value):
                yield value


def test_nothing_else_declares_keys():
    assert set(declared()) == {owner for owner in TESTED if owner.__module__.startswith("gpudoctor.tui")}


@pytest.mark.parametrize("key", sorted(own_keys(GpuDoctorApp)))
def test_keys_of_the_program(key):
    async def script(app, pilot):
        await pilot.press(key)
        await pilot.pause()
        if key in ("question_mark", "f1"):
            assert isinstance(app.screen, HelpScreen)

    app = drive(script)
    if key in ("q", "ctrl+c"):
        assert app.return_value == 2
    else:
        assert key in ("question_mark", "f1")


def test_keys_of_the_main_screen(tmp_path):
    examination = Fixed(folder=tmp_path)

    async def script(app, pilot):
        keys = Keys(pilot, MainScreen)
        findings = app.main.query_one(FindingList)
        for key, page in (("2", "node"), ("3", "timeline"), ("4", "probes"), ("1", "findings")):
            await keys(key)
            assert app.focused.id == page
        await keys("2", "escape")
        assert app.focused is findings
        await keys("right_square_bracket")
        assert findings.current.key == "hot"
        await keys("left_square_bracket")
        assert findings.current.key == "bus"
        await keys("slash")
        assert app.focused.id == "filter"
        await keys("escape")
        assert not app.main.query("#filter") or app.focused is findings
        await keys("y")
        assert app.clipboard.startswith("## GPU fell off the bus")
        await keys("right_square_bracket", "tab", "m")
        assert app.clipboard.startswith("## GPU is slowed by heat")
        await keys("escape", "left_square_bracket")
        await keys("z")
        assert app.main.has_class("zoomed")
        await keys("z")
        for key, screen in (("s", SaveScreen), ("x", SuppressScreen), ("w", WalkScreen)):
            await keys(key)
            await keys.until(lambda screen=screen: isinstance(app.screen, screen))
            await keys("escape")
            assert app.screen is app.main
        await keys("r")
        await keys.until(lambda: examination.runs == 2)
        assert not keys.left

    drive(script, examination)


def test_keys_of_the_lists():
    many = [scene.BUS, scene.MISSING, *(replace(scene.HOT, key=f"hot{n}") for n in range(30))]

    async def script(app, pilot):
        keys = Keys(pilot, CursorView, RowList, FindingList)
        findings = app.main.query_one(FindingList)

        async def goes(key: str, to: int) -> None:
            await keys(key)
            assert findings.cursor == to, key

        page = findings.scrollable_content_region.height - 1
        last = len(findings.rows) - 1
        for steps in (("down", "up", "j", "k"), ("pagedown", "pageup", "ctrl+f", "ctrl+b"), ("end", "home", "G", "g")):
            far = {"down": 1, "pagedown": page, "end": last}[steps[0]]
            for key, to in zip(steps, (far, 0, far, 0), strict=True):
                await goes(key, to)
        for unfold, fold in (("right", "left"), ("l", "h"), ("space", "space")):
            await keys(unfold)
            assert findings.rows[1].key == "missing"
            await keys(fold)
            assert findings.rows[1].key == "hot0"
        await keys("enter")
        assert app.focused.id == "detail"
        assert not keys.left

    drive(script, Fixed(report(many)))


def test_keys_of_the_log_viewer(tmp_path):
    (tmp_path / "dmesg.txt").write_text("\n".join(LINES))
    places = [Where(source="dmesg.txt", line=number, text=f"line number {number}") for number in (100, 300)]
    found = replace(scene.BUS, evidence=places)

    async def script(app, pilot):
        keys = Keys(pilot, LogScreen, LogView)

        async def open_log() -> LogView:
            from gpudoctor.tui.rows import OpenLog

            app.open_log(OpenLog("dmesg.txt", 100, "line number 100"))
            await keys.until(lambda: isinstance(app.screen, LogScreen) and app.screen._wanted is None)
            return app.screen.query_one(LogView)

        view = await open_log()
        assert view.cursor == 99
        await keys("right_square_bracket")
        assert view.cursor == 299
        await keys("left_square_bracket")
        assert view.cursor == 99
        await keys("y")
        assert app.clipboard == LINES[99]
        await keys("space")
        assert view.cursor == 99 + view.scrollable_content_region.height - 1
        for right, left in (("right", "left"), ("l", "h")):
            await keys(right)
            assert "[  114" not in screen_text(app)
            await keys(left)
            assert "[  114" in screen_text(app)
        await keys("slash", *"number 2", "enter")
        await keys.until(lambda: view.cursor == 199)
        await keys("n")
        await keys.until(lambda: view.cursor == 200)
        await keys("N")
        await keys.until(lambda: view.cursor == 199)
        await keys("escape")
        assert app.screen is app.main
        await open_log()
        await keys("q")
        assert app.screen is app.main
        assert not keys.left

    drive(script, Fixed(report([found]), folder=tmp_path))


def test_keys_of_the_walk_through(tmp_path):
    fixes = [scene.Fix(title=f"Step {n}", commands=[f"command {n}", "and more"]) for n in range(4)]
    found = replace(scene.BUS, fixes=fixes)

    async def script(app, pilot):
        keys = Keys(pilot, WalkScreen)

        async def opened() -> Walk:
            await pilot.press("w")
            await keys.until(lambda: isinstance(app.screen, WalkScreen))
            return app.screen.walk

        walk = await opened()
        for on, back in (("right", "left"), ("n", "b")):
            await keys(on)
            assert walk.position == 1
            await keys(back)
            assert walk.position == 0
        await keys("right", "c")
        assert app.clipboard == "command 0\nand more"
        await keys("p")
        assert "This terminal can't be left for a moment." in [note.message for note in app._notifications]
        await keys("x")
        assert (walk.position, walk.outcomes) == (2, {0: "no help"})
        await keys("s")
        assert (walk.position, walk.outcomes[1]) == (3, "skipped")
        await keys("d")
        assert (walk.position, walk.outcomes[2]) == (walk.verify_step, "done")
        await keys("v")
        await keys.until(lambda: app.screen.verdict is not None)
        await keys("escape")
        assert app.screen is app.main
        assert (await opened()).outcomes == walk.outcomes
        await keys("q")
        assert app.screen is app.main
        assert not keys.left

    drive(script, Fixed(report([found])), walks=tmp_path / "walks.json")


def test_keys_of_help_and_dialogs(tmp_path):
    async def script(app, pilot):
        keys = Keys(pilot, HelpScreen, SaveScreen, SuppressScreen)
        for key in sorted(own_keys(HelpScreen)):
            await pilot.press("question_mark")
            await keys.until(lambda: isinstance(app.screen, HelpScreen))
            await keys(key)
            assert app.screen is app.main, key
        for opens in ("s", "x"):
            await pilot.press(opens)
            await keys.until(lambda: app.screen is not app.main)
            await keys("escape")
            assert app.screen is app.main
        assert not keys.left

    drive(script, Fixed(folder=tmp_path))
