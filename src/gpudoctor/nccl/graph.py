"""The machine as GPUs, network adapters and the paths between them, with what is below par."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from gpudoctor.facts.gpu import Gpu, NvlinkLink, NvlinkState, PcieLink, PeerAccess, TopologyPath, Xid
from gpudoctor.facts.host import PciDevice, RdmaPort
from gpudoctor.facts.store import FactStore

_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
_NEAR = ("X", "NV", "C2C", "PIX", "PXB", "PSB", "PHB", "NODE", "SYS")
_LOST = {79: "fell off the bus (Xid 79)", 167: "its PCIe link is dead (Xid 167)"}
SWITCHED = 12  # from this many links per pair on, NVSwitches join the GPUs and all pairs must have the same number


class Node(msgspec.Struct):
    """A GPU, network adapter or PCIe bridge. `marks` says in words what is below par."""

    name: str
    kind: str
    pci: str | None = None
    label: str | None = None
    numa: int | None = None
    width: int | None = None
    width_max: int | None = None
    generation: int | None = None
    generation_max: int | None = None
    nvlinks: int | None = None
    nvlinks_down: int | None = None
    rate: float | None = None  # Gb/s
    link_layer: str | None = None
    state: str | None = None
    acs: bool | None = None
    near: list[str] = []  # the adapters nearest to a GPU
    marks: list[str] = []


class Path(msgspec.Struct):
    """How two devices reach each other; `path` in the words of nvidia-smi (NV18, PIX, PXB, PHB, NODE, SYS)."""

    a: str
    b: str
    path: str
    peer: str | None = None  # what the driver says of peer-to-peer access
    worked_out: bool = False  # from the PCI tree, not read
    marks: list[str] = []


class Graph(msgspec.Struct):
    """The whole machine. `parents` is the PCI tree, where it is known; `ancestors` the ways over PCIe that NVML tells."""

    gpus: list[Node] = []
    nics: list[Node] = []
    bridges: dict[str, Node] = {}
    paths: dict[frozenset[str], Path] = {}
    ancestors: dict[frozenset[str], str] = {}
    parents: dict[str, str] = {}
    switches: int = 0
    iommu: str | None = None
    gpudirect: str | None = None
    unknown: list[str] = []

    def path(self, a: str, b: str) -> Path | None:
        """Return the path between two devices."""
        return self.paths.get(frozenset((a, b)))

    @property
    def below_par(self) -> list[str]:
        """Everything that is marked, each with the device that it is about."""
        nodes = [*self.gpus, *self.nics, *self.bridges.values()]
        said = [f"{node.name}: {mark}" for node in nodes for mark in node.marks]
        return said + [f"{path.a} - {path.b}: {mark}" for path in self.paths.values() for mark in path.marks]


def machine_graph(store: FactStore) -> Graph:
    """Build the graph from everything that was read."""
    store = _one_machine(store)
    graph = Graph()
    devices: dict[str, PciDevice] = {}
    for fact in store.of("pci_device"):
        if isinstance(fact, PciDevice):
            devices[fact.pci] = _joined(devices.get(fact.pci), fact)
            if fact.parent:
                graph.parents.setdefault(fact.pci, fact.parent)
    by_bus = {fact.secondary_bus: fact.pci for fact in devices.values() if fact.secondary_bus}
    for pci in devices:
        above = by_bus.get(pci.rpartition(":")[0])
        if above and above != pci:
            graph.parents.setdefault(pci, above)
    names = _gpus(graph, store, devices)
    _lost(graph, store, devices, names)
    _nics(graph, store, devices)
    _bridges(graph, devices)
    _links(graph, store, names)
    _paths(graph, store, names)
    _nearest(graph)
    graph.switches = sum(1 for device in devices.values() if device.type == "nvswitch")
    graph.iommu = _iommu(store, devices)
    graph.gpudirect = _gpudirect(graph, store)
    _unknown(graph, store)
    return graph


def _one_machine(store: FactStore) -> FactStore:
    """The log of a job shows all of its hosts, at the same PCI addresses: the first is drawn."""
    hosts = dict.fromkeys(fact.node for fact in store.of("pci_device") if fact.node)
    if len(hosts) < 2:
        return store
    return FactStore(fact for fact in store if fact.node in (None, next(iter(hosts))))


def _joined(known: PciDevice | None, new: PciDevice) -> PciDevice:
    if known is None:
        return new
    more = {name: value for name in PciDevice.__struct_fields__ if (value := getattr(new, name)) not in (None, {}) and getattr(known, name) is None}  # fmt: skip
    return replace(known, **more)


def _gpus(graph: Graph, store: FactStore, devices: dict[str, PciDevice]) -> dict[str, str]:
    """Make the GPUs; returns what the facts call them -> their name here."""
    views: dict[str, list[Gpu]] = {}
    for fact in store.of("gpu"):
        if isinstance(fact, Gpu) and fact.gpu:
            views.setdefault(fact.gpu, []).append(fact)
    for listed in devices.values():
        if listed.type == "gpu" and listed.gpu:
            views.setdefault(listed.gpu, [])
    for xid in store.of("xid"):  # of a lost GPU the kernel log may be all that is left
        if isinstance(xid, Xid) and xid.pci and xid.gpu and xid.code in _LOST and not xid.boot:
            views.setdefault(xid.gpu, [])
    for name in {
        end
        for fact in (*store.of("topology_path"), *store.of("peer_access"))
        if isinstance(fact, TopologyPath | PeerAccess)
        for end in (fact.a, fact.b)
    }:
        if name.startswith("GPU") and not any(f"GPU{gpu.index}" == name for its in views.values() for gpu in its):
            views.setdefault(f"GPU {name[3:]}", [])
    found: list[tuple[int, str, Node]] = []
    for key, its in views.items():
        index = next((gpu.index for gpu in its if gpu.index is not None), None)
        if index is None and key.startswith("GPU ") and key[4:].isdigit():
            index = int(key[4:])
        device = devices.get(key)
        address = device.pci if device else key if ":" in key else None
        node = Node(name="", kind="gpu", pci=next((gpu.pci for gpu in its if gpu.pci), address))
        node.label = next((gpu.name for gpu in its if gpu.name), device.name if device else None)
        node.numa = next(
            (gpu.numa_node for gpu in its if gpu.numa_node is not None), device.numa_node if device else None
        )
        if device:
            node.generation_max = _GENERATIONS.get(device.link_speed_max or 0)
            node.width_max = device.link_width_max
        found.append((index if index is not None else 1000, key, node))
    names: dict[str, str] = {}
    for place, (index, key, node) in enumerate(sorted(found, key=lambda entry: entry[:2])):
        node.name = f"GPU{index if index < 1000 else place}"
        names[key] = node.name
        graph.gpus.append(node)
    return names


def _lost(graph: Graph, store: FactStore, devices: dict[str, PciDevice], names: dict[str, str]) -> None:
    """Mark what doesn't answer: by the driver, by its registers, or by the kernel log since the machine was started."""
    said: dict[str, str] = {}
    for fact in store.of("gpu"):
        if isinstance(fact, Gpu) and fact.gpu and fact.state in ("lost", "error"):
            said.setdefault(fact.gpu, fact.error or fact.state)
    for pci, device in devices.items():
        if device.type == "gpu" and device.unreadable:
            said.setdefault(device.gpu or pci, "on the bus list, and doesn't answer")
    for fact in store.of("xid"):
        if isinstance(fact, Xid) and fact.gpu and fact.code in _LOST and not fact.boot:
            said.setdefault(fact.gpu, _LOST[fact.code])
    for node in graph.gpus:
        node.marks += [text for gpu, text in said.items() if names.get(gpu) == node.name]


def _nics(graph: Graph, store: FactStore, devices: dict[str, PciDevice]) -> None:
    nics: dict[str, Node] = {}
    for fact in store.of("rdma_port"):
        if isinstance(fact, RdmaPort):
            node = nics.setdefault(fact.device, Node(name=fact.device, kind="nic"))
            device = devices.get(fact.pci or "")
            node.pci = node.pci or fact.pci
            node.numa = fact.numa_node if fact.numa_node is not None else node.numa
            node.rate, node.state = fact.rate or node.rate, fact.state or node.state
            node.link_layer = fact.link_layer or node.link_layer
            if device:
                node.label = device.name
                node.numa = device.numa_node if node.numa is None else node.numa
            if fact.state == "down" and fact.link_layer == "infiniband":
                node.marks.append("port is down")
            elif fact.slow:
                node.marks.append(f"{fact.rate:g} Gb/s, its neighbours or its card do {fact.rate_max:g}")
    for path in store.of("topology_path"):
        if isinstance(path, TopologyPath):
            for name, kind in ((path.a, path.a_kind), (path.b, path.b_kind)):
                if kind == "nic":
                    nics.setdefault(name, Node(name=name, kind="nic"))
    graph.nics = [nics[name] for name in sorted(nics, key=lambda name: (len(name), name))]


def _bridges(graph: Graph, devices: dict[str, PciDevice]) -> None:
    """Only the bridges above GPUs and adapters matter."""
    for node in (*graph.gpus, *graph.nics):
        for pci in _above(graph, node.pci):
            device = devices.get(pci)
            bridge = graph.bridges.setdefault(pci, Node(name=pci, kind="bridge", pci=pci))
            if device:
                bridge.acs, bridge.numa = device.acs_redirect, device.numa_node
                bridge.label = device.name
    for bridge in graph.bridges.values():
        if bridge.acs:
            bridge.marks.append("ACS sends peer-to-peer traffic up to the CPU")


def _above(graph: Graph, pci: str | None) -> list[str]:
    chain: list[str] = []
    while pci is not None and (pci := graph.parents.get(pci)) and pci not in chain:
        chain.append(pci)
    return chain


def _links(graph: Graph, store: FactStore, names: dict[str, str]) -> None:
    nodes = {node.name: node for node in graph.gpus}
    for fact in store.of("pcie_link"):
        if isinstance(fact, PcieLink) and (node := nodes.get(names.get(fact.gpu or "", ""))):
            node.width, node.generation = fact.width, fact.gen
            node.width_max = fact.width_max or fact.width_device or node.width_max
            node.generation_max = fact.gen_max or fact.gen_device or node.generation_max
            if fact.width and fact.width_missing:
                node.marks.append(f"PCIe x{fact.width} where x{fact.width + fact.width_missing} is possible")
            elif fact.narrow_port:
                node.marks.append(f"in a slot of {fact.width_port} lanes, the GPU has {fact.width_device}")
            if fact.gen and fact.gen_missing and fact.busy:
                node.marks.append(f"PCIe {fact.gen}.0 under load where {fact.gen + fact.gen_missing}.0 is possible")
            if fact.slow_port:
                node.marks.append(f"in a slot of PCIe {fact.gen_port}.0, the GPU does {fact.gen_device}.0")
    active: dict[str, set[int]] = {}
    for link in store.of("nvlink_link"):
        if isinstance(link, NvlinkLink) and link.state == "active" and link.link is not None:
            active.setdefault(names.get(link.gpu or "", ""), set()).add(link.link)
    for name, links in active.items():
        if node := nodes.get(name):
            node.nvlinks = len(links)
    for state in store.of("nvlink_state"):
        node = nodes.get(names.get(state.gpu or "", "")) if isinstance(state, NvlinkState) else None
        if node and isinstance(state, NvlinkState):
            node.nvlinks = state.active or node.nvlinks
            if state.missing:
                node.nvlinks_down = state.inactive
                node.marks.append(f"{state.inactive} of {state.active + state.inactive} NVLinks are down")
    lanes = max((node.width_max or 0 for node in graph.gpus), default=0)
    for node in graph.gpus:
        if node.width is None and node.width_max and node.width_max < lanes:
            node.marks.append(f"a PCIe link of at most {node.width_max} lanes, other GPUs have {lanes}")
    widest = max((node.nvlinks or 0 for node in graph.gpus), default=0)
    for node in graph.gpus:
        if widest >= SWITCHED and (node.nvlinks or 0) < widest and not node.nvlinks_down and node.nvlinks is not None:
            node.marks.append(f"{node.nvlinks} NVLinks, other GPUs of this machine have {widest}")


def _paths(graph: Graph, store: FactStore, names: dict[str, str]) -> None:
    for fact in store.of("topology_path"):
        if isinstance(fact, TopologyPath):
            a_name, b_name = names.get(fact.a, fact.a), names.get(fact.b, fact.b)
            if fact.a in names and fact.b in names:  # NVML knows addresses, and nothing of NVLink
                graph.ancestors[frozenset((a_name, b_name))] = fact.path
            else:
                graph.paths[frozenset((a_name, b_name))] = Path(a_name, b_name, fact.path)
    everyone = [*graph.gpus, *graph.nics]
    for place, a in enumerate(everyone):
        for b in everyone[place + 1 :]:
            key = frozenset((a.name, b.name))
            if key not in graph.paths and (word := _worked_out(graph, store, names, a, b)):
                graph.paths[key] = Path(a.name, b.name, word, worked_out=True)
    for peer in store.of("peer_access"):
        if isinstance(peer, PeerAccess) and peer.capability in (None, "read", "write"):
            a_name, b_name = names.get(peer.a, peer.a), names.get(peer.b, peer.b)
            pair = graph.paths.setdefault(frozenset((a_name, b_name)), Path(a_name, b_name, "?"))
            if pair.peer in (None, "ok"):
                pair.peer = peer.status
    widest = max((nvlinks_of(path.path) for path in graph.paths.values()), default=0)
    for path in graph.paths.values():
        if path.a.startswith("GPU") and path.b.startswith("GPU"):
            if widest >= SWITCHED and nvlinks_of(path.path) < widest:
                path.marks.append(f"{path.path} where the other pairs have NV{widest}")
            if path.peer in ("chipset_not_supported", "disabled", "topology_not_supported"):
                path.marks.append(f"no peer-to-peer ({path.peer.replace('_', ' ')})")


def nvlinks_of(path: str) -> int:
    """Return the n of a path NV<n>, 0 for any other."""
    return int(path[2:]) if path.startswith("NV") and path[2:].isdigit() else 0


def _worked_out(graph: Graph, store: FactStore, names: dict[str, str], a: Node, b: Node) -> str | None:
    """NVLinks first, else the PCI tree; None where too little is known."""
    if a.kind == b.kind == "gpu" and (links := _shared_nvlinks(store, names, a, b, {gpu.pci for gpu in graph.gpus})):
        return f"NV{links}"
    return pcie_path(graph, a, b)


def pcie_path(graph: Graph, a: Node, b: Node) -> str | None:
    """Return the way between two devices without NVLink: what was read, else shared bridges, else the NUMA nodes; None if unknown."""
    if (read := graph.path(a.name, b.name)) and not read.path.startswith("NV") and read.path != "?":
        return read.path
    if told := graph.ancestors.get(frozenset((a.name, b.name))):
        return told
    first, second = _above(graph, a.pci), _above(graph, b.pci)
    shared = next((pci for pci in first if pci in second), None)
    if shared is not None:
        return "PIX" if max(first.index(shared), second.index(shared)) <= 1 else "PXB"
    if a.numa is None or b.numa is None:
        return None
    return "NODE" if a.numa == b.numa else "SYS"


def _shared_nvlinks(store: FactStore, names: dict[str, str], a: Node, b: Node, gpus: set[str | None]) -> int:
    """Links from one to the other, or through switches as many as the GPU with fewer links has."""
    ends: dict[str, dict[int | None, list[NvlinkLink]]] = {a.name: {}, b.name: {}}
    for fact in store.of("nvlink_link"):  # state and far end of a link may come from two listings
        if isinstance(fact, NvlinkLink) and (name := names.get(fact.gpu or "")) in ends:
            ends[name].setdefault(fact.link, []).append(fact)
    active = {
        name: [views for views in its.values() if any(link.state == "active" for link in views)]
        for name, its in ends.items()
    }
    direct = sum(1 for views in active[a.name] if b.pci and any(link.remote_pci == b.pci for link in views))
    switched = [sum(1 for views in its if any(_to_switch(link, gpus) for link in views)) for its in active.values()]
    return direct or min(switched)


def _to_switch(link: NvlinkLink, gpus: set[str | None]) -> bool:
    """nvidia-smi names the far end by its address alone: what is no GPU is a switch."""
    return link.remote == "switch" or bool(link.remote is None and link.remote_pci and link.remote_pci not in gpus)


def _nearest(graph: Graph) -> None:
    for gpu in graph.gpus:
        ranked = [(_rank(path.path), nic.name) for nic in graph.nics if (path := graph.path(gpu.name, nic.name))]
        best = min((rank for rank, _ in ranked), default=None)
        gpu.near = [name for rank, name in ranked if rank == best]
        # One adapter for many GPUs is far from some of them by design.
        if best == _NEAR.index("SYS") and len(graph.nics) * 2 >= len(graph.gpus):
            gpu.marks.append("every network adapter is on another socket")


def _rank(path: str) -> int:
    return next((place for place, word in enumerate(_NEAR) if path.startswith(word)), len(_NEAR))


def _iommu(store: FactStore, devices: dict[str, PciDevice]) -> str | None:
    modes = {device.iommu for device in devices.values() if device.type == "gpu" and device.iommu}
    if modes:
        return "on, translating the addresses of GPUs" if "translating" in modes else "pass-through"
    options = {str(fact.value("name")): str(fact.value("setting")) for fact in store.of("kernel_option")}
    if "pt" in (options.get("iommu"), options.get("iommu.passthrough")) or options.get("iommu.passthrough") == "1":
        return "pass-through"
    if any(device.iommu_group is not None for device in devices.values()):
        return "on"
    if options.get("intel_iommu") == "off" or options.get("amd_iommu") == "off" or options.get("iommu") == "off":
        return "off"
    return None


def _gpudirect(graph: Graph, store: FactStore) -> str | None:
    """GPUDirect RDMA needs nvidia_peermem, or DMA-BUF, which the open kernel modules offer."""
    if not graph.nics:
        return None
    modules = {str(fact.value("name")): fact for fact in store.of("kernel_module") if fact.value("loaded")}
    for name in ("nvidia_peermem", "nv_peer_mem"):
        if name in modules:
            return f"possible ({name} is loaded)"
    if any(isinstance(fact, RdmaPort) and fact.gdr for fact in store.of("rdma_port")):
        return "possible (NCCL found it)"
    flavour = modules["nvidia"].value("flavour") if "nvidia" in modules else None
    if flavour == "open":
        return "possible through DMA-BUF (open kernel modules)"
    if flavour == "proprietary":
        return "not possible: nvidia_peermem is not loaded, and the proprietary modules offer no DMA-BUF"
    return None


def _unknown(graph: Graph, store: FactStore) -> None:
    if graph.gpus and not any(path.a.startswith("GPU") and path.b.startswith("GPU") for path in graph.paths.values()) and len(graph.gpus) > 1:  # fmt: skip
        graph.unknown.append("how the GPUs reach each other: nvidia-smi topo -m")
    if graph.gpus and not any(node.acs is not None for node in graph.bridges.values()):
        graph.unknown.append("whether ACS redirects peer-to-peer traffic: sudo lspci -vvv")
    if graph.gpus and not any(node.width for node in graph.gpus):
        graph.unknown.append("width and generation of the PCIe links: nvidia-smi -q")
    if graph.nics and graph.gpudirect is None:
        graph.unknown.append("whether GPUDirect RDMA is possible: lsmod; cat /proc/driver/nvidia/version")
