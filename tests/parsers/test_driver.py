"""Driver messages in the shapes that a single sample doesn't show."""

from __future__ import annotations

import pytest

from gpudoctor.facts.driver import GpuRefusal, SmiError
from gpudoctor.parsers.base import NotThisFormat
from gpudoctor.parsers.driver import api_mismatch, gpu_refusal, smi_failure


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch", "library_mismatch"),
        ("Error: nvmlInit(): Driver/library version mismatch", "library_mismatch"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "driver_not_loaded"),
        ("NVIDIA-SMI has failed because it couldn\u2019t communicate with the NVIDIA driver.", "driver_not_loaded"),
        ("Error: nvmlInit(): Driver Not Loaded", "driver_not_loaded"),
        ("nvml init failed: ERROR_DRIVER_NOT_LOADED", "driver_not_loaded"),
        ("Failed to initialize NVML: Insufficient Permissions", "insufficient_permissions"),
        ("Failed to initialize NVML: GPU access blocked by the operating system", "blocked_by_os"),
        ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", "library_not_found"),
        ("pynvml.nvml.NVMLError_LibraryNotFound: NVML Shared Library Not Found", "library_not_found"),
        ("Failed to initialize NVML: Unknown Error", "unknown_error"),
        ("Failed to initialize NVML: GPU is lost", "gpu_lost"),
        ("nvidia-container-cli: initialization error: driver rpc error: timed out", "timeout"),
        ("-bash: nvidia-smi: command not found", "not_found"),
        ("zsh: command not found: nvidia-smi", "not_found"),
        ('exec: "nvidia-smi": executable file not found in $PATH', "not_found"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'nvidia-smi'", "not_found"),
        ("No devices were found", "no_devices"),
    ],
)
def test_every_wording_of_a_failure(line: str, reason: str) -> None:
    fact = next(smi_failure(line))
    assert isinstance(fact, SmiError)
    assert fact.reason == reason


@pytest.mark.parametrize(
    "line",
    [
        "| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4     |",
        "$ nvidia-smi -q",
        "no such container: nvidia-smi-exporter",
        "No devices were found in zone A of the building",
    ],
)
def test_other_lines_are_no_failure(line: str) -> None:
    with pytest.raises(NotThisFormat):
        next(smi_failure(line))


@pytest.mark.parametrize(
    ("lines", "reason", "version"),
    [
        (
            "NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:139b)\n"
            "NVRM: installed in this system is not supported by the 370.28\nNVRM: NVIDIA Linux driver release.",
            "not_supported",
            "370.28",
        ),
        (
            "[ 8.2] NVRM: The NVIDIA GPU 0000:3c:00.0 (PCI ID: 10de:2d04)\n[ 8.2] NVRM: NVIDIA 550.163.01 driver release.",
            "not_supported",
            "550.163.01",
        ),
        (
            "[ 8.2] NVRM: The NVIDIA GPU 0000:3c:00.0 (PCI ID: 10de:2901)\n"
            "[ 8.2] NVRM: installed in this system requires use of the NVIDIA open kernel modules.",
            "open_required",
            None,
        ),
        (
            "NVRM: The NVIDIA GPU 0000:b1:00.0\nNVRM: (PCI ID: 10de:26b5) installed in this system has\n"
            "NVRM: fallen off the bus and is not responding to commands.",
            "fallen_off",
            None,
        ),
    ],
)
def test_refusals_split_over_lines(lines: str, reason: str, version: str | None) -> None:
    fact = next(gpu_refusal(lines))
    assert isinstance(fact, GpuRefusal)
    assert (fact.reason, fact.version) == (reason, version)
    assert fact.device_id is not None


def test_two_refusals_in_a_row_are_two() -> None:
    one = "NVRM: The NVIDIA GPU 0000:{bus}:00.0 (PCI ID: 10de:2d04)\nNVRM: installed in this system is not supported by the\n"
    text = one.format(bus="01") + one.format(bus="02") + "NVRM: NVIDIA 550.163.01 driver release."
    fact = next(gpu_refusal(text))
    assert fact.gpu == "0000:01:00.0"


def test_a_mismatch_that_is_cut_short_is_still_told() -> None:
    facts = list(api_mismatch("NVRM: API mismatch: the client has the version 525.125.06, but"))
    assert [(fact.kind, fact.value("version")) for fact in facts] == [("driver_library", "525.125.06")]
