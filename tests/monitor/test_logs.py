"""Logs read on: each line once, whatever is done to the file meanwhile."""

from __future__ import annotations

import os
import random
import shutil
from copy import copy

import msgspec
import pytest

from gpudoctor.facts.base import LogLine
from gpudoctor.monitor.logs import FollowedFile, FollowedKernel, Position
from gpudoctor.monitor.remembered import MAX_DISTINCT, MAX_FACTS, Remembered


@pytest.fixture
def log(tmp_path):
    return tmp_path / "kern.log"


def follow(log, position: Position | None = None) -> FollowedFile:
    return FollowedFile(log, "/var/log/kern.log", position)


def lines(follower: FollowedFile) -> list[str]:
    return [line for piece in follower.read() for line in piece.text.decode().splitlines()]


def append(log, *texts: str, end: str = "\n") -> None:
    with log.open("a") as stream:
        stream.write("".join(f"{text}{end}" for text in texts))


def test_only_new_whole_lines_are_read(log):
    append(log, "one", "two")
    follower = follow(log)
    assert lines(follower) == ["one", "two"]
    assert lines(follower) == []
    append(log, "thr", end="")
    assert lines(follower) == []
    append(log, "ee")
    piece = next(follower.read())
    assert (piece.text, piece.first_line) == (b"three\n", 3)


def test_a_restart_goes_on_where_it_was(log):
    append(log, "one")
    before = follow(log)
    lines(before)
    append(log, "two")
    kept = msgspec.json.decode(msgspec.json.encode(before.position), type=Position)
    assert lines(follow(log, kept)) == ["two"]


def rename(log):
    log.rename(log.with_name("kern.log.1"))


def copy_and_truncate(log):
    shutil.copy(log, log.with_name("kern.log.1"))
    os.truncate(log, 0)


def dated(log):
    log.rename(log.with_name("kern.log-20270115"))


@pytest.mark.parametrize("rotate", [rename, copy_and_truncate, dated])
@pytest.mark.parametrize("restarted", [False, True])
def test_rotation_loses_and_repeats_nothing(log, rotate, restarted):
    append(log, "one")
    follower = follow(log)
    assert lines(follower) == ["one"]
    append(log, "two", "three")
    rotate(log)
    append(log, "four")
    if restarted:
        follower = follow(log, follower.position)
    assert lines(follower) == ["two", "three", "four"]
    append(log, "five")
    assert lines(follower) == ["five"]
    assert follower.lost == 0


def test_between_the_two_steps_of_a_rotation(log):
    append(log, "one")
    follower = follow(log)
    lines(follower)
    append(log, "two")
    rename(log)
    assert lines(follower) == ["two"]
    assert lines(follower) == []
    append(log, "three")
    assert lines(follower) == ["three"]


def test_a_truncated_file_without_a_copy_is_read_from_its_start_and_the_loss_is_told(log):
    append(log, "one", "two")
    follower = follow(log)
    lines(follower)
    os.truncate(log, 0)
    append(log, "3")
    assert lines(follower) == ["3"]
    assert follower.lost == 1


def test_a_file_written_anew_beyond_the_old_end_is_seen_to_be_another(log):
    append(log, "one")
    follower = follow(log)
    lines(follower)
    with log.open("r+") as stream:
        stream.write("ONE is longer\nthan it was\n")
    assert lines(follower) == ["ONE is longer", "than it was"]


def test_a_file_that_comes_later(log):
    follower = follow(log)
    assert lines(follower) == []
    log.touch()
    assert lines(follower) == []
    append(log, "one")
    assert lines(follower) == ["one"]


def test_no_line_is_lost_or_read_twice_whatever_happens_in_whatever_order(log):
    chance = random.Random(7)
    follower = follow(log)
    written: list[str] = []
    read: list[str] = []
    log.touch()
    for number in range(400):
        match chance.randrange(8):
            case 0 if log.exists() and log.stat().st_size:
                read += lines(follower)  # what is rotated away twice between two readings is gone
                chance.choice([rename, copy_and_truncate])(log)
            case 1:
                follower = follow(log, copy(follower.position))
            case 2 | 3:
                read += lines(follower)
            case _:
                text = f"line {number}"
                append(log, text)
                written.append(text)
    read += lines(follower)
    assert read == written


def test_kernel_records(tmp_path):
    """Records as /dev/kmsg gives them, one per read."""
    left, right = os.pipe()
    os.set_blocking(left, False)
    follower = FollowedKernel(tmp_path, boot=lambda: 1_796_000_000.0)
    follower._descriptor = left

    class Records:
        def put(self, *records: bytes) -> list[str]:
            texts = []
            for record in records:
                os.write(right, record)
                texts += [piece.text.decode() for piece in follower.read()]
            return texts

    kernel = Records()
    host = os.uname().nodename
    text = b"NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
    assert kernel.put(b"3,100,812114000,-;" + text + b"\n SUBSYSTEM=pci\n") == [
        f"2026-11-30T01:06:52.114000+00:00 {host} kernel: [812.114000] {text.decode()}\n"
    ]
    assert kernel.put(b"14,101,812200000,-;written by a program\n") == []
    assert kernel.put(b"6,101,1,-;told before\n", b"garbage\n") == []
    assert follower.lost == 0
    assert len(kernel.put(b"6,150,813000000,-;after a gap\n")) == 1
    assert follower.lost == 1
    again = FollowedKernel(tmp_path, follower.position, lambda: 0.0)
    again._descriptor = left
    os.write(right, b"6,150,813000000,-;after a gap\n")
    assert list(again.read()) == []
    os.close(right)
    os.close(left)


def fact(number: int, **values: object) -> LogLine:
    return LogLine(**{"pattern": "p", "text": f"Xid {number}", "fields": {"code": number}, "boot": 0} | values)


def test_a_burst_over_many_cycles_is_one_fact_with_a_count():
    remembered = Remembered()
    for _ in range(100):
        remembered.add([fact(79, count=100)], 0.0)
    assert [found.count for found in remembered.facts.values()] == [10_000]


def test_many_different_values_stay_bounded():
    remembered = Remembered()
    remembered.add([fact(number) for number in range(10_000)], 0.0)
    assert len(remembered.facts) == MAX_DISTINCT + 1
    assert sum(found.count for found in remembered.facts.values()) == 10_000
    remembered.add([fact(1, pattern=f"p{number}") for number in range(10_000)], 0.0)
    assert len(remembered.facts) == MAX_FACTS
    assert remembered.omitted > 0


def test_events_are_forgotten_by_age_and_a_clock_that_jumps_back_ages_nothing():
    remembered = Remembered()
    remembered.add([fact(79)], 1000.0)
    remembered.forget(500.0, 60.0)
    remembered.forget(1060.0, 60.0)
    assert len(remembered.facts) == 1
    remembered.forget(1061.0, 60.0)
    assert remembered.facts == {}


def test_what_is_remembered_survives_a_restart_and_counts_on():
    before, after = Remembered(), Remembered()
    before.add([fact(79, count=3)], 5.0)
    after.restore(before.dump())
    after.earlier_boot()
    after.add([fact(79)], 6.0)
    assert sorted((found.boot, found.count) for found in after.facts.values()) == [(-1, 3), (0, 1)]


def test_a_large_log_is_read_in_pieces_that_lose_nothing(log):
    line = "x" * 99
    with log.open("w") as stream:
        stream.writelines(f"{line}\n" for _ in range(90_000))
    follower = follow(log)
    pieces = list(follower.read())
    assert len(pieces) > 2
    assert [piece.first_line for piece in pieces[:2]] == [1, 1 + pieces[0].text.count(b"\n")]
    assert sum(piece.text.count(b"\n") for piece in pieces) == 90_000
    assert {text for piece in pieces for text in piece.text.decode().split()} == {line}


def test_a_line_without_an_end_is_not_piled_up(log):
    log.write_bytes(b"y" * 9_000_000)
    follower = follow(log)
    assert sum(len(piece.text) for piece in follower.read()) == 8 * 2**20
    log.open("ab").write(b"\none\n")
    assert lines(follower)[-1] == "one"
