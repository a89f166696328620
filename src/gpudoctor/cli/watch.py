"""`gpudoctor watch`: examine this machine again and again, and tell what changes."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpudoctor.cli.arguments import count
from gpudoctor.cli.output import add_selection_arguments
from gpudoctor.cli.site import Refused, Settings, settings

if TYPE_CHECKING:
    from gpudoctor.collect.probe import Probe
    from gpudoctor.monitor.deliver import Delivery
    from gpudoctor.monitor.site import WatchOptions
    from gpudoctor.monitor.watch import Cycle, Watch
    from gpudoctor.report.prometheus import Metric

EXIT_UNREADABLE, EXIT_UNAVAILABLE, EXIT_CANNOT_WRITE, EXIT_LOCKED = 66, 69, 73, 75


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments; most can stand in the [watch] table of the configuration as well."""
    parser.add_argument("--interval", type=float, metavar="SECONDS", help="from cycle to cycle (default 60)")
    parser.add_argument("--jitter", type=float, metavar="SHARE", help="of the interval, at random (default 0.1)")
    parser.add_argument("--deadline", type=float, metavar="SECONDS", help="for one cycle (default 20)")
    parser.add_argument("--cycles", type=count, metavar="N", help="end after so many cycles")
    parser.add_argument("--profile", choices=["quick", "standard"], help="as for a single run (default quick)")
    parser.add_argument("--log", action="append", metavar="FILE", help="also read on in this log (may be repeated)")
    out = parser.add_argument_group("outputs (without any: --ndjson)")
    out.add_argument("--ndjson", action="store_true", help="one JSON object per event on standard output")
    out.add_argument("--textfile", metavar="FILE", help="metrics, for node_exporter's textfile collector")
    out.add_argument("--listen", metavar="[ADDRESS:]PORT", help="/metrics, /healthz, /report over HTTP (127.0.0.1)")
    out.add_argument("--syslog", action="store_true", default=None, help="one line per event to syslog or the journal")
    out.add_argument("--on-change", metavar="COMMAND", help="run it per event, with the event as JSON on its input")
    out.add_argument("--webhook", metavar="URL", help="post each event as JSON")
    parser.add_argument("--state", metavar="DIR", help="where to keep what must survive a restart")
    parser.add_argument("--root", default="/", metavar="DIR", help="watch the machine whose files lie below DIR")
    parser.add_argument("--commands", metavar="DIR", help="take command outputs from this recording")
    parser.add_argument("--rules", action="append", default=[], metavar="DIR", help="also use the rules in this folder")
    add_selection_arguments(parser)
    parser.set_defaults(timeout=None)


def run(args: argparse.Namespace) -> int:
    """Watch until SIGTERM or SIGINT; 0 then."""
    for folder in (args.root, args.commands):
        if folder and not Path(folder).is_dir():
            return _refuse(f"{folder}: no such folder", EXIT_UNREADABLE)
    from gpudoctor.monitor.files import Held, Lock

    folder = _state_folder(args)
    try:
        chosen = settings(args, live=True)
        options = _options(args, chosen)
        folder.mkdir(parents=True, exist_ok=True)
        lock = Lock(folder / "watch.lock")
    except Refused as refusal:
        return _refuse(str(refusal), refusal.status)
    except Held as held:
        return _refuse(f"another watch runs: {held}", EXIT_LOCKED)
    except OSError as error:
        return _refuse(f"{error.filename or folder}: {(error.strerror or str(error)).lower()}", EXIT_CANNOT_WRITE)
    try:
        return _Watching(args, chosen, options, folder).run()
    except Refused as refusal:
        return _refuse(str(refusal), refusal.status)
    finally:
        lock.release()


def _refuse(line: str, status: int) -> int:
    sys.stderr.write(f"gpudoctor watch: {line}\n")
    return status


def _state_folder(args: argparse.Namespace) -> Path:
    """systemd names a folder; else the usual one of the system or the person."""
    if args.state:
        return Path(args.state)
    if given := os.environ.get("STATE_DIRECTORY"):
        return Path(given.partition(":")[0])
    if os.geteuid() == 0:
        return Path("/var/lib/gpudoctor")
    home = os.environ.get("XDG_STATE_HOME") or f"{os.environ.get('HOME', '/')}/.local/state"
    return Path(home) / "gpudoctor"


def _options(args: argparse.Namespace, chosen: Settings) -> WatchOptions:
    """The command line over the configuration; raises Refused."""
    from pydantic import ValidationError

    from gpudoctor.monitor.configfile import complaint
    from gpudoctor.monitor.site import WatchOptions

    base = chosen.loaded.site.watch if chosen.loaded else WatchOptions()
    given: dict[str, Any] = {
        name: value
        for name in ("interval", "jitter", "deadline", "textfile", "listen", "syslog", "webhook")
        if (value := getattr(args, name)) is not None
    }
    if args.log:
        given["logs"] = [*base.logs, *args.log]
    try:
        if args.on_change is not None:
            given["on_change"] = shlex.split(args.on_change)
        return WatchOptions.model_validate(base.model_dump() | given)
    except ValidationError as error:
        first = error.errors()[0]
        option = "--" + ".".join(map(str, first["loc"][:1])).replace("_", "-").replace("logs", "log")
        raise Refused(f"{option}: {complaint(WatchOptions, first)}", 64) from None
    except ValueError as error:
        raise Refused(f"--on-change: {str(error).lower()}", 64) from None


class _Watching:
    """The watch with its outputs and signals."""

    def __init__(self, args: argparse.Namespace, chosen: Settings, options: WatchOptions, folder: Path) -> None:
        from gpudoctor.monitor.host import WatchedHost
        from gpudoctor.monitor.systemd import Notifier
        from gpudoctor.monitor.watch import Watch

        self.args = args
        self.options = options
        self.ndjson = args.ndjson or not (
            options.textfile or options.listen or options.syslog or options.on_change or options.webhook
        )
        doctor, probes, expected = _parts(args, chosen)
        host = WatchedHost(args.root, args.commands)
        self.watch: Watch = Watch(doctor, host, probes, options, folder, expected)
        self.notifier = Notifier()
        self.reload_wanted = threading.Event()
        self.deliveries = _deliveries(options)
        self.metrics = self.report = ""
        self.folder = folder
        self.unwritten: dict[str, str] = {}  # in the last cycle, and why
        self.finished = time.monotonic()
        self.cpu = 0.0

    def run(self) -> int:
        """Run until a signal says stop."""
        from gpudoctor.monitor.serve import Server
        from gpudoctor.monitor.watch import run

        _step_back()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.watch.stop.set())
        signal.signal(signal.SIGHUP, lambda *_: self.reload_wanted.set())
        server = None
        if self.options.listen:
            address, _, port = self.options.listen.rpartition(":")
            try:
                server = Server(address.strip("[]") or "127.0.0.1", int(port), self._answer)
            except (OSError, OverflowError) as error:
                self.watch.close()
                said = str(getattr(error, "strerror", None) or error).lower()
                raise Refused(f"--listen {self.options.listen}: {said}", EXIT_UNAVAILABLE) from None
            if server.port != int(port):
                sys.stderr.write(f"gpudoctor watch: listening on port {server.port}\n")
        self.notifier.tell("READY=1", "STATUS=first cycle")
        try:
            run(
                self.watch,
                self._tell,
                cycles=self.args.cycles,
                reload=self._reload,
                reload_wanted=self.reload_wanted,
                alive=lambda: self.notifier.tell("WATCHDOG=1"),
                alive_every=self.notifier.watchdog,
            )
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        self.notifier.tell("STOPPING=1")
        for delivery in self.deliveries:
            if left := delivery.stop():
                delivery.complain(f"{left} event{'s' if left > 1 else ''} not delivered at the end")
        if server is not None:
            server.stop()
        self.watch.close()
        return EXIT_CANNOT_WRITE if self.options.textfile in self.unwritten else 0

    def _tell(self, cycle: Cycle) -> None:
        """Hand out what a cycle gave."""
        from gpudoctor.monitor.files import write_whole
        from gpudoctor.report.prometheus import render_prometheus
        from gpudoctor.report.published import published_report

        self.finished = time.monotonic()
        for event in cycle.events:
            if self.ndjson:
                sys.stdout.write(event.as_json() + "\n")
            for delivery in self.deliveries:
                delivery.put(event)
        if self.ndjson:
            sys.stdout.flush()
        if self.options.listen or self.options.textfile:
            self.metrics = render_prometheus(cycle.report, time.time(), self._own_metrics(cycle))
        if self.options.listen:
            self.report = published_report(cycle.report)
        unwritten = {str(self.folder): self.watch.unsaved} if self.watch.unsaved else {}
        if self.options.textfile:
            try:
                write_whole(Path(self.options.textfile), self.metrics)
            except OSError as error:
                self.watch.counters.write_failures += 1
                unwritten[self.options.textfile] = (error.strerror or str(error)).lower()
        for path, why in unwritten.items():
            if path not in self.unwritten:  # once, until it could be written again
                sys.stderr.write(f"gpudoctor watch: {path}: {why}\n")
        self.unwritten = unwritten
        self.notifier.tell(f"STATUS={cycle.report.status}: {cycle.report.summary[:200]}")

    def _own_metrics(self, cycle: Cycle) -> list[Metric]:
        from gpudoctor.report.prometheus import Metric

        counters = self.watch.counters
        events = Metric("gpudoctor_events_total", "counter", "Events that were told, by kind.")
        for kind in ("appeared", "changed", "suppressed", "resolved", "status"):
            events.add(counters.events.get(kind, 0), {"event": kind})

        def one(name: str, kind: str, text: str, value: float) -> Metric:
            return Metric(name, kind, text).add(value)

        return [
            one("gpudoctor_cycles_total", "counter", "Cycles of the watch.", counters.cycles),
            one("gpudoctor_cycles_late_total", "counter", "Cycles that took longer than the deadline.", counters.late),
            one("gpudoctor_cycle_seconds", "gauge", "How long the last cycle took.", cycle.seconds),
            events,
            one("gpudoctor_log_bytes_total", "counter", "Bytes of logs that were read.", counters.log_bytes),
            one(
                "gpudoctor_write_failures_total",
                "counter",
                "Times that the state or the text file could not be written.",
                counters.write_failures,
            ),
            one(
                "gpudoctor_deliveries_failed_total",
                "counter",
                "Events that a command, webhook or the system's log did not take.",
                sum(delivery.failed for delivery in self.deliveries),
            ),
        ]

    def _answer(self, path: str) -> tuple[int, str, str]:
        match path:
            case "/metrics" if self.metrics:
                return 200, "text/plain; version=0.0.4; charset=utf-8", self.metrics
            case "/report" if self.report:
                return 200, "application/json", self.report
            case "/healthz":
                late = time.monotonic() - self.finished
                limit = 2 * self.options.interval * (1 + self.options.jitter) + self.options.deadline
                if late > limit:
                    return 503, "text/plain; charset=utf-8", f"no cycle has ended for {late:.0f} seconds\n"
                return 200, "text/plain; charset=utf-8", "ok\n"
            case "/metrics" | "/report":
                return 503, "text/plain; charset=utf-8", "the first cycle has not ended yet\n"
        return 404, "text/plain; charset=utf-8", "there are /metrics, /report and /healthz\n"

    def _reload(self) -> None:
        """Read the configuration and the rules again; what is wrong there leaves everything as it was."""
        self.notifier.reloading()
        try:
            chosen = settings(self.args, live=True)
            options = _options(self.args, chosen)
            doctor, probes, expected = _parts(self.args, chosen)
            deliveries = _deliveries(options)
        except Refused as refusal:
            sys.stderr.write(f"gpudoctor watch: not reloaded: {refusal}\n")
        else:
            for delivery in self.deliveries:
                delivery.stop(0.0)
            self.deliveries = deliveries
            # the socket stays where it is until a restart
            self.options = options.model_copy(update={"listen": self.options.listen})
            self.watch.reload(doctor, probes, self.options, expected)
        self.notifier.tell("READY=1")


def _parts(args: argparse.Namespace, chosen: Settings) -> tuple[Any, list[Probe], list[Any]]:
    """Return doctor, probes and expectations; raises Refused."""
    from gpudoctor.collect.probe import load_probes
    from gpudoctor.declared import declarations
    from gpudoctor.monitor.incremental import KeptMatches

    doctor = chosen.doctor("builtin", KeptMatches())
    profile = args.profile or (chosen.loaded.site.profile if chosen.loaded else None) or "quick"
    costs = ("cheap",) if profile == "quick" else ("cheap", "standard")
    folders = [declarations("probes"), *chosen.probes]
    probes = [probe for probe in load_probes(folders) if probe.cost in costs]
    return doctor, probes, chosen.expected().facts


def _deliveries(options: WatchOptions) -> list[Delivery]:
    """Return who gets the events; raises Refused."""
    from gpudoctor.monitor.deliver import Delivery, to_command, to_syslog, to_webhook

    def complaining(name: str) -> Callable[[str], None]:
        return lambda line: print(f"gpudoctor watch: {name}: {line}", file=sys.stderr)

    senders = []
    if options.on_change:
        if shutil.which(options.on_change[0]) is None:
            raise Refused(f"--on-change: {options.on_change[0]}: no such command", EXIT_UNREADABLE)
        senders.append(("--on-change", to_command(options.on_change)))
    if options.webhook:
        try:
            senders.append(("--webhook", to_webhook(options.webhook)))
        except ValueError as error:
            raise Refused(f"--webhook: {error}", 64) from None
    if options.syslog:
        try:
            senders.append(("--syslog", to_syslog()))
        except OSError as error:
            raise Refused(f"--syslog: {error.filename}: {error.strerror}", EXIT_UNAVAILABLE) from None
    return [Delivery(send, complain=complaining(name)) for name, send in senders]


def _step_back() -> None:
    """Everything else on the machine comes first."""
    import psutil

    with contextlib.suppress(OSError):
        os.nice(10)
    with contextlib.suppress(OSError, AttributeError, psutil.Error):
        psutil.Process().ionice(psutil.IOPRIO_CLASS_IDLE)
