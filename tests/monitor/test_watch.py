"""The loop on machines that break in every way: each cycle ends in time with a valid report, nothing is lost or told twice."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import jsonschema
import pytest
from nvml.build import LIBRARY, scenario_env

from gpudoctor.collect.probe import load_probes
from gpudoctor.diagnosis import Doctor
from gpudoctor.monitor import files
from gpudoctor.monitor.host import WatchedHost
from gpudoctor.monitor.incremental import KeptMatches
from gpudoctor.monitor.logs import PIECE
from gpudoctor.monitor.site import WatchOptions
from gpudoctor.monitor.state import load_state
from gpudoctor.monitor.watch import SLOWLY, Watch
from gpudoctor.report.published import published_report
from gpudoctor.report.schema import SCHEMA
from gpudoctor.sources.live import Answer

XID = "2027-01-15T02:00:{:02d}.000000+00:00 node7 kernel: [{}.114000] NVRM: Xid (PCI:0000:3b:00): {}, pid=4711, name=python3, {}\n"
LOST = XID.format(1, 812, 79, "GPU has fallen off the bus.")
SCHEMA_DATA = json.loads(SCHEMA.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def doctor() -> Doctor:
    return Doctor(engine="builtin", evaluate=KeptMatches())


class Machine:
    """A machine below a folder, and a watch over it that can be started anew."""

    def __init__(self, root: Path, doctor: Doctor, **options: object) -> None:
        self.root, self.doctor = root, doctor
        self.options = WatchOptions.model_validate({"deadline": 4.0, **options})
        self.log = root / "var/log/kern.log"
        self.log.parent.mkdir(parents=True)
        self.log.touch()
        self.boot("one")
        self.folder = root / "state"
        self.folder.mkdir()
        self.start()

    def boot(self, name: str) -> None:
        path = self.root / "proc/sys/kernel/random/boot_id"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)

    def start(self) -> None:
        probes = [probe for probe in load_probes() if probe.cost == "cheap"]
        self.watch = Watch(self.doctor, WatchedHost(str(self.root)), probes, self.options, self.folder)

    def write(self, text: str) -> None:
        with self.log.open("a") as stream:
            stream.write(text)

    def cycle(self) -> list[str]:
        self.done = self.watch.cycle()
        assert self.done is not None
        assert self.done.seconds < self.options.deadline + 1
        jsonschema.validate(json.loads(published_report(self.done.report)), SCHEMA_DATA)
        self.watch.save()
        return [event.event for event in self.done.events if event.event != "status"]

    def ids(self) -> list[str]:
        return [finding.id for finding in self.done.report.findings]


@pytest.fixture
def machine(tmp_path, doctor):
    made: list[Machine] = []

    def make(**options: object) -> Machine:
        made.append(Machine(tmp_path, doctor, **options))
        return made[-1]

    yield make
    for one in made:
        one.watch.close()


def test_a_line_of_the_log_is_told_once_also_across_a_restart(machine):
    node = machine()
    assert node.cycle() == []
    node.write(LOST)
    assert node.cycle() == ["appeared"]
    assert node.ids() == ["hardware.fell-off-bus"]
    assert node.done.report.findings[0].evidence[0].line == 1
    assert node.cycle() == []
    node.start()
    assert node.cycle() == []
    assert node.ids() == ["hardware.fell-off-bus"]


def test_a_rotation_during_a_restart(machine):
    node = machine()
    node.cycle()
    node.write(LOST)
    node.log.rename(node.log.with_name("kern.log.1"))
    node.write(XID.format(2, 813, 48, "DBE (double bit error)"))
    node.start()
    assert node.cycle().count("appeared") == len(node.ids())
    assert {"hardware.fell-off-bus", "hardware.ecc-uncorrectable"} <= set(node.ids())
    assert node.cycle() == []


def test_a_burst_of_ten_thousand_lines_is_folded(machine):
    node = machine()
    node.cycle()
    for part in range(4):
        node.write("".join(XID.format(part, 900 + part, 13, "Graphics Exception") for _ in range(2500)))
        events = node.cycle()
        assert events in ([], ["appeared"])
    assert max(finding.count for finding in node.done.report.findings) == 10_000
    assert (node.folder / "watch.json").stat().st_size < 100_000


def test_what_there_is_no_time_for_is_read_in_the_next_cycle(machine):
    """A flood that takes longer than a cycle may costs no other cycle's time, and nothing of it is lost."""
    node = machine()
    plain = "2027-01-15T02:00:01.000000+00:00 node7 systemd[1]: Started Session 4711 of User root.\n" * 12_000
    node.write((LOST + plain) * 3)
    assert len(plain) < PIECE < 2 * len(plain)
    places = []
    while len(places) < 10:
        node.watch._read_logs(end=0.0)
        places.append(node.watch._logs[0][0].position.offset)
        if places[-1] == node.log.stat().st_size:
            break
    assert len(places) == 3
    assert node.cycle() == ["appeared"]
    assert node.done.report.findings[0].count == 3


def test_after_a_reboot_it_is_history(machine):
    node = machine()
    node.write(LOST)
    node.cycle()
    assert node.done.report.findings[0].history is False
    node.boot("two")
    node.start()
    node.cycle()
    assert node.done.report.findings[0].history is True


def test_with_other_rules_logs_are_read_anew_and_nothing_is_told_again(machine):
    node = machine()
    node.write(LOST)
    node.cycle()
    state = json.loads((node.folder / "watch.json").read_text())
    (node.folder / "watch.json").write_text(json.dumps(state | {"reads_as": "older"}))
    node.start()
    assert node.cycle() == []
    assert node.ids() == ["hardware.fell-off-bus"]
    assert node.done.report.findings[0].count == 1


@pytest.mark.parametrize("content", [b"", b"{", b'{"format": 99}', b"\xff\xfe", b"[]"])
def test_a_broken_state_is_no_trouble(machine, content):
    node = machine()
    (node.folder / "watch.json").write_bytes(content)
    node.start()
    node.write(LOST)
    assert node.cycle() == ["appeared"]


def test_a_full_disk_is_counted_and_the_state_saved_once_there_is_room(machine, monkeypatch):
    node = machine()
    node.write(LOST)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    assert node.cycle() == ["appeared"]
    assert node.watch.counters.write_failures == 1
    assert node.watch.unsaved == "no space left on device"
    assert [path.name for path in node.folder.iterdir()] == []
    monkeypatch.undo()
    node.cycle()
    assert load_state(node.folder).logs["/var/log/kern.log"]["position"]["line"] == 2


def test_the_lock_holds_on_a_full_disk(tmp_path, monkeypatch):
    """A watch that is started then must run all the same: that the disk is full may be its finding."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "pwrite", full)
    lock = files.Lock(tmp_path / "watch.lock")
    with pytest.raises(files.Held, match="held by process"):
        files.Lock(tmp_path / "watch.lock")
    lock.release()
    files.Lock(tmp_path / "watch.lock").release()


def test_a_clock_that_jumps_back(machine, monkeypatch):
    node = machine()
    node.write(LOST)
    node.cycle()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 86_400)
    assert node.cycle() == []
    assert node.ids() == ["hardware.fell-off-bus"]
    assert node.done.judged


def test_what_did_not_change_is_not_judged_anew(machine):
    node = machine()
    node.cycle()
    judged = [node.cycle() == [] and node.done.judged for _ in range(SLOWLY - 1)]
    assert not any(judged)


@pytest.mark.parametrize(
    "answer",
    [
        Answer("ok", b"\0\xff" * 5000),
        Answer("ok", b"NVRM version: \n" * 100 + b"processor"),
        Answer("failed", reason="input/output error"),
        Answer("denied", reason="permission denied"),
        Answer("timeout", reason="no answer in 5 s"),
    ],
    ids=["binary", "cut", "failed", "denied", "timeout"],
)
def test_files_that_answer_garbage_or_not_at_all(machine, monkeypatch, answer):
    node = machine()
    node.write(LOST)
    assert node.cycle() == ["appeared"]
    monkeypatch.setattr(WatchedHost, "read", lambda *_, **__: answer)
    monkeypatch.setattr(WatchedHost, "tree", lambda *_, **__: answer)
    for _ in range(2):
        node.watch._since_slow = SLOWLY
        assert node.cycle() == []
    assert "hardware.fell-off-bus" in node.ids()


def test_a_reading_that_hangs_costs_one_deadline_and_is_not_piled_up(machine, monkeypatch):
    node = machine(deadline=2.0)
    free = threading.Event()
    inner = WatchedHost._once

    def hang(self, what, read):
        return inner(self, what, (lambda: free.wait(60) and read()) if "os-release" in what else read)

    (node.root / "etc").mkdir()
    (node.root / "etc/os-release").write_text('ID=debian\nVERSION_ID="12"\n')
    monkeypatch.setattr(WatchedHost, "_once", hang)
    node.write(LOST)
    assert node.cycle() == ["appeared"]
    hung = {probe.name for probe in node.done.report.probes if probe.status == "timeout"}
    assert hung == {"os"}
    for _ in range(3):
        node.cycle()
    before = threading.active_count()
    for _ in range(5):
        node.cycle()
        assert node.done.seconds < 1.5
    assert threading.active_count() <= before
    free.set()
    time.sleep(0.2)
    node.cycle()
    assert {probe.name for probe in node.done.report.probes if probe.status == "timeout"} == set()


def test_a_log_that_may_not_be_read_is_named(machine):
    node = machine(logs=["/var/log/job.log"])
    (node.root / "var/log/job.log").mkdir()
    node.cycle()
    results = {probe.name: probe.status for probe in node.done.report.probes}
    assert results["log /var/log/job.log"] == "failed"
    assert results["log /var/log/kern.log"] == "ok"


def test_own_logs_are_read_on(machine):
    node = machine(logs=["/var/log/job.log"])
    node.cycle()
    (node.root / "var/log/job.log").write_text(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    )
    assert "appeared" in node.cycle()
    assert any(finding.id.startswith("memory.") for finding in node.done.report.findings)


# The driver's side: children that are kept, on the fake NVML.


@pytest.fixture
def nvml(lib_dir, tmp_path, monkeypatch):
    own = tmp_path / "lib"
    own.mkdir()
    shutil.copy(lib_dir / LIBRARY, own / LIBRARY)
    hosts: list[WatchedHost] = []

    def start(scenario: str) -> WatchedHost:
        for name, value in scenario_env(scenario, own).items():
            monkeypatch.setenv(name, value)
        hosts.append(WatchedHost())
        return hosts[-1]

    start.library = own / LIBRARY
    yield start
    for host in hosts:
        host.stop()


def ask(host: WatchedHost, deadline: float = 15.0, *arguments: str) -> Answer:
    return host.run_child("nvml", deadline, 2**24, arguments)


def gpus(answer: Answer) -> set[int]:
    rows = [json.loads(line) for line in answer.output.decode().splitlines() if line.startswith("{")]
    return {row["index"] for row in rows if row.get("nvml") == "gpu"}


def test_a_child_is_kept_and_answers_the_same_each_time(nvml):
    host = nvml("h100x8")
    answers = [ask(host) for _ in range(3)]
    lines = [answer.output.decode().splitlines() for answer in answers]
    told = [[line for line in each if not line.startswith("begin ")] for each in lines]
    assert told[0] == told[1] == told[2]
    assert sum('"remote": "switch"' in line for line in told[0]) == 8 * 18
    assert gpus(answers[0]) == set(range(8))
    assert host.children["nvml"].starts == 1
    # where the links lead is asked once
    assert [sum("RemotePciInfo" in line for line in each) for each in lines] == [8 * 18, 0, 0]


def test_a_killed_child_is_started_anew(nvml):
    host = nvml("t4")
    ask(host)
    os.kill(host.children["nvml"]._process.pid, signal.SIGKILL)
    time.sleep(0.2)
    assert gpus(ask(host)) == {0, 1, 2, 3}
    assert host.children["nvml"].starts == 2


def test_a_call_that_hangs_is_named_and_the_child_replaced(nvml):
    host = nvml("hang")
    answer = ask(host, 4.0)
    assert answer.status == "timeout"
    last = answer.output.decode().splitlines()[-1]
    assert last == "begin nvmlDeviceGetPowerUsage:5"
    assert gpus(answer) >= {0, 1, 2, 3, 4}
    assert gpus(ask(host, 15.0, "--skip", "nvmlDeviceGetPowerUsage:5")) == set(range(8))


def test_another_library_is_loaded_once_the_file_is_replaced(nvml):
    host = nvml("t4")
    ask(host)
    fresh = nvml.library.with_name("new")
    shutil.copy(nvml.library, fresh)
    fresh.replace(nvml.library)
    ask(host)
    ask(host)
    assert host.children["nvml"].starts == 2


def test_a_child_that_can_not_start_is_a_failed_probe(monkeypatch):
    host = WatchedHost()
    monkeypatch.setattr("sys.executable", "/no/such/python")
    assert ask(host).status == "failed"


def test_matches_that_are_kept_give_the_same_findings():
    from gpudoctor.sources.memory import TextSource

    texts = [LOST, LOST + XID.format(2, 813, 48, "DBE"), "nothing\n", LOST]
    kept, plain = Doctor(engine="builtin", evaluate=KeptMatches()), Doctor(engine="builtin")
    for text in texts:
        source = {"kern.log": text}
        assert kept.diagnose(TextSource(source)).findings == plain.diagnose(TextSource(source)).findings
