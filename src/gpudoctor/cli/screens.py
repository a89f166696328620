"""What the interactive screens examine: this machine, or an offline source."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpudoctor.cli.output import EXITS, exit_status
from gpudoctor.cli.site import Refused, Settings
from gpudoctor.tui.examination import Text, Unusable

if TYPE_CHECKING:
    from gpudoctor.collect.collected import Collected
    from gpudoctor.diagnosis import Doctor
    from gpudoctor.findings.model import ProbeResult, Report, Suppression
    from gpudoctor.monitor.site import Loaded
    from gpudoctor.sources.live import LiveHost

Progress = Callable[[str, "ProbeResult | None"], None]


def show(args: argparse.Namespace, examination: LiveExamination | OfflineExamination) -> int:
    """Run the screens; says in one line where there is no terminal for them."""
    if not (sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "")):
        sys.stderr.write("gpudoctor: --tui needs a terminal (for a plain report: --text)\n")
        return 64
    if not sys.stdin.isatty():
        try:
            examination.read_standard_input()
        except Unusable as refusal:
            sys.stderr.write(f"gpudoctor: {refusal}\n")
            return refusal.status
        _read_keys_from_terminal()
    from gpudoctor.tui.app import run

    return run(examination)


def _read_keys_from_terminal() -> None:
    """Standard input was the log: keys come from the terminal itself."""
    terminal = os.open("/dev/tty", os.O_RDWR)
    os.dup2(terminal, 0)
    os.close(terminal)


class _Diagnosing:
    """What both have in common. The doctor is made in the examination's thread: the first paint doesn't wait for it."""

    live = False
    title = ""

    def __init__(self, args: argparse.Namespace, settings: Settings) -> None:
        self.args = args
        self.settings = settings
        self._doctor: Doctor | None = None

    def doctor(self) -> Doctor:
        """Return the doctor; its rules are compiled once."""
        if self._doctor is None:
            try:
                self._doctor = self.settings.doctor()
            except Refused as refusal:
                raise Unusable(str(refusal), refusal.status) from None
        return self._doctor

    def read_standard_input(self) -> None:
        """Read it before the keyboard takes its place, where it belongs to what is examined."""

    def exit_status(self, report: Report | None) -> int:
        """Return the status that the text report would give; unknown without a report."""
        if report is None:
            return 0 if self.args.exit_zero else EXITS["unknown"]
        return exit_status(report, self.args)

    def suppressions_file(self) -> Path:
        """Return the file that a suppression would be added to; raises LookupError where there is none."""
        loaded = self._configuration()
        if loaded is None:
            raise LookupError("a bundle is judged without suppressions, unless --suppressions FILE names one")
        if loaded.new_suppressions is None:
            raise LookupError("GPUDOCTOR_SUPPRESSIONS is empty, so that none hold here")
        return loaded.new_suppressions

    def suppress(self, suppression: Suppression) -> Report:
        """Add a suppression to the file and judge anew; raises LookupError, OSError."""
        from gpudoctor.monitor.configfile import ConfigError
        from gpudoctor.monitor.suppressions import add_suppression

        try:
            add_suppression(self.suppressions_file(), suppression)
        except ConfigError as error:
            raise LookupError(str(error)) from None
        doctor = self.doctor()
        doctor.policy = replace(doctor.policy, suppressions=[*doctor.policy.suppressions, suppression])
        return self._judge_again(doctor)

    def _configuration(self) -> Loaded | None:
        return self.settings.loaded

    def _judge_again(self, doctor: Doctor) -> Report:
        raise NotImplementedError

    def abandon(self) -> None:
        """End the child processes; one that hangs in the driver can't be ended and is left behind."""
        import psutil

        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                child.kill()

    def forms(self) -> dict[str, Callable[[Report], str]]:
        """Return the forms in which a report can be saved."""
        from gpudoctor.report.html import render_html
        from gpudoctor.report.markdown import render_markdown
        from gpudoctor.report.published import published_report
        from gpudoctor.report.text import render_text

        return {
            "md": render_markdown,
            "html": render_html,
            "txt": render_text,
            "json": published_report,
        }


class LiveExamination(_Diagnosing):
    """This machine, or one whose files lie below another root."""

    live = True

    def __init__(self, args: argparse.Namespace, settings: Settings) -> None:
        super().__init__(args, settings)
        self.title = "this machine" if args.root == "/" else f"the machine below {args.root}"
        self._collected: Collected | None = None

    def run(self, progress: Progress, on_report: Callable[[Report], None], stop: Callable[[], bool]) -> Report:
        """Probe and judge."""
        from gpudoctor.examine import examine

        self._collected = self.settings.expected()
        return examine(
            self.doctor(),
            self._host(),
            timeout=self.settings.timeout,
            profile=self.settings.profile,
            collected=self._collected,
            probe_folders=self.settings.probes,
            progress=progress,
            on_report=on_report,
            stop=stop,
        )

    def _configuration(self) -> Loaded:
        from gpudoctor.monitor.site import load

        return self.settings.loaded or load(Path(self.args.root), self.args.config, self.args.suppressions)

    def _judge_again(self, doctor: Doctor) -> Report:
        from gpudoctor.collect.collected import Collected
        from gpudoctor.sources.base import SourceNotes

        notes = SourceNotes("live", str(self._host().root), collected_at=time.time())
        return doctor.judge(self._collected or Collected(), notes)

    def text(self, source: str) -> Text:
        """Open a file of the machine, or what a command prints now."""
        from gpudoctor.collect.probe import load_probes

        host = self._host()
        if source.startswith("/"):
            path = host.root / source.lstrip("/")
            if path.is_file():
                return Text(source, path=path)
        if source.startswith("$ "):
            for probe in load_probes():
                if probe.live.command and f"$ {probe.what}" == source:
                    answer = host.run(probe.live.command, probe.deadline, probe.max_bytes)
                    if answer.output:
                        return Text(source, chunks=[answer.output].__iter__)
                    raise LookupError(f"{source.removeprefix('$ ')}: {answer.reason or 'no output'}")
        raise LookupError(f"{source} is not a file; the quoted lines are all that was kept of it")

    def _host(self) -> LiveHost:
        from gpudoctor.sources.live import LiveHost

        return LiveHost(self.args.root, self.args.commands)


class OfflineExamination(_Diagnosing):
    """A bundle, a folder, files, or standard input."""

    def __init__(self, args: argparse.Namespace, settings: Settings) -> None:
        super().__init__(args, settings)
        self.sources: list[str] = args.source
        self.title = ", ".join("standard input" if path == "-" else path for path in self.sources)
        self._report: Report | None = None

    def read_standard_input(self) -> None:
        """Judge at once where standard input is among the sources: it can be read only once."""
        if "-" in self.sources:
            self.run(lambda name, result: None, lambda report: None, lambda: False)

    def run(self, progress: Progress, on_report: Callable[[Report], None], stop: Callable[[], bool]) -> Report:
        """Read everything and judge."""
        from gpudoctor.sources.base import SourceUnreadable
        from gpudoctor.sources.open import open_sources

        if self._report is not None and "-" in self.sources:
            return self._report
        try:
            self._report = self.doctor().diagnose(open_sources(self.sources))
        except SourceUnreadable as error:
            raise Unusable(str(error), 66) from None
        return self._report

    def suppressions_file(self) -> Path:
        """Return the file; not for standard input, which can't be judged again."""
        if "-" in self.sources:
            raise LookupError("standard input is read only once, so it can't be judged anew")
        return super().suppressions_file()

    def _judge_again(self, doctor: Doctor) -> Report:
        return self.run(lambda name, result: None, lambda report: None, lambda: False)

    def text(self, source: str) -> Text:
        """Open the file of that name; what lies packed or inside another file is read through up to there."""
        if "-" in self.sources:
            raise LookupError("standard input is read only once; the quoted lines are all that was kept of it")
        name = source.partition(" § ")[0]
        for given in map(Path, self.sources):
            path = given / name if given.is_dir() else given
            if len(self.sources) > 1 and given.is_dir():  # beside other sources a folder's name leads
                path = given.parent / name
            if (given.is_dir() or given.name == name) and path.is_file() and not _is_packed(path):
                return Text(name, path=path)
        first = self._document_line(source)
        return Text(source, chunks=lambda: self._document(source), first_line=first)

    def _document_line(self, source: str) -> int:
        from gpudoctor.sources.open import open_sources

        for document in open_sources(self.sources).documents():
            if document.name == source:
                return document.first_line
            for _ in document.chunks():
                pass
        raise LookupError(f"{source} can't be found again in {self.title}")

    def _document(self, source: str) -> Iterator[bytes]:
        from gpudoctor.sources.open import open_sources

        for document in open_sources(self.sources).documents():
            if document.name == source:
                yield from itertools.chain(document.chunks())
                return
            for _ in document.chunks():
                pass


def _is_packed(path: Path) -> bool:
    from gpudoctor.sources.archive import archive_kind
    from gpudoctor.sources.packed import packing

    with path.open("rb") as stream:
        head = stream.read(512)
    return packing(head) is not None or archive_kind(head) is not None
