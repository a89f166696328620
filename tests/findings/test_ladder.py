"""Commands are for this machine."""

from __future__ import annotations

from gpudoctor.diagnosis import Doctor
from gpudoctor.sources.memory import TextSource

XID = "[ 100.0] NVRM: Xid (PCI:0000:{bus}:00): 48, pid=7, name=python3, DBE (double bit error) detected\n"


def commands(text: str) -> list[str]:
    report = Doctor().diagnose(TextSource({"dmesg.txt": text}))
    return [command for finding in report.findings for fix in finding.fixes for command in fix.commands]


def test_the_gpu_is_named_in_the_command():
    found = commands(XID.format(bus="3b"))
    assert "sudo nvidia-smi --gpu-reset -i 0000:3b:00.0" in found
    assert not any("$GPU" in command for command in found)


def test_two_gpus_are_two_commands():
    resets = {c for c in commands(XID.format(bus="3b") + XID.format(bus="86")) if "--gpu-reset" in c}
    assert resets == {f"sudo nvidia-smi --gpu-reset -i 0000:{bus}:00.0" for bus in ("3b", "86")}
