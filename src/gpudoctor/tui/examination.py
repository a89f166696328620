"""What the screens need from outside: something that examines, and opens what it has read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gpudoctor.findings.model import ProbeResult, Report, Suppression


class Unusable(Exception):
    """The examination can't be done at all; str() is one line for standard error."""

    def __init__(self, line: str, status: int) -> None:
        super().__init__(line)
        self.status = status


@dataclass(frozen=True)
class Text:
    """A text that evidence was read from: a plain file, or chunks where it must be unpacked or produced first.

    first_line: the number of its first line (a section of a bug report begins in the middle of it).
    """

    name: str
    path: Path | None = None
    chunks: Callable[[], Iterable[bytes]] | None = None
    first_line: int = 1


class Examination(Protocol):
    """One machine, live or as a bundle. Everything but the attributes is called from threads."""

    title: str
    live: bool

    def run(
        self,
        progress: Callable[[str, ProbeResult | None], None],
        on_report: Callable[[Report], None],
        stop: Callable[[], bool],
    ) -> Report:
        """Examine, telling what happens meanwhile; raises Unusable."""
        ...

    def abandon(self) -> None:
        """End what a running examination has started; nobody waits for it any more."""
        ...

    def text(self, source: str) -> Text:
        """Open what a piece of evidence names; raises LookupError with one line where that isn't possible."""
        ...

    def suppressions_file(self) -> Path:
        """Return the file that a suppression would be added to; raises LookupError with one line where there is none."""
        ...

    def suppress(self, suppression: Suppression) -> Report:
        """Add a suppression to the file and judge anew what was read; raises LookupError or OSError."""
        ...

    def exit_status(self, report: Report | None) -> int:
        """Return the exit status that the text report would give."""
        ...

    def forms(self) -> dict[str, Callable[[Report], str]]:
        """Return the forms in which a report can be saved, by file suffix."""
        ...
