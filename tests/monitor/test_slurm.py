"""The Slurm scripts under a real controller and a real node daemon, on one machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

CONTRIB = Path(__file__).resolve().parents[2] / "contrib/slurm"
NEEDED = ("munged", "slurmctld", "slurmd", "scontrol", "sinfo", "srun")
XID = "2027-01-15T02:00:01.000000+00:00 node7 kernel: [812.114000] NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python3, GPU has fallen off the bus.\n"
CONF = """
ClusterName=test
SlurmctldHost={node}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/ctld
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SwitchType=switch/none
ReturnToService=2
HealthCheckProgram={folder}/gpudoctor/healthcheck.sh
HealthCheckInterval=2
HealthCheckNodeState=ANY
Prolog={folder}/gpudoctor/prolog.sh
Epilog={folder}/gpudoctor/epilog.sh
PrologFlags=Alloc
NodeName={node} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(number: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def until(true: Callable[[], object], what: str, patience: float = 90.0) -> None:
    end = time.monotonic() + patience
    while not true():
        assert time.monotonic() < end, f"it never came to: {what}"
        time.sleep(0.3)


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.node = socket.gethostname().partition(".")[0]
        self.machine = folder / "machine"
        (self.machine / "var/log").mkdir(parents=True)
        (self.machine / "var/log/kern.log").touch()
        (self.machine / "proc").mkdir()
        (self.machine / "proc/modules").write_text("nvidia 56623104 0 - Live 0xffffffffc0a00000 (POE)\n")
        for name in ("ctld", "spool"):
            (folder / name).mkdir()
        (folder / "munge.key").write_bytes(os.urandom(1024))
        (folder / "munge.key").chmod(0o400)
        (folder / "slurm.conf").write_text(CONF.format(folder=folder, node=self.node, ports=free_ports(2)))
        self.scripts()
        self.daemons: list[subprocess.Popen[bytes]] = []

    def scripts(self) -> None:
        """The scripts as they are, with this test's programs in place of the installed ones."""
        folder = self.folder / "gpudoctor"
        shutil.copytree(CONTRIB, folder)
        wrappers = {
            "run": f'exec {sys.executable} -m gpudoctor "$@" --root {self.machine} --profile standard',
            "control": f'SLURM_CONF={self.folder}/slurm.conf exec scontrol "$@"',
        }
        for name, text in wrappers.items():
            (folder / name).write_text(f"#!/bin/sh\n{text}\n")
            (folder / name).chmod(0o755)
        health = folder / "healthcheck.sh"
        health.write_text(health.read_text().replace("/run/gpudoctor-slurm.lock", f"{folder}/lock"))
        drain = folder / "drain.sh"
        text = drain.read_text()
        for old, new in (
            ("/usr/local/bin/gpudoctor", f"{folder}/run"),
            (":-scontrol}", f":-{folder}/control}}"),
        ):
            assert old in text
            text = text.replace(old, new)
        drain.write_text(text)

    def start(self) -> None:
        munge = [
            "--key-file",
            "munge.key",
            "--socket",
            "munge.socket",
            "--pid-file",
            "munge.pid",
            "--log-file",
            "munge.log",
            "--seed-file",
            "munge.seed",
        ]
        given = [word if word.startswith("--") else str(self.folder / word) for word in munge]
        self.daemon("munged", "--foreground", "--force", *given)
        until((self.folder / "munge.socket").exists, "munged listens")
        conf = str(self.folder / "slurm.conf")
        self.daemon("slurmctld", "-D", "-f", conf, "-L", str(self.folder / "ctld.log"))
        self.daemon("slurmd", "-D", "-N", self.node, "-f", conf, "-L", str(self.folder / "slurmd.log"))
        until(lambda: self.state() == "idle", "the node is idle")

    def daemon(self, *words: str) -> None:
        self.daemons.append(
            subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.env())
        )

    def stop(self) -> None:
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()

    def env(self) -> dict[str, str]:
        return os.environ | {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def ask(self, *words: str, timeout: float = 90) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, check=False, capture_output=True, text=True, env=self.env(), timeout=timeout)

    def state(self) -> str:
        return self.ask("sinfo", "-h", "-o", "%T").stdout.strip()

    def reason(self) -> str:
        return self.ask("sinfo", "-h", "-R", "-o", "%E").stdout.strip()

    def break_gpu(self) -> None:
        (self.machine / "var/log/kern.log").write_text(XID)

    def heal_gpu(self) -> None:
        (self.machine / "var/log/kern.log").write_text("")


@pytest.fixture
def cluster(tmp_path):
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)} (Debian: munge slurmctld slurmd slurm-client)")
    if os.geteuid() != 0:
        pytest.skip("slurmd needs root")
    tmp_path.chmod(0o755)
    made = Cluster(tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_jobs_run_while_all_is_well_and_a_fault_drains_the_node_with_its_name(cluster):
    done = cluster.ask("srun", "-N1", "echo", "hello")
    assert (done.returncode, done.stdout) == (0, "hello\n")
    cluster.break_gpu()
    until(lambda: cluster.state() == "drained", "the node is drained")
    reason = cluster.reason()
    assert reason.startswith("gpudoctor: GPU fell off the bus on 0000:3b:00.0")
    assert "|" not in reason


def test_a_drain_of_somebody_else_keeps_its_reason(cluster):
    cluster.ask("scontrol", "update", f"nodename={cluster.node}", "state=drain", "reason=new power supply")
    cluster.break_gpu()
    time.sleep(6)
    assert cluster.reason() == "new power supply"


def test_the_prolog_keeps_a_job_off_a_faulty_gpu(cluster):
    conf = cluster.folder / "slurm.conf"
    conf.write_text(conf.read_text().replace("HealthCheckInterval=2", "HealthCheckInterval=0"))
    cluster.ask("scontrol", "reconfigure")
    cluster.break_gpu()
    cluster.ask("sbatch", "-N1", "--output", str(cluster.folder / "job.txt"), "--wrap", "echo ran")
    until(lambda: cluster.state().startswith("drain"), "the node is drained")
    assert cluster.reason().startswith("gpudoctor: GPU fell off the bus on 0000:3b:00.0")
    until(lambda: "PENDING" in cluster.ask("squeue", "-h", "-o", "%T").stdout, "the job waits again")
    assert not (cluster.folder / "job.txt").exists()
