"""Reports and examinations to put before the screens."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from gpudoctor.facts.base import Where
from gpudoctor.findings.model import (
    Finding,
    Fix,
    ProbeResult,
    ProgramInfo,
    Report,
    SourceInfo,
    Subject,
    Suppression,
    Undecided,
    Verify,
)
from gpudoctor.findings.policy import Policy
from gpudoctor.monitor.configfile import ConfigError
from gpudoctor.monitor.suppressions import add_suppression
from gpudoctor.report.published import published_report
from gpudoctor.tui.app import GpuDoctorApp
from gpudoctor.tui.examination import Text, Unusable
from gpudoctor.tui.rows import Row
from gpudoctor.tui.walk import WalkFile

NOWHERE = Path("/dev/null/walks.json")
SIZES = [(80, 24), (200, 50)]
GPU = Subject(kind="gpu", name="0000:3b:00.0")
OTHER = Subject(kind="gpu", name="0000:af:00.0")
NODE = Subject(kind="node", name="node")
XID_LINE = "[ 1791.552018] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."


def finding(id: str, title: str, **values: Any) -> Finding:
    """A finding with what a test doesn't care about filled in."""
    defaults: dict[str, Any] = {
        "severity": "critical",
        "confidence": "certain",
        "key": f"{id}@{len(title)}",
        "subjects": [NODE],
        "because": f"{title}, says the log.",
        "evidence": [Where(source="dmesg.txt", line=3, text=XID_LINE)],
    }
    return Finding(id=id, title=title, **{**defaults, **values})


BUS = finding(
    "hardware.fell-off-bus",
    "GPU fell off the bus",
    key="bus",
    subjects=[GPU],
    because="The driver lost contact with the GPU at 0000:3b:00.0 (Xid 79).",
    evidence=[
        Where(source="dmesg.txt", line=2, text=XID_LINE),
        Where(source="kern.log", line=41, text="[red]not markup[/red] \x1b[31mnor colour\x07 \u202eor order"),
    ],
    first_seen=1_700_000_000.0,
    last_seen=1_700_000_060.0,
    count=3,
    fixes=[
        Fix(title="Look at what came before", commands=["journalctl -k -b | grep -i aer"], risk="read-only"),
        Fix(title="Start the node cold", why="Only power brings it back.", commands=["sudo poweroff"], risk="disrupts-node", needs=["root", "reboot"]),
    ],
    verify=Verify(probes=["kernel_log", "nvidia_smi"]),
    references=["https://docs.nvidia.com/deploy/xid-errors/"],
)  # fmt: skip
MISSING = finding("driver.gpu-missing", "A GPU is missing", key="missing", role="consequence", caused_by=["bus"])
NCCL = finding(
    "nccl.peer-died", "A rank waits for a dead peer", key="nccl", role="consequence", caused_by=["missing"], subjects=[OTHER]
)  # fmt: skip
HOT = finding(
    "thermal.throttling", "GPU is slowed by heat", key="hot", severity="warning", confidence="likely", subjects=[OTHER]
)
OLD = finding("driver.persistence-off", "Persistence mode is off", key="old", severity="info", role="advice")
UNDECIDED = Undecided(id="pcie.link-degraded", missing=["pci_link"], ask="send the output of `lspci -vv`")
GPUS = [
    {"gpu": "0000:3b:00.0", "pci": "0000:3b:00.0", "index": 0, "name": "NVIDIA H100 80GB HBM3", "state": "lost"},
    {"gpu": "0000:af:00.0", "pci": "0000:af:00.0", "index": 1, "name": "NVIDIA H100 80GB HBM3", "state": "ok",
     "memory_total": 81920.0, "memory_used": 40960.0, "temperature": 91.0, "power": 95.4, "power_limit": 700.0,
     "utilization": 7.0, "pcie_gen": 5, "pcie_width": 8, "pcie_gen_max": 5, "pcie_width_max": 16, "ecc": True,
     "throttle_hw_thermal": True},
]  # fmt: skip


def report(findings: Iterable[Finding] = (BUS, HOT, MISSING, NCCL, OLD), **values: Any) -> Report:
    """A report as of a bundle."""
    found = list(findings)
    worst = {f.severity for f in found if f.role != "advice"}
    status = "critical" if "critical" in worst else "warning" if "warning" in worst else "ok"
    defaults: dict[str, Any] = {
        "gpudoctor": ProgramInfo(version="0", engine="builtin", rules=2, python="3"),
        "source": SourceInfo(kind="folder", path="bundle", problems=["cut.log: breaks off"], complete=False),
        "node": {"gpus": GPUS, "driver": "550.54.15", "module": "550.54.14", "cuda": "12.4", "host": "node-a"},
        "status": status,
        "summary": found[0].title if found else "Nothing wrong found",
        "findings": found,
        "undecided": [UNDECIDED],
        "probes": [
            ProbeResult(name="os", status="ok", seconds=0.01),
            ProbeResult(name="nvidia_smi", status="timeout", seconds=10.0, reason="no answer in 10 s"),
        ],
    }
    return Report(**{**defaults, **values})


class Fixed:
    """An examination that gives the reports of a list, one after the other."""

    title = "bundle"
    live = False

    def __init__(self, *reports: Report, folder: Path | None = None, failure: Unusable | None = None) -> None:
        self.reports = list(reports) or [report()]
        self.folder, self.failure = folder, failure
        self.runs = 0

    def run(self, progress: Any, on_report: Any, stop: Any) -> Report:
        if self.failure:
            raise self.failure
        self.runs += 1
        return self.reports[min(self.runs, len(self.reports)) - 1]

    def text(self, source: str) -> Text:
        if self.folder is None or not (self.folder / source).is_file():
            raise LookupError(f"{source} is gone")
        return Text(source, path=self.folder / source)

    def abandon(self) -> None:
        pass

    def suppressions_file(self) -> Path:
        if self.folder is None:
            raise LookupError("there is no file for it")
        return self.folder / "suppressions.toml"

    def suppress(self, suppression: Suppression) -> Report:
        try:
            add_suppression(self.suppressions_file(), suppression)
        except ConfigError as error:
            raise LookupError(str(error)) from None
        before = self.reports[-1]
        counted, suppressed = Policy(suppressions=[suppression]).apply(before.findings, date.today())
        return replace(before, findings=counted, suppressed=suppressed)

    def exit_status(self, report: Report | None) -> int:
        return 3 if report is None else {"ok": 0, "warning": 1, "critical": 2, "unknown": 3}[report.status]

    def forms(self) -> dict[str, Callable[[Report], str]]:
        return {"txt": lambda report: report.summary, "json": published_report}


class Hanging(Fixed):
    """A live examination in which one probe never answers until `release` is set."""

    title = "this machine"
    live = True

    def __init__(self) -> None:
        super().__init__()
        self.release = threading.Event()
        self.told = threading.Event()

    def run(self, progress: Any, on_report: Any, stop: Any) -> Report:
        progress("os", None)
        progress("os", ProbeResult(name="os", status="ok", seconds=0.01))
        progress("nvml", None)
        on_report(report([HOT], probes=[]))
        self.told.set()
        self.release.wait(30)
        return report([BUS])


def drive(
    script: Callable[[GpuDoctorApp, Any], Awaitable[None]],
    examination: Fixed | None = None,
    size: tuple[int, int] = (80, 24),
    walks: Path = NOWHERE,
) -> GpuDoctorApp:
    """Run a script against the app; returns the app for its exit status."""
    app = GpuDoctorApp(examination or Fixed(), WalkFile(walks))

    async def main() -> None:
        async with app.run_test(size=size) as pilot:
            await settle(app, pilot)
            await script(app, pilot)

    asyncio.run(main())
    return app


async def settle(app: GpuDoctorApp, pilot: Any) -> None:
    """Wait until the first report is on the screen, or the app waits for a probe."""
    for _ in range(200):
        await pilot.pause(0.02)
        if app.report is not None or app.failure is not None:
            break
    await pilot.pause()


async def press(pilot: Any, *keys: str) -> None:
    """Press keys and let the screen settle."""
    await pilot.press(*keys)
    await pilot.pause()
    await pilot.pause()


def texts(rows: Iterable[Row]) -> list[str]:
    """Rows as a person reads them."""
    return [row.text for row in rows]


def screen_text(app: GpuDoctorApp) -> str:
    """What stands on the terminal, as plain text."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)
