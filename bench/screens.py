"""What `run.py tui` measures, in a real terminal: first paint, key to repaint, and the log viewer on a file of 1 GB."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from tui.terminal import Terminal

FINDINGS, LINES = 500, 100_000
# The screens over a report with many findings, each with evidence in the log that is named on the command line.
MANY = f"""
import sys
from pathlib import Path
from tui import scene
from gpudoctor.facts.base import Where
from gpudoctor.tui.app import GpuDoctorApp

log = Path(sys.argv[1])
places = [[Where(source=log.name, line=1 + 190 * n + step, text="") for step in range(8)] for n in range({FINDINGS})]
found = [
    scene.finding("hardware.fell-off-bus", f"Finding number {{n}} of many", key=f"k{{n}}", evidence=places[n], fixes=scene.BUS.fixes)
    for n in range({FINDINGS})
]
GpuDoctorApp(scene.Fixed(scene.report(found), folder=log.parent)).run()
"""


@contextmanager
def many(log: Path) -> Iterator[Terminal]:
    """The screens over many findings and a log, in a terminal of 120x40, with the log's line under the cursor."""
    tests = str(Path(__file__).parent.parent / "tests")
    with Terminal(str(log), program=MANY, size=(120, 40), env={"PYTHONPATH": tests}) as terminal:
        terminal.child.delaybeforesend = None  # pexpect waits 50 ms before it sends
        terminal.until("Finding number 3 of many")
        yield terminal


def repaint(terminal: Terminal, key: str, shown: Callable[[int], str], times: int = 30) -> float:
    """Seconds from a key to its effect on the terminal, the median of several."""
    taken = []
    for number in range(1, times + 1):
        time.sleep(0.05)
        terminal.read()
        wanted, got = shown(number), ""
        began = time.perf_counter()
        terminal.press(key)
        while wanted not in got:
            got += terminal.child.read_nonblocking(65536, timeout=10)
        taken.append(time.perf_counter() - began)
    return sorted(taken)[times // 2]


def first_paint(folder: str) -> tuple[float, float]:
    """Seconds until the first frame, and those of an empty Python; the best of several."""
    paints, nothings = [], []
    for _ in range(7):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        nothings.append(time.perf_counter() - began)
        with Terminal("diagnose", "--tui", folder) as terminal:
            terminal.until("1 Findings")
            paints.append(time.monotonic() - terminal.began)
    return min(paints), min(nothings)


def open_log(terminal: Terminal) -> float:
    """Open the log at the evidence of the first finding; seconds until its line is there."""
    terminal.press("\t")
    terminal.until(lambda text: "Open log" in text or "esc Back" in text)
    for _ in range(40):
        if "Open log" in terminal.text:
            break
        terminal.press("j")
        time.sleep(0.05)
        terminal.read()
    began = time.perf_counter()
    terminal.press("\r")
    terminal.until(" · line ")
    return time.perf_counter() - began


def measure(make_log: Callable[[Path, int], None]) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory(prefix="gpudoctor-bench-") as name:
        folder = Path(name)
        make_log(folder / "block", 12_000_000)
        lines = (folder / "block").read_bytes().splitlines(keepends=True)[:LINES]
        (folder / "small").mkdir()
        (folder / "small" / "kern.log").write_bytes(b"".join(lines))
        paint, nothing = first_paint(name)
        print(f"tui: first paint {paint:.2f} s = {paint / nothing:.1f} x python -c pass ({nothing * 1000:.0f} ms); at most 0.6 s or 12 x")  # fmt: skip
        with many(folder / "small" / "kern.log") as terminal:
            seconds = repaint(terminal, "j", lambda number: f"number {number} of many")
            print(f"tui: key to repaint with {FINDINGS} findings {seconds * 1000:.0f} ms = {seconds / nothing:.1f} x python -c pass; at most 50 ms")  # fmt: skip
        with many(folder / "small" / "kern.log") as terminal:
            open_log(terminal)
            terminal.until(f"of {len(lines)}")
            terminal.press("g")
            seconds = repaint(terminal, "j", lambda number: f"line {number + 1} of")
            print(f"tui: key to repaint with a log of {len(lines)} lines {seconds * 1000:.0f} ms = {seconds / nothing:.1f} x python -c pass; at most 50 ms")  # fmt: skip
        large = folder / "large" / "kern.log"
        large.parent.mkdir()
        with large.open("wb") as out:
            while out.tell() < 1_000_000_000:
                with (folder / "block").open("rb") as block:
                    shutil.copyfileobj(block, out)
        _large(large, nothing)


def _large(path: Path, nothing: float) -> None:
    with many(path) as terminal:
        opened = open_log(terminal)
        process = psutil.Process(terminal.child.pid)
        began = time.perf_counter()
        terminal.until(lambda text: "still counting" not in text and " · line " in text, timeout=120)
        counted = time.perf_counter() - began
        terminal.press("G")
        terminal.until(lambda text: " · line " in text)
        terminal.press("g")
        seconds = repaint(terminal, "j", lambda number: f"line {number + 1} of")
        terminal.press("/")
        terminal.until("text, or :NUMBER for a line")
        began = time.perf_counter()
        terminal.press("no such text\r")
        terminal.until("Not found", timeout=120)
        searched = time.perf_counter() - began
        memory = process.memory_info().rss / 1e6
        print(f"tui: a log of {path.stat().st_size / 1e9:.1f} GB opens in {opened:.2f} s = {opened / nothing:.0f} x python -c pass, is counted in {counted:.1f} s and searched in {searched:.1f} s; key to repaint {seconds * 1000:.0f} ms; {memory:.0f} MB (at most 200)")  # fmt: skip
