"""The report's one sentence."""

from __future__ import annotations

import pytest

from gpudoctor.diagnosis import Doctor
from gpudoctor.sources.memory import TextSource

CUBLAS = "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`\n"
LOST = "[  812.114000] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
ROOT = "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory\n"
NO_LIBRARY = "pynvml.NVMLError_LibraryNotFound: NVML Shared Library Not Found\n"
NO_GPU = """/sys/bus/pci/devices/0000:00:02.0: -> ../../../devices/pci0000:00/0000:00:02.0
/sys/bus/pci/devices/0000:00:02.0/vendor: 0x1af4
/sys/bus/pci/devices/0000:00:02.0/class: 0x030200
"""


@pytest.fixture(scope="module")
def doctor():
    return Doctor()


def summary(doctor, **files):
    return doctor.diagnose(TextSource({f"{name}.log": text for name, text in files.items()})).summary


def test_a_cause_that_is_only_possible_is_not_said_as_certain(doctor):
    assert summary(doctor, a=CUBLAS) == "The work does not fit the GPU's memory (possible, not certain)"
    assert summary(doctor, a=LOST) == "GPU fell off the bus"


def test_further_causes_are_counted(doctor):
    assert summary(doctor, a=LOST, b=ROOT).endswith("(and 1 more)")


def test_one_cause_on_several_gpus_is_one(doctor):
    line = "[  812.114000] NVRM: Xid (PCI:0000:{bus}:00): 48, pid=7, name=p, DBE (double bit error) detected\n"
    text = "".join(line.format(bus=bus) for bus in ("3b", "5e", "86"))
    assert summary(doctor, a=text) == "Uncorrectable ECC error in GPU memory (on 3 GPUs)"


def test_nothing_wrong_names_what_was_looked_at(doctor):
    text = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Thu Sep 25 12:00:00 UTC 2025\n"
    assert summary(doctor, a=text) == "Nothing wrong found"


def test_a_failure_that_no_rule_can_place_is_not_called_right(doctor):
    nvml = doctor.diagnose(TextSource({"a.log": "Failed to initialize NVML: Unknown Error\n"}))
    assert (nvml.status, nvml.summary) == (
        "unknown",
        "nvidia-smi or NVML fails, and what was read doesn't tell why",
    )
    assert "container.device-access-lost" in {missing.id for missing in nvml.undecided}
    program = doctor.diagnose(TextSource({"a.log": "CUDA error: invalid device function at app.cu:7\n"}))
    assert program.status != "ok"


def test_a_driver_that_counts_no_gpu_is_not_called_right(doctor):
    counted = 'begin nvmlInit\nbegin nvmlDeviceGetCount\n{"nvml": "count", "number": 0}\n{"nvml": "end"}\n'
    report = doctor.diagnose(TextSource({"nvml": counted, "pci.log": NO_GPU.replace("0x1af4", "0x10de")}))
    assert report.status != "ok"


def test_a_machine_without_a_gpu_lacks_no_library(doctor):
    source = TextSource({"nvml.log": NO_LIBRARY, "pci.log": NO_GPU})
    source.notes.kind = "snapshot"
    report = doctor.diagnose(source)
    assert (report.status, report.findings) == ("unknown", [])
    assert report.summary.startswith("No NVIDIA device, driver or library on this machine")
    with_gpu = doctor.diagnose(TextSource({"nvml.log": NO_LIBRARY, "pci.log": NO_GPU.replace("0x1af4", "0x10de")}))
    assert "driver.nvml-library-missing" in {finding.id for finding in with_gpu.findings}


def test_nobody_is_asked_for_a_cluster_that_nothing_shows(doctor):
    driver = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Thu Sep 25 12:00:00 UTC 2025\n"
    pod = "NAMESPACE  NAME     READY  STATUS   RESTARTS  AGE\ndefault    train-0  0/1    Pending  0         9m\n"
    alone = doctor.diagnose(TextSource({"version": driver}))
    assert not {kind for open_rule in alone.undecided for kind in open_rule.missing} & {"k8s_node", "cdi_spec"}
    beside = doctor.diagnose(TextSource({"version": driver, "pods": pod}))
    assert "cdi_spec" in {kind for open_rule in beside.undecided for kind in open_rule.missing}
