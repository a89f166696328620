"""What the logs date, as the report lists it."""

from __future__ import annotations

from gpudoctor.diagnosis import Doctor
from gpudoctor.findings.model import Event
from gpudoctor.sources.memory import TextSource

XID = "NVRM: Xid (PCI:0000:{bus}:00): {code}, pid=7, name=python3, {words}"
FELL = XID.format(bus="3b", code=79, words="GPU has fallen off the bus.")
SINGLE = XID.format(bus="5e", code=13, words="Graphics Exception: ESR 0x504648=0x6")


def timeline(**texts: str) -> list[Event]:
    return Doctor().diagnose(TextSource({f"{name}.txt": text for name, text in texts.items()})).timeline


def test_events_have_gpu_time_place_and_finding():
    (event,) = timeline(journal=f"2026-03-01T10:00:00+00:00 node1 kernel: {FELL}\n")
    assert (event.gpu, event.time, event.boot, event.count) == ("0000:3b:00.0", 1772359200.0, 0, 1)
    assert event.text == FELL
    assert (event.where.source, event.where.line) == ("journal.txt", 1)
    assert event.finding == "hardware.fell-off-bus@0000:3b:00.0"
    assert event.severity == "critical"


def test_boots_and_bursts():
    lines = [f"2026-03-01T10:00:0{second}+00:00 node1 kernel: {SINGLE}" for second in range(5)]
    lines += ["-- Reboot --", f"2026-03-02T08:00:00+00:00 node1 kernel: {FELL}"]
    old, new = timeline(journal="\n".join(lines) + "\n")
    assert (old.boot, old.count, (old.last_time or 0) - (old.time or 0)) == (-1, 5, 4.0)
    assert (new.boot, new.gpu) == (0, "0000:3b:00.0")


def test_the_ring_buffer_is_dated_by_the_journal():
    """Both hold the lost GPU; only the ring buffer still has what came before it."""
    found = timeline(
        dmesg=f"[   90.000000] {SINGLE}\n[  100.000000] {FELL}\n",
        journal=f"2026-03-01T10:00:00+00:00 node1 kernel: {FELL}\n",
    )
    assert [(event.gpu, event.time, event.uptime) for event in found] == [
        ("0000:5e:00.0", 1772359190.0, 90.0),
        ("0000:3b:00.0", 1772359200.0, 100.0),
    ]


def test_without_a_clock_there_is_the_time_since_boot():
    (event,) = timeline(dmesg=f"[ 8121.440139] {FELL}\n")
    assert (event.time, event.uptime) == (None, 8121.440139)


def test_lines_that_differ_by_process_and_address_are_one_burst():
    oops = "BUG: unable to handle page fault for address: ffff{at:x}"
    lines = [f"[ {100 + n}.000000] {oops.format(at=0x7FD4CE0B6F0A + 4096 * n)}" for n in range(5)]
    later = f"[ 900.000000] {oops.format(at=0x7FD4CE0B6F0A)}"
    xids = [f"[ 200.{n}] {XID.format(bus='3b', code=code, words='x')}" for n, code in enumerate((31, 43))]
    found = timeline(dmesg="\n".join([*lines, *xids, later]) + "\n")
    assert [(event.uptime, event.count) for event in found if event.gpu is None] == [(100.0, 5), (900.0, 1)]
    assert [event.count for event in found if event.gpu] == [1, 1]


def test_a_program_that_crashed_is_no_trouble_of_the_kernel():
    trap = "traps: python[26229] general protection fault ip:7fd4ce0b6f0a sp:7ffed9b6c3c0 error:0 in libc.so.6[98f0a]"
    assert timeline(dmesg=f"[ 100.000000] {trap}\n") == []


def test_a_long_log_keeps_what_findings_rest_on():
    noise = [
        f"2026-03-01T10:{minute:02}:{second:02}+00:00 node1 kernel: pcieport 0000:00:01.{minute % 8}: AER: Corrected error received: 0000:{second:02x}:{minute % 32:02x}.0"
        for minute in range(30)
        for second in range(60)
    ]
    found = timeline(journal="\n".join([*noise, f"2026-03-01T11:00:00+00:00 node1 kernel: {FELL}"]) + "\n")
    assert len(found) <= 300
    assert found[-1].text == FELL
