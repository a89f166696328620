"""Formats of the driver: its version file, its load line, its kernel messages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudoctor.facts.base import Fact
from gpudoctor.facts.driver import KernelModule
from gpudoctor.facts.gpu import Xid
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.stamp import parse_stamp
from gpudoctor.patterns.template import pci_address

_VERSION = re.compile(r"NVRM version: .*?(?P<open>Open )?Kernel Module(?: for \w+)?\s+(?P<version>\d+(?:\.\d+)+)")
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?(?P<pci>[0-9a-fA-F:.]+|[^)]*)\): (?P<code>\d+)(?:, (?P<rest>.*))?")
_PID = re.compile(r"pid='?(?P<pid>\d+)'?")
_NAME = re.compile(r"name=(?P<name>[^,]+)")


def proc_driver_version(text: str) -> Iterator[KernelModule]:
    """Version line of /proc/driver/nvidia/version.

    >>> sample = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024"
    >>> next(proc_driver_version(sample)).version
    '550.54.15'
    """
    found = _VERSION.search(text.partition("\n")[0])
    if not found:
        raise NotThisFormat
    version = found["version"]
    yield KernelModule(
        name="nvidia",
        version=version,
        branch=int(version.split(".")[0]),
        flavour="open" if found["open"] else "proprietary",
    )


def xid(text: str) -> Iterator[Fact]:
    """An Xid line of the kernel log, of every driver generation.

    >>> fact = next(xid("NVRM: Xid (PCI:0000:b1:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."))
    >>> fact.code, fact.pci
    (79, '0000:b1:00.0')
    """
    message = parse_stamp(text.partition("\n")[0]).message
    found = _XID.search(message)
    if not found:
        raise NotThisFormat
    rest = found["rest"] or ""
    try:
        pci = pci_address(found["pci"])
    except ValueError:
        pci = None
    pid, name = _PID.search(rest), _NAME.search(rest)
    yield Xid(
        code=int(found["code"]),
        pci=pci,
        gpu=pci,
        pid=int(pid["pid"]) if pid else None,
        process=name["name"].strip() if name and "unknown" not in name["name"] else None,
        detail=rest[:300],
    )


FORMATS = (
    Format("/proc/driver/nvidia/version", ("NVRM version: NVIDIA UNIX",), proc_driver_version, lines=4),
    Format("Xid", ("NVRM: Xid (",), xid, lines=1),
)
