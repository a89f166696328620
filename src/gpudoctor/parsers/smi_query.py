"""The long form of nvidia-smi: `-q` with all its -d sections, as text and as XML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from gpudoctor.facts.base import Fact, Probed, Scalar
from gpudoctor.facts.driver import DriverVersion
from gpudoctor.facts.gpu import Gpu, GpuCount, GpuProcess
from gpudoctor.parsers.base import Format, Malformed, NotThisFormat
from gpudoctor.parsers.smi_values import (
    THROTTLE_REASONS,
    device_id,
    integer,
    is_error,
    mebibytes,
    number,
    pstate,
    seconds,
    snake,
    sum_of,
    switch,
    word,
)
from gpudoctor.patterns.address import pci_address
from gpudoctor.patterns.lazy import LazyRegex

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

Convert = Callable[[str], Scalar]


# "section/key" (or the key alone where it stands in no section), in lower case -> field and how its value is read.
# Where a key has changed its name over the years, all names are here.
_FIELDS: dict[str, tuple[str, Convert]] = {
    "product name": ("name", word),
    "gpu uuid": ("uuid", word),
    "serial number": ("serial", word),
    "minor number": ("minor", integer),
    "vbios version": ("vbios", word),
    "persistence mode": ("persistence", switch),
    "display active": ("display_active", switch),
    "addressing mode": ("addressing_mode", snake),
    "gsp firmware version": ("gsp_firmware", word),
    "performance state": ("pstate", pstate),
    "fan speed": ("fan", number),
    "compute mode": ("compute_mode", snake),
    "gpu recovery action": ("recovery_action", snake),
    "mig mode/current": ("mig", switch),
    "gpu virtualization mode/virtualization mode": ("virtualization", snake),
    "gpu reset status/reset required": ("reset_required", switch),
    "gpu reset status/drain and reset recommended": ("drain_recommended", switch),
    "vgpu software licensed product/license status": ("vgpu_license", snake),
    "grid licensed product/license status": ("vgpu_license", snake),
    "pci/bus id": ("pci", pci_address),
    "pci/device id": ("device_id", device_id),
    "pci/replays since reset": ("pcie_replays", integer),
    "pcie generation/max": ("pcie_gen_max", integer),
    "pcie generation/current": ("pcie_gen", integer),
    "pcie generation/device max": ("pcie_gen_device_max", integer),
    "pcie generation/host max": ("pcie_gen_host_max", integer),
    "link width/max": ("pcie_width_max", integer),
    "link width/current": ("pcie_width", integer),
    "fb memory usage/total": ("memory_total", mebibytes),
    "fb memory usage/reserved": ("memory_reserved", mebibytes),
    "fb memory usage/used": ("memory_used", mebibytes),
    "fb memory usage/free": ("memory_free", mebibytes),
    "bar1 memory usage/total": ("bar1_total", mebibytes),
    "bar1 memory usage/used": ("bar1_used", mebibytes),
    "utilization/gpu": ("utilization", number),
    "utilization/memory": ("memory_utilization", number),
    "ecc mode/current": ("ecc", switch),
    "volatile/sram correctable": ("ecc_correctable_volatile", integer),
    "volatile/dram correctable": ("ecc_correctable_volatile", integer),
    "volatile/sram uncorrectable": ("ecc_uncorrectable_volatile", integer),
    "volatile/sram uncorrectable parity": ("ecc_uncorrectable_volatile", integer),
    "volatile/sram uncorrectable sec-ded": ("ecc_uncorrectable_volatile", integer),
    "volatile/dram uncorrectable": ("ecc_uncorrectable_volatile", integer),
    "aggregate/sram correctable": ("ecc_correctable_aggregate", integer),
    "aggregate/dram correctable": ("ecc_correctable_aggregate", integer),
    "aggregate/sram uncorrectable": ("ecc_uncorrectable_aggregate", integer),
    "aggregate/sram uncorrectable parity": ("ecc_uncorrectable_aggregate", integer),
    "aggregate/sram uncorrectable sec-ded": ("ecc_uncorrectable_aggregate", integer),
    "aggregate/dram uncorrectable": ("ecc_uncorrectable_aggregate", integer),
    "aggregate/sram threshold exceeded": ("sram_threshold_exceeded", switch),
    "volatile/single bit/total": ("ecc_correctable_volatile", integer),
    "volatile/double bit/total": ("ecc_uncorrectable_volatile", integer),
    "aggregate/single bit/total": ("ecc_correctable_aggregate", integer),
    "aggregate/double bit/total": ("ecc_uncorrectable_aggregate", integer),
    "retired pages/single bit ecc": ("retired_single_bit", integer),
    "retired pages/double bit ecc": ("retired_double_bit", integer),
    "retired pages/pending": ("retired_pending", switch),
    "retired pages/pending page blacklist": ("retired_pending", switch),
    "remapped rows/correctable error": ("remapped_correctable", integer),
    "remapped rows/uncorrectable error": ("remapped_uncorrectable", integer),
    "remapped rows/pending": ("remap_pending", switch),
    "remapped rows/remapping failure occurred": ("remap_failed", switch),
    "bank remap availability histogram/low": ("remap_banks_low", integer),
    "bank remap availability histogram/none": ("remap_banks_none", integer),
    "temperature/gpu current temp": ("temperature", number),
    "temperature/gpu t.limit temp": ("temperature_margin", number),
    "temperature/gpu shutdown temp": ("temperature_shutdown", number),
    "temperature/gpu slowdown temp": ("temperature_slowdown", number),
    "temperature/gpu max operating temp": ("temperature_max_operating", number),
    "temperature/memory current temp": ("memory_temperature", number),
    "clocks/sm": ("clock_sm", integer),
    "clocks/memory": ("clock_mem", integer),
    "max clocks/sm": ("clock_sm_max", integer),
    "max clocks/memory": ("clock_mem_max", integer),
    "applications clocks/graphics": ("clock_app_sm", integer),
    "default applications clocks/graphics": ("clock_app_sm_default", integer),
    "fabric/state": ("fabric_state", snake),
    "fabric/status": ("fabric_status", snake),
}  # fmt: skip
for _section in ("power readings", "gpu power readings"):
    for _key, _field in {
        "power draw": "power",
        "average power draw": "power",
        "instantaneous power draw": "power",
        "power limit": "power_limit",
        "current power limit": "power_limit",
        "enforced power limit": "power_limit",
        "default power limit": "power_limit_default",
        "min power limit": "power_limit_min",
        "max power limit": "power_limit_max",
    }.items():
        _FIELDS[f"{_section}/{_key}"] = (_field, number)
for _section in ("clocks throttle reasons", "clocks event reasons"):
    for _key, _field in THROTTLE_REASONS.items():
        _FIELDS[f"{_section}/{_key.replace('_', ' ')}"] = (_field, switch)
for _section in ("clocks event reasons counters", "clocks throttle reasons counters"):
    for _key, _field in {
        "sw power capping": "throttled_sw_power",
        "sw thermal slowdown": "throttled_sw_thermal",
        "hw thermal slowdown": "throttled_hw_thermal",
        "hw power braking": "throttled_power_brake",
    }.items():
        _FIELDS[f"{_section}/{_key}"] = (_field, seconds)

_ADDED = ("ecc_correctable_volatile", "ecc_uncorrectable_volatile", "ecc_correctable_aggregate", "ecc_uncorrectable_aggregate")  # fmt: skip
_PENDING = {"mig mode/pending": ("mig_pending", "mig"), "ecc mode/pending": ("ecc_pending", "ecc")}
_SENSORS = {
    "fan speed": "fan_error",
    "temperature/gpu current temp": "temperature_error",
    "power readings/power draw": "power_error",
    "gpu power readings/power draw": "power_error",
    "gpu power readings/average power draw": "power_error",
    "gpu power readings/instantaneous power draw": "power_error",
}
_HEALTHY = ("n/a", "none", "no", "false", "healthy", "full", "not supported", "")


class _Builder:
    """Collects the values of one GPU."""

    def __init__(self, pci: str, at: int) -> None:
        self.gpu = Gpu(seen_by="nvidia-smi", at=at)
        try:
            self.gpu.pci = pci_address(pci)
        except ValueError:
            self.gpu.pci = None
        self.processes: list[GpuProcess] = []
        self.has_processes = False
        self.values = 0
        self.errors = 0

    def put(self, path: list[str], value: str, at: int) -> None:
        if path[0] == "mig device":
            self.gpu.mig_instances = (self.gpu.mig_instances or 0) + (path[1:] == ["index"])
            return
        self.values += 1
        self.errors += is_error(value)
        for depth in (3, 2, 1):
            key = "/".join(path[-depth:])
            if key in _PENDING and depth == 2:
                self._pending(*_PENDING[key], value, at)
                return
            if key in _SENSORS and is_error(value):
                self._set(_SENSORS[key], True, at)
                return
            if key in _FIELDS and (depth > 1 or len(path) == 1):
                self._field(*_FIELDS[key], value, at)
                return
        if "health" in path[:-1] and path[0] == "fabric" and value.lower() not in _HEALTHY:
            known = self.gpu.fabric_health
            self._set("fabric_health", f"{known}, {path[-1]}: {value}" if known else f"{path[-1]}: {value}", at)
        elif path[0] == "processes":
            self._process(path[-1], value, at)
        elif path[0] == "aggregate uncorrectable sram sources":
            self.gpu.sram_uncorrectable_aggregate = _whole(
                sum_of(self.gpu.sram_uncorrectable_aggregate, integer(value))
            )

    def _field(self, field: str, convert: Convert, value: str, at: int) -> None:
        try:
            known = convert(value)
        except ValueError:
            return
        if field in _ADDED:
            known = sum_of(self.gpu.value(field), known if isinstance(known, (int, float)) else None)
            at = self.gpu.at_fields.get(field, at) if integer(value) == 0 else at
        if known is not None:
            self._set(field, known, at)

    def _set(self, field: str, value: Scalar, at: int) -> None:
        setattr(self.gpu, field, value)
        self.gpu.at_fields[field] = at

    def _pending(self, field: str, current: str, value: str, at: int) -> None:
        """A pending mode counts where it differs from the current one."""
        wanted = switch(value)
        if wanted is not None:
            self._set(field, wanted != self.gpu.value(current), at)

    def _process(self, key: str, value: str, at: int) -> None:
        self.has_processes = True
        if key == "process id":
            self.processes.append(GpuProcess(gpu=self.gpu.pci, pid=integer(value), at=at))
        elif self.processes:
            process = self.processes[-1]
            if key == "type":
                process.type = word(value)
            elif key in ("name", "process name"):
                process.name = word(value)
            elif key == "used gpu memory":
                process.memory = mebibytes(value)

    def facts(self) -> Iterator[Fact]:
        gpu = self.gpu
        if gpu.mig and gpu.mig_instances is None and self.values > 60:  # the whole section is there
            gpu.mig_instances = 0
        gpu.state = "ok"
        if self.values and self.errors > self.values / 2:
            gpu.state, gpu.error = "error", "the driver can't read most of its values"
        if is_error(gpu.name or ""):
            gpu.name = None
        yield gpu
        yield from self.processes
        if self.has_processes:
            yield Probed(what="gpu_process", at=max([gpu.at, *(process.at for process in self.processes)]))


def _whole(value: int | float | None) -> int | None:
    return None if value is None else int(value)


_PAIR = LazyRegex(r"(?P<indent>\s*)(?P<key>[A-Za-z][\w ./()#-]*?)\s*:(?: (?P<value>.*))?$")
_TITLE = LazyRegex(r"(?P<indent>\s*)(?P<key>[A-Za-z][\w ./()-]*)$")
_HEADING = LazyRegex(r"\s*GPU (?P<pci>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{1,2}:[0-9A-Fa-f]{1,2}\.[0-9A-Fa-f])\s*$")
_TOP = ("timestamp", "driver version", "cuda version", "attached gpus", "hic firmware version", "kmd version", "cuda umd version")  # fmt: skip


def query(text: str) -> Iterator[Fact]:
    """`nvidia-smi -q`, whole or only some sections of it, also where it breaks off.

    >>> sample = '''==============NVSMI LOG==============
    ... Driver Version                            : 550.163.01
    ... Attached GPUs                             : 8
    ... GPU 00000000:1A:00.0
    ...     Remapped Rows
    ...         Uncorrectable Error               : 2
    ...         Pending                           : Yes
    ...     GPU Power Readings
    ...         Current Power Limit               : 400.00 W'''
    >>> facts = {fact.kind: fact for fact in query(sample)}
    >>> facts["gpu"].pci, facts["gpu"].remap_pending, facts["gpu"].remapped_uncorrectable, facts["gpu"].power_limit
    ('0000:1a:00.0', True, 2, 400.0)
    >>> facts["driver_version"].version, facts["gpu_count"].number
    ('550.163.01', 8)
    """
    lines = text.split("\n")
    top: dict[str, tuple[str, int]] = {}
    builders: list[_Builder] = []
    path: list[tuple[int, str]] = []
    last = 0
    for at, line in enumerate(lines):
        if not line.strip() or "NVSMI LOG" in line:
            continue
        if found := _HEADING.match(line):
            builders.append(_Builder(found["pci"], at))
            path = []
        elif found := _PAIR.match(line):
            indent, key = len(found["indent"].expandtabs()), found["key"].strip().lower()
            value = (found["value"] or "").strip()
            if indent == 0 and key not in _TOP:
                break
            if key in _TOP and not builders:
                top[key] = (value, at)
            elif not builders:
                break
            else:
                path = [step for step in path if step[0] < indent]
                builders[-1].put([*(name for _, name in path), key], value, at)
                if not value or key in ("process id", "processes"):
                    path.append((indent, key))
                if key == "processes":
                    builders[-1].has_processes = True
        elif (found := _TITLE.match(line)) and found["indent"] and builders:
            indent = len(found["indent"].expandtabs())
            path = [*(step for step in path if step[0] < indent), (indent, found["key"].strip().lower())]
            builders[-1].has_processes |= path[0][1] == "processes"
        else:
            break
        last = at
    if not builders and "attached gpus" not in top:
        raise NotThisFormat
    yield from _top(top)
    if str(len(builders)) == top.get("attached gpus", ("", 0))[0]:
        for index, builder in enumerate(builders):  # nvidia-smi goes through all GPUs in the order of their index
            builder.gpu.index = index
    for builder in builders:
        yield from builder.facts()
    if builders:
        yield Probed(what="gpu", at=last)
        yield Probed(what="smi_error", at=last)  # it answered, so there is none


def _top(top: dict[str, tuple[str, int]]) -> Iterator[Fact]:
    version = top.get("driver version") or top.get("kmd version")
    if version and re.match(r"\d+\.\d+", version[0]):
        cuda = top.get("cuda version") or top.get("cuda umd version")
        yield DriverVersion(
            version=version[0],
            branch=int(version[0].split(".")[0]),
            cuda=word(cuda[0]) if cuda else None,
            seen_by="nvidia-smi",
            at=version[1],
        )
    if "attached gpus" in top and (count := integer(top["attached gpus"][0])) is not None:
        yield GpuCount(seen_by="nvidia-smi", number=count, at=top["attached gpus"][1])


def fragment(text: str) -> Iterator[Fact]:
    """A section of `nvidia-smi -q` that was pasted without the heading of its GPU.

    >>> next(fragment('''    Remapped Rows
    ...         Uncorrectable Error               : 1
    ...         Pending                           : Yes''')).remap_pending
    True
    """
    lines = text.split("\n")
    title = _TITLE.match(lines[0])
    if not title:
        raise NotThisFormat
    builder = _Builder("", 0)
    base = len(title["indent"].expandtabs())
    path: list[tuple[int, str]] = [(base, title["key"].strip().lower())]
    for at, line in enumerate(lines[1:], start=1):
        if _HEADING.match(line) or not line.strip():
            break
        if found := _PAIR.match(line):
            indent = len(found["indent"].expandtabs())
            path = [step for step in path if step[0] < indent]
            builder.put([*(name for _, name in path), found["key"].strip().lower()], (found["value"] or "").strip(), at)
        elif found := _TITLE.match(line):
            indent = len(found["indent"].expandtabs())
            path = [*(step for step in path if step[0] < indent), (indent, found["key"].strip().lower())]
        else:
            break
    if not builder.gpu.at_fields:
        raise NotThisFormat
    builder.gpu.at = min(builder.gpu.at_fields.values())
    yield builder.gpu


# XML: "parent/element" or "element" -> the name that the text form has for it.
_XML_NAMES = {
    "uuid": "gpu uuid",
    "serial": "serial number",
    "product_name": "product name",
    "current_mig": "current",
    "pending_mig": "pending",
    "current_ecc": "current",
    "pending_ecc": "pending",
    "pci_bus_id": "bus id",
    "pci_device_id": "device id",
    "pcie_gen": "pcie generation",
    "link_widths": "link width",
    "max_link_gen": "max",
    "current_link_gen": "current",
    "max_device_link_gen": "device max",
    "max_host_link_gen": "host max",
    "max_link_width": "max",
    "current_link_width": "current",
    "replay_counter": "replays since reset",
    "gpu_util": "gpu",
    "memory_util": "memory",
    "sram_uncorrectable_secded": "sram uncorrectable sec-ded",
    "sram_threshold_exceeded": "sram threshold exceeded",
    "multiple_single_bit_retirement/retired_count": "single bit ecc",
    "double_bit_retirement/retired_count": "double bit ecc",
    "pending_retirement": "pending",
    "pending_blacklist": "pending",
    "remapped_row_corr": "correctable error",
    "remapped_row_unc": "uncorrectable error",
    "remapped_row_pending": "pending",
    "remapped_row_failure": "remapping failure occurred",
    "row_remapper_histogram": "bank remap availability histogram",
    "row_remapper_histogram_low": "low",
    "row_remapper_histogram_none": "none",
    "gpu_temp": "gpu current temp",
    "gpu_temp_tlimit": "gpu t.limit temp",
    "gpu_temp_max_threshold": "gpu shutdown temp",
    "gpu_temp_slow_threshold": "gpu slowdown temp",
    "gpu_temp_max_gpu_threshold": "gpu max operating temp",
    "memory_temp": "memory current temp",
    "instant_power_draw": "instantaneous power draw",
    "graphics_clock": "graphics",
    "sm_clock": "sm",
    "mem_clock": "memory",
    "pid": "process id",
    "used_memory": "used gpu memory",
    "gpu_recovery_action": "gpu recovery action",
    "gpu_reset_status": "gpu reset status",
}  # fmt: skip
_XML_REASON = LazyRegex(r"clocks_(?:throttle|event)_reasons?_(?:counters_)?(?:gpu_)?(?=[a-z])(?!counters$)")
_XML_COUNTERS = {
    "sw power cap": "sw power capping",
    "sw therm slowdown": "sw thermal slowdown",
    "hw therm slowdown": "hw thermal slowdown",
    "hw power brake": "hw power braking",
    "hw power brake slowdown": "hw power braking",
}


def query_xml(text: str) -> Iterator[Fact]:
    """`nvidia-smi -q -x`, read without entities; one that breaks off is malformed.

    >>> sample = '''<?xml version="1.0" ?>
    ... <nvidia_smi_log><driver_version>535.54</driver_version><attached_gpus>1</attached_gpus>
    ... <gpu id="00000000:3B:00.0"><product_name>Tesla T4</product_name>
    ... <clocks_throttle_reasons><clocks_throttle_reason_hw_slowdown>Active</clocks_throttle_reason_hw_slowdown>
    ... </clocks_throttle_reasons><ecc_errors><volatile><double_bit><total>3</total></double_bit></volatile></ecc_errors>
    ... </gpu></nvidia_smi_log>'''
    >>> gpu = next(fact for fact in query_xml(sample) if fact.kind == "gpu")
    >>> gpu.name, gpu.throttle_hw_slowdown, gpu.ecc_uncorrectable_volatile
    ('Tesla T4', True, 3)
    """
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import ParseError, fromstring

    start = text.find("<nvidia_smi_log")
    stop = text.find("</nvidia_smi_log>")
    if start < 0:
        raise NotThisFormat
    if stop < 0:
        raise Malformed("the XML breaks off before its end")
    first = text.count("\n", 0, start)
    body = text[start : stop + len("</nvidia_smi_log>")]
    try:
        root = fromstring(body)
    except (ParseError, DefusedXmlException, ValueError) as error:
        raise Malformed(f"not readable as XML: {error}") from None
    places = _places(body.split("\n"), first)
    top = {
        name: (element.text or "", first) for name in _TOP if (element := root.find(name.replace(" ", "_"))) is not None
    }
    yield from _top(top)
    given = [(order, element) for order, element in enumerate(root.iter("gpu")) if "id" in element.attrib]
    whole = str(len(given)) == top.get("attached gpus", ("", 0))[0].strip()
    for index, (order, element) in enumerate(given):
        where = places[order] if order < len(places) else {}
        builder = _Builder(element.attrib["id"], where.get("gpu", first))
        builder.gpu.index = index if whole else None
        _walk(builder, element, [], where)
        yield from builder.facts()
    yield Probed(what="gpu", at=first + body.count("\n"))
    yield Probed(what="smi_error", at=first + body.count("\n"))


def _places(lines: list[str], first: int) -> list[dict[str, int]]:
    """Return, for each GPU, the line on which each element first stands."""
    places: list[dict[str, int]] = []
    for at, line in enumerate(lines, start=first):
        tag = line.strip().partition(">")[0].partition(" ")[0].lstrip("<")
        if tag == "gpu":
            places.append({})
        if places:
            places[-1].setdefault(tag, at)
    return places


def _walk(builder: _Builder, element: Element, path: list[str], where: dict[str, int]) -> None:
    for child in element:
        tag = str(child.tag)
        name = _XML_NAMES.get(f"{element.tag}/{tag}") or _XML_NAMES.get(tag)
        if name is None:
            name = _XML_REASON.sub("", tag).replace("_", " ")
            name = _XML_COUNTERS.get(name, name) if str(element.tag).endswith("_counters") else name
        if len(child):
            _walk(builder, child, [*path, name], where)
        else:
            here = ["retired pages", name] if tag == "retired_count" else [*path, name]
            builder.put(here, (child.text or "").strip(), where.get(tag, builder.gpu.at))


FORMATS = (
    Format("nvidia-smi -q", ("NVSMI LOG", "Attached GPUs  ", "GPU 0000000", "GPU 00008", "GPU 0001"), query, lines=8000),
    Format("nvidia-smi -q -x", ("<nvidia_smi_log",), query_xml, lines=12000),
    Format(
        "nvidia-smi -q",
        (
            "  Remapped Rows", "  Retired Pages", "  Clocks Throttle Reasons", "  Clocks Event Reasons", "  ECC Errors",
            "  GPU Link Info", "  Power Readings", "  GPU Power Readings", "  FB Memory Usage", "  Fabric", "  GPU Reset Status",
        ),
        fragment,
        lines=60,
    ),
)  # fmt: skip
