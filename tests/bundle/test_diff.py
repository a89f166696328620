"""`gpudoctor diff`: what one node has and the other has not, before and after."""

from __future__ import annotations

import json

import pytest

from gpudoctor.bundle.diff import Side, compare
from gpudoctor.collect.offline import collect_offline
from gpudoctor.combiners import combine
from gpudoctor.diagnosis import Doctor
from gpudoctor.sources.memory import TextSource

BEFORE = {
    "version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n",
    "env": "CUDA_VISIBLE_DEVICES=0,1\nNCCL_DEBUG=INFO\nLD_LIBRARY_PATH=/usr/local/cuda/lib64\n",
    "uname": "Linux gpu-1 5.15.0-101-generic #111-Ubuntu SMP x86_64 GNU/Linux\n",
}
AFTER = BEFORE | {
    "version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  Tue Jan 14 22:23:56 UTC 2025\n",
    "dmesg": "[  812.114] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n",
}


@pytest.fixture(scope="module")
def doctor() -> Doctor:
    return Doctor()


def side(doctor: Doctor, name: str, files: dict[str, str]) -> Side:
    source = TextSource(files)
    collected = collect_offline(source, doctor.scanner)
    return Side(name, doctor.judge(collected, source.notes), combine(collected.facts, []))


def test_before_and_after(doctor):
    comparison = compare(side(doctor, "before", BEFORE), side(doctor, "after", AFTER))
    assert "hardware.fell-off-bus" in {finding.id for finding in comparison.only_b}
    assert comparison.only_a == []
    assert [(d.kind, d.field, d.a, d.b) for d in comparison.differences if d.kind == "kernel_module"] == [
        ("kernel_module", "version", "550.54.15", "570.86.10")
    ]
    assert comparison.differences[0].group == "driver and its libraries"


def test_the_same_twice(doctor):
    assert compare(side(doctor, "a", BEFORE), side(doctor, "b", BEFORE)).same


def test_what_only_one_side_knows_is_no_difference(doctor):
    less = {name: text for name, text in BEFORE.items() if name != "env"}
    comparison = compare(side(doctor, "a", BEFORE), side(doctor, "b", less))
    assert comparison.same
    assert ("env_var", "a") in comparison.not_compared


def test_a_thing_that_only_one_side_has_is_told_by_its_first_fields(doctor):
    two = "GPU 0: NVIDIA T4 (UUID: GPU-5a0c9b1e-0000-4000-8000-000000000000)\nGPU 1: NVIDIA T4 (UUID: GPU-5a0c9b1e-0000-4000-8000-000000000001)\n"
    one = two.splitlines()[0] + "\n"
    comparison = compare(side(doctor, "a", {"smi": two}), side(doctor, "b", {"smi": one}))
    assert [(d.a, d.b) for d in comparison.differences if d.kind == "gpu"] == [("NVIDIA T4", "absent")]
    topology = "        GPU0    GPU1    CPU Affinity\nGPU0     X      NV18    0-31\nGPU1    NV18     X      0-31\n"
    comparison = compare(
        side(doctor, "a", {"topo": topology}), side(doctor, "b", {"topo": topology.replace("NV18", "PHB")})
    )
    assert next((d.thing, d.a, d.b) for d in comparison.differences if d.kind == "topology_path")[1:] == ("NV18", "PHB")


def test_values_have_their_units(doctor):
    before = {
        "mem": "MemTotal:       2113390000 kB\nMemFree:  1000 kB\nSwapTotal:             0 kB\n",
        "limits": "Max locked memory         65536                unlimited            bytes     \n"
        "Max open files            1024                 4096                 files     \n",
    }
    after = {
        "mem": before["mem"].replace("2113390000", "1056000000"),
        "limits": before["limits"].replace("65536    ", "unlimited").replace("1024", "4096"),
    }
    found = compare(side(doctor, "a", before), side(doctor, "b", after)).differences
    assert {(d.kind, d.thing, d.field): (d.a, d.b) for d in found} == {
        ("host_memory", "", "total"): ("2063857.422 MiB", "1031250 MiB"),
        ("limit", "memlock", "soft"): ("64 KiB", "unlimited"),
        ("limit", "nofile", "soft"): ("1024", "4096"),
    }


def test_two_snapshots(gpudoctor, tmp_path):
    for name in ("t4", "gpu-lost"):
        done = gpudoctor(
            "collect", "-o", str(tmp_path / f"{name}.tar.gz"), "--profile", "quick", scenario=name, timeout=90
        )
        assert done.code == 0, done.err
    done = gpudoctor("diff", "--json", str(tmp_path / "t4.tar.gz"), str(tmp_path / "gpu-lost.tar.gz"))
    assert done.code == 1, done.err
    found = json.loads(done.out)
    assert "hardware.fell-off-bus" in {finding["id"] for finding in found["findings_only_in_b"]}
    assert any(d["kind"] == "gpu" for d in found["differences"])
    text = gpudoctor("diff", str(tmp_path / "t4.tar.gz"), str(tmp_path / "t4.tar.gz"))
    assert text.code == 0
    assert "Nothing differs" in text.out


def test_a_side_that_is_not_there(gpudoctor, tmp_path):
    done = gpudoctor("diff", str(tmp_path), "/no/such")
    assert done.code == 66
    assert done.err == "gpudoctor: /no/such: no such file or folder\n"


def test_all_parameters_of_a_module_are_not_compared_with_the_few_that_are_set(doctor):
    params = (
        "ResmanDebugLevel: 4294967295\nRmLogonRC: 1\nModifyDeviceFiles: 1\nDeviceFileMode: 438\nEnableGpuFirmware: 18\n"
    )
    sides = [
        {"nvidia.conf": "options nvidia NVreg_EnableGpuFirmware=0\n"},
        {"params": params},
        {"params": params.replace("438", "432")},
    ]
    few, full, other = (side(doctor, name, files) for name, files in zip("abc", sides, strict=True))
    assert [(each.thing, each.a, each.b) for each in compare(few, full).differences] == [
        ("nvidia NVreg_EnableGpuFirmware", "0", "18")
    ]
    assert [(each.thing, each.a, each.b) for each in compare(full, other).differences] == [
        ("nvidia NVreg_DeviceFileMode", "438", "432")
    ]
