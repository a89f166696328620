"""The loop that watches a machine: each cycle reads what may have changed, judges it, and tells what is new."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from pathlib import Path
from threading import Event as Flag

import msgspec
from msgspec.structs import replace

from gpudoctor import __version__
from gpudoctor.collect.collected import Collected
from gpudoctor.collect.live import run_probes
from gpudoctor.collect.probe import Probe
from gpudoctor.diagnosis import Doctor
from gpudoctor.facts.base import Fact
from gpudoctor.findings.model import ProbeResult, Report
from gpudoctor.monitor.events import Event, Tracker
from gpudoctor.monitor.host import WatchedHost
from gpudoctor.monitor.logs import PIECE, FollowedFile, FollowedKernel, Follower, Piece, Position
from gpudoctor.monitor.remembered import Remembered
from gpudoctor.monitor.site import WatchOptions
from gpudoctor.monitor.state import State, load_state
from gpudoctor.parsers.formats import FORMATS
from gpudoctor.parsers.scan import Scanned, Scanner
from gpudoctor.sources.base import SourceNotes

# Read in every cycle: where faults show within a minute. All else is read every SLOWLY cycles.
QUICKLY = ("nvml", "driver_version", "modules")
SLOWLY = 10
JUDGE_ANEW = 3600.0  # seconds: what depends on the time of day is judged at least that often
_LOG_PROBES = ("kernel_log", "kernel_journal", "kernel_files")
_KERNEL_FILES = ("/var/log/kern.log", "/var/log/messages")
_LOGS = ("/var/log/fabricmanager.log",)
_SETTLE = 0.2  # seconds: a message of several lines is read whole
_RESERVE = 0.5
_KEPT_TEXTS = 500


class KeepingScanner(Scanner):
    """Scans a text that is as it was in the last cycle not at all."""

    def __init__(self, doctor: Doctor) -> None:
        super().__init__(FORMATS, doctor.rules.patterns)
        self._known: dict[str, tuple[bytes, Scanned]] = {}

    def scan(
        self,
        source: str,
        chunks: Iterable[bytes],
        first_line: int = 1,
        boot: int = 0,
        reached: Callable[[], int] | None = None,
        until: float | None = None,
    ) -> Scanned:
        """Scan a text, or return what was found in it the last time."""
        text = b"".join(chunks)
        known = self._known.pop(source, None)
        if known is None or known[0] != text:
            known = (text, super().scan(source, (text,), first_line, boot, until=until))
            if until is not None and time.monotonic() >= until:  # perhaps not whole
                return known[1]
        self._known[source] = known
        if len(self._known) > _KEPT_TEXTS:
            del self._known[next(iter(self._known))]
        return known[1]

    def scan_lines(self, source: str, text: bytes, first_line: int) -> Scanned:
        """Scan lines that come only once."""
        return super().scan(source, (text,), first_line)


@dataclass
class Cycle:
    """What a cycle gave."""

    report: Report
    events: list[Event]
    seconds: float
    judged: bool


@dataclass
class Counters:
    """What the watch tells of itself."""

    cycles: int = 0
    judged: int = 0
    late: int = 0
    write_failures: int = 0
    log_bytes: int = 0
    events: dict[str, int] = field(default_factory=dict)


class Watch:
    """One machine, watched. `cycle` does one round; the caller keeps the time."""

    def __init__(
        self,
        doctor: Doctor,
        host: WatchedHost,
        probes: Sequence[Probe],
        options: WatchOptions,
        state: Path,
        expected: Sequence[Fact] = (),
    ) -> None:
        self.host = host
        self.options = options
        self.counters = Counters()
        self.stop = Flag()
        self._folder = state
        self._tracker = Tracker(options.appear, options.resolve)
        self._slow = Collected()
        self._since_slow = SLOWLY
        self._boot = _boot_id(host.root)
        self._use(doctor, probes, expected)
        stored = load_state(state)
        self._saved: object = None
        self.unsaved = ""  # why the state could not be written in the last cycle
        if stored.events:
            with contextlib.suppress(ValueError, KeyError, TypeError):  # of an older gpudoctor: events come again
                self._tracker.restore(stored.events)
        self._open_logs(stored)

    def reload(self, doctor: Doctor, probes: Sequence[Probe], options: WatchOptions, expected: Sequence[Fact]) -> None:
        """Take over a new configuration; logs are read anew where it reads them with other rules."""
        before = self._reads_as
        self._tracker.appear, self._tracker.resolve = options.appear, options.resolve
        logs_changed = self.options.logs != options.logs
        self.options = options
        state = self._state()
        self._use(doctor, probes, expected)
        self._since_slow = SLOWLY
        if before != self._reads_as or logs_changed:
            self._close_logs()
            self._open_logs(state)

    def cycle(self) -> Cycle | None:
        """Read, judge, compare; None where it was stopped half-way."""
        began = time.monotonic()
        end = began + self.options.deadline - _RESERVE
        log_results = self._read_logs(end)
        fast = Collected()
        slowly = self._since_slow >= SLOWLY
        run = (self._quick, fast), (self._rest, slow := Collected())
        for probes, collected in run if slowly else run[:1]:
            run_probes(self.host, probes, self._scanner, collected, end, meanwhile=lambda: not self.stop.is_set())
            if self.stop.is_set():
                return None
        if slowly:
            self._slow = slow
            unanswered = any(result.status == "timeout" for result in slow.probes)
            self._since_slow = SLOWLY - 1 if unanswered else 0
        self._since_slow += 1
        report, judged = self._judge(fast, log_results)
        events = self._tracker.observe(report, time.time())
        seconds = time.monotonic() - began
        self.counters.cycles += 1
        self.counters.judged += judged
        self.counters.late += seconds > self.options.deadline
        for event in events:
            self.counters.events[event.event] = self.counters.events.get(event.event, 0) + 1
        if (
            judged
        ):  # the facts of the last judgement refer to each other: Python alone would let hundreds of such pile up
            gc.collect()
            if self.counters.cycles == 1:
                gc.freeze()  # what stays for good is not looked through again
        return Cycle(report, events, seconds, judged)

    def save(self) -> None:
        """Keep what must survive a restart, where it changed; a full disk is counted and tried again."""
        said = (self._tracker.dump_key(), *self._versions(), *map(repr, self._positions()))
        if said == self._saved:
            return
        try:
            self._state().save(self._folder)
            self._saved, self.unsaved = said, ""
        except OSError as error:
            self.counters.write_failures += 1
            self.unsaved = (error.strerror or str(error)).lower()

    def close(self) -> None:
        """End children and close logs."""
        self.host.stop()
        self._close_logs()

    def next_wait(self, seconds: float) -> float:
        """Return how long to wait after a cycle that took so long."""
        moved = self.options.interval * (1 + random.uniform(-self.options.jitter, self.options.jitter))  # noqa: S311
        return max(0.0, moved - seconds)

    def _use(self, doctor: Doctor, probes: Sequence[Probe], expected: Sequence[Fact]) -> None:
        self._doctor = doctor
        self._scanner = KeepingScanner(doctor)
        self._expected = list(expected)
        self._probes = probes
        self._fingerprint: object = None
        self._last: Report | None = None
        self._judged_at = 0.0
        patterns = [(pattern.key, pattern.template.anchor) for pattern in doctor.rules.patterns]
        words = json.dumps([__version__, patterns])
        self._reads_as = hashlib.blake2b(words.encode(), digest_size=12).hexdigest()

    def _open_logs(self, state: State) -> None:
        """Open what is read on; without any kernel log of that kind the probe for it stays."""
        usable = state.reads_as == self._reads_as
        logs = state.logs if usable else {}

        def position(name: str) -> Position | None:
            return msgspec.convert(logs[name]["position"], Position) if name in logs else None

        self._logs: list[tuple[Follower, Remembered]] = []
        kernel = self.host.root / "dev/kmsg"
        followers: list[Follower] = []
        self._kernel_followed = False
        if self.host.recorded is None and kernel.is_char_device():
            ring = FollowedKernel(kernel, position("kernel log") if state.boot == self._boot else None)
            try:
                ring.descriptor()
                followers.append(ring)
                self._kernel_followed = True
            except OSError:
                pass  # no right to read it: files, or else the probe's own refusal
        names = [*([] if self._kernel_followed else _KERNEL_FILES), *_LOGS, *self.options.logs]
        for name in dict.fromkeys(names):
            path = self.host.root / name.lstrip("/")
            if path.is_file() or name in self.options.logs:
                followers.append(FollowedFile(path, name, position(name)))
                self._kernel_followed |= name in _KERNEL_FILES
        for follower in followers:
            remembered = Remembered()
            if follower.name in logs:
                remembered.restore(logs[follower.name]["facts"])
                if state.boot != self._boot:
                    remembered.earlier_boot()
            self._logs.append((follower, remembered))
        taken = _LOG_PROBES if self._kernel_followed else ()
        self._quick = [p for p in self._probes if p.name in (*QUICKLY, "kernel_log") and p.name not in taken]
        quick = {probe.name for probe in self._quick}
        self._rest = [probe for probe in self._probes if probe.name not in quick and probe.name not in taken]

    def _close_logs(self) -> None:
        for follower, _ in self._logs:
            if isinstance(follower, FollowedKernel):
                follower.close()

    def _read_logs(self, end: float) -> list[ProbeResult]:
        """Read on in every log, in the next cycle where there is no time left; one that can't be read is named, and costs the others nothing."""
        now = time.time()
        results = []
        for follower, remembered in self._logs:
            began = time.monotonic()
            name = "kernel_log" if isinstance(follower, FollowedKernel) else f"log {follower.name}"
            try:
                for first, text in self._settled(follower, end):
                    self.counters.log_bytes += len(text)
                    remembered.add(self._scanner.scan_lines(follower.name, text, first).facts, now)
            except PermissionError:
                results.append(ProbeResult(name=name, status="denied", reason="permission denied"))
                continue
            except OSError as error:
                results.append(ProbeResult(name=name, status="failed", reason=error.strerror or str(error)))
                continue
            remembered.forget(now, self.options.forget)
            lost = f"{follower.lost} times lines were overwritten before they were read" if follower.lost else ""
            seconds = round(time.monotonic() - began, 3)
            results.append(ProbeResult(name=name, status="ok", seconds=seconds, reason=lost))
        return results

    def _settled(self, follower: Follower, end: float) -> Iterator[tuple[int, bytes]]:
        """Yield (number of the first line, lines), until `end`. A message of several lines that is just being written is waited for."""
        small: list[Piece] = []
        for piece in follower.read():
            if len(piece.text) < PIECE // 2:
                small.append(piece)
                continue
            yield from _joined(small)
            small = []
            yield piece.first_line, piece.text
            if time.monotonic() >= end:  # the follower reads on from there
                break
        if small:
            self.stop.wait(_SETTLE)
            small += follower.read()
        yield from _joined(small)

    def _judge(self, fast: Collected, log_results: list[ProbeResult]) -> tuple[Report, bool]:
        """Judge anew only where something changed; what stays is the last report with this cycle's probes."""
        now = time.time()
        probes = [*log_results, *fast.probes, *self._slow.probes]
        fingerprint = (
            [id(fact) for fact in (*fast.facts, *self._slow.facts) if fact.kind not in ("probed", "probe_failed")],
            sorted((result.name, result.status) for result in probes),
            self._versions(),
            date.today(),
        )
        if self._last is not None and fingerprint == self._fingerprint and 0 <= now - self._judged_at < JUDGE_ANEW:
            when = datetime.fromtimestamp(now, timezone.utc).isoformat(timespec="seconds")
            source = replace(self._last.source, collected_at=when)
            return replace(self._last, probes=probes, source=source), False
        total = Collected(facts=[*self._expected])
        for part in (fast, self._slow):
            total.join(part)
        for _, remembered in self._logs:
            total.facts += [copy(fact) for fact in remembered.facts.values()]
        total.probes = probes
        self._kept = (fast, self._slow)  # the fingerprint names facts by their place in memory: they must stay
        self._last = self._doctor.judge(total, SourceNotes("live", str(self.host.root), collected_at=now))
        self._fingerprint, self._judged_at = fingerprint, now
        return self._last, True

    def _versions(self) -> tuple[int, ...]:
        return tuple(remembered.version for _, remembered in self._logs)

    def _positions(self) -> list[Position]:
        return [follower.position for follower, _ in self._logs]

    def _state(self) -> State:
        logs = {
            follower.name: {"position": msgspec.to_builtins(follower.position), "facts": remembered.dump()}
            for follower, remembered in self._logs
        }
        return State(self._reads_as, self._boot, logs, self._tracker.dump())


def _joined(pieces: Iterable[Piece]) -> list[tuple[int, bytes]]:
    """Join pieces whose lines follow each other, so that what belongs together is scanned together."""
    joined: list[tuple[int, bytes]] = []
    for piece in pieces:
        first, text = piece.first_line, piece.text
        if joined and joined[-1][0] + joined[-1][1].count(b"\n") == first:
            joined[-1] = (joined[-1][0], joined[-1][1] + text)
        else:
            joined.append((first, text))
    return joined


def _boot_id(root: Path) -> str:
    try:
        return (root / "proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def run(
    watch: Watch,
    tell: Callable[[Cycle], None],
    *,
    cycles: int | None = None,
    reload: Callable[[], None] = lambda: None,
    reload_wanted: Flag | None = None,
    alive: Callable[[], None] = lambda: None,
    alive_every: float | None = None,
) -> None:
    """Run cycles until the watch is told to stop. `alive` is called between and within waits, never while a cycle hangs."""
    wanted = reload_wanted or Flag()
    while not watch.stop.is_set():
        if wanted.is_set():
            wanted.clear()
            reload()
        done = watch.cycle()
        if done is None:
            break
        tell(done)
        watch.save()
        alive()
        if cycles is not None and watch.counters.cycles >= cycles:
            break
        until = time.monotonic() + watch.next_wait(done.seconds)
        while (left := until - time.monotonic()) > 0 and not watch.stop.is_set() and not wanted.is_set():
            watch.stop.wait(min(left, alive_every or left, 1.0))
            if alive_every is not None:
                alive()
    watch.save()
