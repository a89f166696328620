"""Whole chains, as they reach the desk: several files of a node or a job, one cause, the rest its consequences."""

from __future__ import annotations

import pytest

from gpudoctor.diagnosis import Doctor
from gpudoctor.findings.model import Finding, Report
from gpudoctor.sources.memory import TextSource

WATCHDOG = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=88121, OpType=ALLREDUCE, NumelIn=25557032, NumelOut=25557032, Timeout(ms)=1800000) ran for 18000{}1 milliseconds before timing out."
HOOK = "Error: failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: error running hook #0: error running hook: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'\nnvidia-container-cli: initialization error: nvml error: {}: unknown\n"
H100 = "GPU {0}: NVIDIA H100 80GB HBM3 (UUID: GPU-51a0c3e0-7b10-4d20-9c40-3e5f9000000{0})\n"

CHAINS: dict[str, tuple[dict[str, str], str, set[str]]] = {
    "a GPU is lost under one rank, the others wait for it": (
        {
            "n3.dmesg": "Jun 03 02:11:07 n3 kernel: NVRM: Xid (PCI:0000:5d:00): 79, pid=41233, name=python3, GPU has fallen off the bus.\n",
            "job.log": "[rank19]: torch.AcceleratorError: CUDA error: unspecified launch failure\n"
            + "".join(f"[rank{rank}]:[E603 02:41:09 ProcessGroupNCCL.cpp:632] [Rank {rank}] {WATCHDOG.format(rank)}\n" for rank in (3, 7))
            + "slurmstepd: error: *** STEP 99121.0 ON n1 CANCELLED AT 2026-06-03T02:41:20 ***\nsrun: error: n3: task 19: Aborted\n",
        },
        "hardware.fell-off-bus",
        {"nccl.collective-timeout", "nccl.peer-exited"},
    ),
    "a data loader's worker is killed for lack of host memory": (
        {
            "dmesg": "Jun 03 02:11:07 n3 kernel: python3 invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0\n"
            "Jun 03 02:11:07 n3 kernel: Out of memory: Killed process 41290 (pt_data_worker) total-vm:98213312kB, anon-rss:61233412kB, file-rss:0kB, shmem-rss:1024kB, UID:1004 pgtables:120400kB oom_score_adj:0\n",
            "job.log": "[rank2]: RuntimeError: DataLoader worker (pid 41290) is killed by signal: Killed.\n"
            "[rank0]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [192.0.2.13]:41200\n"
            "[rank1]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, remote process exited or there was a network error, NCCL version 2.21.5\n",
        },
        "memory.host-oom-killed",
        {"nccl.peer-exited"},
    ),
    "shared memory is full: bus error in a worker, reset connections on the other ranks": (
        {
            "df": "Filesystem      Size  Used Avail Use% Mounted on\nshm              64M   64M     0 100% /dev/shm\n",
            "job.log": "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n"
            "[rank2]: RuntimeError: DataLoader worker (pid 812) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.\n"
            "[rank0]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection reset by peer [192.0.2.13]:41200\n",
        },
        "memory.shm-too-small",
        {"nccl.peer-exited"},
    ),
    "fabric manager is down, CUDA isn't ready, the framework sees no GPU": (
        {
            "service.txt": "# systemctl status nvidia-fabricmanager\n\u00d7 nvidia-fabricmanager.service - NVIDIA fabric manager service\n"
            "     Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; enabled; vendor preset: enabled)\n"
            "     Active: failed (Result: exit-code) since Mon 2026-06-01 08:00:12 UTC; 2 days ago\n",
            "L.txt": H100.format(0) + H100.format(1),
            "train.log": "UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized\n"
            "torch.cuda.is_available(): False\nRuntimeError: No CUDA GPUs are available\n",
        },
        "nvlink.fabric-manager-down",
        {"cuda.system-not-ready"},
    ),
    "a kernel came without its module: nvidia-smi, the container's hook and the plugin's pod fail": (
        {
            "uname": "Linux n3 6.8.0-60-generic #63-Ubuntu SMP PREEMPT_DYNAMIC Tue Apr 15 19:04:15 UTC 2025 x86_64 x86_64 x86_64 GNU/Linux\n",
            "dkms": "nvidia/550.54.15, 6.8.0-57-generic, x86_64: installed\n",
            "smi": "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n",
            "events": "Warning  Failed   2m (x12 over 30m)  kubelet  " + HOOK.format("driver not loaded"),
            "pods": "NAME                                   READY   STATUS             RESTARTS      AGE\n"
            "nvidia-device-plugin-daemonset-x7k2p   0/1     CrashLoopBackOff   9 (1m ago)    30m\n",
        },
        "driver.module-missing-for-kernel",
        {"driver.module-not-loaded", "container.hook-failed", "k8s.device-plugin-missing"},
    ),
    "the driver's packages were upgraded under a running container": (
        {
            "version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n",
            "shell": "$ docker exec trainer nvidia-smi\nFailed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.90\n"
            "$ docker restart trainer\n" + HOOK.format("driver/library version mismatch"),
        },
        "driver.library-mismatch",
        {"container.hook-failed"},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def doctor() -> Doctor:
    return Doctor()


def read(doctor: Doctor, files: dict[str, str]) -> Report:
    report = doctor.diagnose(TextSource(files))
    assert report.source.problems == []
    return report


def only(report: Report, rule_id: str) -> Finding:
    [finding] = [finding for finding in report.findings if finding.id == rule_id]
    return finding


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_has_one_cause(name: str, doctor: Doctor) -> None:
    files, cause, consequences = CHAINS[name]
    report = read(doctor, files)
    assert [finding.id for finding in report.findings if finding.role == "cause"] == [cause]
    assert {finding.id for finding in report.findings if finding.role == "consequence"} == consequences
    assert all(finding.caused_by for finding in report.findings if finding.role == "consequence")


LOST = "{} n3 kernel: NVRM: Xid (PCI:0000:5d:00): 79, pid=41233, name=python3, GPU has fallen off the bus.\n"
STARTED = "May 28 10:00:00 n3 kernel: Linux version 6.8.0-57-generic (buildd@host) (gcc 13) #59-Ubuntu SMP\nMay 28 10:00:20 n3 kernel: NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n"
BOOTS = [f"-- Boot 0{number}112222333344445555666677778888 --\n" for number in range(3)]


def test_old_trouble_before_a_reboot_is_history(doctor: Doctor) -> None:
    journal = BOOTS[0] + LOST.format("May 20 11:11:07") + BOOTS[1] + STARTED
    lost = only(read(doctor, {"journal.txt": journal}), "hardware.fell-off-bus")
    assert (lost.severity, "earlier boot" in lost.because) == ("info", True)


def test_trouble_of_several_boots_is_a_warning_that_says_so(doctor: Doctor) -> None:
    journal = BOOTS[0] + LOST.format("May 12 11:11:07") + BOOTS[1] + LOST.format("May 20 11:11:07") + BOOTS[2] + STARTED
    lost = only(read(doctor, {"journal.txt": journal}), "hardware.fell-off-bus")
    assert (lost.severity, lost.role, "several boots" in lost.because) == ("warning", "cause", True)


def test_a_burst_is_one_finding_that_counts(doctor: Doctor) -> None:
    line = "May 28 10:01:{:02d} n3 kernel: NVRM: Xid (PCI:0000:5d:00): 94, pid={}, name=python3, Contained: Application process terminated\n"
    report = read(doctor, {"dmesg.txt": "".join(line.format(number, 4000 + number) for number in range(40))})
    burst = only(report, "hardware.ecc-contained")
    assert (burst.count, burst.last_seen is not None and burst.first_seen is not None) == (40, True)
    assert (burst.last_seen or 0) - (burst.first_seen or 0) == 39


def test_the_first_in_time_leads(doctor: Doctor) -> None:
    journal = (
        LOST.format("Jun 03 02:11:07")
        + "Jun 03 02:11:09 n3 kernel: NVRM: Xid (PCI:0000:5d:00): 45, pid=41233, name=python3, Ch 00000008\n"
    )
    report = read(doctor, {"journal.txt": journal})
    assert report.findings[0].id == "hardware.fell-off-bus"
    assert "hardware.xid" not in {finding.id for finding in report.findings if finding.role == "cause"}


GPUS = "index, uuid, pci.bus_id\n0, GPU-0d1c1f0e-0000-4000-8000-000000000000, 00000000:07:00.0\n3, GPU-0d1c1f0e-0000-4000-8000-000000000003, 00000000:C1:00.0\n"
NAMED = {
    "PCI address of the kernel log": "NVRM: Xid (PCI:0000:c1:00): 48, pid=41, name=python3, DBE (double bit error)\n",
    "index of nvidia-smi": "index, ecc.errors.uncorrected.volatile.total\n3, 2\n",
    "UUID": "uuid, ecc.errors.uncorrected.volatile.total\nGPU-0d1c1f0e-0000-4000-8000-000000000003, 2\n",
    "bus id in capitals": "pci.bus_id, ecc.errors.uncorrected.volatile.total\n00000000:C1:00.0, 2\n",
}


@pytest.mark.parametrize("name", NAMED)
def test_a_gpu_has_one_name_however_it_is_called(name: str, doctor: Doctor) -> None:
    finding = only(read(doctor, {"gpus.csv": GPUS, "evidence.txt": NAMED[name]}), "hardware.ecc-uncorrectable")
    assert [subject.name for subject in finding.subjects] == ["0000:c1:00.0"]


def test_all_names_together_are_one_subject(doctor: Doctor) -> None:
    files = {"gpus.csv": GPUS, **{f"{number}.txt": text for number, text in enumerate(NAMED.values())}}
    report = read(doctor, files)
    assert {subject.name for finding in report.findings for subject in finding.subjects} == {"0000:c1:00.0"}
    only(report, "hardware.ecc-uncorrectable")


def test_a_frameworks_number_is_that_gpu(doctor: Doctor) -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB of which 1.02 GiB is free. Process 4122 has 60.00 GiB memory in use. Including non-PyTorch memory, this process has 18.10 GiB memory in use. Of the allocated memory 17.00 GiB is allocated by PyTorch, and 200.00 MiB is reserved by PyTorch but unallocated.\n"
    held = only(read(doctor, {"gpus.csv": GPUS, "train.log": oom}), "memory.gpu-held-by-others")
    assert [subject.name for subject in held.subjects] == ["0000:c1:00.0"]
    assert "process 4122 (60.00 GiB)" in held.because
