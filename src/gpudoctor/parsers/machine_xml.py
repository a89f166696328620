"""Machines as XML: what NCCL dumps with NCCL_TOPO_DUMP_FILE, and lstopo's export."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpudoctor.facts.base import Fact
from gpudoctor.facts.gpu import Gpu, NvlinkLink
from gpudoctor.facts.host import PciDevice, RdmaPort
from gpudoctor.parsers.base import Format, Malformed, NotThisFormat
from gpudoctor.patterns.address import pci_address
from gpudoctor.patterns.text import clean

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_NVIDIA = 0x10DE
_TYPES = {0x0300: "gpu", 0x0302: "gpu", 0x0604: "bridge", 0x0680: "nvswitch", 0x0200: "nic", 0x0207: "nic"}
_ADDRESS = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]")
_FAR_END = {"0x068000": "switch", "0x030200": "gpu", "0x030000": "gpu", "0x060400": "cpu"}


def _tree(text: str, name: str) -> Element:
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import ParseError, fromstring

    start, end = text.find(f"<{name}"), text.find(f"</{name}>")
    if start < 0:
        raise NotThisFormat
    if end < 0:
        raise Malformed(f"the XML breaks off: </{name}> is missing")
    try:
        return fromstring(text[start : end + len(name) + 3])
    except (ParseError, DefusedXmlException) as error:
        raise Malformed(f"not XML: {error}") from None


def _number(text: str | None, base: int = 10) -> int | None:
    try:
        return int(text, base) if text else None
    except ValueError:
        return None


def _leading(text: str | None) -> float | None:
    found = re.match(r"\d+(?:\.\d+)?", text or "")
    return float(found[0]) if found else None


def _kind(class_id: int | None, vendor: int | None) -> str | None:
    kind = _TYPES.get(class_id or 0)
    return None if kind in ("gpu", "nvswitch") and vendor not in (None, _NVIDIA) else kind


def nccl_dump(text: str) -> Iterator[Fact]:
    """The machine as NCCL sees it. Speeds are what device and port can do together.

    >>> sample = '''<system version="1">
    ...   <cpu numaid="0" arch="x86_64">
    ...     <pci busid="0000:11:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
    ...       <pci busid="0000:1b:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="16">
    ...         <gpu dev="0" sm="90" rank="0" gdr="1"><nvlink target="0000:06:00.0" count="4" tclass="0x068000"/></gpu>
    ...       </pci>
    ...       <pci busid="0000:18:00.0" class="0x020700" vendor="0x15b3"><nic><net name="mlx5_0" speed="400000" port="1" gdr="1"/></nic></pci>
    ...     </pci>
    ...   </cpu>
    ... </system>'''
    >>> facts = list(nccl_dump(sample))
    >>> [(fact.pci, fact.parent, fact.numa_node) for fact in facts if fact.kind == "pci_device"][1]
    ('0000:1b:00.0', '0000:11:00.0', 0)
    >>> [(fact.device, fact.rate, fact.pci) for fact in facts if fact.kind == "rdma_port"]
    [('mlx5_0', 400.0, '0000:18:00.0')]
    >>> len([fact for fact in facts if fact.kind == "nvlink_link"])
    4
    """
    root = _tree(text, "system")
    if root.find("cpu") is None:
        raise NotThisFormat
    for cpu in root.iter("cpu"):
        yield from _nccl_below(cpu, None, _number(cpu.get("numaid")))


def _nccl_below(element: Element, parent: str | None, numa: int | None) -> Iterator[Fact]:
    for child in element:
        if child.tag == "pci":
            bus = child.get("busid") or ""
            pci = pci_address(bus) if _ADDRESS.fullmatch(bus) else None
            if pci:
                yield _nccl_device(child, pci, parent, numa)
            yield from _nccl_below(child, pci or parent, numa)
        elif child.tag == "gpu" and parent:
            yield Gpu(
                gpu=parent, pci=parent, index=_number(child.get("dev")), numa_node=_known(numa), seen_by="topology"
            )
            yield from _nccl_links(child, parent)
        elif child.tag == "nic":
            for net in child.iter("net"):
                if name := clean(net.get("name") or "")[:60]:
                    rate = _number(net.get("speed"))
                    yield RdmaPort(
                        device=name,
                        port=_number(net.get("port")) or 1,
                        rate=rate / 1000 if rate and rate > 0 else None,
                        numa_node=_known(numa),
                        pci=parent,
                        gdr=net.get("gdr") == "1" if net.get("gdr") else None,
                    )


def _known(numa: int | None) -> int | None:
    return numa if numa is not None and numa >= 0 else None


def _nccl_device(element: Element, pci: str, parent: str | None, numa: int | None) -> PciDevice:
    class_id, vendor = _number(element.get("class"), 16), _number(element.get("vendor"), 16)
    kind = _kind(class_id >> 8 if class_id is not None else None, vendor)
    return PciDevice(
        pci=pci,
        parent=parent,
        vendor_id=vendor,
        device_id=_number(element.get("device"), 16),
        class_id=class_id >> 8 if class_id is not None else None,
        type=kind,
        link_speed_max=_leading(element.get("link_speed")),
        link_width_max=_number(element.get("link_width")) or None,
        numa_node=_known(numa),
        gpu=pci if kind == "gpu" else None,
    )


def _nccl_links(gpu: Element, pci: str) -> Iterator[NvlinkLink]:
    number = 0
    for link in gpu.iter("nvlink"):
        target = link.get("target") or ""
        for _ in range(min(_number(link.get("count")) or 0, 64)):
            yield NvlinkLink(
                gpu=pci,
                link=number,
                state="active",
                remote=_FAR_END.get(link.get("tclass") or ""),
                remote_pci=pci_address(target) if _ADDRESS.fullmatch(target) else None,
            )
            number += 1


def lstopo(text: str) -> Iterator[Fact]:
    """What `lstopo out.xml` writes: the tree of PCI bridges and devices, and the NUMA node of each.

    >>> sample = '''<topology version="2.0"><object type="Machine"><object type="Package">
    ... <object type="NUMANode" os_index="1"/>
    ... <object type="Bridge" bridge_type="0-1" bridge_pci="0000:[97-9b]">
    ... <object type="Bridge" bridge_type="1-1" pci_busid="0000:97:01.0" pci_type="0604 [8086:352a] [0000:0000] 04">
    ... <object type="PCIDev" pci_busid="0000:9b:00.0" pci_type="0302 [10de:2330] [10de:16c1] a1"/>
    ... <object type="PCIDev" pci_busid="0000:9a:00.0" pci_type="0207 [15b3:1021] [15b3:0041] 00">
    ... <object type="OSDev" name="mlx5_3" osdev_type="3"/></object>
    ... </object></object></object></object></topology>'''
    >>> facts = list(lstopo(sample))
    >>> [(fact.pci, fact.parent, fact.numa_node, fact.type) for fact in facts if fact.kind == "pci_device"][1]
    ('0000:9b:00.0', '0000:97:01.0', 1, 'gpu')
    >>> [(fact.device, fact.pci) for fact in facts if fact.kind == "rdma_port"]
    [('mlx5_3', '0000:9a:00.0')]
    """
    root = _tree(text, "topology")
    if root.find("object") is None:
        raise NotThisFormat
    yield from _lstopo_below(root, None, None)


_PCI_TYPE = re.compile(r"(?P<class>[0-9a-fA-F]{4}) \[(?P<vendor>[0-9a-fA-F]{4}):(?P<device>[0-9a-fA-F]{4})\]")


def _lstopo_below(element: Element, parent: str | None, numa: int | None) -> Iterator[Fact]:
    nodes = [_number(child.get("os_index")) for child in element.findall("object") if child.get("type") == "NUMANode"]
    here = nodes[0] if len(nodes) == 1 else numa
    for child in element.findall("object"):
        bus = child.get("pci_busid") or ""
        pci = pci_address(bus) if _ADDRESS.fullmatch(bus) else None
        kind = _PCI_TYPE.match(child.get("pci_type") or "")
        if pci and kind:
            type_ = _kind(int(kind["class"], 16), int(kind["vendor"], 16))
            yield PciDevice(
                pci=pci,
                parent=parent,
                vendor_id=int(kind["vendor"], 16),
                device_id=int(kind["device"], 16),
                class_id=int(kind["class"], 16),
                type=type_,
                numa_node=here,
                gpu=pci if type_ == "gpu" else None,
            )
        elif child.get("type") == "OSDev" and child.get("osdev_type") in ("3", "OpenFabrics") and parent:
            yield RdmaPort(device=clean(child.get("name") or "?")[:60], numa_node=here, pci=parent)
        below = _number(child.get("os_index")) if child.get("type") == "NUMANode" else here
        yield from _lstopo_below(child, pci or parent, below)


FORMATS = (
    Format("NCCL topology", ('<system version="',), nccl_dump, lines=20_000),
    Format("lstopo XML", ('<object type="Machine"',), lstopo, lines=20_000, back=3),
)
