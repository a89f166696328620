"""lspci in all its forms: plain, -n, -nn, -v to -vvv, -t."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudoctor.facts.base import Fact, Probed
from gpudoctor.facts.gpu import Gpu, GpuCount
from gpudoctor.facts.host import PciDevice
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.address import pci_address
from gpudoctor.patterns.lazy import LazyRegex

_HEAD = LazyRegex(
    r"(?P<pci>(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\s+"
    r"(?:(?P<bare>[0-9a-fA-F]{4})|\"?(?P<class>[A-Z0-9][^\[\]:\"]{2,60}?)\"?\s?(?:\[(?P<code>[0-9a-fA-F]{4})\])?): (?P<rest>.*)"
)
_IDS = LazyRegex(r"(?:\[|^)(?P<vendor>[0-9a-fA-F]{4}):(?P<device>[0-9a-fA-F]{4})\]?")
_REVISION = LazyRegex(r"\(rev (?P<rev>[0-9a-fA-F]{2})\)")
_MODEL = LazyRegex(r"NVIDIA Corporation (?P<name>.*?)(?: \[[0-9a-fA-F]{4}:[0-9a-fA-F]{4}\])?(?: \(rev| \(prog-if|$)")
_SPEED = LazyRegex(r"Speed (?P<speed>\d+(?:\.\d+)?)\s?GT/s(?P<down> \(downgraded\))?")
_WIDTH = LazyRegex(r"Width x(?P<width>\d+)(?P<down> \(downgraded\))?")
_BUSES = LazyRegex(r"Bus: primary=[0-9a-fA-F]{2}, secondary=(?P<secondary>[0-9a-fA-F]{2})")
_CLASSES = {
    "vga compatible controller": (0x0300, "display"),
    "3d controller": (0x0302, "display"),
    "display controller": (0x0380, "display"),
    "pci bridge": (0x0604, "bridge"),
    "bridge": (0x0680, "bridge"),
    "audio device": (0x0403, "audio"),
    "ethernet controller": (0x0200, "nic"),
    "infiniband controller": (0x0207, "nic"),
    "network controller": (0x0280, "nic"),
    "non-volatile memory controller": (0x0108, "nvme"),
    "processing accelerators": (0x1200, "accelerator"),
}
_CODES = dict(_CLASSES.values())


def listing(text: str) -> Iterator[Fact]:
    """Devices of `lspci`, with what -nn and -v add where it was asked for.

    >>> sample = '''3b:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 40GB] [10de:20f1] (rev ff) (prog-if ff)
    ...   !!! Unknown header type 7f
    ... 41:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 40GB] [10de:20f1] (rev a1)
    ... \\t\\tLnkCap:\\tPort #0, Speed 16GT/s, Width x16, ASPM not supported
    ... \\t\\tLnkSta:\\tSpeed 16GT/s (ok), Width x8 (downgraded)
    ... \\tKernel driver in use: vfio-pci'''
    >>> dead, narrow = (fact for fact in listing(sample) if fact.kind == "pci_device")
    >>> dead.unreadable, dead.revision, narrow.link_width, narrow.link_width_max, narrow.driver, narrow.type
    (True, 'ff', 8, 16, 'vfio-pci', 'gpu')
    """
    devices: list[PciDevice] = []
    last = 0
    for at, line in enumerate(text.split("\n")):
        plain = line.strip()
        if not plain:
            continue
        if (found := _HEAD.match(plain)) and (line[:1] not in "\t" or at == 0):
            devices.append(_device(found, at))
        elif devices and (line[:1] in " \t" or re.match(r"[0-9a-f]{2,3}: [0-9a-f]{2} ", plain)):
            _detail(devices[-1], plain, at)
        else:
            break
        last = at
    if not devices:
        raise NotThisFormat
    for device in devices:
        yield device
        if device.type == "gpu":
            yield Gpu(pci=device.pci, name=device.name, device_id=device.device_id, seen_by="lspci", at=device.at)
    gpus = [device for device in devices if device.type == "gpu"]
    if gpus:
        yield GpuCount(seen_by="lspci", number=len(gpus), at=gpus[0].at)
    kinds = {device.type for device in devices}
    if len(devices) > 10 and len(kinds) > 2:  # not only what somebody filtered
        yield Probed(what="pci_device", at=last)


def _device(found: re.Match[str], at: int) -> PciDevice:
    pci = pci_address(found["pci"])
    name = (found["class"] or "").strip().lower()
    code = int(found["code"] or found["bare"] or "0", 16)
    class_id, type_ = _CLASSES.get(name, (code or None, _CODES.get(code)))
    rest = found["rest"]
    ids = _IDS.search(rest) if "[" in rest or found["bare"] else None
    vendor = int(ids["vendor"], 16) if ids else (0x10DE if "NVIDIA" in rest.upper()[:40] else None)
    nvidia = vendor == 0x10DE
    if nvidia and type_ == "display":
        type_ = "gpu"
    elif nvidia and class_id == 0x0680:
        type_ = "nvswitch"
    model = _MODEL.search(rest)
    revision = _REVISION.search(rest)
    return PciDevice(
        pci=pci,
        gpu=pci if type_ == "gpu" else None,
        vendor_id=vendor,
        device_id=int(ids["device"], 16) if ids else None,
        class_id=code or class_id,
        type=type_,
        name=model["name"] if model else rest.partition(" (rev")[0][:120],
        revision=revision["rev"].lower() if revision else None,
        unreadable=bool(revision and revision["rev"].lower() == "ff") or None,
        at=at,
    )


def _detail(device: PciDevice, line: str, at: int) -> None:
    key, _, value = line.partition(":")
    value = value.strip()
    if key == "LnkCap":
        if speed := _SPEED.search(value):
            device.link_speed_max = float(speed["speed"])
        if width := _WIDTH.search(value):
            device.link_width_max = int(width["width"])
            device.at_fields["link_width_max"] = at
    elif key == "LnkSta":
        if speed := _SPEED.search(value):
            device.link_speed, device.link_speed_downgraded = float(speed["speed"]), bool(speed["down"])
            device.at_fields["link_speed"] = at
        if width := _WIDTH.search(value):
            device.link_width, device.link_width_downgraded = int(width["width"]), bool(width["down"])
            device.at_fields["link_width"] = at
    elif key == "ACSCtl":
        device.acs_redirect = "ReqRedir+" in value or "CmpltRedir+" in value
        device.at_fields["acs_redirect"] = at
    elif key == "Kernel driver in use":
        device.driver = value
        device.at_fields["driver"] = at
    elif key == "Kernel modules":
        device.modules = value
    elif key == "Physical Slot":
        device.slot = value
    elif key == "NUMA node" and value.isdigit():
        device.numa_node = int(value)
    elif key == "IOMMU group" and value.isdigit():
        device.iommu_group = int(value)
    elif found := _BUSES.match(line):
        device.secondary_bus = f"{device.pci.split(':')[0]}:{found['secondary'].lower()}"
    elif key.startswith("Region ") and ("<unassigned>" in value or "<ignored>" in value) and "Memory" in value:
        device.bar_unassigned = True
        device.at_fields["bar_unassigned"] = at
    elif "Unknown header type 7f" in line:
        device.unreadable = True
        device.at_fields["unreadable"] = at


_TOKEN = LazyRegex(
    r"\[(?P<domain>[0-9a-f]{4}):(?P<root>[0-9a-f]{2})(?:-[0-9a-f]{2})?\]|\[(?P<bus>[0-9a-f]{2})(?:-[0-9a-f]{2})?\]|(?P<device>[0-9a-f]{2}\.[0-7])"
)
_TREE = LazyRegex(r"\s*(?:[|\\+` -]*)(?:\[|[0-9a-f]{2}\.[0-7])")


def tree(text: str) -> Iterator[Fact]:
    """`lspci -t` and `-tv`: which bridge a device hangs on.

    >>> sample = '''-[0000:00]-+-00.0  Intel Corporation Device
    ...            +-01.0-[01-03]----00.0-[02-03]--+-08.0-[02]----00.0  NVIDIA Corporation GA102GL [RTX A6000] [10de:2230]
    ...            |                               `-10.0-[03]----00.0  NVIDIA Corporation GA102GL [RTX A6000] [10de:2230]'''
    >>> [(fact.pci, fact.parent) for fact in tree(sample) if fact.type == "gpu"]
    [('0000:02:00.0', '0000:02:08.0'), ('0000:03:00.0', '0000:02:10.0')]
    """
    buses: list[tuple[int, str, str | None]] = []  # column, domain:bus, the bridge above it
    found_any = False
    for at, line in enumerate(text.split("\n")):
        if not line.strip():
            continue
        if not _TREE.match(line):
            break
        end = line.find("  ", re.search(r"[\[0-9a-f]", line).start())  # type: ignore[union-attr]
        head = line if end < 0 else line[:end]
        description = "" if end < 0 else line[end:].strip()
        previous: str | None = None
        domain = buses[0][1].split(":")[0] if buses else "0000"
        for token in _TOKEN.finditer(head):
            column = token.start()
            buses = [bus for bus in buses if bus[0] < column]
            if token["root"]:
                domain = token["domain"]
                buses = [(column, f"{domain}:{token['root']}", None)]
            elif token["bus"]:
                buses.append((column, f"{domain}:{token['bus']}", previous))
            elif buses:
                _, bus, parent = buses[-1]
                domain = bus.split(":")[0]
                previous = f"{bus}:{token['device']}"
                last_in_line = not _TOKEN.search(head, token.end())
                found_any = True
                yield _leaf(previous, parent, description if last_in_line else "", at)
    if not found_any:
        raise NotThisFormat


def _leaf(pci: str, parent: str | None, description: str, at: int) -> PciDevice:
    ids = _IDS.search(description)
    nvidia = description.startswith("NVIDIA")
    audio = "Audio" in description or "USB" in description or "UCSI" in description
    type_ = None
    if not description:
        type_ = "bridge"
    elif nvidia and not audio:
        type_ = "nvswitch" if "NVSwitch" in description else "gpu"
    return PciDevice(
        pci=pci,
        parent=parent,
        name=description[:120] or None,
        vendor_id=int(ids["vendor"], 16) if ids else None,
        device_id=int(ids["device"], 16) if ids else None,
        type=type_,
        gpu=pci if type_ == "gpu" else None,
        at=at,
    )


_COUNTED = LazyRegex(
    r"lspci\b(?=[^\n]{0,120}3D)[^\n]{0,120}(?:grep -\w*c\w*\b|wc -l)[^\n]*\n\s*(?P<number>\d{1,2})\s*$", re.MULTILINE
)


def counted(text: str) -> Iterator[Fact]:
    """The number of 3D controllers that a filter of lspci counted.

    >>> next(counted("$ lspci | grep 3D | grep -i nvidia | wc -l\\n8")).number
    8
    """
    found = _COUNTED.search(text)
    if not found:
        raise NotThisFormat
    yield GpuCount(seen_by="lspci", number=int(found["number"]), at=1)


# lspci writes NVIDIA in capitals, so a search for small letters finds nothing on any machine.
_ASKED = LazyRegex(
    r"\blspci\b(?:(?: +-\w+)* *\| *[ef]?grep +(?:-\w*i\w* +[\"']?nvidia[\"']?|[\"']?NVIDIA[\"']?)|(?: +-\w+)* +-d *10de:(?: +-\w+)*)\s*$",
    re.IGNORECASE,
)
_SMALL = LazyRegex(r"grep +(?:-(?!\w*i)\w+ +)?[\"']?nvidia")
_PROMPT = LazyRegex(r"^(?:\[?[\w.-]+@\S+.*?[$#%>]|[$#%]|\S+[$#])(?:\s|$)")


def none_listed(text: str) -> Iterator[Probed]:
    r"""A search of lspci for NVIDIA devices that shows none before the next prompt.

    >>> [fact.what for fact in none_listed("$ lspci | grep -i nvidia\n$ nvidia-smi")]
    ['pci_device']
    """
    asked, _, rest = text.partition("\n")
    if not _ASKED.search(asked.rstrip()) or _SMALL.search(asked) or not _PROMPT.match(rest):
        raise NotThisFormat
    yield Probed(what="pci_device")


_SYSFS = LazyRegex(r"/(?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ==$")
_ALIAS = LazyRegex(
    r"^modalias : pci:v0000(?P<vendor>[0-9A-F]{4})d0000(?P<device>[0-9A-F]{4})\w*bc(?P<class>[0-9A-F]{2})sc(?P<sub>[0-9A-F]{2})"
)


def ubuntu_drivers(text: str) -> Iterator[Fact]:
    r"""A GPU in `ubuntu-drivers devices`.

    >>> sample = "== /sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0 ==\nmodalias : pci:v000010DEd00002684sv000010DEsd0000165Bbc03sc00i00"
    >>> fact = next(ubuntu_drivers(sample)); fact.pci, hex(fact.device_id), fact.type
    ('0000:01:00.0', '0x2684', 'gpu')
    """
    head, _, rest = text.partition("\n")
    place, alias = _SYSFS.search(head.rstrip()), _ALIAS.match(rest)
    if not place or not alias or alias["vendor"] != "10DE" or alias["class"] != "03":
        raise NotThisFormat
    pci, device = pci_address(place["pci"]), int(alias["device"], 16)
    yield PciDevice(
        pci=pci,
        gpu=pci,
        vendor_id=0x10DE,
        device_id=device,
        class_id=int(alias["class"] + alias["sub"], 16),
        type="gpu",
        name="An NVIDIA GPU",
        at=1,
    )
    yield Gpu(pci=pci, device_id=device, seen_by="lspci", at=1)


_NAMES = (
    "VGA compatible controller",
    "3D controller",
    "Display controller",
    "PCI bridge",
    "Host bridge",
    "Infiniband controller",
    "Ethernet controller",
    "Processing accelerators",
    "Non-Volatile memory controller",
)
_OWN = ("0300", "0302", "0680")
FORMATS = (
    Format(
        "lspci",
        (*(f"{name}{end}" for name in _NAMES for end in (": ", " [")), "Bridge: NVIDIA", *(f" {code}: 10de:" for code in _OWN)),
        listing,
        lines=20000,
    ),
    Format("lspci, counted", ("lspci",), counted, lines=2),
    Format("lspci without an NVIDIA device", ("lspci",), none_listed, lines=2),
    Format("ubuntu-drivers devices", ("== /sys/devices/pci",), ubuntu_drivers, lines=3),
    Format("lspci -t", ("-[0000:", "-+-[0000:", "-[0001:"), tree, lines=3000),
)  # fmt: skip
