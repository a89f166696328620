"""`gpudoctor watch` as a service runs it: outputs, signals, the lock."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

XID = "2027-01-15T02:00:01.000000+00:00 node7 kernel: [812.114000] NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python3, GPU has fallen off the bus.\n"
PATIENCE = 40.0


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it never became true"
        time.sleep(0.05)


class Running:
    def __init__(self, root: Path, *arguments: str, **env: str) -> None:
        self.output = root / "out.txt"
        self.errors = root / "err.txt"
        with self.output.open("ab") as out, self.errors.open("ab") as err:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "gpudoctor",
                    "watch",
                    "--root",
                    str(root),
                    "--state",
                    str(root / "state"),
                    "--interval",
                    "1",
                    *arguments,
                ],
                stdout=out,
                stderr=err,
                env=os.environ | env,
            )

    def events(self) -> list[dict]:
        return [json.loads(line) for line in self.output.read_text().splitlines()]

    def kinds(self) -> list[str]:
        return [event["event"] for event in self.events()]

    def end(self, sign: int = signal.SIGTERM) -> int:
        self.process.send_signal(sign)
        return self.process.wait(PATIENCE)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "var/log").mkdir(parents=True)
    (tmp_path / "var/log/kern.log").touch()
    (tmp_path / "etc/gpudoctor").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def watch(root):
    running: list[Running] = []

    def start(*arguments: str, **env: str) -> Running:
        running.append(Running(root, *arguments, **env))
        return running[-1]

    yield start
    for one in running:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def report_xid(root: Path) -> None:
    with (root / "var/log/kern.log").open("a") as stream:
        stream.write(XID)


def test_events_metrics_and_reload(root, watch):
    """One life of a service: start, fault, suppression after a reload, stop."""
    textfile = root / "gpudoctor.prom"
    running = watch("--ndjson", "--textfile", str(textfile))
    until(lambda: running.kinds() == ["status"] and textfile.exists())
    assert 'gpudoctor_finding{id="hardware' not in textfile.read_text()
    report_xid(root)
    until(lambda: "appeared" in running.kinds())
    finding = next(event for event in running.events() if event["event"] == "appeared")["finding"]
    assert finding["id"] == "hardware.fell-off-bus"
    until(lambda: 'gpudoctor_finding{id="hardware.fell-off-bus",severity="critical"' in textfile.read_text())
    assert [path.name for path in root.iterdir() if path.name.endswith(".tmp")] == []

    (root / "etc/gpudoctor/suppressions.toml").write_text("[[suppress]]\n")
    running.process.send_signal(signal.SIGHUP)
    until(lambda: "not reloaded" in running.errors.read_text())
    (root / "etc/gpudoctor/suppressions.toml").write_text(
        '[[suppress]]\nid = "hardware"\nreason = "spare node"\nexpires = "never"\n'
    )
    running.process.send_signal(signal.SIGHUP)
    until(lambda: "gpudoctor_findings_suppressed 1" in textfile.read_text())
    until(lambda: "suppressed" in running.kinds())
    assert running.end() == 0
    assert running.kinds().count("appeared") == 1
    sequence = [event["sequence"] for event in running.events()]
    assert sequence == list(range(1, len(sequence) + 1))
    assert running.errors.read_text().count("\n") == 1


def test_a_receiver_that_a_reload_can_not_reach_leaves_everything_as_it_was(root, watch):
    running = watch("--ndjson")
    until(running.kinds)
    (root / "etc/gpudoctor/gpudoctor.toml").write_text('[watch]\non_change = ["/no/such/command"]\n')
    running.process.send_signal(signal.SIGHUP)
    until(lambda: "not reloaded: --on-change: /no/such/command: no such command" in running.errors.read_text())
    report_xid(root)
    until(lambda: "appeared" in running.kinds())
    assert running.end() == 0


def test_a_second_watch_is_refused_and_names_the_first(root, watch):
    first = watch("--ndjson")
    until(first.kinds)
    second = watch()
    assert second.process.wait(PATIENCE) == 75
    assert f"held by process {first.process.pid}" in second.errors.read_text()
    assert first.end(signal.SIGINT) == 0
    third = watch("--cycles", "1")
    assert third.process.wait(PATIENCE) == 0


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_http(root, watch):
    running = watch("--listen", "0")
    until(lambda: "port" in running.errors.read_text())
    port = int(re.search(r"port (\d+)", running.errors.read_text())[1])
    until(lambda: get(port, "/metrics")[0] == 200)
    stuck = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
    assert "gpudoctor_cycles_total" in get(port, "/metrics")[1]
    assert get(port, "/healthz") == (200, "ok\n")
    assert json.loads(get(port, "/report")[1])["source"]["kind"] == "live"
    assert get(port, "/../etc/passwd")[0] == 404
    listening = (
        subprocess.run(["ss", "-Hltn", f"sport = :{port}"], check=False, capture_output=True, text=True)
        if shutil.which("ss")
        else None
    )
    assert listening is None or "127.0.0.1" in listening.stdout
    if promtool := shutil.which("promtool"):
        done = subprocess.run(
            [promtool, "check", "metrics"], check=False, input=get(port, "/metrics")[1].encode(), capture_output=True
        )
        assert (done.returncode, done.stdout + done.stderr) == (0, b"")
    for connection in stuck:
        connection.close()
    assert running.end() == 0


def test_a_command_and_a_webhook_get_each_event(root, watch):
    posted: list[dict] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(500 if len(posted) == 1 else 204)  # the first try fails
            self.end_headers()

        def log_message(self, *arguments):
            pass

    server = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    heard = root / "heard.txt"
    script = root / "heard.sh"
    script.write_text(f"#!/bin/sh\ncat >> {heard}\necho >> {heard}\n")
    script.chmod(0o755)
    report_xid(root)
    running = watch("--on-change", f"'{script}'", "--webhook", f"http://127.0.0.1:{server.server_port}/hook")
    until(lambda: len(posted) >= 3 and heard.exists() and heard.read_text().count("appeared"))
    assert running.end() == 0
    assert [event["sequence"] for event in posted[:2]] == [1, 1]
    assert json.loads(heard.read_text().splitlines()[0])["finding"]["id"] == "hardware.fell-off-bus"
    assert running.output.read_text() == ""
    server.shutdown()
    server.server_close()


def test_systemd_is_told(root, watch):
    address = str(root / "notify")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind(address)
    listener.settimeout(PATIENCE)
    running = watch(NOTIFY_SOCKET=address, WATCHDOG_USEC="400000")
    told: list[str] = []
    while sum("WATCHDOG=1" in line for line in told) < 3:
        told += listener.recv(4096).decode().splitlines()
    running.process.send_signal(signal.SIGHUP)
    while "RELOADING=1" not in told:
        told += listener.recv(4096).decode().splitlines()
    assert running.end() == 0
    listener.settimeout(0.2)
    try:
        while True:
            told += listener.recv(4096).decode().splitlines()
    except TimeoutError:
        listener.close()
    assert told[0] == "READY=1"
    assert told.index("RELOADING=1") < len(told) - 1 - told[::-1].index("READY=1")
    assert told[-1] == "STOPPING=1"


def test_a_text_file_that_can_not_be_written_is_said_once(root, watch):
    running = watch("--textfile", str(root / "none/gpudoctor.prom"), "--cycles", "3")
    assert running.process.wait(PATIENCE) == 73
    assert running.errors.read_text().count("\n") == 1
    assert "none/gpudoctor.prom" in running.errors.read_text()


REFUSED = {
    "interval": (["--interval", "0"], 64, "--interval: input should be greater"),
    "webhook": (["--webhook", "file:///etc/passwd"], 64, "'file:///etc/passwd' is not of the form https://"),
    "command": (["--on-change", "'"], 64, "--on-change: no closing quotation"),
    "no command": (["--on-change", "/no/such --now"], 66, "--on-change: /no/such: no such command"),
    "no host": (["--webhook", "https:///x"], 64, "--webhook: it names no host"),
    "address": (["--listen", "192.0.2.1:9"], 69, "--listen 192.0.2.1:9: cannot assign requested address"),
    "host": (["--listen", "no-such-host.invalid:9"], 69, "--listen no-such-host.invalid:9: "),
    "port": (["--listen", "127.0.0.1:99999"], 69, "--listen"),
}


@pytest.mark.parametrize("arguments,status,words", REFUSED.values(), ids=REFUSED)
def test_what_can_not_be_done_is_one_line(root, watch, arguments, status, words):
    running = watch(*arguments)
    assert running.process.wait(PATIENCE) == status
    assert running.errors.read_text().count("\n") == 1
    assert words in running.errors.read_text()
    assert "Errno" not in running.errors.read_text()


def test_the_configuration_holds_and_the_command_line_overrides_it(root, watch):
    (root / "etc/gpudoctor/gpudoctor.toml").write_text(
        f'[watch]\ninterval = 3000\ntextfile = "{root}/from-file.prom"\n'
    )
    running = watch("--cycles", "2")
    assert running.process.wait(PATIENCE) == 0
    assert (root / "from-file.prom").exists()
    assert running.output.read_text() == ""


def test_a_single_run_reports_an_earlier_one_that_is_stuck(gpudoctor, root):
    import fcntl

    lock = root / "lock"
    given = ["--root", str(root), "--lock", str(lock)]
    assert gpudoctor("--text", *given).code == 3
    lock.write_text("4711\n")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = gpudoctor("--text", *given)
        assert done.code == 75
        assert (
            done.err
            == f"gpudoctor: an earlier run has not ended: {lock} is held by process 4711, which has not ended yet\n"
        )
        assert gpudoctor("--nagios", *given).out.startswith("GPUDOCTOR UNKNOWN - an earlier run has not ended")
