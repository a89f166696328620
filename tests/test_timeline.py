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


def test_a_long_log_keeps_what_findings_rest_on():
    noise = [
        f"2026-03-01T10:{minute:02}:{second:02}+00:00 node1 kernel: pcieport 0000:00:01.{minute % 8}: AER: Corrected error received: 0000:{second:02x}:{minute % 32:02x}.0"
        for minute in range(30)
        for second in range(60)
    ]
    found = timeline(journal="\n".join([*noise, f"2026-03-01T11:00:00+00:00 node1 kernel: {FELL}"]) + "\n")
    assert len(found) <= 300
    assert found[-1].text == FELL
