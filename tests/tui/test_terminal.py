"""The program as it is started by hand: it appears at once, does what keys say, and leaves the terminal as it found it."""

from __future__ import annotations

import gzip
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from nvml.build import scenario_env
from tui.terminal import Terminal, write_folder

FIXTURES = Path(__file__).parents[2] / "fixtures"

DMESG = """\
[ 1700.000000] nvidia 0000:b1:00.0: enabling device (0000 -> 0002)
[ 1791.552018] NVRM: Xid (PCI:0000:b1:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
[ 1791.552020] NVRM: GPU 0000:b1:00.0: GPU has fallen off the bus.
"""


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path, {"dmesg.txt": DMESG})


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
def test_start_move_quit(folder, size):
    terminal = Terminal("diagnose", "--tui", folder, size=size)
    terminal.until("GPU fell off the bus")
    terminal.until("dmesg.txt:2")
    terminal.press("\r")
    terminal.until("esc Back")
    terminal.press("\x1b")
    terminal.until("\u2501Findings")
    terminal.press("2")
    terminal.until("GPUs (0)")
    terminal.press("?")
    terminal.until("Keys here")
    terminal.press("\x1b")
    terminal.until(lambda text: "Keys here" not in text)
    terminal.press("q")
    assert terminal.end() == 2
    assert terminal.restored()
    assert "Traceback" not in terminal.sent


def test_a_terminal_means_screens_and_text_means_text(folder):
    terminal = Terminal("diagnose", folder)
    terminal.until("dmesg.txt:2")
    terminal.press("q")
    assert terminal.end() == 2
    plain = Terminal("diagnose", "--text", folder)
    assert plain.end(timeout=30) == 2
    assert plain.sent.startswith("CRITICAL: GPU fell off the bus")
    dumb = Terminal("diagnose", folder, env={"TERM": "dumb"})
    assert dumb.end(timeout=30) == 2
    assert dumb.sent.startswith("CRITICAL: GPU fell off the bus")


def test_sigterm_gives_the_terminal_back(folder):
    terminal = Terminal("diagnose", "--tui", folder)
    terminal.until("1 Findings")
    os.kill(terminal.child.pid, signal.SIGTERM)
    assert terminal.end() == 128 + signal.SIGTERM
    assert terminal.restored()


def test_a_terminal_that_is_closed_while_the_screens_come_up_ends_the_program(folder):
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "gpudoctor", "diagnose", "--tui", folder]
    environment = {**os.environ, "TERM": "xterm-256color"}
    with subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    ) as child:
        os.close(slave)
        sent = 0
        while sent <= 300:  # the first frame is on its way
            sent += len(os.read(master, 64))
        os.close(master)  # nobody tells the child: the terminal isn't its controlling one
        assert child.wait(timeout=20) != 0


BROKEN = """
import sys
from gpudoctor.cli.main import main
from gpudoctor.tui.screens.main import MainScreen

def broken(self, number):
    raise ValueError("[red]out of order[/red]")

MainScreen.action_view = broken
sys.exit(main(sys.argv[1:]))
"""


def test_an_error_inside_gives_the_terminal_back_and_is_one_line(folder):
    terminal = Terminal("diagnose", "--tui", folder, program=BROKEN)
    terminal.until("dmesg.txt:2")
    terminal.press("2")
    assert terminal.end() == 70
    assert terminal.restored()
    last = terminal.sent[terminal.sent.rfind("\x1b") :]
    assert "gpudoctor: internal error: ValueError: [red]out of order[/red] (GPUDOCTOR_TRACEBACK=1" in last
    assert "Traceback" not in terminal.sent


def test_bundles_of_several_machines_give_a_list_first(tmp_path):
    packed = FIXTURES / "bug-report-lost-gpu" / "nvidia-bug-report.log.gz"
    other = gzip.decompress(packed.read_bytes()).replace(b"gpu-a", b"gpu-b")
    (tmp_path / "b.log.gz").write_bytes(gzip.compress(other))
    with Terminal("diagnose", str(packed), str(tmp_path / "b.log.gz"), size=(100, 30)) as terminal:
        terminal.until("Nodes (2)")
        assert "\u203a ✖ gpu-a.example.org  GPU fell off the bus" in terminal.text
        terminal.press("\x1b[B")
        terminal.until("\u203a ✖ gpu-b.example.org")
        terminal.press("\r")
        terminal.until(lambda text: "gpu-b.example.org, 2x" in text.splitlines()[1])
        terminal.press("\x1b")
        terminal.until("Nodes (2)")
        terminal.press("q")
        assert terminal.end() == 2
        assert terminal.restored()


def test_a_source_that_is_not_there_is_one_line(tmp_path):
    terminal = Terminal("diagnose", "--tui", str(tmp_path / "nothing.log"))
    assert terminal.end() == 66
    assert terminal.restored()
    assert terminal.sent.rstrip().endswith("nothing.log: no such file or folder")


def test_no_colour_codes_under_no_color(folder):
    terminal = Terminal("diagnose", "--tui", folder, env={"NO_COLOR": "1"})
    terminal.until("dmesg.txt:2")
    terminal.press("q")
    terminal.end()
    assert not any(code in terminal.sent for code in ("38;2;", "48;2;", "38;5;", "48;5;", "[31m"))


def test_a_light_terminal_gets_dark_letters(folder):
    terminal = Terminal("diagnose", "--tui", folder, env={"COLORFGBG": "0;15", "COLORTERM": "truecolor"})
    terminal.until("dmesg.txt:2")
    ground = terminal.screen.buffer[10][40].bg
    assert min(int(ground[place : place + 2], 16) for place in (0, 2, 4)) > 0xC0
    terminal.press("q")
    assert terminal.end() == 2


def test_resizing_while_it_runs(folder):
    terminal = Terminal("diagnose", "--tui", folder)
    terminal.until("dmesg.txt:2")
    terminal.resize(200, 50)
    terminal.until(lambda text: len(text.splitlines()[3].rstrip()) > 150)
    terminal.resize(60, 20)
    terminal.until(lambda text: "q Quit" in text.splitlines()[19])
    terminal.press("q")
    assert terminal.end() == 2


def test_sixteen_colours_and_ascii(folder):
    terminal = Terminal("diagnose", "--tui", folder, env={"TERM": "xterm", "PYTHONIOENCODING": "ascii:replace"})
    terminal.until("X CRITICAL")
    terminal.press("q")
    assert terminal.end() == 2


def test_without_a_terminal_tui_says_what_to_do(folder):
    done = subprocess.run(
        [sys.executable, "-m", "gpudoctor", "diagnose", "--tui", folder],
        check=False,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 64
    assert done.stderr.decode() == "gpudoctor: --tui needs a terminal (for a plain report: --text)\n"
    assert done.stdout == b""


def test_a_log_on_standard_input(folder):
    terminal = Terminal("diagnose", "--tui", "-", stdin=f"{folder}/dmesg.txt")
    terminal.until("stdin:2")
    terminal.press("q")
    assert terminal.end() == 2


def test_a_hung_driver_freezes_nothing(lib_dir):
    terminal = Terminal("--tui", env=scenario_env("hang", lib_dir))
    terminal.until("nvml", timeout=40)
    terminal.until("running", timeout=40)
    terminal.press("2")
    terminal.until("GPUs (", timeout=5)
    terminal.press("1")
    terminal.until("Probes", timeout=5)
    pressed = time.monotonic()
    terminal.press("q")
    terminal.end(timeout=5)
    assert time.monotonic() - pressed < 5
    assert terminal.restored()


def test_what_is_typed_ahead_after_a_slash_is_searched_for(folder):
    """A slow line brings many keys at once."""
    with Terminal("diagnose", "--tui", folder) as terminal:
        terminal.until("dmesg.txt:2")
        terminal.press("/fell/of\x7f\x7f\x7f\r")
        terminal.until("Findings: fell")
        terminal.press("\r")
        terminal.until("Open log" if "Open log" in terminal.text else "esc Back")
        while "Open log" not in terminal.text:
            terminal.press("j")
            terminal.read()
        terminal.press("\r")
        terminal.until("line 2 of 3")
        terminal.press("/enabling dev\r")
        terminal.until("line 1 of 3")
        terminal.press("qq")
        terminal.end()


def test_the_screens_appear_before_models_and_rules_are_loaded():
    code = "import sys, gpudoctor.tui.app; print(*{'pydantic', 'msgspec', 'hyperscan', 'yaml'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


def test_first_paint(folder):
    """Within 0.6 s, or 12 times an empty Python where that is longer. On a busy machine its own time counts, not the wait."""
    paint, allowed = 9.0, 0.6
    for _ in range(6):
        began = time.monotonic()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        allowed = max(allowed, 12 * (time.monotonic() - began))
        terminal = Terminal("diagnose", "--tui", folder)
        terminal.until("1 Findings", timeout=20)
        own = psutil.Process(terminal.child.pid).cpu_times()
        paint = min(paint, time.monotonic() - terminal.began, own.user + own.system)
        terminal.press("q")
        terminal.end()
        if paint < allowed:
            break
    assert paint < allowed
