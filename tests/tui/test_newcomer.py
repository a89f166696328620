"""From the fault to a verified fix, for somebody who knows nothing but what the screen shows.

A key may be pressed only while the screen names it together with what it does.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from nvml.build import scenario_env
from tui.terminal import Terminal

KEYS = {"⏎": "\r", "esc": "\x1b", "→": "\x1b[C", "←": "\x1b[D"}


class Newcomer:
    """Sits before a live machine: the fake NVML, whose scenario can be exchanged."""

    def __init__(self, lib_dir: Path, folder: Path, fault: str) -> None:
        self._lib_dir, self._scenario, self._folder = lib_dir, folder / "now.scenario", folder
        self.machine_is(fault)
        self.start()

    def machine_is(self, scenario: str) -> None:
        self._scenario.write_bytes(Path(scenario_env(scenario, self._lib_dir)["FAKE_NVML_SCENARIO"]).read_bytes())

    def start(self) -> None:
        env = {**scenario_env("h100x8", self._lib_dir), "FAKE_NVML_SCENARIO": str(self._scenario)}
        self.terminal = Terminal("--tui", env=env, size=(100, 30), state=self._folder / "state")
        self.sees("r Again", timeout=90)

    def sees(self, words: str, timeout: float = 30.0) -> str:
        return self.terminal.until(words, timeout)

    def presses(self, key: str, meaning: str) -> None:
        """Press what the screen offers."""
        before = self.sees(f"{key} {meaning}")
        self.terminal.press(KEYS.get(key, key))
        self.terminal.until(lambda text: text != before)

    def types(self, words: str) -> None:
        self.terminal.press(words)

    def quits(self) -> None:
        self.sees("q Quit")
        self.terminal.press("q")
        assert self.terminal.end() in (0, 1, 2)
        assert self.terminal.restored()


@pytest.fixture
def newcomer(lib_dir, tmp_path):
    people = []

    def sits_before(fault: str) -> Newcomer:
        people.append(Newcomer(lib_dir, tmp_path, fault))
        return people[-1]

    yield sits_before
    for person in people:
        person.terminal.__exit__()


def test_heat_straight_through(newcomer):
    person = newcomer("throttled")
    person.sees("Heat holds")
    person.presses("w", "Walk-through")
    person.sees("Is it this?")
    person.presses("→", "Next")
    while "Is it gone?" not in person.terminal.text:
        person.presses("d", "Done")
    person.machine_is("h100x8")  # what the commands did, in another terminal
    person.presses("v", "Verify")
    person.sees("Resolved:", timeout=90)
    person.presses("esc", "Leave")
    person.quits()


def test_links_with_help_and_a_step_that_did_not_help(newcomer):
    person = newcomer("nvlink-half-down")
    person.presses("?", "Help")
    person.sees("be led through the fix of this finding")
    person.presses("esc", "Close")
    person.presses("w", "Walk-through")
    person.presses("→", "Next")
    person.sees("Step 1 of")
    person.presses("x", "No help")
    person.sees("Step 2 of")
    person.presses("p", "Plain")
    person.sees("Press Enter to go back.")
    person.types("\r")
    person.sees("Step 2 of")
    person.presses("s", "Skip")
    person.presses("v", "Verify")
    person.sees("Still there:", timeout=90)
    person.presses("→", "Next")
    person.machine_is("h100x8")
    person.presses("d", "Done")
    person.presses("v", "Verify")
    person.sees("Resolved:", timeout=90)
    person.presses("esc", "Leave")
    person.quits()


def test_power_with_a_restart_in_between(newcomer):
    person = newcomer("power-brake")
    person.presses("/", "Filter")
    person.types("power\r")
    person.sees("Findings: power")
    person.presses("⏎", "Open")
    person.sees("What to do, least disruptive first")
    person.presses("w", "Walk-through")
    person.presses("→", "Next")
    while "Is it gone?" not in person.terminal.text:
        person.presses("d", "Done")
    person.presses("esc", "Leave")
    person.quits()
    person.start()  # after the reboot that the fix asked for
    person.sees("Still there")
    person.presses("w", "Walk-through")
    person.sees("Is it gone?")
    person.machine_is("h100x8")
    person.presses("v", "Verify")
    person.sees("Resolved:", timeout=90)
    person.presses("esc", "Leave")
    person.quits()
