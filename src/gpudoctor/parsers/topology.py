"""How GPUs reach each other, as nvidia-smi shows it: topo -m, topo -p2p, nvlink -s/-e/-R."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudoctor.facts.base import Fact, Probed
from gpudoctor.facts.gpu import Gpu, NvlinkLink, PeerAccess, TopologyPath
from gpudoctor.facts.host import NumaNode
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.parsers.smi_values import integer
from gpudoctor.patterns.address import pci_address
from gpudoctor.patterns.lazy import LazyRegex

_DEVICE = LazyRegex(r"GPU\d+|NIC\d+|(?:mlx|bnxt_re|irdma|efa|rdmap|qedr|hns|roce|ib|mana|cxgb)[\w-]*\d\w*")
_PATH = LazyRegex(r"X|NV\d+|PIX|PXB|PHB|NODE|SYS|SOC|C2C|PSB|BYP")
_PEER = {
    "OK": "ok",
    "CNS": "chipset_not_supported",
    "GNS": "gpu_not_supported",
    "TNS": "topology_not_supported",
    "NS": "not_supported",
    "DR": "disabled",
    "DS": "disabled",
    "U": "unknown",
}
_CAPABILITIES = {"r": "read", "w": "write", "n": "nvlink", "a": "atomics", "p": "proprietary"}
_ASKED = LazyRegex(r"topo\s+-p2p\s+(\w)")
_NIC_NAME = LazyRegex(r"\s*(NIC\d+):\s*(\S+)")


def matrix(text: str) -> Iterator[Fact]:
    """The matrix of `nvidia-smi topo -m` or `-p2p`: which of the two, its cells tell.

    >>> facts = list(matrix('''        GPU0    GPU1    mlx5_0  CPU Affinity    NUMA Affinity
    ... GPU0     X      NV18    PIX     0-63            0
    ... GPU1    NV18     X      SYS     0-63            0
    ... mlx5_0  PIX     SYS      X '''))
    >>> [(path.a, path.b, path.path, path.links) for path in facts if path.kind == "topology_path"]
    [('GPU0', 'GPU1', 'NV18', 18), ('GPU0', 'mlx5_0', 'PIX', None), ('GPU1', 'mlx5_0', 'SYS', None)]
    """
    lines = text.split("\n")
    capability = None
    start = 0
    if asked := _ASKED.search(lines[0]):
        capability, start = _CAPABILITIES.get(asked[1]), 1
    columns = _columns(lines[start]) if start < len(lines) else []
    if not columns or not columns[0].startswith("GPU"):
        raise NotThisFormat
    names = _nic_names(lines)
    seen: set[frozenset[str]] = set()
    rows = 0
    last = start
    for at, line in enumerate(lines[start + 1 :], start=start + 1):
        cells = line.split()
        if not cells:
            if rows:
                break
            continue
        if cells[0] not in columns:
            break
        rows += 1
        last = at
        a = cells[0]
        for b, cell in zip(columns, cells[1:], strict=False):
            if cell in _PEER and a != b:
                yield PeerAccess(a=a, b=b, status=_PEER[cell], capability=capability, at=at)
            elif not _PATH.fullmatch(cell):
                break
            elif a != b and (pair := frozenset((a, b))) not in seen:
                seen.add(pair)
                yield _path(a, b, cell, names, at)
        numa = cells[len(columns) + 2] if len(cells) > len(columns) + 2 else ""
        if a.startswith("GPU") and numa.isdigit():
            yield Gpu(index=int(a[3:]), numa_node=int(numa), seen_by="topology", at=at)
            if re.fullmatch(r"[\d,-]+", cells[len(columns) + 1]):
                yield NumaNode(number=int(numa), cpus=cells[len(columns) + 1], at=at)
    if not rows:
        raise NotThisFormat
    yield Probed(what="topology_path" if seen else "peer_access", at=last)


def _columns(line: str) -> list[str]:
    head = re.split(r"\s+CPU Affinity|\s+NUMA Affinity|\s+GPU NUMA ID", line)[0]
    found = head.split()
    return found if all(_DEVICE.fullmatch(name) for name in found) else []


def _nic_names(lines: list[str]) -> dict[str, str]:
    return {found[1]: found[2] for line in lines if (found := _NIC_NAME.match(line))}


def _path(a: str, b: str, cell: str, names: dict[str, str], at: int) -> TopologyPath:
    return TopologyPath(
        a=names.get(a, a),
        b=names.get(b, b),
        path=cell,
        links=int(cell[2:]) if cell.startswith("NV") else None,
        a_kind="gpu" if a.startswith("GPU") else "nic",
        b_kind="gpu" if b.startswith("GPU") else "nic",
        at=at,
    )


_HEAD = LazyRegex(r"\s*GPU (?P<index>\d{1,3}): (?P<name>.*?)(?: \(UUID: (?P<uuid>GPU-[0-9a-fA-F-]+)\)?)?\s*$")
_LINK = LazyRegex(r"\s*Link (?P<link>\d{1,2}): (?P<rest>.*)")
_SPEED = LazyRegex(r"(?P<speed>\d+(?:\.\d+)?) GB/s")
_COUNTER = LazyRegex(r"(?P<name>[A-Za-z][\w /-]*?):\s*(?P<value>\d+)\b")
_REMOTE = LazyRegex(r"Remote Device (?P<pci>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)")
_ALL_INACTIVE = LazyRegex(r"all links are in\s?active", re.IGNORECASE)
_NOT_COUNTED = ("ber", "throughput", "packets", "bytes", "successful", "fec history", "symbol")


def nvlink(text: str) -> Iterator[Fact]:
    """Link lines of `nvidia-smi nvlink`, per GPU: state, speed, error counters, far end.

    >>> facts = list(nvlink('''GPU 0: NVIDIA A100 (UUID: GPU-6ec45129-20da-4a34-b813-7d3a51060903)
    ... \\t Link 0: 25 GB/s
    ... \\t Link 1: <inactive>
    ... \\t Link 1: Replay Errors: 3
    ... \\t Link 1: CRC Errors: 1'''))
    >>> [(link.link, link.state, link.speed, link.replay_errors, link.errors) for link in facts if link.kind == "nvlink_link"]
    [(0, 'active', 25.0, None, None), (1, 'inactive', None, 3, 4)]
    """
    lines = text.split("\n")
    gpu: str | None = None
    links: dict[tuple[str | None, int | None], NvlinkLink] = {}
    start = next(
        (at for at in range(min(3, len(lines))) if any(p.search(lines[at]) for p in (_HEAD, _LINK, _ALL_INACTIVE))), 0
    )
    last = 0
    for at, line in enumerate(lines[start:], start=start):
        if head := _HEAD.match(line):
            gpu = head["uuid"] or f"GPU {head['index']}"
        elif _ALL_INACTIVE.search(line):
            links.setdefault((gpu, None), NvlinkLink(gpu=gpu, state="inactive", at=at))
        elif found := _LINK.match(line):
            link = links.setdefault((gpu, int(found["link"])), NvlinkLink(gpu=gpu, link=int(found["link"]), at=at))
            _detail(link, found["rest"].strip(), at)
        elif line.strip():
            break
        last = at if line.strip() else last
    if not links:
        raise NotThisFormat
    yield from links.values()
    yield Probed(what="nvlink_link", at=last)


def _detail(link: NvlinkLink, rest: str, at: int) -> None:
    if speed := _SPEED.match(rest):
        link.state, link.speed = "active", float(speed["speed"])
        link.at_fields["state"] = at
    elif "inactive" in rest.lower():
        link.state = "inactive"
        link.at_fields["state"] = at
    elif "not supported" in rest.lower():
        link.state = link.state or "not_supported"
    elif remote := _REMOTE.match(rest):
        link.remote_pci = pci_address(remote["pci"])
    elif counter := _COUNTER.match(rest):
        name, value = counter["name"].lower(), integer(counter["value"]) or 0
        for field, word in (("replay_errors", "replay"), ("recovery_errors", "recovery error"), ("crc_errors", "crc")):
            if word in name:
                setattr(link, field, (link.value(field) or 0) + value)  # type: ignore[operator]
                link.at_fields[field] = at
        if "error" in name and not any(word in name for word in _NOT_COUNTED):
            link.errors = (link.errors or 0) + value
            if value:
                link.at_fields["errors"] = at


FORMATS = (
    Format(
        "nvidia-smi topo", ("CPU Affinity", "GPU0\tGPU1", "GPU0   GPU1", "GPU0    GPU1", "topo -p2p"), matrix, lines=200
    ),
    Format("nvidia-smi nvlink", ("Link 0: ", "all links are in"), nvlink, lines=6000, back=2),
)
