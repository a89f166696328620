"""A sosreport of this machine, made by the sos package where it is installed, is read without a complaint."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from gpudoctor.diagnosis import Doctor
from gpudoctor.sources.open import open_sources

SOS = shutil.which("sos")


@pytest.mark.skipif(SOS is None or os.geteuid() != 0, reason="needs the package sos, and root")
def test_a_real_sosreport(tmp_path):
    subprocess.run(
        [SOS, "report", "--batch", "--quiet", "--tmp-dir", tmp_path, "--only-plugins", "kernel,memory,release"],
        check=True,
        capture_output=True,
        timeout=180,
    )
    report = Doctor().diagnose(open_sources([str(next(tmp_path.glob("sosreport-*.tar.xz")))]))
    assert (report.source.kind, report.source.complete, report.source.problems) == ("sosreport", True, [])
    read = "\n".join(report.source.read)
    assert "sos_commands/kernel/uname_-a: uname" in read
    assert "proc/meminfo: /proc/meminfo" in read
    assert "os-release: os-release" in read
    probes = {probe.name: probe.status for probe in report.probes}
    assert probes["kernel_version"] == probes["meminfo"] == probes["os"] == "ok"
    assert any("sos_logs/sos.log" in entry for entry in report.source.skipped)
