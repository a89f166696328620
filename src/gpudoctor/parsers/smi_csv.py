"""`nvidia-smi --query-gpu=... --format=csv` and its sisters for processes and retired memory, with any columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from gpudoctor.facts.base import Fact, Probed, Scalar
from gpudoctor.facts.driver import DriverVersion
from gpudoctor.facts.gpu import Gpu, GpuCount, GpuProcess
from gpudoctor.parsers.base import Format, NotThisFormat
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
    switch,
    switch_or_digit,
    word,
)
from gpudoctor.patterns.address import pci_address
from gpudoctor.patterns.lazy import LazyRegex

Convert = Callable[[str], Scalar]

_COLUMNS: dict[str, tuple[str, Convert]] = {
    "index": ("index", integer),
    "uuid": ("uuid", word),
    "gpu_uuid": ("uuid", word),
    "name": ("name", word),
    "gpu_name": ("name", word),
    "serial": ("serial", word),
    "gpu_serial": ("serial", word),
    "pci.bus_id": ("pci", pci_address),
    "gpu_bus_id": ("pci", pci_address),
    "pci.device_id": ("device_id", device_id),
    "vbios_version": ("vbios", word),
    "persistence_mode": ("persistence", switch),
    "display_active": ("display_active", switch),
    "compute_mode": ("compute_mode", snake),
    "pstate": ("pstate", pstate),
    "fan.speed": ("fan", number),
    "addressing_mode": ("addressing_mode", snake),
    "gpu_recovery_action": ("recovery_action", snake),
    "memory.total": ("memory_total", mebibytes),
    "memory.used": ("memory_used", mebibytes),
    "memory.free": ("memory_free", mebibytes),
    "memory.reserved": ("memory_reserved", mebibytes),
    "utilization.gpu": ("utilization", number),
    "utilization.memory": ("memory_utilization", number),
    "temperature.gpu": ("temperature", number),
    "temperature.gpu.tlimit": ("temperature_margin", number),
    "temperature.memory": ("memory_temperature", number),
    "power.draw": ("power", number),
    "power.draw.average": ("power", number),
    "power.draw.instant": ("power", number),
    "power.limit": ("power_limit", number),
    "enforced.power.limit": ("power_limit", number),
    "power.default_limit": ("power_limit_default", number),
    "power.min_limit": ("power_limit_min", number),
    "power.max_limit": ("power_limit_max", number),
    "clocks.sm": ("clock_sm", integer),
    "clocks.current.sm": ("clock_sm", integer),
    "clocks.gr": ("clock_sm", integer),
    "clocks.current.graphics": ("clock_sm", integer),
    "clocks.mem": ("clock_mem", integer),
    "clocks.current.memory": ("clock_mem", integer),
    "clocks.max.sm": ("clock_sm_max", integer),
    "clocks.max.gr": ("clock_sm_max", integer),
    "clocks.max.graphics": ("clock_sm_max", integer),
    "clocks.max.mem": ("clock_mem_max", integer),
    "clocks.max.memory": ("clock_mem_max", integer),
    "clocks.applications.graphics": ("clock_app_sm", integer),
    "clocks.applications.gr": ("clock_app_sm", integer),
    "clocks.default_applications.graphics": ("clock_app_sm_default", integer),
    "clocks.default_applications.gr": ("clock_app_sm_default", integer),
    "mig.mode.current": ("mig", switch),
    "ecc.mode.current": ("ecc", switch),
    "ecc.errors.uncorrected.volatile.total": ("ecc_uncorrectable_volatile", integer),
    "ecc.errors.corrected.volatile.total": ("ecc_correctable_volatile", integer),
    "ecc.errors.uncorrected.aggregate.total": ("ecc_uncorrectable_aggregate", integer),
    "ecc.errors.corrected.aggregate.total": ("ecc_correctable_aggregate", integer),
    "ecc.errors.uncorrected.aggregate.sram": ("sram_uncorrectable_aggregate", integer),
    "ecc.errors.uncorrected.aggregate.sram.thresholdexceeded": ("sram_threshold_exceeded", switch),
    "retired_pages.sbe": ("retired_single_bit", integer),
    "retired_pages.single_bit_ecc.count": ("retired_single_bit", integer),
    "retired_pages.dbe": ("retired_double_bit", integer),
    "retired_pages.double_bit.count": ("retired_double_bit", integer),
    "retired_pages.pending": ("retired_pending", switch_or_digit),
    "remapped_rows.correctable": ("remapped_correctable", integer),
    "remapped_rows.uncorrectable": ("remapped_uncorrectable", integer),
    "remapped_rows.pending": ("remap_pending", switch_or_digit),
    "remapped_rows.failure": ("remap_failed", switch_or_digit),
    "remapped_rows.histogram.low": ("remap_banks_low", integer),
    "remapped_rows.histogram.none": ("remap_banks_none", integer),
    "pcie.link.gen.current": ("pcie_gen", integer),
    "pcie.link.gen.gpucurrent": ("pcie_gen", integer),
    "pcie.link.gen.max": ("pcie_gen_max", integer),
    "pcie.link.gen.gpumax": ("pcie_gen_device_max", integer),
    "pcie.link.gen.hostmax": ("pcie_gen_host_max", integer),
    "pcie.link.width.current": ("pcie_width", integer),
    "pcie.link.width.max": ("pcie_width_max", integer),
    "fabric.state": ("fabric_state", snake),
    "fabric.status": ("fabric_status", snake),
    "gsp.mode.current": ("gsp_firmware", word),
    "reset_status.reset_required": ("reset_required", switch),
    "reset_status.drain_and_reset_recommended": ("drain_recommended", switch),
}  # fmt: skip
for _reason, _field in THROTTLE_REASONS.items():
    _name = "gpu_idle" if _reason == "idle" else _reason
    for _prefix in ("clocks_throttle_reasons", "clocks_event_reasons"):
        _COLUMNS[f"{_prefix}.{_name}"] = (_field, switch)
for _reason, _field in {
    "sw_power_cap": "throttled_sw_power",
    "sw_thermal_slowdown": "throttled_sw_thermal",
    "hw_thermal_slowdown": "throttled_hw_thermal",
    "hw_power_brake_slowdown": "throttled_power_brake",
}.items():
    _COLUMNS[f"clocks_event_reasons_counters.{_reason}"] = (_field, seconds)
# Bits of clocks_throttle_reasons.active, as nvml.h names them.
_BITS = {
    "throttle_idle": 0x1,
    "throttle_app_clocks": 0x2,
    "throttle_sw_power": 0x4,
    "throttle_hw_slowdown": 0x8,
    "throttle_sync_boost": 0x10,
    "throttle_sw_thermal": 0x20,
    "throttle_hw_thermal": 0x40,
    "throttle_hw_power_brake": 0x80,
}
_ACTIVE = ("clocks_throttle_reasons.active", "clocks_event_reasons.active")
_ERRORS = {"power.draw": "power_error", "fan.speed": "fan_error", "temperature.gpu": "temperature_error"}
_PROCESS = {"pid", "process_name", "used_memory", "used_gpu_memory"}
_KNOWN = {*_COLUMNS, *_ACTIVE, *_PROCESS, "driver_version", "count", "timestamp", "compute_cap", "mig.mode.pending", "ecc.mode.pending", "pci.bus", "pci.domain", "retired_pages.address", "retired_pages.cause"}  # fmt: skip
_COLUMN = LazyRegex(r"[a-z][a-z0-9_.]*")
_ASKED = LazyRegex(r"--query-(?:gpu|compute-apps|remapped-rows|retired-pages)[= ]['\"]?(?P<columns>[a-z0-9_.,]+)")


def csv(text: str) -> Iterator[Fact]:
    """A header line and its rows; or the command line that names the columns, and rows without a header.

    >>> row = next(csv('''index, name, pci.bus_id, utilization.gpu [%], ecc.errors.uncorrected.volatile.total
    ... 1, NVIDIA L40S, 00000000:41:00.0, 100 %, 2'''))
    >>> row.index, row.pci, row.utilization, row.ecc_uncorrectable_volatile
    (1, '0000:41:00.0', 100.0, 2)
    >>> [gpu.pstate for gpu in csv('''$ nvidia-smi --query-gpu=pstate,power.draw --format=csv,noheader
    ... P8, 12.31 W''') if gpu.kind == "gpu"]
    [8]
    """
    lines = text.split("\n")
    columns = _header(lines[0])
    first = 1
    if columns is None:
        asked = _ASKED.search(lines[0])
        if not asked:
            raise NotThisFormat
        columns = [column for column in asked["columns"].split(",") if column]
        if len(lines) > 1 and _header(lines[1]):
            raise NotThisFormat  # the header itself comes next
    if not columns or not _KNOWN.intersection(columns):
        raise NotThisFormat
    rows: list[Gpu] = []
    processes = 0
    last = 0
    for at, line in enumerate(lines[first:], start=first):
        values = [value.strip() for value in line.split(",")]
        if len(values) != len(columns) or not any(values):
            break
        row = dict(zip(columns, values, strict=True))
        if not _plausible(row):
            break
        last = at
        if at == first and "driver_version" in row and re.match(r"\d+\.\d+", row["driver_version"]):
            version = row["driver_version"]
            yield DriverVersion(version=version, branch=int(version.split(".")[0]), seen_by="nvidia-smi", at=at)
        if _PROCESS.intersection(columns):
            processes += 1
            yield _process(row, at)
        else:
            rows.append(_gpu(row, at))
    whole = bool(rows) and [gpu.index for gpu in rows] == list(range(len(rows)))
    if len(rows) > 1 and all((gpu.index, gpu.uuid, gpu.pci) == (None, None, None) for gpu in rows):
        for number, gpu in enumerate(rows):  # nvidia-smi goes through the GPUs in the order of their index
            gpu.index = number
    yield from rows
    if not last and len(columns) < 2:
        raise NotThisFormat
    if whole:
        yield GpuCount(seen_by="nvidia-smi", number=len(rows), at=rows[0].at)
    if "pid" in columns:
        yield Probed(what="gpu_process", at=last)
    elif rows and "index" in columns:
        yield Probed(what="gpu", at=last)


_COMPONENT = "NVIDIA GPU Details "
_COMPONENT_ASKS = "--query-gpu=name,driver_version,memory.total,vbios_version,pci.bus_id,serial --format=csv,noheader"


def component(text: str) -> Iterator[Fact]:
    """The row of the GPUs in the table of components with which bug reports begin since 2025: one line for each GPU.

    >>> facts = list(component("NVIDIA GPU Details   | NVIDIA L4, 580.82.07, 23034 MiB, 95.04.29.00.06, 00000000:17:00.0, 165\\n----"))
    >>> facts[0].version, facts[1].pci, facts[1].vbios
    ('580.82.07', '0000:17:00.0', '95.04.29.00.06')
    """
    lines = text.split("\n")
    if not lines[0].startswith(_COMPONENT):
        raise NotThisFormat
    cells: list[str] = []
    for line in lines:
        left, bar, cell = line.partition(" | ")
        if not bar or (cells and left.strip()):
            break
        cells.append(cell)
    for fact in csv("\n".join((_COMPONENT_ASKS, *cells))):
        fact.at -= 1  # the line that names the columns is not there
        yield fact


def _header(line: str) -> list[str] | None:
    """Return the column names of a header line, without their units."""
    names = [re.sub(r"\s*\[[^\]]*\]$", "", part.strip()) for part in line.split(",")]
    if not all(_COLUMN.fullmatch(name) for name in names):
        return None
    known = [name for name in names if name in _KNOWN]
    return names if len(known) >= max(1, len(names) // 2) and (len(names) > 1 or "." in names[0]) else None


def _plausible(row: dict[str, str]) -> bool:
    """Tell a row from a line of text that happens to have as many commas."""
    if "pid" in row and not row["pid"].isdigit():
        return False
    for column in ("pci.bus_id", "gpu_bus_id"):
        if column in row and ":" not in row[column]:
            return False
    for column in (
        "index",
        "memory.total",
        "memory.used",
        "utilization.gpu",
        "pstate",
        "temperature.gpu",
        "power.draw",
    ):
        if column in row and not re.match(r"-?\d|P\d|\[|N/A|ERR|Unknown|GPU|Insuff", row[column]):
            return False
    return True


def _gpu(row: dict[str, str], at: int) -> Gpu:
    gpu = Gpu(seen_by="nvidia-smi", at=at, state="ok")
    errors = 0
    for column, value in row.items():
        errors += is_error(value)
        if column in _ERRORS and is_error(value):
            setattr(gpu, _ERRORS[column], True)
        elif column in _ACTIVE and value.lower().startswith("0x"):
            bits = int(value, 16) if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", value) else 0
            for field, bit in _BITS.items():
                setattr(gpu, field, bool(bits & bit))
        elif column in _COLUMNS:
            field, convert = _COLUMNS[column]
            try:
                setattr(gpu, field, convert(value))
            except ValueError:
                continue
    for mode, pending in (("mig.mode", "mig_pending"), ("ecc.mode", "ecc_pending")):
        wanted, current = switch(row.get(f"{mode}.pending", "")), switch(row.get(f"{mode}.current", ""))
        if wanted is not None and current is not None:
            setattr(gpu, pending, wanted != current)
    if errors > len(row) / 2:
        gpu.state, gpu.error = "error", "the driver can't read its values"
        if any("lost" in value.lower() for value in row.values()):
            gpu.state = "lost"
    return gpu


def _process(row: dict[str, str], at: int) -> GpuProcess:
    name = row.get("gpu_bus_id") or row.get("gpu_uuid") or row.get("pci.bus_id")
    return GpuProcess(
        gpu=name,
        pid=integer(row.get("pid", "")),
        name=word(row.get("process_name", row.get("name", ""))),
        memory=mebibytes(row.get("used_memory") or row.get("used_gpu_memory") or ""),
        at=at,
    )


_ROW = LazyRegex(
    r"\s*(?:(?P<index>\d{1,3}), )?(?P<name>(?:NVIDIA|Tesla|GeForce|Quadro|A\d+|H\d+)[^,]*)(?:, (?P<rest>.*))?$"
)


def rows(text: str) -> Iterator[Fact]:
    """Rows without a header and without the command: what can be told by its shape is the GPU's identity.

    >>> next(rows("0, NVIDIA A100-SXM4-40GB, 00000000:07:00.0, 40960 MiB")).pci
    '0000:07:00.0'
    """
    found = _ROW.match(text.partition("\n")[0])
    if not found or not found["rest"]:
        raise NotThisFormat
    gpu = Gpu(seen_by="nvidia-smi", name=found["name"].strip(), state="ok")
    gpu.index = int(found["index"]) if found["index"] else None
    for value in (value.strip() for value in found["rest"].split(",")):
        if re.fullmatch(r"[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]", value):
            gpu.pci = pci_address(value)
        elif value.startswith("GPU-"):
            gpu.uuid = value
    if gpu.pci is None and gpu.uuid is None and gpu.index is None:
        raise NotThisFormat
    yield gpu


_HEADERS = (
    "memory.total", "memory.used", "memory.free", "utilization.gpu", "temperature.gpu", "power.draw", "power.limit",
    "pci.bus_id", "gpu_bus_id", "driver_version", "clocks.", "clocks_throttle_reasons", "clocks_event_reasons",
    "ecc.errors", "ecc.mode", "pcie.link", "retired_pages.", "remapped_rows.", "persistence_mode", "compute_mode",
    "index, name", "index, uuid", "name, uuid", "mig.mode", "gpu_uuid", "gpu_name", "used_gpu_memory", "process_name",
    "fabric.state", "fabric.status", "pstate", "fan.speed", "gpu_recovery_action", "reset_status.", "vbios_version",
    "display_active", "gsp.mode", "enforced.power", "power.default_limit", "power.max_limit", "utilization.memory",
    "temperature.memory", "gpu_serial", "index, serial",
)  # fmt: skip

FORMATS = (
    Format(
        "nvidia-smi csv", ("--query-gpu", "--query-compute-apps", "--query-remapped-rows", *_HEADERS), csv, lines=600
    ),
    Format("bug report's components", (_COMPONENT,), component, lines=100),
    Format("nvidia-smi csv", (", NVIDIA ", ", Tesla ", ", GeForce ", ", Quadro "), rows, lines=1),
)
