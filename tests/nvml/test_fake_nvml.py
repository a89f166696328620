"""The fake library under the real pynvml: same interface, right answers, right refusals."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pynvml
import pytest
import yaml

from nvml import build
from nvml.build import compile_scenario, constants, scenario_env, scenario_names

pytestmark = pytest.mark.skipif(
    not hasattr(pynvml, "nvmlDeviceGetAddressingMode"),
    reason="asks by the names of pynvml 13; the library itself serves older ones, too",
)

GIB = 1 << 30
MIB = 1 << 20
SWEEP = Path(__file__).with_name("sweep.py")
INIT_REFUSED = {
    "library-mismatch": "NVMLError_LibRmVersionMismatch",
    "driver-not-loaded": "NVMLError_DriverNotLoaded",
    "no-permission": "NVMLError_NoPermission",
}


# ---- The interface ---------------------------------------------------------------------------------------------------


def test_numbers_are_those_of_pynvml():
    assert len(constants()) > 150
    # FI_MAX grows with every release; an older pynvml lacks the newest names.
    known = {name: getattr(pynvml, name) for name in constants() if name != "NVML_FI_MAX" and hasattr(pynvml, name)}
    assert known == {name: constants()[name] for name in known}
    assert len(known) > 120


def test_structures_are_laid_out_as_pynvml_declares_them(tmp_path):
    header = build.SOURCES[1]
    structures = {
        name: getattr(pynvml, name, None) or getattr(pynvml, f"c_{name}", None)
        for name in re.findall(r"^} (\w+);", header.read_text(), re.MULTILINE)
    }
    structures = {name: structure for name, structure in structures.items() if structure}
    assert len(structures) > 15

    layout = {}
    lines = []
    for name, structure in structures.items():
        layout[name] = ctypes.sizeof(structure)
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for member, *_ in structure._fields_:
            layout[f"{name}.{member}"] = getattr(structure, member).offset
            lines.append(f'printf("{name}.{member} %zu\\n", offsetof({name}, {member}));')
    source = tmp_path / "layout.c"
    source.write_text(
        f'#include <stddef.h>\n#include <stdio.h>\n#include "{header}"\nint main(void) {{ {" ".join(lines)} }}\n'
    )
    if build.COMPILER is None:
        pytest.skip("no C compiler")
    subprocess.run([build.COMPILER, "-o", tmp_path / "layout", source], check=True)
    printed = subprocess.run([tmp_path / "layout"], capture_output=True, text=True, check=True).stdout
    assert {name: int(number) for name, number in map(str.split, printed.splitlines())} == layout


def test_built_once_and_again_when_the_source_is_newer(lib_dir):
    library = lib_dir / build.LIBRARY
    first = library.stat().st_ino
    assert build.build_fake_nvml(lib_dir) == lib_dir
    assert library.stat().st_ino == first
    os.utime(library, (0, 0))
    build.build_fake_nvml(lib_dir)
    assert library.stat().st_mtime > 0


# ---- Healthy machines ------------------------------------------------------------------------------------------------


def test_h100_identity(ask):
    found = ask(
        "h100x8",
        """
        d = gpu(3)
        pci = nvml.nvmlDeviceGetPciInfo(d)
        {
            "driver": nvml.nvmlSystemGetDriverVersion(),
            "nvml": nvml.nvmlSystemGetNVMLVersion(),
            "cuda": nvml.nvmlSystemGetCudaDriverVersion_v2(),
            "count": nvml.nvmlDeviceGetCount(),
            "name": nvml.nvmlDeviceGetName(d),
            "minor": nvml.nvmlDeviceGetMinorNumber(d),
            "index": nvml.nvmlDeviceGetIndex(d),
            "arch": nvml.nvmlDeviceGetArchitecture(d) == nvml.NVML_DEVICE_ARCH_HOPPER,
            "cc": nvml.nvmlDeviceGetCudaComputeCapability(d),
            "pci": fields_of(pci),
            "ext": filled(nvml.nvmlDeviceGetPciInfoExt, d, nvml.nvmlPciInfoExt_v1_t(version=nvml.nvmlPciInfoExt_v1)),
            "inforom": nvml.nvmlDeviceGetInforomImageVersion(d),
            "inforom ecc": nvml.nvmlDeviceGetInforomVersion(d, nvml.NVML_INFOROM_ECC),
            "gsp": [nvml.nvmlDeviceGetGspFirmwareVersion(d).decode(), nvml.nvmlDeviceGetGspFirmwareMode(d)],
            "uuids": len({nvml.nvmlDeviceGetUUID(gpu(i)) for i in range(8)}),
            "serials": len({nvml.nvmlDeviceGetSerial(gpu(i)) for i in range(8)}),
        }
        """,
    )
    address = {
        "busId": "00000000:5D:00.0",
        "domain": 0,
        "bus": 0x5D,
        "device": 0,
        "pciDeviceId": 0x233010DE,
        "pciSubSystemId": 0x16C110DE,
    }
    assert found == {
        "driver": "580.95.05",
        "nvml": "13.580.95.05",
        "cuda": 13000,
        "count": 8,
        "name": "NVIDIA H100 80GB HBM3",
        "minor": 3,
        "index": 3,
        "arch": True,
        "cc": [9, 0],
        "pci": {**address, "busIdLegacy": "0000:5D:00.0"},
        "ext": {**address, "version": pynvml.nvmlPciInfoExt_v1, "baseClass": 3, "subClass": 2},
        "inforom": "G520.0200.00.05",
        "inforom ecc": "7.16",
        "gsp": ["580.95.05", [1, 1]],
        "uuids": 8,
        "serials": 8,
    }


@pytest.mark.parametrize(
    ("call", "device"),
    [
        ("nvmlDeviceGetHandleByUUID", "GPU-5d0c1b7e-0f40-4a51-8c11-6a2f00c0de03"),
        ("nvmlDeviceGetHandleBySerial", "1650900000013"),
        ("nvmlDeviceGetHandleByPciBusId", "00000000:5D:00.0"),
        ("nvmlDeviceGetHandleByPciBusId", "0000:5d:00.0"),
        ("nvmlDeviceGetHandleByPciBusId", "5d:00"),
    ],
)
def test_handles_by_other_names(ask, call, device):
    assert ask("h100x8", f"nvml.nvmlDeviceGetIndex(nvml.{call}({device!r}))") == 3


def test_h100_memory(ask):
    found = ask(
        "h100x8-busy",
        """
        d = gpu(0)
        process, = nvml.nvmlDeviceGetComputeRunningProcesses(d)
        {
            "v1": fields_of(nvml.nvmlDeviceGetMemoryInfo(d)),
            "v2": fields_of(nvml.nvmlDeviceGetMemoryInfo(d, nvml.nvmlMemory_v2)),
            "bar1": fields_of(nvml.nvmlDeviceGetBAR1MemoryInfo(d)),
            "wrong version": tried(nvml.nvmlDeviceGetMemoryInfo, d, 7),
            "process": vars(process),
            "process v2": [p.pid for p in nvml.nvmlDeviceGetComputeRunningProcesses_v2(d)],
            "graphics": nvml.nvmlDeviceGetGraphicsRunningProcesses(d),
            "name": nvml.nvmlSystemGetProcessName(process.pid),
            "utilization": fields_of(nvml.nvmlDeviceGetUtilizationRates(d)),
        }
        """,
    )
    total, reserved, used = 81559 * MIB, 551 * MIB, 68210 * MIB
    assert found == {
        "v1": {"total": total, "free": total - reserved - used, "used": used + reserved},
        "v2": {
            "version": pynvml.nvmlMemory_v2,
            "total": total,
            "reserved": reserved,
            "free": total - reserved - used,
            "used": used,
        },
        "bar1": {"bar1Total": 128 * GIB, "bar1Free": 128 * GIB - MIB, "bar1Used": MIB},
        "wrong version": "NVMLError_ArgumentVersionMismatch",
        "process": {
            "pid": 41007,
            "usedGpuMemory": 68202 * MIB,
            "gpuInstanceId": 0xFFFFFFFF,
            "computeInstanceId": 0xFFFFFFFF,
        },
        "process v2": [41007],
        "graphics": [],
        "name": "python3",
        "utilization": {"gpu": 99, "memory": 46},
    }


def test_h100_errors(ask):
    found = ask(
        "h100x8",
        """
        d = gpu(0)
        sram = filled(nvml.nvmlDeviceGetSramEccErrorStatus, d, nvml.c_nvmlEccSramErrorStatus_v1_t())
        {
            "mode": nvml.nvmlDeviceGetEccMode(d),
            "total": nvml.nvmlDeviceGetTotalEccErrors(d, 1, nvml.NVML_VOLATILE_ECC),
            "texture": tried(nvml.nvmlDeviceGetMemoryErrorCounter, d, 0, 0, nvml.NVML_MEMORY_LOCATION_TEXTURE_MEMORY),
            "sram": [number for name, number in sram.items() if name != "version"],
            "retired": tried(nvml.nvmlDeviceGetRetiredPages, d, 0),
            "remapped": nvml.nvmlDeviceGetRemappedRows(d),
            "banks": fields_of(nvml.nvmlDeviceGetRowRemapperHistogram(d)),
            "action": field(d, nvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION),
        }
        """,
    )
    assert found == {
        "mode": [1, 1],
        "total": 0,
        "texture": "NVMLError_NotSupported",
        "sram": [0] * 12,
        "retired": "NVMLError_NotSupported",
        "remapped": [0, 0, 0, 0],
        "banks": {"max": 2560, "high": 0, "partial": 0, "low": 0, "none": 0},
        "action": 0,
    }


def test_h100_links_and_fabric(ask):
    found = ask(
        "h100x8",
        """
        d = gpu(7)
        remote = nvml.nvmlDeviceGetNvLinkRemotePciInfo(d, 9)
        def without_uuid(call, structure):
            return {name: value for name, value in filled(call, d, structure).items() if name != "clusterUuid"}
        {
            "states": [nvml.nvmlDeviceGetNvLinkState(d, link) for link in range(18)],
            "no such link": tried(nvml.nvmlDeviceGetNvLinkState, d, 18),
            "version": nvml.nvmlDeviceGetNvLinkVersion(d, 0) == nvml.NVML_NVLINK_VERSION_4_0,
            "p2p": nvml.nvmlDeviceGetNvLinkCapability(d, 0, nvml.NVML_NVLINK_CAP_P2P_SUPPORTED),
            "remote": [remote.busId, remote.pciDeviceId, nvml.nvmlDeviceGetNvLinkRemoteDeviceType(d, 9)],
            "count": field(d, nvml.NVML_FI_DEV_NVLINK_LINK_COUNT),
            "speed": field(d, nvml.NVML_FI_DEV_NVLINK_SPEED_MBPS_L11),
            "speed of last": field(d, nvml.NVML_FI_DEV_NVLINK_GET_SPEED, 17),
            "speed beyond": field(d, nvml.NVML_FI_DEV_NVLINK_GET_SPEED, 18),
            "replays": nvml.nvmlDeviceGetNvLinkErrorCounter(d, 3, nvml.NVML_NVLINK_ERROR_DL_REPLAY),
            "replays as field": field(d, nvml.NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, 3),
            "all replays": field(d, nvml.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL),
            "fabric": without_uuid(nvml.nvmlDeviceGetGpuFabricInfo, nvml.c_nvmlGpuFabricInfo_t()),
            "fabric v2": without_uuid(nvml.nvmlDeviceGetGpuFabricInfoV, nvml.c_nvmlGpuFabricInfo_v2_t()),
            "fabric v3": without_uuid(nvml.nvmlDeviceGetGpuFabricInfoV, nvml.c_nvmlGpuFabricInfo_v3_t()),
            "nothing": field(d, nvml.NVML_FI_DEV_C2C_LINK_COUNT),
        }
        """,
    )
    completed = {"status": 0, "cliqueId": 0, "state": pynvml.NVML_GPU_FABRIC_STATE_COMPLETED}
    assert found == {
        "states": [1] * 18,
        "no such link": "NVMLError_InvalidArgument",
        "version": True,
        "p2p": 1,
        "remote": ["00000000:07:00.0", 0x22A310DE, pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH],
        "count": 18,
        "speed": 26562,
        "speed of last": 26562,
        "speed beyond": "NVMLError_InvalidArgument",
        "replays": 0,
        "replays as field": 0,
        "all replays": 0,
        "fabric": completed,
        "fabric v2": {**completed, "version": pynvml.nvmlGpuFabricInfo_v2, "healthMask": 0x1AA},
        "fabric v3": {**completed, "version": pynvml.nvmlGpuFabricInfo_v3, "healthMask": 0x1AA, "healthSummary": 1},
        "nothing": "NVMLError_NotSupported",
    }


def test_h100_power_temperature_clocks(ask):
    found = ask(
        "h100x8",
        """
        d = gpu(0)
        energy = nvml.nvmlDeviceGetTotalEnergyConsumption(d)
        {
            "power": [nvml.nvmlDeviceGetPowerUsage(d), nvml.nvmlDeviceGetEnforcedPowerLimit(d)],
            "default": nvml.nvmlDeviceGetPowerManagementDefaultLimit(d),
            "limits": nvml.nvmlDeviceGetPowerManagementLimitConstraints(d),
            "temperature": [nvml.nvmlDeviceGetTemperature(d, 0), nvml.nvmlDeviceGetTemperatureV(d, 0)],
            "margin": nvml.nvmlDeviceGetMarginTemperature(d),
            "shutdown limit": field(d, nvml.NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT),
            "slowdown": nvml.nvmlDeviceGetTemperatureThreshold(d, nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
            "clock": nvml.nvmlDeviceGetClockInfo(d, nvml.NVML_CLOCK_SM),
            "max clock": nvml.nvmlDeviceGetMaxClockInfo(d, nvml.NVML_CLOCK_MEM),
            "no such clock": tried(nvml.nvmlDeviceGetClockInfo, d, 4),
            "reasons": nvml.nvmlDeviceGetCurrentClocksEventReasons(d),
            "reasons by old name": nvml.nvmlDeviceGetCurrentClocksThrottleReasons(d),
            "fans": nvml.nvmlDeviceGetNumFans(d),
            "fan speed": [tried(nvml.nvmlDeviceGetFanSpeed, d), tried(nvml.nvmlDeviceGetFanSpeed_v2, d, 0)],
            "energy grows": nvml.nvmlDeviceGetTotalEnergyConsumption(d) >= energy > 0,
        }
        """,
    )
    assert found == {
        "power": [71000, 700000],
        "default": 700000,
        "limits": [200000, 700000],
        "temperature": [31, 31],
        "margin": 54,
        "shutdown limit": -8,
        "slowdown": 87,
        "clock": 345,
        "max clock": 2619,
        "no such clock": "NVMLError_InvalidArgument",
        "reasons": pynvml.nvmlClocksThrottleReasonGpuIdle,
        "reasons by old name": pynvml.nvmlClocksThrottleReasonGpuIdle,
        "fans": 0,
        "fan speed": ["NVMLError_NotSupported", "NVMLError_NotSupported"],
        "energy grows": True,
    }


def test_h100_topology(ask):
    found = ask(
        "h100x8",
        """
        near = nvml.nvmlDeviceGetTopologyNearestGpus(gpu(5), nvml.NVML_TOPOLOGY_NODE)
        {
            "near": nvml.nvmlDeviceGetTopologyCommonAncestor(gpu(0), gpu(3)),
            "far": nvml.nvmlDeviceGetTopologyCommonAncestor(gpu(0), gpu(4)),
            "self": nvml.nvmlDeviceGetTopologyCommonAncestor(gpu(0), gpu(0)),
            "nearest": [nvml.nvmlDeviceGetIndex(d) for d in near],
            "p2p": nvml.nvmlDeviceGetP2PStatus(gpu(0), gpu(7), nvml.NVML_P2P_CAPS_INDEX_NVLINK),
            "cpus": [hex(word) for word in nvml.nvmlDeviceGetCpuAffinity(gpu(0), 3)],
            "memory": [list(nvml.nvmlDeviceGetMemoryAffinity(gpu(i), 1, 0)) for i in (0, 7)],
            "numa": tried(nvml.nvmlDeviceGetNumaNodeId, gpu(0)),
        }
        """,
    )
    assert found == {
        "near": pynvml.NVML_TOPOLOGY_NODE,
        "far": pynvml.NVML_TOPOLOGY_SYSTEM,
        "self": pynvml.NVML_TOPOLOGY_INTERNAL,
        "nearest": [4, 6, 7],
        "p2p": 0,
        "cpus": ["0xffffffffffff", "0xffffffff00000000", "0xffff"],
        "memory": [[1], [2]],
        "numa": "NVMLError_NotSupported",
    }


@pytest.mark.parametrize(
    ("scenario", "expression", "answer"),
    [
        ("t4", "nvml.nvmlDeviceGetName(d)", "Tesla T4"),
        ("t4", "tried(nvml.nvmlDeviceGetNvLinkState, d, 0)", "NVMLError_NotSupported"),
        ("t4", "tried(nvml.nvmlDeviceGetMigMode, d)", "NVMLError_NotSupported"),
        ("t4", "nvml.nvmlDeviceGetMaxMigDeviceCount(d)", 0),
        ("t4", "tried(nvml.nvmlDeviceGetRemappedRows, d)", "NVMLError_NotSupported"),
        ("t4", "nvml.nvmlDeviceGetRetiredPages(d, 0) + nvml.nvmlDeviceGetRetiredPages_v2(d, 1)", []),
        ("t4", "field(d, nvml.NVML_FI_DEV_MEMORY_TEMP)", "NVMLError_NotSupported"),
        ("t4", "field(d, nvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION)", "NVMLError_NotSupported"),
        (
            "t4",
            "tried(filled, nvml.nvmlDeviceGetGpuFabricInfoV, d, nvml.c_nvmlGpuFabricInfo_v2_t())",
            "NVMLError_NotSupported",
        ),
        ("rtx4090", "nvml.nvmlDeviceGetEccMode(d)", [0, 0]),
        ("rtx4090", "tried(nvml.nvmlDeviceGetTotalEccErrors, d, 1, 0)", "NVMLError_NotSupported"),
        ("rtx4090", "tried(nvml.nvmlDeviceGetSerial, d)", "NVMLError_NotSupported"),
        ("rtx4090", "[nvml.nvmlDeviceGetFanSpeed_v2(d, fan) for fan in range(nvml.nvmlDeviceGetNumFans(d))]", [30, 30]),
        ("rtx4090", "tried(nvml.nvmlDeviceGetFanSpeed_v2, d, 2)", "NVMLError_InvalidArgument"),
        ("rtx4090", "[p.pid for p in nvml.nvmlDeviceGetGraphicsRunningProcesses(d)]", [1850, 2077]),
        ("rtx4090", "nvml.nvmlDeviceGetCurrPcieLinkGeneration(d)", 1),
        ("a100-pcie-x4", "[nvml.nvmlDeviceGetNvLinkState(d, link) for link in range(12)]", [0] * 12),
        ("a100-pcie-x4", "field(d, nvml.NVML_FI_DEV_NVLINK_SPEED_MBPS_L0)", 0),
        ("a100-pcie-x4", "tried(nvml.nvmlDeviceGetNvLinkRemotePciInfo, d, 0)", "NVMLError_NotSupported"),
        ("a100-pcie-x4", "tried(nvml.nvmlDeviceGetMigDeviceHandleByIndex, d, 0)", "NVMLError_NotFound"),
        ("no-devices", "nvml.nvmlDeviceGetCount()", 0),
    ],
)
def test_products_answer_and_refuse_as_they_should(ask, scenario, expression, answer):
    assert ask(scenario, f"d = nvml.nvmlDeviceGetCount() and gpu(0)\n{expression}") == answer


def test_mig_instances_are_devices_of_their_own(ask):
    found = ask(
        "mig-instances",
        """
        d = gpu(0)
        uuid = "MIG-0c1d2e3f-0000-5a5a-8b8b-100000000002"
        first, second = (nvml.nvmlDeviceGetMigDeviceHandleByIndex(d, index) for index in range(2))
        {
            "max": [nvml.nvmlDeviceGetMaxMigDeviceCount(gpu(index)) for index in range(2)],
            "third": tried(nvml.nvmlDeviceGetMigDeviceHandleByIndex, d, 2),
            "is": [nvml.nvmlDeviceIsMigDeviceHandle(device).value for device in (d, first)],
            "uuid": nvml.nvmlDeviceGetUUID(second),
            "by uuid": nvml.nvmlDeviceGetGpuInstanceId(nvml.nvmlDeviceGetHandleByUUID(uuid)),
            "memory": nvml.nvmlDeviceGetMemoryInfo(first).total,
            "temperature": tried(nvml.nvmlDeviceGetTemperature, first, 0),
            "parent": nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(first)),
        }
        """,
    )
    assert found == {
        "max": [7, 0],
        "third": "NVMLError_NotFound",
        "is": [0, 1],
        "uuid": "MIG-0c1d2e3f-0000-5a5a-8b8b-100000000002",
        "by uuid": 2,
        "memory": 40192 * MIB,
        "temperature": "NVMLError_NotSupported",
        "parent": "GPU-a1c0e7d2-53b8-4f6e-9d20-7711aa000000",
    }


# ---- Faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scenario", "error"), INIT_REFUSED.items())
def test_init_refused(ask, scenario, error):
    found = ask(
        scenario,
        "[tried(nvml.nvmlInit), tried(nvml.nvmlDeviceGetCount), nvml.nvmlSystemGetNVMLVersion()]",
        init=False,
    )
    assert found == [error, "NVMLError_Uninitialized", "13.580.95.05"]


def test_lost_gpu(ask):
    found = ask(
        "gpu-lost",
        """
        {
            "count": nvml.nvmlDeviceGetCount(),
            "handles": [str(tried(lambda: gpu(index) and "ok")) for index in range(8)],
            "by uuid": tried(nvml.nvmlDeviceGetHandleByUUID, "GPU-5d0c1b7e-0f40-4a51-8c11-6a2f00c0de05"),
            "by address": tried(nvml.nvmlDeviceGetHandleByPciBusId, "0000:BB:00.0"),
            "message": str(nvml.NVMLError(nvml.NVML_ERROR_GPU_IS_LOST)),
        }
        """,
    )
    assert found == {
        "count": 8,
        "handles": ["ok"] * 5 + ["NVMLError_GpuIsLost"] + ["ok"] * 2,
        "by uuid": "NVMLError_GpuIsLost",
        "by address": "NVMLError_GpuIsLost",
        "message": "GPU is lost",
    }


def test_gpu_lost_after_its_handle_was_taken(ask):
    found = ask(
        "gpu-lost-with-handle",
        """
        d = gpu(5)
        [
            tried(nvml.nvmlDeviceGetName, d),
            tried(nvml.nvmlDeviceGetFieldValues, d, [nvml.NVML_FI_DEV_ECC_CURRENT]),
            tried(nvml.nvmlDeviceGetTopologyCommonAncestor, gpu(0), d),
            nvml.nvmlDeviceGetName(gpu(4)),
        ]
        """,
    )
    assert found == ["NVMLError_GpuIsLost"] * 3 + ["NVIDIA H100 80GB HBM3"]


def test_hang_is_a_hang(ask):
    assert ask("hang", "[nvml.nvmlDeviceGetPowerUsage(gpu(4)), nvml.nvmlDeviceGetTemperature(gpu(5), 0)]") == [
        71000,
        31,
    ]
    with pytest.raises(subprocess.TimeoutExpired):
        ask("hang", "nvml.nvmlDeviceGetPowerUsage(gpu(5))", timeout=2)
    with pytest.raises(subprocess.TimeoutExpired):
        ask("hang-init", "nvml.nvmlDeviceGetCount()", timeout=2)


def test_old_driver_lacks_what_came_later(ask):
    found = ask(
        "old-driver",
        """
        d = gpu(0)
        {
            "cuda": nvml.nvmlSystemGetCudaDriverVersion(),
            "memory v2": tried(nvml.nvmlDeviceGetMemoryInfo, d, nvml.nvmlMemory_v2),
            "memory": nvml.nvmlDeviceGetMemoryInfo(d).total,
            "reasons": tried(nvml.nvmlDeviceGetCurrentClocksEventReasons, d),
            "old reasons": nvml.nvmlDeviceGetCurrentClocksThrottleReasons(d),
            "processes": tried(nvml.nvmlDeviceGetComputeRunningProcesses, d),
            "processes v2": nvml.nvmlDeviceGetComputeRunningProcesses_v2(d),
            "new field": field(d, nvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION),
            "old field": field(d, nvml.NVML_FI_DEV_REMAPPED_PENDING),
        }
        """,
    )
    assert found == {
        "cuda": 11040,
        "memory v2": "NVMLError_FunctionNotFound",
        "memory": 80 * GIB,
        "reasons": "NVMLError_FunctionNotFound",
        "old reasons": pynvml.nvmlClocksThrottleReasonGpuIdle,
        "processes": "NVMLLibraryMismatchError",
        "processes v2": [],
        "new field": "NVMLError_InvalidArgument",
        "old field": 0,
    }


def test_vgpu_refuses_most(ask):
    found = ask(
        "not-supported",
        """
        d = gpu(0)
        grid = nvml.nvmlDeviceGetGridLicensableFeatures(d)
        feature = grid.gridLicensableFeatures[0]
        {
            "name": nvml.nvmlDeviceGetName(d),
            "mode": nvml.nvmlDeviceGetVirtualizationMode(d) == nvml.NVML_GPU_VIRTUALIZATION_MODE_VGPU,
            "licence": [grid.isGridLicenseSupported, grid.licensableFeaturesCount, feature.featureState],
            "product": feature.productName,
            "refused": list({
                tried(nvml.nvmlDeviceGetTemperature, d, 0),
                tried(nvml.nvmlDeviceGetPowerUsage, d),
                tried(nvml.nvmlDeviceGetEccMode, d),
                tried(nvml.nvmlDeviceGetCurrPcieLinkWidth, d),
                tried(nvml.nvmlDeviceGetCurrentClocksEventReasons, d),
                tried(nvml.nvmlDeviceGetSerial, d),
                tried(nvml.nvmlDeviceGetCpuAffinity, d, 1),
                tried(nvml.nvmlDeviceValidateInforom, d),
            }),
        }
        """,
    )
    assert found == {
        "name": "NVIDIA A40-8Q",
        "mode": True,
        "licence": [1, 1, 1],
        "product": "NVIDIA RTX Virtual Workstation",
        "refused": ["NVMLError_NotSupported"],
    }


HOT = pynvml.nvmlClocksThrottleReasonHwThermalSlowdown
BRAKE = pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown


@pytest.mark.parametrize(
    ("scenario", "expression", "bad", "good"),
    [
        ("throttled", f"nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu(i)) & {HOT}", {5: HOT}, 0),
        (
            "throttled",
            "nvml.nvmlDeviceGetTemperature(gpu(i), 0) > nvml.nvmlDeviceGetTemperatureThreshold(gpu(i), 1)",
            {5: True},
            False,
        ),
        (
            "throttled",
            "nvml.nvmlDeviceGetViolationStatus(gpu(i), nvml.NVML_PERF_POLICY_THERMAL).violationTime > 0",
            {5: True},
            False,
        ),
        ("power-brake", f"nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu(i)) & {BRAKE}", {}, BRAKE),
        ("power-capped", "nvml.nvmlDeviceGetEnforcedPowerLimit(gpu(i))", {6: 300000}, 700000),
        ("ecc-pending-remap", "nvml.nvmlDeviceGetTotalEccErrors(gpu(i), 1, 0)", {2: 2}, 0),
        ("ecc-pending-remap", "field(gpu(i), 4)", {2: 2}, 0),
        ("ecc-pending-remap", "nvml.nvmlDeviceGetDetailedEccErrors(gpu(i), 1, 1).deviceMemory", {2: 2}, 0),
        ("ecc-pending-remap", "nvml.nvmlDeviceGetRemappedRows(gpu(i))", {2: [0, 1, 1, 0]}, [0, 0, 0, 0]),
        ("remap-failed", "nvml.nvmlDeviceGetRemappedRows(gpu(i))", {2: [0, 9, 0, 1]}, [0, 0, 0, 0]),
        ("remap-failed", "getattr(nvml.nvmlDeviceGetRowRemapperHistogram(gpu(i)), 'none')", {2: 1}, 0),
        ("nvlink-half-down", "sum(nvml.nvmlDeviceGetNvLinkState(gpu(i), link) for link in range(18))", {4: 9}, 18),
        ("nvlink-half-down", "field(gpu(i), nvml.NVML_FI_DEV_NVLINK_GET_SPEED, 12)", {4: 0}, 26562),
        ("pcie-width", "nvml.nvmlDeviceGetCurrPcieLinkWidth(gpu(i))", {2: 8}, 16),
        ("pcie-width", "nvml.nvmlDeviceGetPcieReplayCounter(gpu(i)) >= 415", {2: True}, False),
        (
            "orphaned-memory",
            "[tried(nvml.nvmlSystemGetProcessName, p.pid) for p in nvml.nvmlDeviceGetComputeRunningProcesses(gpu(i))]",
            {2: ["NVMLError_NotFound"]},
            [],
        ),
        (
            "memory-without-process",
            "nvml.nvmlDeviceGetMemoryInfo(gpu(i), nvml.nvmlMemory_v2).used >> 20",
            {2: 43008},
            0,
        ),
        (
            "mig-on-without-instances",
            "[nvml.nvmlDeviceGetMigMode(gpu(i)), tried(nvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu(i), 0)]",
            {3: [[1, 1], "NVMLError_NotFound"]},
            [[0, 0], "NVMLError_NotFound"],
        ),
        ("persistence-off", "nvml.nvmlDeviceGetPersistenceMode(gpu(i))", {}, 0),
        (
            "fabric-in-progress",
            "filled(nvml.nvmlDeviceGetGpuFabricInfoV, gpu(i), nvml.c_nvmlGpuFabricInfo_v2_t())['state']",
            {},
            pynvml.NVML_GPU_FABRIC_STATE_IN_PROGRESS,
        ),
        ("recovery-reset", "field(gpu(i), nvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION)", {1: 1}, 0),
    ],
)
def test_one_fault_and_the_neighbours_are_well(ask, scenario, expression, bad, good):
    found = ask(scenario, f"[{expression} for i in range(nvml.nvmlDeviceGetCount())]")
    assert found == [bad.get(index, good) for index in range(len(found))]


# ---- Scenarios -------------------------------------------------------------------------------------------------------


ANSWERING = [name for name in scenario_names() if not any("hang" in key for key, _ in compile_scenario(name))]


@pytest.mark.parametrize("scenario", ANSWERING)
def test_pynvml_can_ask_everything_and_no_key_is_idle(lib_dir, scenario):
    done = subprocess.run(
        [sys.executable, SWEEP],
        env=os.environ | scenario_env(scenario, lib_dir),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)

    inherited = yaml.safe_load((build.SCENARIOS / f"{scenario}.yaml").read_text()).get("base")
    inherited = set(compile_scenario(inherited)) if inherited else set()
    own = {key for key, _ in set(compile_scenario(scenario)) - inherited}
    itself = re.compile(r"gpu\.(\d+)\.topology\.\1")  # a range holds each GPU's distance to itself, too
    assert {key for key in own.intersection(found["unused"]) if not itself.fullmatch(key)} == set()

    if scenario in INIT_REFUSED:
        assert found["refused"]["nvmlInit"] == [INIT_REFUSED[scenario]]


def test_a_scenario_of_ones_own(ask, tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text(
        """
        base: t4
        gpu.*.return.nvmlDeviceGetTemperature: NVML_ERROR_NO_PERMISSION
        gpu.2.return.nvmlDeviceGetTemperature: NVML_SUCCESS
        gpu.1-2.temperature.gpu: 66
        gpu.1.power.usage: null
        gpu.3.pcie.replay_counter: 1000+1000000/s
        gpu.3.retired_pages.double_bit: [{address: 0xabc000, timestamp: 1700000000}]
        return.nvmlDeviceGetEccMode: NVML_ERROR_UNKNOWN
        missing: [nvmlDeviceGetHandleByUUID]
        """
    )
    found = ask(
        str(own),
        """
        import time
        before = nvml.nvmlDeviceGetPcieReplayCounter(gpu(3))
        time.sleep(0.01)
        {
            "temperature": [tried(nvml.nvmlDeviceGetTemperature, gpu(index), 0) for index in range(4)],
            "power": [tried(nvml.nvmlDeviceGetPowerUsage, gpu(index)) for index in range(2)],
            "grows": nvml.nvmlDeviceGetPcieReplayCounter(gpu(3)) - before >= 10000,
            "pages": nvml.nvmlDeviceGetRetiredPages_v2(gpu(3), nvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR),
            "ecc": tried(nvml.nvmlDeviceGetEccMode, gpu(0)),
            "missing": tried(nvml.nvmlDeviceGetHandleByUUID, "x"),
        }
        """,
    )
    assert found == {
        "temperature": ["NVMLError_NoPermission", "NVMLError_NoPermission", 66, "NVMLError_NoPermission"],
        "power": [10000, "NVMLError_NotSupported"],
        "grows": True,
        "pages": [{"address": 0xABC000, "timestamp": 1700000000}],
        "ecc": "NVMLError_Unknown",
        "missing": "NVMLError_FunctionNotFound",
    }


def test_init_and_shutdown_are_counted(ask):
    assert ask(
        "t4",
        """
        d = gpu(0)
        nvml.nvmlInit()
        nvml.nvmlShutdown()
        still = nvml.nvmlDeviceGetName(d)
        nvml.nvmlShutdown()
        [still, tried(nvml.nvmlDeviceGetName, d), tried(nvml.nvmlShutdown)]
        """,
    ) == ["Tesla T4", "NVMLError_Uninitialized", "NVMLError_Uninitialized"]


def test_mistakes_are_loud(lib_dir, tmp_path):
    child = [
        sys.executable,
        "-c",
        "import pynvml; pynvml.nvmlInit(); d = pynvml.nvmlDeviceGetHandleByIndex(0); pynvml.nvmlDeviceGetPowerUsage(d)",
    ]
    env = os.environ | scenario_env("t4", lib_dir)
    done = subprocess.run(
        child, env=env | {"FAKE_NVML_SCENARIO": "/nowhere"}, capture_output=True, text=True, check=False
    )
    assert done.returncode < 0
    assert "names no readable file: /nowhere" in done.stderr

    own = tmp_path / "wrong.yaml"
    own.write_text("{base: t4, gpu.0.power.usage: 70 watts}")
    done = subprocess.run(
        child, env=os.environ | scenario_env(str(own), lib_dir), capture_output=True, text=True, check=False
    )
    assert "not a number: 70 watts" in done.stderr

    own.write_text("gpu.0.pci.bus_id: 10.5")
    with pytest.raises(TypeError, match="does it need quotes"):
        list(compile_scenario(str(own)))
    own.write_text("gpu.0.brand: NVML_BRAND_VOODOO")
    with pytest.raises(KeyError, match="NVML_BRAND_VOODOO"):
        list(compile_scenario(str(own)))
