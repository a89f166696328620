"""Examining a live machine: cheap probes first, then what the open questions ask for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from gpudoctor.collect.collected import Collected
from gpudoctor.collect.live import Keep, Progress, run_probes
from gpudoctor.collect.probe import Probe, load_probes
from gpudoctor.declared import declarations
from gpudoctor.diagnosis import Doctor
from gpudoctor.facts.store import FactStore
from gpudoctor.findings.model import ProbeResult, Report
from gpudoctor.sources.base import SourceNotes
from gpudoctor.sources.live import LiveHost

Profile = Literal["quick", "standard", "deep"]
_COSTS = {"quick": ("cheap",), "standard": ("cheap", "standard"), "deep": ("cheap", "standard", "deep")}
# Read first: they tell within milliseconds whether there is anything NVIDIA on this machine.
_FIRST = ("pci", "driver_version", "modules", "host", "os", "kernel_version", "container_self", "container_marks")
_RESERVE = 1.5  # seconds of the deadline kept for judging


def examine(
    doctor: Doctor,
    host: LiveHost,
    *,
    timeout: float = 20.0,
    profile: Profile = "standard",
    progress: Progress = lambda name, result: None,
    on_report: Callable[[Report], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    keep: Keep = lambda probe, seconds, parts: None,
    collected: Collected | None = None,
    everything: bool = False,
    since: str | None = None,
    probe_folders: Sequence[Path] = (),
) -> Report:
    """Examine a live host within `timeout` seconds.

    collected: what was read elsewhere of this machine; what is read now is added to it. keep gets every probe's answers.
    everything: go on where there is no sign of NVIDIA. since: how far back the journal is read, in journalctl's words.
    probe_folders: further probes, by folder.

    on_report gets what is known after each round, and while probes keep everybody waiting; `stop` is asked all the time,
    and where it says so, what is known so far is the answer.
    """
    end = time.monotonic() + max(1.0, timeout - _RESERVE)
    probes = [_since(probe, since) for probe in _probes(probe_folders)]
    collected = Collected() if collected is None else collected
    notes = SourceNotes("live", str(host.root), collected_at=time.time())
    wanted = [probe for probe in probes if probe.cost in _COSTS[profile]]
    first = [probe for probe in wanted if probe.name in _FIRST]
    judged = 0

    def meanwhile() -> bool:
        nonlocal judged
        if on_report is not None and len(collected.probes) > judged:
            judged = len(collected.probes)
            on_report(doctor.judge(collected, notes))
        return not stop()

    run_probes(host, first, doctor.scanner, collected, end, progress, keep)
    done = {probe.name for probe in first}
    if not everything and not nvidia_present(collected, host):
        return doctor.judge(collected, notes)
    if on_report is not None:
        on_report(doctor.judge(collected, notes))
    judged = len(collected.probes)
    rounds = [[probe for probe in wanted if probe.name not in done]]
    report = None
    while rounds and not stop():
        chosen = rounds.pop()
        run_probes(host, chosen, doctor.scanner, collected, end, progress, keep, meanwhile)
        done |= {probe.name for probe in chosen}
        report = doctor.judge(collected, notes)
        if on_report is not None:
            on_report(report)
        deciding = [] if profile == "quick" else deciding_probes(report, probes, done)
        if deciding and time.monotonic() < end:
            rounds.append(deciding)
    for probe in probes:
        if probe.name not in done:
            collected.probes.append(ProbeResult(name=probe.name, status="skipped", reason="no open question needs it"))
    if report is None:
        return doctor.judge(collected, notes)
    return replace(report, probes=list(collected.probes))


def _probes(more: Sequence[Path]) -> list[Probe]:
    return load_probes([declarations("probes"), *more]) if more else load_probes()


def _since(probe: Probe, since: str | None) -> Probe:
    if since is None or probe.live.command[:1] != ["journalctl"]:
        return probe
    command = [*probe.live.command, "--since", since]
    return replace(probe, live=replace(probe.live, command=command))


def deciding_probes(report: Report, probes: list[Probe], done: set[str]) -> list[Probe]:
    """Return the probes, not run yet, that give a kind of fact which an undecided rule lacks."""
    missing = {kind for undecided in report.undecided for kind in undecided.missing}
    return [probe for probe in probes if probe.name not in done and missing & set(probe.gives)]


def nvidia_present(collected: Collected, host: LiveHost) -> bool:
    """Tell whether anything of NVIDIA is on this machine: a device, a module, a device file, NVML, or a wish for one."""
    store = FactStore(collected.facts)
    if any(fact.value("vendor_id") == 0x10DE for fact in store.of("pci_device")):
        return True
    if any(str(fact.value("name")).startswith("nvidia") for fact in store.of("kernel_module")):
        return True
    if any("nvidia" in str(fact.value("path")) for fact in store.of("device_node")):
        return True
    wishes = ("NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
    if any(fact.value("name") in wishes for fact in store.of("env_var")):
        return True
    if any(fact.value("seen_by") == "expected" and fact.value("number") for fact in store.of("gpu_count")):
        return True
    return host.recorded is not None or (host.is_this_machine and _nvml_installed())


def _nvml_installed() -> bool:
    """Look for the library where the dynamic linker would, without loading it."""
    import os
    from pathlib import Path

    name = "libnvidia-ml.so.1"
    folders = [*os.environ.get("LD_LIBRARY_PATH", "").split(":"), "/usr/lib/wsl/lib"]
    if any(folder and os.path.exists(f"{folder}/{name}") for folder in folders):  # noqa: PTH110  # no right to look is no
        return True
    try:
        return name.encode() in Path("/etc/ld.so.cache").read_bytes()
    except OSError:
        return False
