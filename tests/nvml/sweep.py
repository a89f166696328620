"""Ask the fake library everything that pynvml can ask; run in a child process that sees a scenario.

Prints what was refused and how, and which keys of the scenario nobody asked for.
"""

import ctypes
import inspect
import itertools
import json

import pynvml

ECC = [range(2), range(2)]
LINK = [range(pynvml.NVML_NVLINK_MAX_LINKS)]
ARGUMENTS = {
    "nvmlDeviceGetApplicationsClock": [range(4)],
    "nvmlDeviceGetClockInfo": [range(4)],
    "nvmlDeviceGetCpuAffinity": [[4]],
    "nvmlDeviceGetCpuAffinityWithinScope": [[4], range(2)],
    "nvmlDeviceGetDefaultApplicationsClock": [range(4)],
    "nvmlDeviceGetDetailedEccErrors": ECC,
    "nvmlDeviceGetFanSpeed_v2": [range(3)],
    "nvmlDeviceGetFieldValues": [
        [[(field, scope) for field in range(pynvml.NVML_FI_MAX) for scope in (0, 17, 0xFFFFFFFF)]]
    ],
    "nvmlDeviceGetInforomVersion": [range(4)],
    "nvmlDeviceGetMaxClockInfo": [range(4)],
    "nvmlDeviceGetMaxCustomerBoostClock": [range(4)],
    "nvmlDeviceGetMemoryAffinity": [[1], range(2)],
    "nvmlDeviceGetMemoryErrorCounter": [*ECC, range(8)],
    "nvmlDeviceGetMemoryInfo": [[None, pynvml.nvmlMemory_v2]],
    "nvmlDeviceGetMigDeviceHandleByIndex": [range(8)],
    "nvmlDeviceGetNvLinkCapability": [*LINK, range(6)],
    "nvmlDeviceGetNvLinkErrorCounter": [*LINK, range(5)],
    "nvmlDeviceGetNvLinkRemoteDeviceType": LINK,
    "nvmlDeviceGetNvLinkRemotePciInfo": LINK,
    "nvmlDeviceGetNvLinkState": LINK,
    "nvmlDeviceGetNvLinkVersion": LINK,
    "nvmlDeviceGetPcieThroughput": [range(2)],
    "nvmlDeviceGetRetiredPages": [range(2)],
    "nvmlDeviceGetRetiredPages_v2": [range(2)],
    "nvmlDeviceGetTemperature": [range(2)],
    "nvmlDeviceGetTemperatureThreshold": [range(8)],
    "nvmlDeviceGetTemperatureV": [range(2)],
    "nvmlDeviceGetTopologyNearestGpus": [range(0, 60, 10)],
    "nvmlDeviceGetViolationStatus": [range(12)],
}

refused = {}


def ask(name, *arguments):
    try:
        return getattr(pynvml, name)(*arguments)
    except (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError) as error:
        refused.setdefault(name, set()).add(type(error).__name__)
        return None


def ask_device(device):
    for name, function in vars(pynvml).items():
        if name.startswith("nvmlDeviceGetHandleBy") or not name.startswith(("nvmlDeviceGet", "nvmlDeviceIs")):
            continue
        required = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
        if name in ARGUMENTS or len(required) == 1:
            for arguments in itertools.product(*ARGUMENTS.get(name, [])):
                ask(name, device, *arguments)
    for name, structure in (
        ("nvmlDeviceGetPciInfoExt", pynvml.nvmlPciInfoExt_v1_t(version=pynvml.nvmlPciInfoExt_v1)),
        ("nvmlDeviceGetSramEccErrorStatus", pynvml.c_nvmlEccSramErrorStatus_v1_t()),
        ("nvmlDeviceGetGpuFabricInfo", pynvml.c_nvmlGpuFabricInfo_t()),
        ("nvmlDeviceGetGpuFabricInfoV", pynvml.c_nvmlGpuFabricInfo_v2_t()),
        ("nvmlDeviceGetGpuFabricInfoV", pynvml.c_nvmlGpuFabricInfo_v3_t()),
    ):
        ask(name, device, ctypes.byref(structure))


def ask_pair(one, other):
    ask("nvmlDeviceGetTopologyCommonAncestor", one, other)
    for index in range(5):
        ask("nvmlDeviceGetP2PStatus", one, other, index)


def main():
    ask("nvmlInit")
    for name in ("DriverVersion", "NVMLVersion", "CudaDriverVersion", "CudaDriverVersion_v2"):
        ask(f"nvmlSystemGet{name}")
    devices = [ask("nvmlDeviceGetHandleByIndex", index) for index in range(ask("nvmlDeviceGetCount") or 0)]
    for device in filter(None, devices):
        ask_device(device)
        ask("nvmlDeviceGetHandleByUUID", ask("nvmlDeviceGetUUID", device) or "")
        ask("nvmlDeviceGetHandleBySerial", ask("nvmlDeviceGetSerial", device) or "")
        ask("nvmlDeviceGetHandleByPciBusId", getattr(ask("nvmlDeviceGetPciInfo", device), "busId", "0000:FF:1F.0"))
        for kind in ("Compute", "Graphics", "MPSCompute"):
            for process in ask(f"nvmlDeviceGet{kind}RunningProcesses", device) or []:
                ask("nvmlSystemGetProcessName", process.pid)
        for index in range(ask("nvmlDeviceGetMaxMigDeviceCount", device) or 0):
            mig_device = ask("nvmlDeviceGetMigDeviceHandleByIndex", device, index)
            if mig_device:
                ask_device(mig_device)
    for pair in itertools.permutations(filter(None, devices), 2):
        ask_pair(*pair)

    unused_key = ctypes.CDLL("libnvidia-ml.so.1").fakeNvmlUnusedKey
    unused_key.restype = ctypes.c_char_p
    unused = itertools.takewhile(bool, map(unused_key, itertools.count()))
    print(
        json.dumps(
            {"refused": {name: sorted(how) for name, how in refused.items()}, "unused": [k.decode() for k in unused]}
        )
    )


if __name__ == "__main__":
    main()
