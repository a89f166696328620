"""Whole bundles: sosreports of several versions, several nodes in one bundle, and what a bundle can't know."""

from __future__ import annotations

import gzip
import lzma
from datetime import datetime, timezone
from pathlib import Path

import pytest

from gpudoctor.diagnosis import Doctor
from gpudoctor.report.text import render_text
from gpudoctor.sources.open import open_sources

from .test_archives import XID, tar, zipped  # isort: skip

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture(scope="module")
def doctor() -> Doctor:
    return Doctor()


def sosreport(host: str, root: str = "", extra: dict[str, bytes] | None = None) -> dict[str, bytes]:
    files = {
        "version.txt": b"sosreport: 4.5.1\n",
        "sos_commands/kernel/uname_-a": f"Linux {host} 5.14.0-427.el9.x86_64 #1 SMP x86_64 GNU/Linux\n".encode(),
        "sos_commands/kernel/dmesg": b"[    0.000000] Linux version 5.14.0-427.el9.x86_64 (x) #1 SMP\n" + XID,
        "sos_commands/pci/lspci_-nnvv": b"3b:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 40GB] [10de:20f1] (rev a1)\n",
        "proc/cmdline": b"BOOT_IMAGE=/vmlinuz-5.14.0 root=/dev/vda1 ro quiet\n",
        "etc/os-release": b'NAME="Rocky Linux"\nVERSION="9.4"\nID="rocky"\nPRETTY_NAME="Rocky Linux 9.4"\n',
        "sos_logs/sos.log": XID.replace(b"79", b"48"),
    } | (extra or {})
    return {root + name: content for name, content in files.items()}


def bug_report(host: str, line: bytes) -> bytes:
    rule = b"_" * 44 + b"\n\n"
    return b"".join(
        (
            rule,
            b"Start of NVIDIA bug report log file.  Please include this file.\n\nnvidia-bug-report.sh Version: 34275561\n\n",
            b"Date: Mon Jul  7 18:43:57 UTC 2025\n",
            f"uname: Linux {host} 6.8.0-62-generic #65-Ubuntu SMP x86_64 GNU/Linux\n\n".encode(),
            rule,
            b"/usr/bin/dmesg:\n\n[    0.000000] Linux version 6.8.0-62-generic (x) #65\n" + line + b"\n",
            rule,
            b"End of NVIDIA bug report log file.\n",
        )
    )


def put(folder, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


@pytest.mark.parametrize("how", ["packed", "unpacked", "inside its folder", "zip"])
def test_a_sosreport(doctor, tmp_path, how):
    files = sosreport("gpu-node-7", "sosreport-gpu-node-7-2024-06-01-abcdefg/")
    path = tmp_path / "bundle"
    match how:
        case "packed":
            path.write_bytes(lzma.compress(tar(files)))
        case "zip":
            path.write_bytes(zipped(files))
        case "unpacked":
            put(path, files)
        case _:
            put(path, sosreport("gpu-node-7"))
    report = doctor.diagnose(open_sources([str(path)]))
    assert report.source.kind == "sosreport"
    assert report.source.problems == []
    assert report.findings[0].id == "hardware.fell-off-bus"
    assert report.findings[0].evidence[0].source.endswith("sos_commands/kernel/dmesg")
    assert report.node["host"] == "gpu-node-7"
    assert any(entry.endswith("sos_logs/sos.log: sos's own record of what it did") for entry in report.source.skipped)
    probes = {probe.name: probe for probe in report.probes}
    assert probes["kernel_log"].status == probes["pci"].status == "ok"
    assert probes["topology"].reason == "not in this sosreport"
    assert (probes["nvml"].status, probes["nvml"].reason) == ("skipped", "no part of a sosreport")


def test_an_earlier_boot_in_a_sosreport_is_history(doctor, tmp_path):
    old = {"sos_commands/logs/journalctl_--no-pager_--boot_-1": b"Jun 01 08:17:02 n kernel: " + XID}
    files = sosreport(
        "n", extra=old | {"sos_commands/kernel/dmesg": b"[    0.000000] Linux version 5.14.0 (x) #1 SMP\n"}
    )
    put(tmp_path, files)
    report = doctor.diagnose(open_sources([str(tmp_path)]))
    assert report.findings[0].history


def test_an_unpacked_sosreport_is_dated_by_its_name(doctor, tmp_path):
    put(
        tmp_path,
        sosreport("n", "sosreport-n-2025-06-01-abcdefg/", {"var/log/messages": b"Jun  1 08:17:02 n kernel: " + XID}),
    )
    report = doctor.diagnose(open_sources([str(tmp_path)]))
    assert report.source.collected_at == "2025-06-01T23:59:59+00:00"
    assert report.findings[0].first_seen == datetime(2025, 6, 1, 8, 17, 2, tzinfo=timezone.utc).timestamp()


def test_several_nodes_in_one_bundle(doctor, tmp_path):
    inner = {
        f"sosreport-gpu-{n}-x.tar.xz": lzma.compress(tar(sosreport(f"gpu-{n}", f"sosreport-gpu-{n}-x/")))
        for n in (1, 2)
    }
    healthy = {"nvidia-bug-report.log.gz": gzip.compress(bug_report("gpu-3", b""))}
    (tmp_path / "all.tar").write_bytes(tar(inner | healthy | {"notes.txt": b"three nodes\n"}))
    report = doctor.diagnose(open_sources([str(tmp_path / "all.tar")]))
    assert [node.source.path for node in report.nodes] == ["gpu-1", "gpu-2", "gpu-3"]
    assert [node.status for node in report.nodes] == ["critical", "critical", "ok"]
    lead = report.findings[0]
    assert lead.id == "hardware.fell-off-bus"
    assert [subject.name for subject in lead.subjects] == ["gpu-1", "gpu-2"]
    assert "The same is found on 2 of 3 nodes" in lead.because
    assert report.nodes[0].source.kind == "sosreport"


def test_two_reports_of_one_node_are_one(doctor, tmp_path):
    put(tmp_path, {"a/nvidia-bug-report.log": bug_report("n", b""), "b/nvidia-bug-report.log": bug_report("n", XID)})
    report = doctor.diagnose(open_sources([str(tmp_path)]))
    assert report.nodes == []
    assert report.findings[0].id == "hardware.fell-off-bus"


def test_a_log_beside_a_bundle_belongs_to_its_node(doctor, tmp_path):
    for n in (1, 2):
        put(
            tmp_path / f"node{n}",
            {"nvidia-bug-report.log": bug_report(f"gpu-{n}", b""), "x.log": XID if n == 2 else b"x\n"},
        )
    report = doctor.diagnose(open_sources([str(tmp_path)]))
    assert [(node.source.path, node.status) for node in report.nodes] == [("gpu-1", "ok"), ("gpu-2", "critical")]


def test_folders_of_several_nodes_are_told_apart_by_their_kernels(doctor, tmp_path):
    for n in (1, 2):
        files = {
            "var/log/kern.log": f"Jun  1 08:17:02 gpu-{n} kernel: ".encode()
            + (XID if n == 2 else b"nvidia: loading out-of-tree module taints kernel.\n"),
            "uname": f"Linux gpu-{n} 6.8.0-79-generic #79-Ubuntu SMP x86_64 GNU/Linux\n".encode(),
            "proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  5{n}0.54.15  Tue Mar  5 22:23:56 UTC 2024\n".encode(),
        }
        put(tmp_path / f"node{n}", files)
    put(tmp_path / "job", {"rank0.log": b"gpu-1:411:411 [0] NCCL INFO Bootstrap : Using eth0\n"})
    report = doctor.diagnose(open_sources([str(tmp_path)]))
    assert [(node.source.path, node.status) for node in report.nodes] == [("gpu-1", "ok"), ("gpu-2", "critical")]
    assert [node.node["module"] for node in report.nodes] == ["510.54.15", "520.54.15"]


def test_a_must_gather(doctor, tmp_path):
    files = {
        "gather/gpu_operand_pods.status": b"NAME READY STATUS\n",
        "gather/gpu_nodes.labels": b"gpu-1\n",
        "gather/nvidia-bug-report_gpu-1.log.gz": gzip.compress(bug_report("driver-abc", XID)),
    }
    (tmp_path / "m.tar.gz").write_bytes(gzip.compress(tar(files)))
    report = doctor.diagnose(open_sources([str(tmp_path / "m.tar.gz")]))
    assert report.source.kind == "must-gather"
    assert report.findings[0].id == "hardware.fell-off-bus"


def test_the_nodes_of_a_must_gather_have_their_own_names(doctor, tmp_path):
    extended = (
        b"\n"
        + b"_" * 44
        + b"\n\nlspci -vvv output (via must-gather extended diagnostics)\n\n3b:00.0 3D controller: NVIDIA Corporation GA100 (rev ff)\n\t!!! Unknown header type 7f\n"
    )
    put(
        tmp_path / "nvidia-gpu-operator_20250707_1843",
        {
            "gpu_operand_pods.status": b"NAME READY STATUS\n",
            "nvidia-bug-report_worker-1.example.net.log.gz": gzip.compress(
                bug_report("nvidia-driver-daemonset-abcde", XID) + extended
            ),
            "nvidia-bug-report_worker-2.example.net.log.gz": gzip.compress(
                bug_report("nvidia-driver-daemonset-fghij", b"")
            ),
        },
    )
    report = doctor.diagnose(open_sources([str(tmp_path)]))
    assert [node.source.path for node in report.nodes][:2] == ["worker-1.example.net", "worker-2.example.net"]
    assert report.source.problems == []
    assert any("extended diagnostics): lspci" in part for part in report.source.read)
    assert render_text(report).splitlines()[1].startswith("2 nodes")


def test_what_a_bug_report_cannot_know(doctor, tmp_path):
    path = tmp_path / "nvidia-bug-report.log"
    path.write_bytes(bug_report("n", b""))
    probes = {probe.name: probe.reason for probe in doctor.diagnose(open_sources([str(path)])).probes}
    assert probes["topology"] == "no part of a bug report"
    assert probes["kernel_version"] == ""


def test_rules_on_what_a_bundle_cannot_know_stay_open(doctor):
    report = doctor.diagnose(open_sources([str(FIXTURES / "bug-report-lost-gpu" / "nvidia-bug-report.log.gz")]))
    undecided = {each.id: each for each in report.undecided}
    assert undecided["driver.mixed-install"].missing == ["module_file"]
    assert undecided["driver.mixed-install"].ask == "send the output of `modinfo nvidia`"
