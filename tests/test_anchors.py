"""What healthy machines write all day must not wake a pattern: each false alarm of an anchor costs time on every such line."""

from __future__ import annotations

import pytest

from gpudoctor.diagnosis import Doctor

HEALTHY = (
    "usb 1-12: new high-speed USB device number 45 using xhci_hcd",
    'audit: type=1400 audit(1718000000.99:12): apparmor="STATUS" operation="profile_load" name="snap.12"',
    "IPv6: ADDRCONF(NETDEV_CHANGE): veth12: link becomes ready",
    "docker0: port 3(veth45) entered forwarding state",
    "EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode. Quota mode: none.",
    "mlx5_core 0000:0b:00.0: Port module event: module 3, Cable plugged",
    "systemd[1]: Started Session 42 of User root.",
    "CRON[4242]: (root) CMD (test -x /usr/sbin/anacron || run-parts --report /etc/cron.hourly)",
    "kernel: perf: interrupt took too long (2501 > 2500), lowering kernel.perf_event_max_sample_rate to 79750",
)


@pytest.fixture(scope="module")
def doctor() -> Doctor:
    return Doctor()


@pytest.mark.parametrize("line", HEALTHY)
def test_no_anchor_is_hit(doctor: Doctor, line: str) -> None:
    database = doctor.scanner._database
    hits = database.scan(f"Jun 10 08:00:00 node kernel: [ 1234.5678] {line}\n".encode())
    assert {database.anchors[number] for _, number in hits} == set()
