"""Makes the pictures of the screens in docs/images anew: `python scripts/screenshots.py` (needs an installed gpudoctor).

Each is what a terminal of 120x36 shows of a sample in fixtures/, as Textual exports it. The font is left to the reader's
machine, so that a picture loads nothing.
"""

from __future__ import annotations

import asyncio
import re
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from gpudoctor.cli.screens import OfflineExamination
from gpudoctor.cli.site import Settings
from gpudoctor.tui.app import GpuDoctorApp
from gpudoctor.tui.walk import WalkFile

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
SIZE = (120, 36)
# picture -> sample, and the keys that lead there
PICTURES = {
    "findings": ("bug-report-lost-gpu", []),
    "walk": ("bug-report-lost-gpu", ["w", "right", "right"]),
    "node": ("healthy-h100", ["2"]),
    "timeline": ("bug-report-lost-gpu", ["3"]),
    "log": ("dmesg-xid79", ["w", "enter"]),
}


async def take(name: str, sample: str, keys: list[str]) -> str:
    """Open the screens on a sample, press the keys, and return the picture."""
    sources = Namespace(source=[str((ROOT / "fixtures" / sample).relative_to(Path.cwd()))], exit_zero=True)
    app = GpuDoctorApp(OfflineExamination(sources, Settings()), WalkFile(Path("/dev/null/walks.json")))
    async with app.run_test(size=SIZE) as pilot:
        while app.report is None or app.examining:
            if app.failure is not None:
                raise SystemExit(app.failure[0])
            await pilot.pause(0.05)
        await settled(pilot)
        for key in keys:
            await pilot.press(key)
            await settled(pilot)
        return plain_font(app.export_screenshot(title=f"gpudoctor diagnose fixtures/{sample}"))


async def settled(pilot: Any) -> None:
    """Let threads answer and the screen be painted."""
    for _ in range(4):
        await pilot.pause(0.1)


def plain_font(picture: str) -> str:
    """Take the fonts out that the export would fetch from the network."""
    picture = re.sub(r"@font-face\s*\{[^}]*\}", "", picture)
    return re.sub(r"font-family: ?[^;]*;", "font-family: ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace;", picture)  # fmt: skip


def main() -> None:
    """Write all pictures, or those that are named."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or PICTURES:
        path = IMAGES / f"{name}.svg"
        path.write_text(asyncio.run(take(name, *PICTURES[name])), encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1024} KiB\n")


if __name__ == "__main__":
    main()
