"""Every key on the screens, at a small and a large terminal, with what must stand there afterwards."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace
from tui import scene
from tui.scene import SIZES, Fixed, Hanging, drive, press, report, screen_text

from gpudoctor.tui.examination import Unusable
from gpudoctor.tui.screens.help import HelpScreen
from gpudoctor.tui.widgets.findings import UNDECIDED, FindingList
from gpudoctor.tui.widgets.rows import RowList

both = pytest.mark.parametrize("size", SIZES)


def here(app):
    return app.main.query_one(FindingList).current.key


@both
def test_first_screen(size):
    async def script(app, pilot):
        lines = screen_text(app).splitlines()
        assert lines[0].split(maxsplit=2)[1:] == ["CRITICAL", "GPU fell off the bus"]
        assert "node-a" in lines[1]
        assert "1 Findings 5" in lines[2]
        assert "2 Node 2 GPUs" in lines[2]
        assert "3 Timeline   4 Probes 2, 1 failed" in lines[2]
        assert here(app) == "bus"
        assert "The driver lost contact with the GPU at 0000:3b:00.0" in screen_text(app)
        assert "? Help" in lines[-1]
        assert "q Quit" in lines[-1]

    drive(script, size=size)


@both
def test_moving_and_folding(size):
    async def script(app, pilot):
        await press(pilot, "down")
        assert here(app) == "hot"
        assert "GPU is slowed by heat, says the log." in screen_text(app)
        await press(pilot, "k")
        assert here(app) == "bus"
        await press(pilot, "right", "j")
        assert here(app) == "missing"
        await press(pilot, "l", "down")
        assert here(app) == "nccl"
        await press(pilot, "left")
        assert here(app) == "missing"
        await press(pilot, "h", "h")
        assert here(app) == "bus"
        await press(pilot, "space", "down")
        assert here(app) == "hot"
        await press(pilot, "end")
        assert here(app) == UNDECIDED
        await press(pilot, "enter", "down")
        assert here(app) == "undecided:pcie.link-degraded"
        assert "send the output of `lspci -vv`" in screen_text(app)
        await press(pilot, "g")
        assert here(app) == "bus"
        await press(pilot, "G")
        assert here(app) == "undecided:pcie.link-degraded"
        await press(pilot, "pageup")
        assert here(app) == "bus"
        await press(pilot, "pagedown")
        assert here(app) == "undecided:pcie.link-degraded"
        await press(pilot, "home")
        assert here(app) == "bus"

    drive(script, size=size)


@both
def test_filter(size):
    async def script(app, pilot):
        await press(pilot, "slash", *"heat")
        assert here(app) == "hot"
        assert "GPU fell off the bus" not in "\n".join(screen_text(app).splitlines()[3:])
        await press(pilot, "enter")
        assert app.focused.id == "findings"
        assert "Findings: heat" in screen_text(app)
        await press(pilot, "escape")
        assert app.main.query_one(FindingList).filter == ""
        assert len(app.main.query_one(FindingList).rows) == 4
        await press(pilot, "slash", *"nothing like it")
        assert "No finding fits the filter." in screen_text(app)
        await press(pilot, "escape", "escape")
        assert here(app) == "bus"

    drive(script, size=size)


@both
def test_detail_and_back(size):
    async def script(app, pilot):
        await press(pilot, "enter")
        assert app.focused.id == "detail"
        assert app.main.query_one("#list-pane").display == (size[0] >= 120)
        assert app.main.has_class("zoomed") == (size[0] < 120)
        await press(pilot, "right_square_bracket")
        assert here(app) == "hot"
        assert "GPU is slowed by heat" in screen_text(app)
        await press(pilot, "left_square_bracket", "escape")
        assert app.focused.id == "findings"
        assert not app.main.has_class("zoomed")
        await press(pilot, "z")
        assert app.main.has_class("zoomed")
        await press(pilot, "z")
        assert not app.main.has_class("zoomed")
        await press(pilot, "tab")
        assert app.focused.id == "detail"

    drive(script, size=size)


async def on_row(app, pilot, words):
    """Put the cursor of the detail on the first row with these words."""
    page = app.main.query_one("#detail", RowList)
    page.focus()
    page.cursor = next(number for number, row in enumerate(page.rows) if words in row.text)
    await pilot.pause()


@both
def test_enter_and_copy_in_the_detail(size):
    async def script(app, pilot):
        await on_row(app, pilot, "sudo poweroff")
        assert "Copy" in screen_text(app).splitlines()[-1]
        await press(pilot, "enter")
        assert app.clipboard == "sudo poweroff"
        await on_row(app, pilot, "dmesg.txt:2")
        await press(pilot, "y")
        assert app.clipboard == f"dmesg.txt:2: {scene.XID_LINE}"
        await on_row(app, pilot, "About: GPU")
        await press(pilot, "y")
        assert app.clipboard == "About: GPU 0000:3b:00.0"
        await on_row(app, pilot, "A GPU is missing")
        await press(pilot, "enter")
        assert here(app) == "missing"
        await press(pilot, "escape", "y")
        assert app.clipboard.startswith("## A GPU is missing\n")

    drive(script, size=size)


@both
def test_views(size):
    async def script(app, pilot):
        await press(pilot, "2")
        assert app.focused.id == "node"
        assert "H100 80GB HBM3" in screen_text(app)
        assert "Versions ──" in screen_text(app)
        assert app.focused.current.key == "gpu:0000:3b:00.0"
        await press(pilot, "enter")
        assert any(row.key == "gpu:0000:3b:00.0:state" for row in app.focused.rows)
        await press(pilot, "enter")
        assert not any(row.key == "gpu:0000:3b:00.0:state" for row in app.focused.rows)
        await press(pilot, "down")
        assert "Go there" in screen_text(app).splitlines()[-1]
        await press(pilot, "enter")
        assert (app.focused.id, here(app)) == ("findings", "bus")
        await press(pilot, "3")
        assert app.focused.id == "timeline"
        assert "2023-11-14 22:13:20" in screen_text(app)
        assert "GPU fell off the bus (3 times)" in screen_text(app)
        assert "Findings whose time is not known" in screen_text(app)
        await press(pilot, "4")
        assert "nvidia_smi" in screen_text(app)
        assert "no answer in 10 s" in screen_text(app)
        await press(pilot, "1")
        assert app.focused.id == "findings"
        await press(pilot, "3", "escape")
        assert app.focused.id == "findings"

    drive(script, size=size)


@both
def test_help_says_the_keys_of_the_screen_below(size):
    async def script(app, pilot):
        await press(pilot, "question_mark")
        assert isinstance(app.screen, HelpScreen)
        said = "\n".join(row.text for row in app.screen.query_one(RowList).rows)
        for words in ("be led through the fix", "save the report", "examine again", "critical: it does not work"):
            assert words in said
        await press(pilot, "escape")
        assert app.screen is app.main
        await press(pilot, "f1", "q")
        assert app.screen is app.main

    drive(script, size=size)


def test_help_names_each_key_once():
    async def script(app, pilot):
        await press(pilot, "w", "question_mark")
        keys = [row.text for row in app.screen.query_one(RowList).rows]
        keys = keys[: next(number for number, line in enumerate(keys) if "Moving" in line)]
        assert any(line.startswith("esc q ") for line in keys)
        assert not [line for line in keys if line.startswith("q ")], "q leaves the walk-through, it doesn't quit here"

    drive(script, Fixed(report([scene.BUS])))


@both
@pytest.mark.parametrize(("findings", "status"), [([scene.BUS], 2), ([scene.HOT], 1), ([], 0)])
def test_quit_gives_the_status_of_the_report(size, findings, status):
    async def script(app, pilot):
        await press(pilot, "q")

    assert drive(script, Fixed(report(findings)), size).return_value == status


def test_nothing_wrong_says_so():
    async def script(app, pilot):
        lines = screen_text(app).splitlines()
        assert lines[0].split(maxsplit=2)[1:] == ["OK", "Nothing wrong found"]
        assert "w Walk-through" not in lines[-1]

    drive(script, Fixed(report([], undecided=[])))


def test_again_examines_again():
    examination = Fixed(report([scene.BUS]), report([]))

    async def script(app, pilot):
        await press(pilot, "r")
        for _ in range(50):
            await pilot.pause(0.02)
        assert examination.runs == 2
        assert "Nothing wrong found" in screen_text(app)

    assert drive(script, examination).report.status == "ok"


@both
def test_a_hung_probe_freezes_nothing_and_escape_gives_what_is_known(size):
    examination = Hanging()

    async def script(app, pilot):
        lines = screen_text(app).splitlines()
        assert "WARNING" in lines[0]
        assert "probing" in lines[1]
        assert "GPU is slowed by heat" in lines[4]
        assert "nvml" in screen_text(app)
        assert "running" in screen_text(app)
        assert "esc Stop probing" in lines[-1]
        await press(pilot, "escape")
        assert "stopped early" in screen_text(app).splitlines()[1]
        assert "GPU is slowed by heat, says the log." in screen_text(app)
        await press(pilot, "q")

    try:
        assert drive(script, examination, size).return_value == 1
    finally:
        examination.release.set()


def test_a_finding_chosen_while_probing_shows_its_detail_and_the_rest_still_comes():
    examination = Hanging()

    async def script(app, pilot):
        await press(pilot, "enter")
        assert "GPU is slowed by heat, says the log." in screen_text(app)
        examination.release.set()
        for _ in range(50):
            await pilot.pause(0.02)
        assert "GPU fell off the bus" in screen_text(app)

    drive(script, examination)


def test_a_source_that_cannot_be_read_ends_with_its_line():
    async def script(app, pilot):
        await pilot.pause()

    app = drive(script, Fixed(failure=Unusable("x.log: no such file or folder", 66)))
    assert app.failure == ("x.log: no such file or folder", 66)
    assert app.return_value == 66


def test_resizing_changes_the_layout_live():
    async def script(app, pilot):
        await pilot.resize_terminal(200, 50)
        await pilot.pause()
        await pilot.pause()
        assert app.main.has_class("wide")
        assert max(len(line) for line in screen_text(app).splitlines()) > 120
        await pilot.resize_terminal(60, 20)
        await pilot.pause()
        await pilot.pause()
        assert not app.main.has_class("wide")
        assert here(app) == "bus"

    drive(script)


def test_mouse_works_too():
    async def script(app, pilot):
        await pilot.click("#findings", offset=(10, 1))
        await pilot.pause()
        assert here(app) == "hot"
        await pilot.click("#banner", offset=(20, 2))
        await pilot.pause()
        assert app.focused.id == "node"

    drive(script)


def test_no_colour_sends_no_colour(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")

    async def script(app, pilot):
        from textual.filter import Monochrome

        assert app.no_color
        assert not any(isinstance(each, Monochrome) for each in app._filters)

    drive(script)


@both
def test_save(size, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def script(app, pilot):
        await press(pilot, "s")
        assert ".json." in screen_text(app), "the endings are named whole at every size"
        assert app.focused.value.startswith("gpudoctor-node-a-")
        assert app.focused.value.endswith(".txt")
        app.focused.value = "out.pdf"
        await press(pilot, "enter")
        assert "No form has the ending .pdf" in screen_text(app)
        app.focused.value = "out"
        await press(pilot, "enter")
        assert "The name has no ending: use one of ." in screen_text(app)
        app.focused.value = "nowhere/out.txt"
        await press(pilot, "enter")
        assert "No such file or directory" in screen_text(app)
        app.focused.value = "out.txt"
        await press(pilot, "enter")
        assert app.screen is app.main
        assert (tmp_path / "out.txt").read_text() == "GPU fell off the bus"
        assert (tmp_path / "out.txt").stat().st_mode & 0o777 == 0o600
        (tmp_path / "out.txt").write_text("older")
        await press(pilot, "s")
        app.focused.value = "out.txt"
        await press(pilot, "enter")
        assert (tmp_path / "out.txt").read_text() == "older"
        assert "Enter again overwrites it." in screen_text(app)
        await press(pilot, "enter")
        assert (tmp_path / "out.txt").read_text() == "GPU fell off the bus"
        await press(pilot, "s", "escape")
        assert app.screen is app.main

    drive(script, size=size)


def test_palette_offers_views_and_findings():
    async def script(app, pilot):
        titles = [command.title for command in app.get_system_commands(app.screen)]
        for title in ("Node", "Timeline", "Walk-through", "Save report", "Go to: GPU is slowed by heat", "Quit"):
            assert title in titles
        await press(pilot, "ctrl+p")
        await press(pilot, *"slowed")
        await pilot.pause(0.5)
        await press(pilot, "enter")
        await pilot.pause(0.3)
        assert here(app) == "hot"

    drive(script)


def test_a_title_that_looks_like_markup_is_a_title():
    """A site's own rule may be titled as it likes."""
    odd = scene.finding("site.odd", "[red]Odd[/bold] [link=x", key="odd")

    async def script(app, pilot):
        assert "[red]Odd[/bold] [link=x" in screen_text(app)
        await press(pilot, "ctrl+p")
        await press(pilot, *"odd")
        await pilot.pause(0.3)
        assert "Go to: (red)Odd(/bold) (link=x" in screen_text(app)

    drive(script, Fixed(report([odd])))


@both
def test_several_nodes_give_a_list_first(size):
    def node(path, findings):
        given = report(findings)
        return replace(given, source=replace(given.source, path=path))

    parts = [node("node-a", [scene.BUS]), node("node-b", [])]
    whole = report([scene.BUS], node={"nodes": ["node-a", "node-b"]}, nodes=parts, undecided=[], probes=[])

    async def script(app, pilot):
        assert app.focused.id == "node"
        assert "2 Nodes 2" in screen_text(app)
        lines = screen_text(app).splitlines()
        assert any("node-a" in line and "GPU fell off the bus" in line for line in lines[4:])
        await press(pilot, "down")
        assert "Open node" in screen_text(app).splitlines()[-1]
        await press(pilot, "enter")
        assert app.main.report.source.path == "node-b"
        assert "Nothing wrong found" in screen_text(app).splitlines()[0]
        await press(pilot, "escape")
        assert app.main.report.source.path == "bundle"
        assert app.focused.id == "node"

    drive(script, Fixed(whole), size)


@both
def test_a_key_is_answered_at_once_with_five_hundred_findings(size):
    many = [replace(scene.BUS, key=f"k{n}", title=f"Finding number {n}") for n in range(500)]

    async def script(app, pilot):
        began = time.process_time()
        for _ in range(20):
            await pilot.press("down")
        assert here(app) == "k20"
        assert (time.process_time() - began) / 20 < 0.05

    drive(script, Fixed(report(many)), size)
