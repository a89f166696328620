"""Texts of any size, line by line."""

from __future__ import annotations

import resource
import time

import pytest

from gpudoctor.tui import logtext
from gpudoctor.tui.examination import Text
from gpudoctor.tui.logtext import BLOCK, LONGEST, LogText


def of(tmp_path, data: bytes, first_line: int = 1) -> LogText:
    path = tmp_path / "some.log"
    path.write_bytes(data)
    text = LogText(Text("some.log", path=path, first_line=first_line))
    assert text.wait(20)
    return text


def of_chunks(data: bytes, size: int = 1000) -> LogText:
    text = LogText(Text("packed", chunks=lambda: (data[at : at + size] for at in range(0, len(data), size))))
    assert text.wait(20)
    return text


SAMPLES = [
    b"",
    b"\n",
    b"one",
    b"one\n",
    b"one\ntwo",
    b"\n\n\nthree\n",
    b"".join(b"line %d %s\n" % (n, b"x" * (n % 97)) for n in range(20_000)),
    b"y" * (3 * BLOCK) + b"\nafter\n" + b"z" * BLOCK,
    b"a\n" * BLOCK,
]


@pytest.mark.parametrize("number", range(len(SAMPLES)))
@pytest.mark.parametrize("packed", [False, True])
def test_every_line_is_found(tmp_path, number, packed):
    data = SAMPLES[number]
    text = of_chunks(data, 70_001) if packed else of(tmp_path, data)
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    assert text.lines == len(lines)
    for first in {0, 1, 2, len(lines) // 2, max(0, len(lines) - 3), len(lines)}:
        wanted = [line[:LONGEST].decode() for line in lines[first : first + 5]]
        assert text.read(first, 5) == wanted
        assert [text.read(n, 1)[0] for n in range(first, min(first + 5, len(lines)))] == wanted
    text.close()


def test_searching_goes_round_both_ways_and_over_block_edges(tmp_path):
    filler = b"nothing here\n" * 30_000
    cut = BLOCK - 3 - len(b"first Needle\n")  # so that a needle lies across the edge of a block
    head = b"first Needle\n" + filler[:cut]
    text = of(tmp_path, head + b"needle\n" + filler + b"the last NEEDLE\n")
    middle = head.count(b"\n")
    last = text.lines - 1
    assert text.find("needle", -1, 1) == 0
    assert text.find("needle", 0, 1) == middle
    assert text.find("NEEDLE", middle, 1) == last
    assert text.find("needle", last, 1) == 0
    assert text.find("needle", 0, -1) == last
    assert text.find("needle", last, -1) == middle
    assert text.find("needle", middle, -1) == 0
    assert text.find("absent", 5, 1) is None
    assert text.find("", 5, 1) is None
    text.close()
    assert text.read(0, 1) == [""]


def test_a_source_that_breaks_off_says_so():
    def chunks():
        yield b"one\ntwo\n"
        raise OSError("the disk is gone")

    text = LogText(Text("packed", chunks=chunks))
    assert text.wait(5)
    assert text.lines == 2
    assert text.problem == "reading stopped: the disk is gone"


def test_what_unpacks_to_too_much_is_cut(monkeypatch):
    monkeypatch.setattr(logtext, "MOST", 2 * BLOCK)
    text = of_chunks(b"abc\n" * BLOCK, BLOCK)
    assert text.lines < BLOCK
    assert text.problem.startswith("cut after")


def test_a_large_log_is_there_at_once_and_takes_no_memory(tmp_path):
    path = tmp_path / "large.log"
    block = b"".join(b"[%9d.000000] some kernel message of usual length, number %d\n" % (n, n) for n in range(4_000))
    with path.open("wb") as stream:
        for _ in range(1_000):
            stream.write(block)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    text = LogText(Text("large.log", path=path))
    assert time.monotonic() - began < 0.2
    assert text.wait(60)
    assert text.lines == 4_000_000
    began = time.monotonic()
    assert text.read(3_999_999, 1)[0].endswith("number 3999")
    assert time.monotonic() - began < 0.1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000
    text.close()
