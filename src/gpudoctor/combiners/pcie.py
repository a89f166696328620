"""The PCIe link of each GPU, put together from the driver's view, the GPU's registers and the port above it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gpudoctor.facts.gpu import FarNic, Gpu, PcieLink, TopologyPath
from gpudoctor.facts.host import PciDevice
from gpudoctor.facts.store import FactStore

_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
_FAR = ("SYS", "SOC")
_NAMED_WIDTH = re.compile(r"\bx(4|8|16)\b")
_BUSY_STATE = 2  # P0 to P2 are the states in which a link must run at full speed


def pcie_links(store: FactStore) -> Iterable[PcieLink]:
    """Yield one link per GPU of which anything about its link was read."""
    devices = [fact for fact in store.of("pci_device") if isinstance(fact, PciDevice)]
    gpus = [fact for fact in store.of("gpu") if isinstance(fact, Gpu)]
    links: dict[str | None, PcieLink] = {}
    for gpu in gpus:
        if gpu.pcie_width is not None or gpu.pcie_gen is not None:
            _driver_view(links.setdefault(gpu.gpu, PcieLink(gpu=gpu.gpu, where=gpu.where)), gpu)
    for device in devices:
        if device.type == "gpu" and device.link_width is not None and not device.unreadable:
            link = links.setdefault(device.gpu, PcieLink(gpu=device.gpu, where=device.where))
            _registers(link, device)
            for port in _ports(device, devices):
                link.width_port = link.width_port or _port_width(port, devices)
                link.gen_port = link.gen_port or _GENERATIONS.get(port.link_speed_max or 0)
    for name, link in links.items():
        _judge(link, [gpu for gpu in gpus if gpu.gpu == name])
    return list(links.values())


def _driver_view(link: PcieLink, gpu: Gpu) -> None:
    link.width = gpu.pcie_width or link.width
    link.width_max = gpu.pcie_width_max or link.width_max
    link.gen = gpu.pcie_gen or link.gen
    link.gen_max = gpu.pcie_gen_max or link.gen_max
    link.gen_device = gpu.pcie_gen_device_max or link.gen_device
    link.gen_port = gpu.pcie_gen_host_max or link.gen_port
    for theirs, mine in (("pcie_width", "width"), ("pcie_gen", "gen")):
        if theirs in gpu.where_fields:
            link.where_fields[mine] = gpu.where_fields[theirs]
            link.where_fields[f"{mine}_missing"] = gpu.where_fields[theirs]


def _registers(link: PcieLink, device: PciDevice) -> None:
    width = device.link_width or None  # x0 is a slot without a device or a link that is down
    link.width = link.width or width
    link.gen = link.gen or _GENERATIONS.get(device.link_speed or 0)
    link.width_device = device.link_width_max or link.width_device
    if link.width_device is None and device.link_width_downgraded and width and width < 16:
        link.width_device = 16
    link.gen_device = link.gen_device or _GENERATIONS.get(device.link_speed_max or 0)
    if "link_width" in device.where_fields:
        for name in ("width", "width_missing", "narrow_port"):
            link.where_fields.setdefault(name, device.where_fields["link_width"])


def _ports(device: PciDevice, devices: list[PciDevice]) -> Iterator[PciDevice]:
    """The port above a GPU: by the tree, by its secondary bus, or the only bridge that was pasted with it."""
    parents = {fact.parent for fact in devices if fact.pci == device.pci and fact.parent}
    bus = device.pci.rpartition(":")[0]
    bridges = [fact for fact in devices if fact.type == "bridge" and fact.link_width_max]
    yield from (port for port in bridges if port.pci in parents or port.secondary_bus == bus)
    if len(bridges) == 1 and len({fact.pci for fact in devices if fact.type == "gpu"}) == 1:
        yield bridges[0]


def _port_width(port: PciDevice, devices: list[PciDevice]) -> int | None:
    """The lanes a port was built with: it offers fewer than its name says where another slot or socket took some.

    Two GPUs below functions of one controller share its lanes by design: there the port counts as it is.
    """
    controller = port.pci.rpartition(".")[0]
    below = {fact.pci for fact in devices if fact.type == "gpu" for above in _ports(fact, devices) if above.pci.rpartition(".")[0] == controller}  # fmt: skip
    named = _NAMED_WIDTH.search(port.name or "") if len(below) < 2 else None
    return max(port.link_width_max or 0, int(named[1]) if named else 0) or None


def _judge(link: PcieLink, views: list[Gpu]) -> None:
    states = [gpu.pstate for gpu in views if gpu.pstate is not None]
    loads = [gpu.utilization for gpu in views if gpu.utilization is not None]
    idle = any(gpu.throttle_idle for gpu in views) or (bool(states) and min(states) > _BUSY_STATE)
    if states or loads or idle:
        link.busy = not idle and (max(loads, default=0) >= 20 or (bool(states) and min(states) <= _BUSY_STATE and not loads))  # fmt: skip
    reach = link.width_max or min((width for width in (link.width_device, link.width_port) if width), default=None)
    if link.width and reach:
        link.width_missing = max(0, reach - link.width)
    if link.width and link.width_device and link.width_port:
        link.narrow_port = link.width_port < link.width_device and link.width >= link.width_port
        if link.narrow_port:  # drivers name the GPU's width as the most, whatever the slot's is
            link.width_missing = 0
    can = link.gen_max or min((gen for gen in (link.gen_device, link.gen_port) if gen), default=None)
    if link.gen and can:
        link.gen_missing = max(0, can - link.gen)
    if link.gen_port and link.gen_device:
        link.slow_port = link.gen_port < link.gen_device


def far_adapters(store: FactStore) -> Iterable[FarNic]:
    """GPUs of which every network adapter, or of two GPUs the peer, is reached over the link between the sockets."""
    paths = [fact for fact in store.of("topology_path") if isinstance(fact, TopologyPath)]
    to_nics: dict[str, list[TopologyPath]] = {}
    peers = [path for path in paths if path.a_kind == path.b_kind == "gpu"]
    for path in paths:
        if {path.a_kind, path.b_kind} == {"gpu", "nic"}:
            gpu = path.a if path.a_kind == "gpu" else path.b
            to_nics.setdefault(gpu, []).append(path)
    near = {gpu for gpu, its in to_nics.items() if any(path.path not in _FAR for path in its)}
    found = []
    for gpu, its in to_nics.items():
        if gpu not in near:
            other = its[0].b if its[0].a == gpu else its[0].a
            found.append(FarNic(name=gpu, other=other, what="nic", near_elsewhere=bool(near), adapters=len(its), where=its[0].where))  # fmt: skip
    if len(peers) == 1 and peers[0].path in _FAR:
        found.append(FarNic(name=peers[0].a, other=peers[0].b, what="peer", where=peers[0].where))
    return found
