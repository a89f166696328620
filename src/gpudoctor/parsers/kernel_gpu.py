"""What the kernel log and monitors say of GPU hardware: Xid, SXid, the GPU's own line, PCIe errors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudoctor.facts.base import Fact
from gpudoctor.facts.gpu import Gpu, PcieError, Sxid, Xid
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.parsers.smi_values import snake
from gpudoctor.patterns.address import pci_address
from gpudoctor.patterns.lazy import LazyRegex
from gpudoctor.patterns.stamp import parse_stamp

_PCI = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?"
_XID = LazyRegex(r"(?<!S)Xid \((?:PCI:)?(?P<pci>[0-9a-fA-F:.]+)?[^)]{0,30}\): (?P<code>\d{1,3})\b(?:,? (?P<rest>.*))?")
_PID = LazyRegex(r"pid='?(?P<pid>\d{1,10})\b")
_NAME = LazyRegex(r"name=(?P<name>[^,]+)")
_PREVIOUS = LazyRegex(r"caused by previous Xid (?P<code>\d{1,3})")
_RECOVERY = LazyRegex(r"changed from 0x[0-9a-fA-F]+ \([^)]*\) to 0x[0-9a-fA-F]+ \((?P<action>[^)]*)\)")
_REPEATED = LazyRegex(r"message repeated (\d{1,6}) times")
_NON_FATAL = LazyRegex(r" Non-?fatal ", re.IGNORECASE)
_ACTIONS = {
    "none": "none",
    "gpu_reset_required": "gpu_reset",
    "node_reboot_required": "node_reboot",
    "drain_p2p": "drain_p2p",
    "drain_and_reset": "drain_and_reset",
    "recover_p2p": "drain_p2p",
}


def _address(text: str | None) -> str | None:
    try:
        return pci_address(text) if text else None
    except ValueError:
        return None


def _count(line: str) -> int:
    repeated = _REPEATED.search(line)
    return int(repeated[1]) if repeated else 1


def xid(text: str) -> Iterator[Fact]:
    """An Xid line of the kernel log, of every driver generation; an Xid 45 may name the Xid that came before it.

    >>> fact = next(xid("NVRM: Xid (PCI:0000:b1:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."))
    >>> fact.code, fact.pci
    (79, '0000:b1:00.0')
    >>> line = "NVRM: Xid (PCI:0000:dc:00): 45, pid=17, name=python3, Ch 00000001 caused by previous Xid 149"
    >>> [(fact.code, fact.seen_by) for fact in xid(line)]
    [(45, 'kernel'), (149, 'companion')]
    >>> next(xid("NVRM: Xid (PCI:0000:0b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)")).action
    'gpu_reset'
    """
    line = text.partition("\n")[0]
    stamp = parse_stamp(line)
    found = _XID.search(stamp.message)
    if not found:
        raise NotThisFormat
    rest = found["rest"] or ""
    pci = _address(found["pci"])
    pid, name, recovery = _PID.search(rest), _NAME.search(rest), _RECOVERY.search(rest)
    yield Xid(
        code=int(found["code"]),
        pci=pci,
        gpu=pci,
        pid=int(pid["pid"]) if pid else None,
        process=name["name"].strip() if name and "unknown" not in name["name"] else None,
        detail=rest[:300],
        action=_ACTIONS.get(snake(recovery["action"]) or "", "other") if recovery else None,
        fatal=True if " Fatal " in rest else False if _NON_FATAL.search(rest) else None,
        count=_count(line),
        node=stamp.host,
        uptime=stamp.uptime,
    )
    if previous := _PREVIOUS.search(rest):
        yield Xid(
            code=int(previous["code"]),
            pci=pci,
            gpu=pci,
            detail="named by an Xid 45",
            seen_by="companion",
            node=stamp.host,
            uptime=stamp.uptime,
        )


_NAMED = LazyRegex(rf"NVRM: GPU at (?:PCI:)?(?P<pci>{_PCI}): (?P<uuid>GPU-[0-9a-fA-F-]+)")


def gpu_named(text: str) -> Iterator[Fact]:
    """The line before the first Xid of a GPU, which ties its address to its UUID.

    >>> next(gpu_named("NVRM: GPU at PCI:0000:00:07: GPU-7c20a5e1-3b44-8d9f-1e66-90d2f41c8b57")).pci
    '0000:00:07.0'
    """
    found = _NAMED.search(text)
    if not found:
        raise NotThisFormat
    yield Gpu(pci=_address(found["pci"]), uuid=found["uuid"], seen_by="log")


# How device plugins, monitors and schedulers pass an Xid on.
_GPU_NAME = rf"GPU-[0-9a-fA-F-]+|(?:PCI:)?{_PCI}"
_PASSED_ON = (
    ("device-plugin", LazyRegex(rf"XidCriticalError: Xid=(?P<code>\d{{1,3}}) on (?:Device=)?(?P<gpu>{_GPU_NAME})?")),
    ("monitor", LazyRegex(rf"\b[Xx][Ii][Dd] (?P<code>\d{{1,3}})(?: ?\([^)]*\))? (?:was |error )?(?:detected|found|occurred|reported) (?:on|for|by|at) (?:GPU )?(?P<gpu>{_GPU_NAME})")),
    ("dcgm", LazyRegex(r"DCGM_FI_DEV_XID_ERRORS\{[^}]*UUID=\"(?P<gpu>GPU-[0-9a-fA-F-]+)\"[^}]*\} (?P<code>[1-9]\d{0,2})\b")),
    ("dcgm", LazyRegex(r"(?:Detected|detected) XID (?:error )?(?P<code>\d{1,3}) (?:on|for) (?:GPU )?(?P<gpu>\d{1,2}|GPU-[0-9a-fA-F-]+)")),
    ("monitor", LazyRegex(rf"(?:critical )?XID (?:error|err) (?P<code>\d{{1,3}})(?: (?:on|from) (?:GPU )?(?P<gpu>{_GPU_NAME}))?", re.IGNORECASE)),
    ("monitor", LazyRegex(rf"(?P<gpu>{_GPU_NAME})[^\n]{{0,40}}\bXID(?: code| error)?[:=] ?(?P<code>\d{{1,3}})\b", re.IGNORECASE)),
    # Conditions of nodes, as the agents of EKS and NVSentinel set them.
    ("monitor", LazyRegex(r"\bNvidiaXID(?P<code>\d{1,3})(?:Error|Warning)\b(?P<gpu>)")),
    ("monitor", LazyRegex(rf"\bSysLogsXIDError\b[^\n]{{0,200}}?\bErrorCode:(?P<code>\d{{1,3}})\b(?:[^\n]{{0,80}}?\b(?:GPU_UUID|PCI):(?P<gpu>{_GPU_NAME}))?")),
)  # fmt: skip


def passed_on(text: str) -> Iterator[Fact]:
    """An Xid as a device plugin, DCGM or another monitor tells it.

    >>> line = "XidCriticalError: Xid=94 on Device=GPU-7c20a5e1-3b44-8d9f-1e66-90d2f41c8b57; marking device as unhealthy."
    >>> next(passed_on(line)).code
    94
    """
    line = text.partition("\n")[0]
    if _XID.search(line):
        raise NotThisFormat
    for seen_by, pattern in _PASSED_ON:
        if found := pattern.search(line):
            code = int(found["code"])
            if not code:
                break
            stamp = parse_stamp(line)
            yield Xid(code=code, gpu=found["gpu"] or None, detail=line.strip()[:300], seen_by=seen_by, node=stamp.host)
            return
    raise NotThisFormat


_SXID = LazyRegex(
    r"(?:(?P<switch>nvidia-nvswitch\d+)\W+)?SXid \((?:PCI:)?(?P<pci>[0-9a-fA-F:.]+)?\): (?P<code>\d{4,6}),? ?(?P<rest>.*)"
)
_SWITCH_LINK = LazyRegex(r"\b[Ll]ink (?P<link>\d{1,3})\b")


def sxid(text: str) -> Iterator[Fact]:
    """An SXid line of an NVSwitch.

    >>> line = "nvidia-nvswitch3: SXid (PCI:0000:0a:00.0): 22013, Non-fatal, Link 61 Minion Link DLREQ interrupt"
    >>> fact = next(sxid(line)); fact.code, fact.fatal, fact.link
    (22013, False, 61)
    """
    line = text.partition("\n")[0]
    stamp = parse_stamp(line)
    found = _SXID.search(stamp.message)
    if not found:
        raise NotThisFormat
    rest = found["rest"]
    if rest.startswith(("Severity", "Data")):  # the lines after it, which repeat the code
        raise NotThisFormat
    link = _SWITCH_LINK.search(rest)
    yield Sxid(
        code=int(found["code"]),
        pci=_address(found["pci"]),
        switch=found["switch"],
        fatal=False
        if re.match(r"non-?fatal", rest, re.IGNORECASE)
        else True
        if re.match("fatal", rest, re.IGNORECASE)
        else None,
        link=int(link["link"]) if link else None,
        detail=rest[:300],
        count=_count(line),
        node=stamp.host,
        uptime=stamp.uptime,
    )


_SWITCH_ERROR = LazyRegex(
    r"detected NVSwitch (?P<severity>non-fatal|fatal) error (?P<code>\d{4,6}) .{0,40}?pci bus id (?P<pci>[0-9a-fA-F:.]+)(?:.{0,40}? port (?P<link>\d+))?"
)


def switch_error(text: str) -> Iterator[Fact]:
    """The fabric manager's line about an SXid.

    >>> line = "detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 33"
    >>> fact = next(switch_error(line)); fact.code, fact.fatal, fact.pci, fact.link
    (20034, True, '0000:86:00.0', 33)
    """
    found = _SWITCH_ERROR.search(text.partition("\n")[0])
    if not found:
        raise NotThisFormat
    yield Sxid(
        code=int(found["code"]),
        pci=_address(found["pci"]),
        fatal=found["severity"] == "fatal",
        link=int(found["link"]) if found["link"] else None,
    )


_BUS_ERROR = LazyRegex(
    rf"(?:(?P<driver>[\w-]+) )?(?P<pci>{_PCI}): (?:AER: )?PCIe Bus Error: (?:severity=)?(?P<severity>Corrected|Correctable|Uncorrected|Uncorrectable)"
    r"(?: \((?P<fatal>Non-Fatal|Fatal)\))?(?:, type=(?P<type>[\w ]+))?"
)
_RECEIVED = LazyRegex(
    r"AER: (?:Multiple )?(?P<severity>Corrected|Correctable|Uncorrected|Uncorrectable)(?: \((?P<fatal>Non-Fatal|Fatal)\))?"
    rf" error (?:message )?received(?: from|:)?(?: id=)?\s?(?P<pci>{_PCI})?"
)
_UNRECOVERED = LazyRegex(rf"(?P<pci>{_PCI}): (?:AER: )?(?:can't recover|[Dd]evice recovery failed)")
_DPC = LazyRegex(rf"(?P<pci>{_PCI}): DPC: (?:containment event|unmasked uncorrectable error)")
_HOTPLUG = LazyRegex(rf"(?P<pci>{_PCI})[^\n]{{0,40}}pciehp[^\n]{{0,10}}: Slot\([^)]*\): (?:Link Down|Card not present)")


def pcie_error(text: str) -> Iterator[Fact]:
    """One line of the kernel about an error of the PCIe bus.

    >>> line = "nvidia 0000:3b:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)"
    >>> fact = next(pcie_error(line)); fact.severity, fact.pci, fact.driver
    ('fatal', '0000:3b:00.0', 'nvidia')
    >>> next(pcie_error("pcieport 0000:00:01.2: AER: Corrected error received: 0000:63:00.0")).pci
    '0000:63:00.0'
    """
    line = text.partition("\n")[0]
    stamp = parse_stamp(line)
    message = stamp.message
    if found := _BUS_ERROR.search(message) or _RECEIVED.search(message):
        corrected = found["severity"].startswith("Correct")
        severity = "corrected" if corrected else "fatal" if found["fatal"] == "Fatal" else "nonfatal"
        named = found.groupdict()
        kind = (named.get("type") or "").strip() or None
        fact = PcieError(severity=severity, pci=_address(found["pci"]), driver=named.get("driver"), type=kind)
    elif found := _UNRECOVERED.search(message):
        fact = PcieError(severity="unrecovered", pci=_address(found["pci"]))
    elif found := _DPC.search(message):
        fact = PcieError(severity="fatal", pci=_address(found["pci"]), source="dpc")
    elif found := _HOTPLUG.search(message):
        fact = PcieError(severity="link_down", pci=_address(found["pci"]), source="hotplug")
    else:
        raise NotThisFormat
    fact.count, fact.node, fact.uptime = _count(line), stamp.host, stamp.uptime
    yield fact


_APEI_SEVERITY = LazyRegex(r"\[Hardware Error\]:\s+(?:event )?severity: (?P<severity>\w+)")
_APEI_DEVICE = LazyRegex(rf"\[Hardware Error\]:\s+device_id: (?P<pci>{_PCI})")

_APEI_VENDOR = LazyRegex(r"\[Hardware Error\]:\s+vendor_id: 0x(?P<vendor>[0-9a-fA-F]{4})\b")


def apei(text: str) -> Iterator[Fact]:
    """A PCIe error that the firmware handled first and passed on.

    >>> sample = '''{1}[Hardware Error]: event severity: fatal
    ... {1}[Hardware Error]:  Error 0, type: fatal
    ... {1}[Hardware Error]:   section_type: PCIe error
    ... {1}[Hardware Error]:   port_type: 4, root port
    ... {1}[Hardware Error]:   device_id: 0000:3a:00.0'''
    >>> fact = next(apei(sample)); fact.severity, fact.pci
    ('fatal', '0000:3a:00.0')
    """
    severity, pci, driver, at = "nonfatal", None, None, 0
    in_section = False
    for number, line in enumerate(text.split("\n")):
        if not in_section and (found := _APEI_SEVERITY.search(line)):
            word = found["severity"].lower()
            severity = {"fatal": "fatal", "corrected": "corrected"}.get(word, "nonfatal")
        if "section_type: PCIe error" in line:
            in_section, at = True, number
        elif in_section and (found := _APEI_DEVICE.search(line)):
            pci = _address(found["pci"])
        elif in_section and (vendor := _APEI_VENDOR.search(line)):
            driver = "nvidia" if vendor["vendor"].lower() == "10de" else None
            break
    if not in_section:
        raise NotThisFormat
    yield PcieError(severity=severity, pci=pci, driver=driver, source="apei", at=at)


FORMATS = (
    Format("Xid", ("Xid (",), xid, lines=1, fold=True, apart=("code", "gpu")),
    Format("GPU address and UUID", ("NVRM: GPU at ",), gpu_named, lines=1, fold=True),
    Format(
        "Xid passed on",
        (
            "XidCriticalError",
            "DCGM_FI_DEV_XID_ERRORS{",
            " XID ",
            "XID error",
            "XID err",
            "xid=",
            "xid:",
            "Xid ",
            "NvidiaXID",
            "SysLogsXIDError",
        ),
        passed_on,
        lines=1,
        fold=True,
        apart=("code", "gpu"),
    ),
    Format("SXid", ("SXid (",), sxid, lines=1, fold=True, apart=("code", "pci")),
    Format("SXid of fabric manager", ("detected NVSwitch ",), switch_error, lines=1, fold=True),
    Format(
        "PCIe error",
        ("PCIe Bus Error", "AER: ", "evice recovery failed", "DPC: ", "): Link Down", "): Card not present"),
        pcie_error,
        lines=1,
        fold=True,
    ),
    Format("APEI PCIe error", ("section_type: PCIe error",), apei, lines=20, back=8, fold=True),
)
