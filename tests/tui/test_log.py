"""The log viewer's keys."""

from __future__ import annotations

import pytest
from tui import scene
from tui.scene import SIZES, Fixed, drive, press, report, screen_text

from gpudoctor.facts.base import Where
from gpudoctor.tui.screens.log import LogScreen
from gpudoctor.tui.widgets.logview import LogView
from gpudoctor.tui.widgets.rows import RowList

both = pytest.mark.parametrize("size", SIZES)
LINES = [f"[{n:5}.000000] line number {n + 1}" for n in range(500)]
LINES[199] = "[  199.000000] [bold]NVRM[/bold]: Xid \x1b[31m79\x07"
LINES[399] = "[  399.000000] NVRM: Xid 31"
TEXT = "\n".join(LINES)
BUS = scene.finding(
    "hardware.fell-off-bus",
    "GPU fell off the bus",
    key="bus",
    evidence=[Where(source="dmesg.txt", line=200, text="Xid 79"), Where(source="gone.txt", line=1, text="?")],
)
FAULT = scene.finding(
    "memory.fault",
    "Fault",
    key="fault",
    severity="warning",
    evidence=[Where(source="dmesg.txt", line=400, text="Xid 31")],
)


async def open_log(app, pilot, words="dmesg.txt:200"):
    page = app.main.query_one("#detail", RowList)
    page.focus()
    page.cursor = next(number for number, row in enumerate(page.rows) if words in row.text)
    await press(pilot, "enter")
    for _ in range(100):
        await pilot.pause(0.02)
        if isinstance(app.screen, LogScreen) and app.screen._wanted is None:
            break
    await pilot.pause()


def examination(tmp_path, text=TEXT):
    (tmp_path / "dmesg.txt").write_text(text)
    return Fixed(report([BUS, FAULT]), folder=tmp_path)


def line(app):
    return app.screen.query_one(LogView).cursor + 1


@both
def test_opens_at_the_line_and_moves(tmp_path, size):
    async def script(app, pilot):
        await open_log(app, pilot)
        assert line(app) == 200
        assert "dmesg.txt · line 200 of 500" in screen_text(app)
        assert "200 ✖ [  199.000000] [bold]NVRM[/bold]: Xid 79" in screen_text(app)
        await press(pilot, "down")
        assert line(app) == 201
        await press(pilot, "k", "k")
        assert line(app) == 199
        await press(pilot, "end")
        assert line(app) == 500
        await press(pilot, "pageup")
        assert 440 < line(app) < 500
        await press(pilot, "home")
        assert line(app) == 1
        await press(pilot, "space")
        assert line(app) > 15
        await press(pilot, "right_square_bracket")
        assert line(app) == 200
        await press(pilot, "right_square_bracket")
        assert line(app) == 400
        await press(pilot, "right_square_bracket")
        assert line(app) == 200
        await press(pilot, "left_square_bracket")
        assert line(app) == 400
        await press(pilot, "y")
        assert app.clipboard == "[  399.000000] NVRM: Xid 31"
        await press(pilot, "right")
        assert "VRM: Xid 31" in screen_text(app)
        lines, whole = screen_text(app).splitlines()[:-4], screen_text(app).splitlines()[-4]
        assert not any("[  399" in shown for shown in lines)
        assert whole.strip() == "[  399.000000] NVRM: Xid 31"
        await press(pilot, "left", "escape")
        assert app.screen is app.main

    drive(script, examination(tmp_path), size)


@both
def test_search(tmp_path, size):
    async def script(app, pilot):
        await open_log(app, pilot)
        await press(pilot, "slash", *"xid 31", "enter")
        await pilot.pause(0.2)
        assert line(app) == 400
        await press(pilot, "slash", "home", "shift+end", "delete", *":77", "enter")
        assert line(app) == 77
        await press(pilot, "slash", "home", "shift+end", "delete", *"number 4", "enter")
        await pilot.pause(0.2)
        assert line(app) == 400 or "number 4" in LINES[line(app) - 1]
        first = line(app)
        await press(pilot, "n")
        await pilot.pause(0.2)
        assert line(app) > first
        await press(pilot, "N")
        await pilot.pause(0.2)
        assert line(app) == first
        await press(pilot, "slash", "home", "shift+end", "delete", *"[/no", "enter")
        await pilot.pause(0.2)
        assert line(app) == first
        assert isinstance(app.screen, LogScreen)

    drive(script, examination(tmp_path), size)


def test_a_line_that_moved_is_found_by_its_text(tmp_path):
    moved = "\n".join(["a later line"] * 37 + LINES)

    async def script(app, pilot):
        await open_log(app, pilot, "dmesg.txt:200")
        await pilot.pause(0.3)
        assert line(app) == 237

    given = scene.finding(
        "a.b", "Moved", evidence=[Where(source="dmesg.txt", line=200, text="[  199.000000] [bold]NVRM[/bold]: Xid")]
    )
    fixed = examination(tmp_path, moved)
    fixed.reports = [report([given])]
    drive(script, fixed)


def test_a_text_that_cannot_be_opened_says_why(tmp_path):
    async def script(app, pilot):
        await open_log(app, pilot, "gone.txt:1")
        assert app.screen is app.main
        assert "gone.txt is gone" in [note.message for note in app._notifications]

    drive(script, examination(tmp_path))


def test_the_map_shows_where_findings_lie(tmp_path):
    async def script(app, pilot):
        await open_log(app, pilot)
        edge = [text[78:79] for text in screen_text(app).splitlines()]  # the last column is the scroll bar
        assert edge.count("✖") == 1
        assert edge.count("▲") == 1
        assert edge.index("✖") < edge.index("▲")

    drive(script, examination(tmp_path))
