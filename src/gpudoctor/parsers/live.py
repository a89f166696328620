"""Formats that only gpudoctor's own live probes print: trees of sysfs attributes, `systemctl show`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gpudoctor.facts.base import Fact, Probed
from gpudoctor.facts.driver import ModuleParameter, Service
from gpudoctor.facts.gpu import GpuCount
from gpudoctor.facts.host import Cpu, PciDevice, Process, RdmaPort
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex

_PCI = LazyRegex(
    r"/sys/bus/pci/devices/(?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])/(?P<name>[\w/]+): (?P<value>.*)$"
)
_PLACE = LazyRegex(r"/sys/bus/pci/devices/(?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): -> (?P<target>\S+)$")
_GROUP = LazyRegex(r"/sys/kernel/iommu_groups/(?P<group>\d+)/type: (?P<type>\S+)$")
_MODES = {"identity": "pass-through", "DMA": "translating", "DMA-FQ": "translating"}
_ADAPTER = LazyRegex(
    r"/sys/class/infiniband/(?P<device>[^/]+)/device(?:/numa_node: (?P<numa>\d+)|: -> \S*?(?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]))$"
)
_PORT = LazyRegex(r"/sys/class/infiniband/(?P<device>[^/]+)/ports/(?P<port>\d+)/(?P<name>[\w/]+): (?P<value>.*)$")
NVIDIA = 0x10DE
_SPEED = LazyRegex(r"(\d+(?:\.\d+)?) GT/s")


def _hex(value: str | None) -> int | None:
    try:
        return int(value, 16) if value else None
    except ValueError:
        return None


def _speed(value: str | None) -> float | None:
    found = _SPEED.search(value or "")
    return float(found[1]) if found else None


def _number(value: str | None) -> int | None:
    try:
        return int(value) if value else None
    except ValueError:
        return None


def pci_type(class_id: int | None) -> str | None:
    """Return what kind of device a PCI class code names.

    >>> pci_type(0x030200), pci_type(0x068000)
    ('gpu', 'nvswitch')
    """
    if class_id is None:
        return None
    known = {
        0x0300: "gpu",
        0x0302: "gpu",
        0x0403: "audio",
        0x0604: "bridge",
        0x0680: "nvswitch",
        0x0200: "nic",
        0x0207: "nic",
    }
    return known.get(class_id >> 8)


def sysfs_pci(text: str) -> Iterator[Fact]:
    """Lines `/sys/bus/pci/devices/<address>/<attribute>: <value>`, links as `-> target`.

    >>> sample = "/sys/bus/pci/devices/0000:3b:00.0/vendor: 0x10de\\n/sys/bus/pci/devices/0000:3b:00.0/class: 0x030200"
    >>> [(fact.pci, fact.type) for fact in sysfs_pci(sample) if fact.kind == "pci_device"]
    [('0000:3b:00.0', 'gpu')]
    >>> sample = "/sys/bus/pci/devices/0000:3b:00.0: -> ../../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0"
    >>> next(sysfs_pci(sample)).parent
    '0000:3a:00.0'
    """
    devices: dict[str, dict[str, str]] = {}
    places: dict[str, int] = {}
    groups: dict[str, str] = {}
    last = 0
    for number, line in enumerate(text.split("\n")):
        if place := _PLACE.match(line):
            above = place["target"].split("/")[-2:-1]
            devices.setdefault(place["pci"], {})["parent"] = above[0] if above and above[0].count(":") == 2 else ""
            places.setdefault(place["pci"], number)
            last = number
            continue
        if group := _GROUP.match(line):
            groups[group["group"]] = group["type"]
            last = number
            continue
        found = _PCI.match(line)
        if not found:
            if line.strip():
                break
            continue
        devices.setdefault(found["pci"], {})[found["name"]] = found["value"]
        places.setdefault(found["pci"], number)
        last = number
    if not devices:
        raise NotThisFormat
    gpus = 0
    for pci, values in devices.items():
        vendor, class_id = _hex(values.get("vendor")), _hex(values.get("class"))
        type_ = pci_type(class_id)
        if type_ == "nvswitch" and vendor != NVIDIA:
            type_ = None
        is_gpu = vendor == NVIDIA and type_ == "gpu"
        gpus += is_gpu
        driver = _target(values.get("driver"))
        group_number = _target(values.get("iommu_group")) or ""
        yield PciDevice(
            at=places[pci],
            gpu=pci if is_gpu else None,
            pci=pci,
            vendor_id=vendor,
            device_id=_hex(values.get("device")),
            class_id=class_id,
            type=type_,
            driver=driver,
            revision=(values.get("revision") or "").removeprefix("0x") or None,
            link_speed=_speed(values.get("current_link_speed")),
            link_width=_number(values.get("current_link_width")),
            link_speed_max=_speed(values.get("max_link_speed")),
            link_width_max=_number(values.get("max_link_width")),
            numa_node=_number(values.get("numa_node")),
            power_state=values.get("power_state"),
            parent=values.get("parent") or None,
            iommu_group=_number(group_number),
            iommu=_MODES.get(groups.get(group_number, "")),
        )
    yield GpuCount(seen_by="sysfs", number=gpus, at=last)


def _target(value: str | None) -> str | None:
    """The name of what a link leads to."""
    return value.removeprefix("-> ").rpartition("/")[2] or None if value else None


def sysfs_rdma(text: str) -> Iterator[Fact]:
    """Lines `/sys/class/infiniband/<device>/ports/<n>/<attribute>: <value>`.

    >>> sample = "/sys/class/infiniband/mlx5_0/ports/1/state: 4: ACTIVE\\n/sys/class/infiniband/mlx5_0/ports/1/rate: 400 Gb/sec (4X NDR)"
    >>> [(port.device, port.state, port.rate) for port in sysfs_rdma(sample) if port.kind == "rdma_port"]
    [('mlx5_0', 'active', 400.0)]
    """
    ports: dict[tuple[str, int], dict[str, Any]] = {}
    adapters: dict[str, dict[str, Any]] = {}
    last = 0
    for number, line in enumerate(text.split("\n")):
        if adapter := _ADAPTER.match(line):
            known = {name: value for name, value in adapter.groupdict().items() if value and name != "device"}
            adapters.setdefault(adapter["device"], {}).update(known)
        elif found := _PORT.match(line):
            entry = ports.setdefault((found["device"], int(found["port"])), {"at": number})
            entry[found["name"]] = found["value"]
        elif line.strip():
            break
        last = number if line.strip() else last
    if not ports:
        raise NotThisFormat
    for (device, port), values in ports.items():
        rate = re.match(r"\d+(?:\.\d+)?", values.get("rate", ""))
        yield RdmaPort(
            at=values["at"],
            device=device,
            port=port,
            state=_word(values.get("state")),
            physical=_word(values.get("phys_state")),
            rate=float(rate[0]) if rate else None,
            link_layer=(values.get("link_layer") or "").lower() or None,
            pci=adapters.get(device, {}).get("pci"),
            numa_node=_number(adapters.get(device, {}).get("numa")),
        )
    yield Probed(what="rdma_port", at=last)


def _word(value: str | None) -> str | None:
    """`4: ACTIVE` is active."""
    return value.rpartition(":")[2].strip().lower() or None if value else None


def sysfs_cpu(text: str) -> Iterator[Cpu]:
    """Lines `/sys/devices/system/cpu/cpu<n>/cpufreq/scaling_governor: <governor>` and the NUMA nodes online.

    >>> next(sysfs_cpu("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor: powersave")).governor
    'powersave'
    """
    governors = re.findall(r"scaling_governor: (\w+)", text)
    nodes = re.search(r"/sys/devices/system/node/online: (\S+)", text)
    if not governors and not nodes:
        raise NotThisFormat
    last = int(nodes[1].rpartition("-")[2].rpartition(",")[2]) + 1 if nodes and nodes[1][-1:].isdigit() else None
    yield Cpu(governor=governors[0] if governors else None, numa_nodes=last)


def sysfs_parameters(text: str) -> Iterator[ModuleParameter]:
    """Lines `/sys/module/<module>/parameters/<name>: <value>`; `grep -H` and bug reports leave the space out.

    >>> next(sysfs_parameters("/sys/module/nvidia/parameters/NVreg_EnableGpuFirmware: 18")).name
    'NVreg_EnableGpuFirmware'
    >>> next(sysfs_parameters("/sys/module/nvidia_drm/parameters/modeset:Y")).value_
    'Y'
    """
    found_any = False
    for number, line in enumerate(text.split("\n")):
        if found := re.match(r"/sys/module/(\w+)/parameters/(\w+): ?(.*)$", line):
            found_any = True
            yield ModuleParameter(at=number, module=found[1], name=found[2], value_=found[3])
    if not found_any:
        raise NotThisFormat


def systemctl_show(text: str) -> Iterator[Service]:
    """Blocks of `systemctl show -p Id,LoadState,ActiveState,SubState,UnitFileState,ExecMainStatus UNIT...`.

    >>> next(systemctl_show("Id=nvidia-fabricmanager.service\\nLoadState=loaded\\nActiveState=failed\\nSubState=failed")).state
    'failed'
    """
    at = 0
    any_ = False
    lines = text.split("\n")
    for block in text.split("\n\n"):
        values = dict(line.split("=", 1) for line in block.split("\n") if "=" in line)
        if name := values.get("Id"):
            any_ = True
            missing = values.get("LoadState") == "not-found"
            yield Service(
                at=min(at, len(lines) - 1),
                name=name.removesuffix(".service"),
                state="not_found" if missing else values.get("ActiveState", "unknown"),
                sub=values.get("SubState"),
                enabled=values["UnitFileState"].startswith("enabled") if values.get("UnitFileState") else None,
                exit_code=_number(values.get("ExecMainStatus")),
            )
        at += block.count("\n") + 2
    if not any_:
        raise NotThisFormat


_PROCESS = LazyRegex(r"(?P<user>\S+) +(?P<pid>\d+) (?P<state>\S+) +(?P<wchan>\S+)  (?P<name>.*)$")


def process_table(text: str) -> Iterator[Process]:
    """The whole process table, one line each: user, pid, state, kernel function that it waits in, name.

    >>> [(p.pid, p.state) for p in process_table("USER PID STAT WCHAN  COMMAND\\nroot 7 D    rm_lock  python3")]
    [(7, 'D')]
    """
    lines = text.split("\n")
    if not lines[0].startswith("USER "):
        raise NotThisFormat
    for number, line in enumerate(lines[1:], start=1):
        found = _PROCESS.match(line)
        if found is None:
            break
        wchan = None if found["wchan"] == "-" else found["wchan"]
        name, user, state = found["name"].strip(), found["user"], found["state"]
        yield Process(at=number, pid=int(found["pid"]), name=name, state=state, user=user, wchan=wchan)


FORMATS = (
    Format("process table", ("PID STAT WCHAN  COMMAND",), process_table, lines=200_000, answers=("process",)),
    Format("sysfs PCI devices", ("/sys/bus/pci/devices/",), sysfs_pci, lines=20_000, answers=("pci_device",)),
    Format("sysfs RDMA ports", ("/sys/class/infiniband/",), sysfs_rdma, lines=5_000, answers=("rdma_port",)),
    Format(
        "sysfs CPU",
        ("/sys/devices/system/cpu/cpu0/cpufreq/", "/sys/devices/system/node/online"),
        sysfs_cpu,
        lines=2_000,
    ),
    Format("module parameters", ("/sys/module/nvidia",), sysfs_parameters, lines=500),
    Format("systemctl show", ("Id=nvidia-", "Id=dcgm", "Id=docker"), systemctl_show, lines=200, answers=("service",)),
)
