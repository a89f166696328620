"""The machine as NCCL prints it with NCCL_DEBUG_SUBSYS=GRAPH: a tree per rank, its lines mixed with those of other ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from gpudoctor.facts.base import Fact
from gpudoctor.facts.gpu import NvlinkLink
from gpudoctor.facts.host import PciDevice, RdmaPort
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.address import nccl_bus
from gpudoctor.patterns.lazy import LazyRegex

_RANK = LazyRegex(r"(?P<host>[\w.-]*):\d{1,8}:\d{1,8} \[\d{1,3}\] NCCL INFO ")
_NODE = LazyRegex(
    r"(?P<indent>\s*)(?:\+ (?P<link>[A-Z0-9]{2,3})\[ ?(?P<speed>\d{1,4}(?:\.\d+)?)\] - )?"
    r"(?P<kind>CPU|PCI|GPU|NIC|NVS|NET)/(?:(?P<system>[0-9a-fA-F]{1,8})-)?(?P<id>[0-9a-fA-F]{1,16})(?:\s+\((?P<detail>[^()]{0,80})\))?\s*$"
)
_PORT = LazyRegex(r"(?:\d+/)?(?P<guid>[0-9a-f]{10,16})/(?P<port>\d+)/(?P<speed>\d+(?:\.\d+)?)$")
# GB/s of one link in NCCL's model, by kind of GPU and release; the first that divides the sum gives the number of links.
_PER_LINK = ((20.6, 18), (40.1, 18), (20.0, 18), (12.0, 4), (11.0, 4), (22.0, 18), (21.0, 6), (18.0, 4), (40.0, 18))
_KINDS = {"PCI": "bridge", "GPU": "gpu", "NIC": "nic"}


class _Open(msgspec.Struct):
    """A node that later lines may hang on, by the column where its own children stand."""

    column: int
    pci: str | None
    kind: str


def graph(text: str) -> Iterator[Fact]:
    """The tree from its heading to the line of equal signs; only lines of the rank that printed the heading.

    >>> sample = '''n1:7:9 [0] NCCL INFO === System : maxBw 48.0 totalBw 370.8 ===
    ... n1:7:9 [0] NCCL INFO CPU/0-1 (1/2/-1)
    ... n1:8:10 [1] NCCL INFO === System : maxBw 48.0 totalBw 370.8 ===
    ... n1:7:9 [0] NCCL INFO + PCI[48.0] - PCI/0-65000 (104c823200000000)
    ... n1:7:9 [0] NCCL INFO               + PCI[48.0] - NIC/0-67000
    ... n1:7:9 [0] NCCL INFO                             + NET[50.0] - NET/0-c (0/d4f9fc0003ae6d94/1/50.000000)
    ... n1:7:9 [0] NCCL INFO               + PCI[48.0] - GPU/0-68000 (8)
    ... n1:7:9 [0] NCCL INFO                             + NVL[370.8] - NVS/0-0
    ... n1:7:9 [0] NCCL INFO =========================================='''
    >>> facts = list(graph(sample))
    >>> [(fact.pci, fact.parent, fact.numa_node, fact.type) for fact in facts if fact.kind == "pci_device"][2]
    ('0000:68:00.0', '0000:65:00.0', 1, 'gpu')
    >>> [(fact.device, fact.rate, fact.pci) for fact in facts if fact.kind == "rdma_port"]
    [('NET/c', 400.0, '0000:67:00.0')]
    >>> len([fact for fact in facts if fact.kind == "nvlink_link"])
    18
    """
    lines = text.split("\n")
    rank = _RANK.search(lines[0])
    prefix, host = (rank[0], rank["host"] or None) if rank else ("", None)
    numa: int | None = None
    above: list[_Open] = []
    links: dict[str, int] = {}
    system: str | None = None  # of several machines that NVLink joins, the first
    seen = False
    for at, line in enumerate(lines[1:], start=1):
        start = line.find(prefix)
        if start < 0:
            continue
        shown = line[start + len(prefix) :]
        found = _NODE.match(shown[:400])
        if not found:
            if rank is None or shown.startswith("==") or " :GPU/" in shown:
                break
            continue
        if not seen:
            seen, system = True, found["system"]
        if found["system"] != system:
            continue
        column = len(found["indent"].expandtabs())
        if found["kind"] == "CPU":
            if found["link"] is None:
                number = int(found["id"], 16)
                numa, above = number if number < 4096 else None, []
            continue
        while above and above[-1].column > column:
            above.pop()
        over = above[-1] if above else None
        for fact in _node(found, over, numa, links):
            fact.at, fact.node = at, host
            yield fact
        if found["kind"] in _KINDS:
            above.append(_Open(column + 1, nccl_bus(found["id"]), found["kind"]))
    if not seen:
        raise NotThisFormat


def _node(found: re.Match[str], over: _Open | None, numa: int | None, links: dict[str, int]) -> Iterator[Fact]:
    parent = over.pci if over else None
    pci = nccl_bus(found["id"])
    if found["kind"] in _KINDS and pci:
        type_ = _KINDS[found["kind"]]
        yield PciDevice(pci=pci, parent=parent, type=type_, numa_node=numa, gpu=pci if type_ == "gpu" else None)
    elif found["kind"] == "NET" and parent and (port := _PORT.match(found["detail"] or "")):
        speed = float(port["speed"])
        yield RdmaPort(
            device=f"NET/{found['id'].lower()}",
            port=int(port["port"]),
            rate=speed * 8 if speed > 0 else None,
            pci=parent,
            numa_node=numa,
        )
    if found["link"] == "NVL" and parent and over and over.kind == "GPU":
        for _ in range(_number_of_links(float(found["speed"]))):
            number = links[parent] = links.get(parent, -1) + 1
            remote = "switch" if found["kind"] == "NVS" else "gpu"
            yield NvlinkLink(
                gpu=parent, link=number, state="active", remote=remote, remote_pci=pci if remote == "gpu" else None
            )


def _number_of_links(speed: float) -> int:
    """Return how many links make that sum of GB/s; 0 where no kind of link does.

    >>> [_number_of_links(speed) for speed in (370.8, 240.0, 264.0, 48.0, 721.8, 3.0)]
    [18, 12, 12, 4, 18, 0]
    """
    for one, most in _PER_LINK:
        number = round(speed / one)
        if 1 <= number <= most and abs(number * one - speed) < 0.06:
            return number
    return 0


FORMATS = (
    Format("NCCL graph", ("=== System : maxBw", "=== System : maxWidth"), graph, lines=2000, fold=True, keep=2000),
)
