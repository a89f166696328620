"""The live machine, with the fake NVML behind the real pynvml."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import psutil
import pytest
from nvml.build import scenario_env
from recorded_node import record

HEALTHY = {"h100x8": 8, "a100-pcie-x4": 4, "rtx4090": 1, "t4": 4}


# rtx4090 is left to the recorded node: its processes would have to exist on this machine.
@pytest.mark.parametrize("scenario", [name for name in HEALTHY if name != "rtx4090"])
def test_healthy_machines_are_ok(gpudoctor, scenario):
    done = gpudoctor("--json", scenario=scenario)
    assert done.causes() == []
    assert (done.report["status"], done.code) == ("ok", 0)
    assert len(done.report["node"]["gpus"]) == HEALTHY[scenario]


# scenario -> the finding that must lead, and words that its sentence must hold
FAULTS = {
    "library-mismatch": ("driver.library-mismatch", []),
    "gpu-lost": ("hardware.fell-off-bus", []),
    "gpu-lost-with-handle": ("hardware.fell-off-bus", []),
    "throttled": ("hardware.thermal-throttle", []),
    "power-brake": ("hardware.power-brake", []),
    "ecc-pending-remap": ("hardware.ecc-uncorrectable", []),
    "remap-failed": ("hardware.row-remap-failed", []),
    "nvlink-half-down": ("nvlink.link-inactive", []),
    "pcie-width": ("pcie.width-degraded", []),
    "mig-on-without-instances": ("driver.mig-misconfigured", []),
    "recovery-reset": ("hardware.reset-required", []),
}


@pytest.mark.parametrize("scenario", FAULTS)
def test_faults_are_named_first(gpudoctor, scenario):
    done = gpudoctor("--json", scenario=scenario)
    expected, words = FAULTS[scenario]
    assert done.causes()[:1] == [expected]
    assert all(word in done.report["findings"][0]["because"] for word in words)
    assert done.code in (1, 2)


@pytest.mark.parametrize("scenario", HEALTHY)
def test_a_recorded_healthy_node_is_ok(gpudoctor, tmp_path, lib_dir, scenario):
    done = gpudoctor("--json", *record(tmp_path, scenario, lib_dir))
    assert done.report["findings"] == []
    assert (done.report["status"], done.code) == ("ok", 0)
    assert done.report["node"]["host"] == "node01"


def test_memory_of_a_process_that_no_longer_exists(gpudoctor, tmp_path, lib_dir):
    """Only the host's own process table can tell: inside a container the same picture proves nothing."""
    done = gpudoctor("--json", *record(tmp_path, "orphaned-memory", lib_dir))
    assert done.causes()[:1] == ["memory.gpu-orphaned"]
    assert any("4194200" in where["text"] for where in done.report["findings"][0]["evidence"])


def test_a_call_that_never_returns_costs_only_what_follows_it(gpudoctor):
    started = time.monotonic()
    done = gpudoctor("--json", "--timeout", "12", scenario="hang")
    assert time.monotonic() - started < 20
    report = done.report
    assert len(report["node"]["gpus"]) == 8
    hung = [probe for probe in report["probes"] if probe["status"] == "timeout"]
    assert [probe["name"] for probe in hung] == ["nvml"]
    assert "nvmlDeviceGetPowerUsage on GPU 5" in hung[0]["reason"]
    assert "driver.nvidia-smi-hangs" in done.causes()


def test_a_call_that_hangs_behind_the_identity_leaves_the_other_gpus_whole(gpudoctor):
    done = gpudoctor("--json", "--timeout", "12", scenario="nvlink-hang")
    report = done.report
    assert "nvmlDeviceGetNvLinkErrorCounter on GPU 2" in next(
        probe["reason"] for probe in report["probes"] if probe["name"] == "nvml"
    )
    assert sorted(len(gpu) > 0 for gpu in report["node"]["gpus"]) == [True] * 8
    assert report["node"]["nvlink"]["0000:db:00.0"]["active"] == 18, report["node"]["nvlink"].keys()


def test_nvml_tells_what_nvlinks_lead_to(gpudoctor):
    done = gpudoctor("topo", "--json", scenario="h100x8")
    data = json.loads(done.out)
    kinds = {(path["path"], path["peer"]) for path in data["paths"] if path["b"].startswith("GPU")}
    assert (done.code, kinds, len(data["paths"])) == (0, {("NV18", "ok")}, 28)
    half = gpudoctor("topo", scenario="nvlink-half-down")
    assert half.code == 1
    assert "GPU4: 9 of 18 NVLinks are down" in half.out
    assert "GPU3 - GPU4: NV9 where the other pairs have NV18" in half.out


def test_a_machine_without_nvidia_says_so(gpudoctor):
    done = gpudoctor("--text")
    assert done.code == 3
    assert done.out.startswith("UNKNOWN: No NVIDIA device, driver or library on this machine")
    assert done.err == ""


@pytest.mark.parametrize("command", [["--json", "--timeout", "60"], ["watch", "--ndjson"]], ids=" ".join)
def test_no_child_outlives_a_gpudoctor_that_was_killed(lib_dir, command, tmp_path):
    """Its NVML child hangs in a call that never returns: nobody else would end it."""
    mark = str(tmp_path)  # in the environment of everything that is started
    env = os.environ | scenario_env("hang", lib_dir) | {"GPUDOCTOR_TEST_MARK": mark}

    def children() -> list[str]:
        found = {}
        for process in psutil.process_iter():
            try:
                if process.environ().get("GPUDOCTOR_TEST_MARK") == mark and process.status() != psutil.STATUS_ZOMBIE:
                    found[process.pid] = " ".join(process.cmdline())
            except psutil.Error:
                continue
        return [command for pid, command in found.items() if pid != doctor.pid]

    state = ["--state", mark] if command[0] == "watch" else []
    doctor = subprocess.Popen([sys.executable, "-m", "gpudoctor", *command, *state], env=env, stdout=subprocess.DEVNULL)
    assert _within(30, lambda: any("nvml" in command for command in children()))
    time.sleep(1)  # until the call that hangs
    doctor.kill()
    doctor.wait()
    assert _within(10, lambda: children() == [])


def _within(seconds, holds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.1)
    return False


def test_sentences_hold_no_line_of_the_child(gpudoctor):
    done = gpudoctor("--json", scenario="no-permission")
    (finding,) = [finding for finding in done.report["findings"] if finding["id"] == "driver.permission-denied"]
    assert finding["because"].endswith("may not open the device files: Insufficient Permissions")
