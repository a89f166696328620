"""What is compiled once and kept beside the bytecode: it must never change what is found, nor be needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

LOG = "[   12.000000] NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python3, GPU has fallen off the bus.\n"


def diagnose(prefix, **env):
    """Run gpudoctor with its bytecode below `prefix`; returns the report without what tells the time."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | env
    done = subprocess.run(
        [sys.executable, "-m", "gpudoctor", "diagnose", "--json", "-"],
        input=LOG,
        capture_output=True,
        text=True,
        env=env | {"PYTHONPYCACHEPREFIX": str(prefix)},
    )
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert [finding["id"] for finding in report["findings"]][:1] == ["hardware.fell-off-bus"]
    assert report["source"]["problems"] == []
    return report["findings"]


def kept(prefix):
    return sorted(path for path in prefix.rglob("*.bin"))


def test_a_second_run_takes_what_the_first_one_compiled(tmp_path):
    first = diagnose(tmp_path)
    files = kept(tmp_path)
    assert [path.name.rpartition("-")[2] for path in files] == ["anchors.bin", "rules.bin"]
    before = [path.stat().st_mtime_ns for path in files]
    assert diagnose(tmp_path) == first
    assert [path.stat().st_mtime_ns for path in files] == before


@pytest.mark.parametrize("harm", ["cut", "empty", "other key", "overwritten", "one bit"])
def test_a_harmed_file_is_compiled_anew(tmp_path, harm):
    first = diagnose(tmp_path)
    for path in kept(tmp_path):
        key, _, data = path.read_bytes().partition(b"\n")
        wrong = {
            "cut": key + b"\n" + data[: len(data) // 2],
            "empty": b"",
            "other key": b"0" * len(key) + b"\n" + data,
            "overwritten": key + b"\n" + bytes(len(data)),
            "one bit": key + b"\n" + data[:5000] + bytes([data[5000] ^ 1]) + data[5001:],
        }
        path.write_bytes(wrong[harm])
        harmed = path.read_bytes()
        assert diagnose(tmp_path) == first
        assert path.read_bytes() != harmed
    assert all(len(path.read_bytes()) > 5_000 for path in kept(tmp_path))


def test_nothing_is_written_where_python_may_not_write(tmp_path):
    diagnose(tmp_path, PYTHONDONTWRITEBYTECODE="1")
    assert kept(tmp_path) == []


def test_the_probes_are_kept_too(tmp_path):
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "gpudoctor", "--json", "--profile", "quick", "--root", str(tmp_path)]
    reports = []
    for _ in range(2):
        done = subprocess.run(
            command, capture_output=True, text=True, env=env | {"PYTHONPYCACHEPREFIX": str(tmp_path / "x")}
        )
        assert done.stderr == ""
        reports.append(sorted(probe["name"] for probe in json.loads(done.stdout)["probes"]))
    assert [path.name.rpartition("-")[2] for path in kept(tmp_path)] == ["probes.bin", "rules.bin"]
    assert reports[0] == reports[1]
    assert {"pci", "driver_version"} <= set(reports[0])
