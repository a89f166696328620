"""Reads everything worth having from NVML, printing as it goes, so that a call that hangs costs only what follows it.

Prints one JSON object per line: `{"nvml": "gpu", "index": 0, "set": {...}}` with the field names of the facts, and before
each call a line `begin <function>:<gpu>`. `--skip function:gpu` leaves the rest of that GPU out from that call on (it hung
the last time); `--skip function` leaves out a call that belongs to no GPU.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import sys
from collections.abc import Callable
from typing import Any

import pynvml as nv

from gpudoctor.patterns.address import pci_address

Fields = dict[str, Any]
MIB = 2**20
P2P_READ = 0  # pynvml declares NVML_P2P_CAPS_INDEX_READ with a stray comma, as a tuple


def emit(what: str, **values: Any) -> None:
    """Print one object; flushed by the next begin line or at the end."""
    sys.stdout.write(json.dumps({"nvml": what, **values}) + "\n")


def begin(function: str, gpu: int | None = None) -> None:
    """Say which call comes next; this is what names a hang."""
    sys.stdout.write(f"begin {function}" + ("" if gpu is None else f":{gpu}") + "\n")
    sys.stdout.flush()


def text(value: bytes | str) -> str:
    """NVML strings are bytes in older bindings."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _pci(handle: Any) -> Fields:
    info = nv.nvmlDeviceGetPciInfo(handle)
    return {"pci": pci_address(text(info.busId)), "device_id": info.pciDeviceId >> 16}


def _memory(handle: Any) -> Fields:
    info = nv.nvmlDeviceGetMemoryInfo(handle)
    return {"memory_total": info.total / MIB, "memory_used": info.used / MIB, "memory_free": info.free / MIB}


def _bar1(handle: Any) -> Fields:
    info = nv.nvmlDeviceGetBAR1MemoryInfo(handle)
    return {"bar1_total": info.bar1Total / MIB, "bar1_used": info.bar1Used / MIB}


def _utilization(handle: Any) -> Fields:
    rates = nv.nvmlDeviceGetUtilizationRates(handle)
    return {"utilization": float(rates.gpu), "memory_utilization": float(rates.memory)}


def _mig(handle: Any) -> Fields:
    current, pending = nv.nvmlDeviceGetMigMode(handle)
    fields: Fields = {"mig": bool(current), "mig_pending": current != pending}
    if current:
        count = 0
        for index in range(nv.nvmlDeviceGetMaxMigDeviceCount(handle)):
            try:
                nv.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
                count += 1
            except nv.NVMLError:
                continue
        fields["mig_instances"] = count
    return fields


def _compute_mode(handle: Any) -> Fields:
    names = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
    return {"compute_mode": names.get(nv.nvmlDeviceGetComputeMode(handle))}


def _ecc(handle: Any) -> Fields:
    current, pending = nv.nvmlDeviceGetEccMode(handle)
    return {"ecc": bool(current), "ecc_pending": current != pending}


def _ecc_count(field: str, error: int, counter: int) -> Callable[[Any], Fields]:
    return lambda handle: {field: nv.nvmlDeviceGetTotalEccErrors(handle, error, counter)}


def _sram(handle: Any) -> Fields:
    status = nv.c_nvmlEccSramErrorStatus_v1_t()
    status.version = nv.nvmlEccSramErrorStatus_v1
    nv.nvmlDeviceGetSramEccErrorStatus(handle, ctypes.byref(status))
    return {"sram_threshold_exceeded": bool(status.bThresholdExceeded)}


def _remapped(handle: Any) -> Fields:
    correctable, uncorrectable, pending, failed = nv.nvmlDeviceGetRemappedRows(handle)
    return {
        "remapped_correctable": correctable,
        "remapped_uncorrectable": uncorrectable,
        "remap_pending": bool(pending),
        "remap_failed": bool(failed),
    }


def _retired(handle: Any) -> Fields:
    single = len(nv.nvmlDeviceGetRetiredPages(handle, nv.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS))
    double = len(nv.nvmlDeviceGetRetiredPages(handle, nv.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR))
    pending = nv.nvmlDeviceGetRetiredPagesPendingStatus(handle)
    return {"retired_single_bit": single, "retired_double_bit": double, "retired_pending": bool(pending)}


_REASONS = {
    "throttle_idle": 0x1,
    "throttle_app_clocks": 0x2,
    "throttle_sw_power": 0x4,
    "throttle_hw_slowdown": 0x8,
    "throttle_sync_boost": 0x10,
    "throttle_sw_thermal": 0x20,
    "throttle_hw_thermal": 0x40,
    "throttle_hw_power_brake": 0x80,
}


def _throttle(handle: Any) -> Fields:
    mask = nv.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    return {name: bool(mask & bit) for name, bit in _REASONS.items()}


def _limits(handle: Any) -> Fields:
    low, high = nv.nvmlDeviceGetPowerManagementLimitConstraints(handle)
    return {"power_limit_min": low / 1000, "power_limit_max": high / 1000}


def _fabric(handle: Any) -> Fields:
    info = nv.c_nvmlGpuFabricInfoV_t()
    info.version = nv.nvmlGpuFabricInfo_v2 if hasattr(nv, "nvmlGpuFabricInfo_v2") else info.version
    nv.nvmlDeviceGetGpuFabricInfoV(handle, ctypes.byref(info))
    states = {0: "not_supported", 1: "not_started", 2: "in_progress", 3: "completed"}
    return {
        "fabric_state": states.get(info.state),
        "fabric_status": "success" if info.status == 0 else str(info.status),
    }


_RECOVERY = {0: "none", 1: "gpu_reset", 2: "node_reboot", 3: "drain_p2p", 4: "drain_and_reset"}


def _recovery(handle: Any) -> Fields:
    value = nv.nvmlDeviceGetFieldValues(handle, [nv.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])[0]
    if value.nvmlReturn != nv.NVML_SUCCESS:
        return {}
    return {"recovery_action": _RECOVERY.get(value.value.uiVal)}


def _inforom(handle: Any) -> Fields:
    try:
        nv.nvmlDeviceValidateInforom(handle)
    except nv.NVMLError_CorruptedInforom:
        return {"inforom_corrupt": True}
    return {"inforom_corrupt": False}


def _one(field: str, function: str, *arguments: Any, scale: float | None = None) -> tuple[str, Callable[[Any], Fields]]:
    def read(handle: Any) -> Fields:
        value = getattr(nv, function)(handle, *arguments)
        if isinstance(value, bytes):
            value = text(value)
        return {field: value if scale is None else value / scale}

    return function, read


# Identity first: with it a report can be made even where everything behind it hangs.
CALLS: tuple[tuple[str, Callable[[Any], Fields]], ...] = (
    ("nvmlDeviceGetPciInfo", _pci),
    _one("name", "nvmlDeviceGetName"),
    _one("uuid", "nvmlDeviceGetUUID"),
    _one("minor", "nvmlDeviceGetMinorNumber"),
    _one("serial", "nvmlDeviceGetSerial"),
    ("nvmlDeviceGetMemoryInfo", _memory),
    ("nvmlDeviceGetBAR1MemoryInfo", _bar1),
    ("nvmlDeviceGetUtilizationRates", _utilization),
    _one("pstate", "nvmlDeviceGetPerformanceState"),
    ("nvmlDeviceGetComputeMode", _compute_mode),
    _one("persistence", "nvmlDeviceGetPersistenceMode"),
    ("nvmlDeviceGetMigMode", _mig),
    _one("display_active", "nvmlDeviceGetDisplayActive"),
    _one("temperature", "nvmlDeviceGetTemperature", nv.NVML_TEMPERATURE_GPU),
    _one("temperature_slowdown", "nvmlDeviceGetTemperatureThreshold", nv.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
    _one("temperature_shutdown", "nvmlDeviceGetTemperatureThreshold", nv.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN),
    _one("fan", "nvmlDeviceGetFanSpeed"),
    _one("power", "nvmlDeviceGetPowerUsage", scale=1000),
    _one("power_limit", "nvmlDeviceGetEnforcedPowerLimit", scale=1000),
    _one("power_limit_default", "nvmlDeviceGetPowerManagementDefaultLimit", scale=1000),
    ("nvmlDeviceGetPowerManagementLimitConstraints", _limits),
    _one("clock_sm", "nvmlDeviceGetClockInfo", nv.NVML_CLOCK_SM),
    _one("clock_sm_max", "nvmlDeviceGetMaxClockInfo", nv.NVML_CLOCK_SM),
    _one("clock_mem", "nvmlDeviceGetClockInfo", nv.NVML_CLOCK_MEM),
    _one("clock_mem_max", "nvmlDeviceGetMaxClockInfo", nv.NVML_CLOCK_MEM),
    _one("clock_app_sm", "nvmlDeviceGetApplicationsClock", nv.NVML_CLOCK_SM),
    _one("clock_app_sm_default", "nvmlDeviceGetDefaultApplicationsClock", nv.NVML_CLOCK_SM),
    ("nvmlDeviceGetCurrentClocksThrottleReasons", _throttle),
    ("nvmlDeviceGetEccMode", _ecc),
    ("nvmlDeviceGetTotalEccErrors", _ecc_count("ecc_uncorrectable_volatile", 1, 0)),
    ("nvmlDeviceGetTotalEccErrors", _ecc_count("ecc_correctable_volatile", 0, 0)),
    ("nvmlDeviceGetTotalEccErrors", _ecc_count("ecc_uncorrectable_aggregate", 1, 1)),
    ("nvmlDeviceGetTotalEccErrors", _ecc_count("ecc_correctable_aggregate", 0, 1)),
    ("nvmlDeviceGetSramEccErrorStatus", _sram),
    ("nvmlDeviceGetRemappedRows", _remapped),
    ("nvmlDeviceGetRetiredPages", _retired),
    ("nvmlDeviceGetFieldValues", _recovery),
    ("nvmlDeviceValidateInforom", _inforom),
    _one("pcie_gen", "nvmlDeviceGetCurrPcieLinkGeneration"),
    _one("pcie_gen_max", "nvmlDeviceGetMaxPcieLinkGeneration"),
    _one("pcie_gen_device_max", "nvmlDeviceGetGpuMaxPcieLinkGeneration"),
    _one("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth"),
    _one("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth"),
    _one("pcie_replays", "nvmlDeviceGetPcieReplayCounter"),
    _one("vbios", "nvmlDeviceGetVbiosVersion"),
    _one("numa_node", "nvmlDeviceGetNumaNodeId"),
    _one("gsp_firmware", "nvmlDeviceGetGspFirmwareVersion"),
    ("nvmlDeviceGetGpuFabricInfoV", _fabric),
)

_QUIET = (
    "NVMLError_NotSupported",
    "NVMLError_FunctionNotFound",
    "NVMLError_ArgumentVersionMismatch",
    "NVMLError_InvalidArgument",
)


class _Lost(Exception):
    """The GPU doesn't answer any more."""


class _Hung(Exception):
    """This GPU's rest is left out, because the call hung the last time."""


def _guarded(function: str, gpu: int | None, skip: set[str], read: Callable[..., Any], *arguments: Any) -> Any:
    """Call `read` and return what it gives; None where the call is to be skipped or is refused."""
    if skip:
        if function in skip:
            return None
        if gpu is not None and f"{function}:{gpu}" in skip:
            emit("hung", function=function, gpu=gpu)
            raise _Hung
    begin(function, gpu)
    try:
        return read(*arguments)
    except nv.NVMLError as error:
        name = type(error).__name__
        if name == "NVMLError_GpuIsLost":
            raise _Lost from None
        if name not in _QUIET:
            emit("refused", function=function, gpu=gpu, error=name, code=error.value)
    # an older pynvml, a newer structure
    except (AttributeError, TypeError, ValueError, OSError, ctypes.ArgumentError) as error:
        emit("refused", function=function, gpu=gpu, error=f"{type(error).__name__}: {error}")
    return None


def read_gpu(index: int, handle: Any, skip: set[str]) -> None:
    """Print all that one GPU tells; stops where it is lost or where the last run hung."""
    emit("gpu", index=index, set={"index": index, "seen_by": "nvml", "state": "ok"})
    address = f"index {index}"
    try:
        for function, read in CALLS:
            fields = _guarded(function, index, skip, read, handle)
            if fields:
                emit("gpu", index=index, set=fields)
                address = fields.get("pci", address)
        _processes(index, handle, skip)
        _nvlinks(index, address, handle, skip)
    except _Lost:
        emit("gpu", index=index, set={"state": "lost", "error": "GPU is lost"})
    except _Hung:
        return


def _processes(index: int, handle: Any, skip: set[str]) -> None:
    for function, type_ in (
        ("nvmlDeviceGetComputeRunningProcesses", "C"),
        ("nvmlDeviceGetGraphicsRunningProcesses", "G"),
    ):
        for process in _guarded(function, index, skip, _running, function, handle) or ():
            name = _guarded("nvmlSystemGetProcessName", index, skip, _process_name, process.pid)
            memory = None if process.usedGpuMemory is None else process.usedGpuMemory / MIB
            emit("process", index=index, pid=process.pid, type=type_, memory=memory, name=name)


def _running(function: str, handle: Any) -> Any:
    try:
        return getattr(nv, function)(handle)
    except nv.NVMLLibraryMismatchError:  # an older driver knows only the second version of the call
        return getattr(nv, function + "_v2")(handle)


def _process_name(pid: int) -> str | None:
    try:
        return text(nv.nvmlSystemGetProcessName(pid))
    except (nv.NVMLError_NotFound, nv.NVMLError_NoPermission):
        return None


def _nvlinks(index: int, address: str, handle: Any, skip: set[str]) -> None:
    counters = (("replay_errors", 0), ("recovery_errors", 1), ("crc_errors", 3))
    states: dict[int, int] = {}
    for link in range(nv.NVML_NVLINK_MAX_LINKS):
        state = _guarded("nvmlDeviceGetNvLinkState", index, skip, nv.nvmlDeviceGetNvLinkState, handle, link)
        if state is None:
            break
        states[link] = state
    active = [link for link, state in states.items() if state]
    speeds: dict[int, float] = {}
    if active:  # all in one call, because NVML answers a list of fields
        speeds = _guarded("nvmlDeviceGetFieldValues", index, skip, _link_speeds, handle, active) or {}
    for link, state in states.items():
        fields: Fields = {"state": "active" if state else "inactive"}
        if state:
            for name, counter in counters:
                function = "nvmlDeviceGetNvLinkErrorCounter"
                value = _guarded(function, index, skip, nv.nvmlDeviceGetNvLinkErrorCounter, handle, link, counter)
                if value is not None:
                    fields[name] = value
            if (address, link) not in _FAR_ENDS:
                _FAR_ENDS[address, link] = _far_end(index, handle, skip, link)
            fields.update(_FAR_ENDS[address, link])
        else:
            _FAR_ENDS.pop((address, link), None)
        if link in speeds:
            fields["speed"] = speeds[link]
        emit("nvlink", index=index, link=link, set=fields)


_REMOTE = {0: "gpu", 1: "cpu", 2: "switch"}
# By the GPU's address and link; a child that serves many rounds asks once, for a link that stays up leads where it led.
_FAR_ENDS: dict[tuple[str, int], Fields] = {}


def _far_end(index: int, handle: Any, skip: set[str], link: int) -> Fields:
    """What an active link leads to."""
    fields: Fields = {}
    function = "nvmlDeviceGetNvLinkRemoteDeviceType"
    kind = _guarded(function, index, skip, nv.nvmlDeviceGetNvLinkRemoteDeviceType, handle, link)
    if kind in _REMOTE:
        fields["remote"] = _REMOTE[kind]
    function = "nvmlDeviceGetNvLinkRemotePciInfo_v2"
    info = _guarded(function, index, skip, nv.nvmlDeviceGetNvLinkRemotePciInfo, handle, link)
    if info is not None:
        fields["remote_pci"] = pci_address(text(info.busId))
    return fields


def _link_speeds(handle: Any, links: list[int]) -> dict[int, float]:
    """Return the speed of links in GB/s, where the driver tells it."""
    values = nv.nvmlDeviceGetFieldValues(handle, [(nv.NVML_FI_DEV_NVLINK_GET_SPEED, link) for link in links])
    return {
        link: value.value.uiVal / 1000
        for link, value in zip(links, values, strict=True)
        if value.nvmlReturn == nv.NVML_SUCCESS and value.value.uiVal
    }


_PATHS = {0: "X", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
_P2P = {
    0: "ok",
    1: "chipset_not_supported",
    2: "gpu_not_supported",
    3: "topology_not_supported",
    4: "disabled",
    5: "not_supported",
}


def _pairs(handles: dict[int, Any], skip: set[str]) -> None:
    for a, first in handles.items():
        for b, second in handles.items():
            if a >= b:
                continue
            try:
                path = _guarded("nvmlDeviceGetTopologyCommonAncestor", a, skip, _ancestor, first, second)
                peer = _guarded("nvmlDeviceGetP2PStatus", a, skip, _peer_status, first, second)
            except _Lost:
                break
            emit("pair", a=a, b=b, path=path, peer=peer)


def _ancestor(first: Any, second: Any) -> str | None:
    return _PATHS.get(nv.nvmlDeviceGetTopologyCommonAncestor(first, second))


def _peer_status(first: Any, second: Any) -> str | None:
    return _P2P.get(nv.nvmlDeviceGetP2PStatus(first, second, P2P_READ))


def main() -> None:
    """Read NVML and print; any failure as a whole is one `failed` object."""
    arguments = sys.argv[1:]
    skip = {value for flag, value in itertools.pairwise(arguments) if flag == "--skip"}
    begin("nvmlInit")
    try:
        nv.nvmlInit()
    except nv.NVMLError as error:
        library = None
        with contextlib.suppress(nv.NVMLError):
            library = text(nv.nvmlSystemGetNVMLVersion())
        emit("failed", error=type(error).__name__, code=error.value, message=str(error), library=library)
        return
    for field, function in (
        ("version", "nvmlSystemGetDriverVersion"),
        ("library", "nvmlSystemGetNVMLVersion"),
        ("cuda", "nvmlSystemGetCudaDriverVersion"),
    ):
        raw = _guarded(function, None, skip, getattr(nv, function))
        if raw is not None:
            emit("driver", set={field: f"{raw // 1000}.{raw % 1000 // 10}" if isinstance(raw, int) else text(raw)})
    count = _guarded("nvmlDeviceGetCount", None, skip, nv.nvmlDeviceGetCount) or 0
    emit("count", number=count)
    handles: dict[int, Any] = {}
    for index in range(count):
        try:
            handle = _guarded("nvmlDeviceGetHandleByIndex", index, skip, nv.nvmlDeviceGetHandleByIndex, index)
        except _Lost:
            emit("gpu", index=index, set={"index": index, "seen_by": "nvml", "state": "lost", "error": "GPU is lost"})
            continue
        except _Hung:
            continue
        if handle is not None:
            handles[index] = handle
            read_gpu(index, handle, skip)
    hung = {int(name.rpartition(":")[2]) for name in skip if ":" in name}
    _pairs({index: handle for index, handle in handles.items() if index not in hung}, skip)
    emit("end")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
