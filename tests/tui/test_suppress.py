"""Suppressing a finding from the screens: the dialog, the list, and the file that the command line honours."""

from __future__ import annotations

import json
from datetime import date, timedelta

import pytest
from tui import scene
from tui.scene import SIZES, Fixed, drive, press, report, screen_text
from tui.terminal import Terminal

from gpudoctor.monitor.suppressions import read_suppressions
from gpudoctor.tui.screens.suppress import SuppressScreen
from gpudoctor.tui.widgets.findings import SUPPRESSED, FindingList
from gpudoctor.tui.widgets.rows import RowList

both = pytest.mark.parametrize("size", SIZES)


async def suppressed(app, pilot):
    for _ in range(100):
        await pilot.pause(0.02)
        if app.report.suppressed:
            break
    await pilot.pause()


@both
def test_reason_and_last_day_are_asked_for_and_it_counts_no_more(tmp_path, size):
    until = str(date.today() + timedelta(days=30))

    async def script(app, pilot):
        await press(pilot, "down", "x")
        assert isinstance(app.screen, SuppressScreen)
        assert "thermal.throttling, for 0000:af:00.0" in screen_text(app)
        await press(pilot, "enter")
        assert "Say why" in screen_text(app)
        await press(pilot, *"fan on order", "enter")
        assert app.focused.id == "until"
        assert app.focused.value == until
        app.focused.value = "2020-01-01"
        await press(pilot, "enter")
        assert "2020-01-01 is not a day to come" in screen_text(app)
        app.focused.value = until
        await press(pilot, "enter")
        await suppressed(app, pilot)
        findings = app.main.query_one(FindingList)
        keys = [row.key for row in findings.rows]
        assert "hot" not in keys
        assert SUPPRESSED in keys
        findings.select(SUPPRESSED)
        await press(pilot, "enter", "down")
        assert f"GPU is slowed by heat (until {until})" in screen_text(app)
        said = "\n".join(row.text for row in app.main.query_one("#detail", RowList).rows)
        assert f"Suppressed up to and including {until}" in said
        assert "Reason: fan on order" in said
        assert "GPU is slowed by heat, says the log." in said
        await press(pilot, "h")
        assert findings.current.key == SUPPRESSED

    drive(script, Fixed(folder=tmp_path), size)
    [entry] = read_suppressions(tmp_path / "suppressions.toml")
    assert (entry.id, entry.subject, entry.reason) == ("thermal.throttling", "0000:af:00.0", "fan on order")
    assert entry.expires == until


def test_leaving_the_dialog_changes_nothing(tmp_path):
    async def script(app, pilot):
        await press(pilot, "x", *"never mind", "escape")
        assert app.screen is app.main
        assert not app.report.suppressed

    drive(script, Fixed(folder=tmp_path))
    assert not (tmp_path / "suppressions.toml").exists()


def test_where_it_cannot_be_suppressed_the_reason_is_said(tmp_path):
    async def nowhere(app, pilot):
        assert "x Suppress" not in screen_text(app)
        assert "Suppress" not in [command.title for command in app.main.commands()]
        await press(pilot, "x")
        assert app.screen is app.main
        assert "there is no file for it" in [note.message for note in app._notifications]

    async def broken(app, pilot):
        assert "x Suppress" in screen_text(app)
        await press(pilot, "x", *"known", "enter", "enter")
        await pilot.pause(0.2)
        [note] = app._notifications
        assert "suppressions.toml: not valid TOML" in note.message
        assert not app.report.suppressed

    drive(nowhere, size=(200, 50))
    (tmp_path / "suppressions.toml").write_text("[[suppress]")
    drive(broken, Fixed(folder=tmp_path), (200, 50))


def test_what_expired_is_named():
    over = scene.Suppression(id="thermal", reason="fan on order", expires="2024-01-31")
    given = report(expired_suppressions=[over])

    async def script(app, pilot):
        findings = app.main.query_one(FindingList)
        findings.select(SUPPRESSED)
        await press(pilot, "enter")
        said = [row.text for row in findings.rows]
        assert "    thermal: its suppression ended 2024-01-31, it counts again (fan on order)" in said

    drive(script, Fixed(given), (200, 50))


def test_the_command_line_honours_it(lib_dir, gpudoctor, tmp_path):
    """In a real terminal, on the fake node."""
    from nvml.build import scenario_env

    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    with Terminal("--tui", env=scenario_env("power-brake", lib_dir) | env, size=(100, 30)) as terminal:
        terminal.until(lambda text: "x Suppress" in text, timeout=90)
        terminal.press("x")
        terminal.until("Suppress a finding")
        terminal.press("bench run\r")
        terminal.press("\r")
        terminal.until("Written to")
        terminal.press("q")
        terminal.end()
    done = gpudoctor("--json", scenario="power-brake", **env)
    [known] = json.loads(done.out)["suppressed"]
    assert known["suppression"]["reason"] == "bench run"
    assert known["finding"]["key"] not in [finding["key"] for finding in done.report["findings"]]
