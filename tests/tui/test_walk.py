"""The walk-through: what is remembered, what a second examination says, and the keys."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tui import scene
from tui.scene import SIZES, Fixed, drive, press, report, screen_text

from gpudoctor.tui.screens.log import LogScreen
from gpudoctor.tui.screens.walk import WalkScreen
from gpudoctor.tui.walk import Walk, WalkFile, compare, host_of
from gpudoctor.tui.walk import begin as begun
from gpudoctor.tui.widgets.rows import RowList

both = pytest.mark.parametrize("size", SIZES)


def walk(**values) -> Walk:
    return Walk(**{"host": "h", "key": "bus", "title": "T", "rungs": ["look", "reset", "reboot"], **values})


def test_steps():
    here = walk()
    assert (here.position, here.rung, here.verify_step) == (0, None, 4)
    here.go(1)
    here.note("done", only_looks=True)
    assert here.rung == 1
    here.note("no help")
    assert here.rung == 2
    here.note("done")
    assert here.position == here.verify_step
    assert here.outcomes == {0: "done", 1: "no help", 2: "done"}
    here.go(9)
    assert here.position == 4
    here.go(-9)
    assert here.position == 0


def test_next_rung_goes_back_to_what_was_left_out():
    here = walk(position=3)
    here.note("no help")
    assert here.rung == 0
    assert walk(position=4, outcomes={0: "done"}).next_rung() == 2
    assert walk(outcomes={0: "done", 1: "skipped", 2: "done"}).next_rung() == 4


def test_walks_are_kept(tmp_path):
    kept = WalkFile(tmp_path / "deep" / "walks.json")
    assert kept.find("h", "bus") is None
    kept.save(walk(position=2, outcomes={1: "done"}))
    kept.save(walk(key="other"))
    found = WalkFile(kept.path).find("h", "bus")
    assert (found.position, found.outcomes) == (2, {1: "done"})
    assert [w.key for w in kept.unverified("h")] == ["bus"]
    assert kept.unverified("another host") == []
    kept.forget(found)
    assert kept.find("h", "bus") is None
    assert kept.find("h", "other") is not None


@pytest.mark.parametrize(
    "content", ["", "{", "[1]", '[{"host": "h"}]', '[{"host": "h", "key": "k", "title": "t", "rungs": 3}]', "\0"]
)
def test_a_broken_file_only_means_that_nothing_is_known(tmp_path, content):
    path = tmp_path / "walks.json"
    path.write_text(content)
    assert WalkFile(path).find("h", "k") is None
    WalkFile(path).save(walk())
    assert WalkFile(path).find("h", "bus") is not None
    WalkFile(scene.NOWHERE).save(walk())


def test_verdicts():
    started = begun(scene.BUS, report([scene.BUS]))
    assert compare(started, report([])).state == "resolved"
    assert compare(started, report([scene.BUS])).state == "quiet"
    for values in ({"count": 4}, {"last_seen": scene.BUS.last_seen + 1}):
        assert compare(started, report([replace(scene.BUS, **values)])).state == "still there"
    # a log that was rotated holds less of it
    assert compare(started, report([replace(scene.BUS, count=1)])).state == "quiet"
    undated = begun(scene.HOT, report([scene.HOT]))
    assert compare(undated, report([scene.HOT])).state == "still there"
    past = replace(scene.BUS, history=True)
    assert compare(started, report([past])).state == "resolved"
    other = compare(started, report([scene.BUS, scene.HOT, scene.OLD, scene.MISSING]))
    assert [finding.key for finding in other.new] == ["hot"]


def test_a_verdict_is_about_what_came_since_the_last_one():
    started = begun(scene.BUS, report([scene.BUS]))
    worse = report([replace(scene.BUS, count=9)])
    assert compare(started, worse).state == "still there"
    started.saw(worse)
    assert compare(started, worse).state == "quiet"


async def open_walk(app, pilot):
    await press(pilot, "w")
    await pilot.pause(0.1)
    assert isinstance(app.screen, WalkScreen)


async def verified(app, pilot):
    for _ in range(100):
        await pilot.pause(0.02)
        if app.screen.verdict is not None:
            break
    await pilot.pause()


@both
def test_from_confirm_to_resolved(tmp_path, size):
    path = tmp_path / "walks.json"
    examination = Fixed(report([scene.BUS, scene.HOT]), report([scene.HOT]))

    async def script(app, pilot):
        await open_walk(app, pilot)
        assert "Is it this?" in screen_text(app)
        assert "The driver lost contact with the GPU at 0000:3b:00.0 (Xid 79)." in screen_text(app)
        assert "dmesg.txt:2" in screen_text(app)
        await press(pilot, "right")
        assert "Step 1 of 2" in screen_text(app)
        await press(pilot, "c")
        assert app.clipboard == "journalctl -k -b | grep -i aer"
        await press(pilot, "d")
        assert "Step 2 of 2" in screen_text(app)
        assert "The whole machine is out for a while" in screen_text(app)
        assert "it knows where you were" in screen_text(app)
        await press(pilot, "left")
        assert "You said: done." in screen_text(app)
        await press(pilot, "n")
        page = app.screen.query_one(RowList)
        page.cursor = next(number for number, row in enumerate(page.rows) if "sudo poweroff" in row.text)
        await press(pilot, "enter")
        assert app.clipboard == "sudo poweroff"
        await press(pilot, "d")
        assert "Is it gone?" in screen_text(app)
        assert WalkFile(path).find(host_of(app.report), "bus").outcomes == {0: "done", 1: "done"}
        await press(pilot, "v")
        await verified(app, pilot)
        assert "Resolved: GPU fell off the bus is not found any more." in screen_text(app)
        assert "What was done last: Start the node cold" in screen_text(app)
        assert WalkFile(path).find(host_of(app.report), "bus") is None
        await press(pilot, "escape")
        assert app.screen is app.main
        assert app.main.query_one("#findings").current.key == "hot"

    drive(script, examination, size, path)


@both
def test_still_there_goes_to_what_was_not_tried(tmp_path, size):
    new = scene.finding("driver.kernel-oops", "Oops", key="oops")
    again = replace(scene.BUS, count=9)
    examination = Fixed(report([scene.BUS]), report([again, new]))

    async def script(app, pilot):
        await open_walk(app, pilot)
        await press(pilot, "right", "s", "v")
        await verified(app, pilot)
        assert "Still there: GPU fell off the bus" in screen_text(app)
        assert "New since you started" in screen_text(app)
        assert "Press right for the next step: 2. Start the node cold" in screen_text(app)
        await press(pilot, "right")
        assert "Step 2 of 2" in screen_text(app)
        await press(pilot, "x", "v")
        await verified(app, pilot)
        assert "Every step was tried." in screen_text(app)
        page = app.screen.query_one(RowList)
        page.cursor = next(number for number, row in enumerate(page.rows) if row.text.endswith("Oops"))
        await press(pilot, "enter")
        assert app.screen is app.main
        assert app.main.query_one("#findings").current.key == "oops"

    drive(script, examination, size, tmp_path / "walks.json")


def test_a_walk_goes_on_after_a_restart(tmp_path):
    path = tmp_path / "walks.json"

    async def first(app, pilot):
        await open_walk(app, pilot)
        await press(pilot, "right", "right", "d", "escape", "q")

    async def quiet(app, pilot):
        assert [note.title for note in app._notifications] == ["No new sign of it"]
        assert app.main.query_one("#findings").current.key == "bus"
        await press(pilot, "w")
        assert "Is it gone?" in screen_text(app)

    async def again(app, pilot):
        assert [note.title for note in app._notifications] == ["Still there"]

    async def gone(app, pilot):
        [note] = app._notifications
        assert note.title == "Resolved"
        assert note.message == "GPU fell off the bus is not found any more."

    async def nothing(app, pilot):
        assert not list(app._notifications)

    worse = replace(scene.BUS, last_seen=scene.BUS.last_seen + 1)
    for script, findings in (
        (first, [scene.BUS]),
        (quiet, [scene.HOT, scene.BUS]),
        (again, [worse]),
        (gone, []),
        (nothing, []),
    ):
        drive(script, Fixed(report(findings)), walks=path)


def test_evidence_opens_the_log_from_the_walk(tmp_path):
    (tmp_path / "dmesg.txt").write_text("one\n" + scene.XID_LINE)

    async def script(app, pilot):
        await open_walk(app, pilot)
        page = app.screen.query_one(RowList)
        page.cursor = next(number for number, row in enumerate(page.rows) if "dmesg.txt:2" in row.text)
        await press(pilot, "enter")
        await pilot.pause(0.3)
        assert isinstance(app.screen, LogScreen)
        await press(pilot, "escape")
        assert isinstance(app.screen, WalkScreen)
        await press(pilot, "question_mark")
        said = " ".join(row.text for row in app.screen.query_one(RowList).rows)
        said = " ".join(said.split())
        for words in (
            "you did it: verify",
            "not this one: next step",
            "select them by mouse",
            "examine again and compare",
        ):
            assert words in said

    drive(script, Fixed(folder=tmp_path))


def test_a_finding_without_fixes_can_still_be_verified():
    bare = scene.finding("a.b", "Bare", key="bare")

    async def script(app, pilot):
        await open_walk(app, pilot)
        assert "No fix is known for it." in screen_text(app)
        await press(pilot, "right", "v")
        await verified(app, pilot)
        assert "Still there: Bare" in screen_text(app)

    drive(script, Fixed(report([bare])))
