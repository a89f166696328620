"""`gpudoctor collect`: the file it makes, that it diagnoses as the machine did, and that it is whole or not there."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from nvml.build import scenario_env

SCENARIOS = ("h100x8", "gpu-lost", "library-mismatch", "ecc-pending-remap", "nvlink-half-down", "hang")


def shape(report: dict) -> list[tuple]:
    return [
        (f["id"], f["role"], f["severity"], [s["name"] for s in f["subjects"]], f["because"])
        for f in report["findings"]
    ]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_snapshot_diagnoses_as_the_live_run_did(gpudoctor, tmp_path, scenario):
    bundle = tmp_path / "b.tar.gz"
    # with everything run in both, the two live runs see the same machine
    made = gpudoctor(
        "collect", "-o", str(bundle), "--profile", "standard", "--timeout", "14", scenario=scenario, timeout=90
    )
    assert made.code == 0, made.err
    assert "does not lead to the same findings" not in made.err
    assert made.out == f"{bundle}\n"
    live = gpudoctor("--json", "--timeout", "14", scenario=scenario, timeout=90).report
    snapshot = gpudoctor("diagnose", "--json", str(bundle)).report
    assert snapshot["source"]["kind"] == "snapshot"
    assert snapshot["source"]["problems"] == []
    assert snapshot["status"] == live["status"]
    assert [entry[:3] for entry in shape(snapshot)] == [entry[:3] for entry in shape(live)]
    for known in ("driver", "cuda", "module", "kernel", "os"):
        assert snapshot["node"].get(known) == live["node"].get(known), known
    ran = {probe["name"]: probe["status"] for probe in live["probes"] if probe["reason"] != "no open question needs it"}
    assert {probe["name"]: probe["status"] for probe in snapshot["probes"]} == ran


def test_what_the_file_holds(gpudoctor, tmp_path):
    log = tmp_path / "train.log"
    log.write_text("RuntimeError: CUDA error: out of memory\n")
    bundle = tmp_path / "b.tar.xz"
    made = gpudoctor("collect", "-o", str(bundle), "--with", str(log), scenario="t4", timeout=90)
    assert made.code == 0, made.err
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600
    with tarfile.open(bundle) as archive:
        names = archive.getnames()
        assert all(name.startswith("b/") for name in names)
        manifest = json.load(archive.extractfile("b/manifest.json"))
        assert names[0] == "b/manifest.json"
        assert {"b/report.json", "b/report.txt", "b/facts.json", "b/with/1-train.log"} <= set(names)
        for name, entry in manifest["files"].items():
            content = archive.extractfile(f"b/{name}").read()
            assert (len(content), hashlib.sha256(content).hexdigest()) == (entry["size"], entry["sha256"])
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def test_unpacked_it_reads_the_same(gpudoctor, tmp_path):
    bundle = tmp_path / "b.tar.gz"
    gpudoctor("collect", "-o", str(bundle), "--profile", "quick", scenario="gpu-lost", timeout=90)
    with tarfile.open(bundle) as archive:
        archive.extractall(tmp_path / "out", filter="data") if sys.version_info >= (3, 12) else archive.extractall(
            tmp_path / "out"
        )
    packed = gpudoctor("diagnose", "--json", str(bundle)).report
    unpacked = gpudoctor("diagnose", "--json", str(tmp_path / "out")).report
    assert shape(packed) == shape(unpacked)


def test_a_fixture_is_a_test_that_passes(gpudoctor, tmp_path):
    made = gpudoctor("collect", "--fixture", str(tmp_path / "lost"), scenario="gpu-lost", timeout=90)
    assert made.code == 0, made.err
    report = gpudoctor("diagnose", "--json", str(tmp_path / "lost" / "input")).report
    assert f"first: {report['findings'][0]['id']}" in (tmp_path / "lost" / "expected.yaml").read_text()
    again = gpudoctor("collect", "--fixture", str(tmp_path / "lost"), scenario="gpu-lost")
    assert again.code == 73


def test_a_changed_snapshot_is_noted(gpudoctor, tmp_path):
    gpudoctor("collect", "--fixture", str(tmp_path / "f"), "--profile", "quick", scenario="t4", timeout=90)
    path = next((tmp_path / "f" / "input" / "root").rglob("meminfo"))
    path.write_bytes(path.read_bytes() + b"x\n")
    report = gpudoctor("diagnose", "--json", str(tmp_path / "f" / "input")).report
    assert any("meminfo" in problem and "changed" in problem for problem in report["source"]["problems"])


def test_the_plan_reads_nothing(gpudoctor):
    done = gpudoctor("collect", "--plan", "--profile", "quick")
    assert done.code == 0
    assert "/proc/driver/nvidia/version" in done.out
    assert "nvidia-smi -q" not in done.out


@pytest.mark.parametrize(
    "arguments,code",
    [
        (["-o", "/no/such/folder/x.tar.gz"], 73),
        (["-o", "x.zip"], 73),
        (["--with", "/no/such.log"], 66),
        (["--timeout", "x"], 64),
    ],
)
def test_refusals_are_one_line(gpudoctor, arguments, code):
    done = gpudoctor("collect", *arguments)
    assert done.code == code
    assert done.err.count("\n") == 1
    assert done.out == ""


def test_a_time_that_journalctl_does_not_know_is_refused(gpudoctor, tmp_path):
    """journalctl's words are its own, so it is asked; here by what systemd 252 answers."""
    journalctl = tmp_path / "bin/journalctl"
    journalctl.parent.mkdir()
    journalctl.write_text(
        '#!/bin/sh\ncase "$*" in *garbage*) echo "Failed to parse timestamp: garbage" >&2; exit 1;; esac\n'
    )
    journalctl.chmod(0o755)
    path = f"{journalctl.parent}:{os.environ['PATH']}"
    bundle = tmp_path / "b.tar.gz"
    done = gpudoctor("collect", "--since", "garbage", "-o", str(bundle), PATH=path)
    assert done.code == 64
    assert done.err.startswith("gpudoctor: --since 'garbage': no time that journalctl knows")
    assert done.err.count("\n") == 1
    assert not bundle.exists()
    done = gpudoctor("collect", "--since", "2 hours ago", "-o", str(bundle), "--profile", "quick", PATH=path)
    assert done.code == 0, done.err


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_run_leaves_nothing(tmp_path, lib_dir, sign):
    env = os.environ | scenario_env("hang", lib_dir)
    process = subprocess.Popen(
        [sys.executable, "-m", "gpudoctor", "collect", "-o", str(tmp_path / "b.tar.gz")], env=env
    )
    time.sleep(2.5)
    process.send_signal(sign)
    process.wait(20)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_replaced_whole(gpudoctor, tmp_path):
    bundle = tmp_path / "b.tar.gz"
    bundle.write_bytes(b"old")
    bundle.chmod(0o644)
    assert gpudoctor("collect", "-o", str(bundle), "--profile", "quick", scenario="t4", timeout=90).code == 0
    assert gzip.decompress(Path(bundle).read_bytes())[:2] == b"b/"
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600
