"""Peer-to-peer as test programs measure it: p2pBandwidthLatencyTest, simpleP2P, deviceQuery."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudoctor.facts.base import Fact, Probed
from gpudoctor.facts.gpu import Gpu, PeerAccess
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex

_DEVICE = LazyRegex(
    r"Device: (?P<index>\d{1,3}), (?P<name>.+), pciBusID: (?P<bus>[0-9a-fA-F]{1,2}), pciDeviceID: (?P<device>[0-9a-fA-F]{1,2}), pciDomainID: ?(?P<domain>[0-9a-fA-F]{1,8})"
)
_ACCESS = LazyRegex(r"Device=(?P<a>\d{1,3}) (?P<answer>CAN|CANNOT) Access Peer Device=(?P<b>\d{1,3})")
_TABLE = LazyRegex(
    r"(?P<way>Unidirectional|Bidirectional) P2P=(?P<peer>Enabled|Disabled).*?(?P<what>Bandwidth|Latency)"
)
_YES_NO = LazyRegex(r"\s*(?P<a>\d{1,3})\s+(?P<cells>[01](?:\s+[01])*)\s*$")
_ROW = LazyRegex(r"\s*(?P<a>\d{1,3})\s+(?P<cells>\d+\.\d+(?:\s+\d+\.\d+)*)\s*$")


def bandwidth_test(text: str) -> Iterator[Fact]:
    """CUDA's p2pBandwidthLatencyTest: who can reach whom, and how fast one way.

    >>> facts = list(bandwidth_test('''Device: 0, NVIDIA GeForce RTX 3090, pciBusID: 1b, pciDeviceID: 0, pciDomainID:0
    ... Device=0 CANNOT Access Peer Device=1'''))
    >>> facts[0].pci, facts[1].status, facts[1].a, facts[1].b
    ('0000:1b:00.0', 'not_supported', 'GPU0', 'GPU1')
    """
    table: tuple[str, str] | None = None
    access: dict[tuple[str, str], PeerAccess] = {}
    gpus: list[Gpu] = []
    last = 0
    for at, line in enumerate(text.split("\n")):
        plain = line.strip()
        if found := _DEVICE.match(plain):
            pci = f"{int(found['domain'], 16):04x}:{int(found['bus'], 16):02x}:{int(found['device'], 16):02x}.0"
            gpus.append(Gpu(index=int(found["index"]), name=found["name"], pci=pci, seen_by="cuda", at=at))
        elif found := _ACCESS.match(plain):
            a, b = f"GPU{found['a']}", f"GPU{found['b']}"
            access[a, b] = PeerAccess(a=a, b=b, status="ok" if found["answer"] == "CAN" else "not_supported", at=at)
        elif plain.startswith("P2P Connectivity Matrix"):
            table = ("connectivity", "")
        elif found := _TABLE.match(plain):
            table = (found["way"], found["peer"]) if found["what"] == "Bandwidth" else None
        elif (found := _YES_NO.match(line)) and table == ("connectivity", ""):
            for column, cell in enumerate(found["cells"].split()):
                a, b = f"GPU{found['a']}", f"GPU{column}"
                if a != b:
                    access.setdefault((a, b), PeerAccess(a=a, b=b, status="ok" if cell == "1" else "not_supported", at=at))  # fmt: skip
        elif (found := _ROW.match(line)) and table and table[1] == "Enabled":
            both = table[0] == "Bidirectional"  # counts both ways; only where one way was not shown
            for column, cell in enumerate(found["cells"].split()):
                a, b = f"GPU{found['a']}", f"GPU{column}"
                if a == b or (
                    both and (a, b) in access and access[a, b].bandwidth is not None and access[a, b].at != at
                ):
                    continue
                access.setdefault((a, b), PeerAccess(a=a, b=b, status="unknown", at=at))
                access[a, b].bandwidth = float(cell) / 2 if both else float(cell)
        elif re.match(r"[A-Za-z_]+@|\$ |#|={5}|_{5}", plain):
            break
        else:
            continue
        last = at
    if not gpus and not access:
        raise NotThisFormat
    yield from gpus
    yield from access.values()
    if access:
        yield Probed(what="peer_access", at=last)


_PROPERTY = LazyRegex(
    r"> Peer access from (?P<a>.+?) \(GPU(?P<i>\d+)\) -> (?P<b>.+?) \(GPU(?P<j>\d+)\) ?: (?P<answer>Yes|No)"
)


def device_query(text: str) -> Iterator[Fact]:
    """The peer lines of CUDA's deviceQuery and simpleP2P.

    >>> next(device_query("> Peer access from Tesla T4 (GPU0) -> Tesla T4 (GPU1) : No")).status
    'not_supported'
    """
    found = _PROPERTY.search(text.partition("\n")[0])
    if not found:
        raise NotThisFormat
    status = "ok" if found["answer"] == "Yes" else "not_supported"
    yield PeerAccess(a=f"GPU{found['i']}", b=f"GPU{found['j']}", status=status)


FORMATS = (
    Format(
        "p2pBandwidthLatencyTest",
        ("pciBusID: ", "Access Peer Device=", "P2P Connectivity Matrix", "directional P2P=Enabled Bandwidth"),
        bandwidth_test,
        lines=600,
    ),
    Format("deviceQuery peers", ("> Peer access from",), device_query, lines=1),
)
