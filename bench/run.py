"""Measures what the product promises, as ratios against something in the same run.

usage: python bench/run.py [--hotsos /path/to/hotsos] [--nvitop /path/to/nvitop] [startup] [live] [log] [nccl] [bundle] [tui]

startup   `gpudoctor --version` against `python -c pass`
live      CPU of `gpudoctor --json`, and of one with `--profile quick`, on the fake 8-GPU node (needs a C compiler), against
          `nvitop -1` on the same (left out where it isn't given)
log       a 200 MB kernel log against hotsos on the same file (hotsos is skipped where it isn't given), and peak memory
bundle    a bug report of 50 MB (packed) against unpacking it with the fastest zlib that is installed, and peak memory
nccl      200 MB of NCCL logs of a job with 1,024 ranks, one of them late; cost grows linearly with bytes
tui       the interactive screens: first paint and key to repaint against `python -c pass`, a log of 1 GB
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

GPUDOCTOR = [sys.executable, "-m", "gpudoctor"]


def best(command: list[str], runs: int = 7, env: dict[str, str] | None = None) -> float:
    """Wall seconds, the best of several runs."""
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        subprocess.run(command, capture_output=True, env=env)
        times.append(time.perf_counter() - started)
    return min(times)


def cpu_and_memory(command: list[str], env: dict[str, str] | None = None) -> tuple[float, float, float]:
    """(CPU seconds, wall seconds, peak resident MB) of one run, its children included."""
    code = (
        "import resource,subprocess,sys,time\n"
        "t=time.perf_counter(); subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL,stderr=subprocess.DEVNULL)\n"
        "u=resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(u.ru_utime+u.ru_stime, time.perf_counter()-t, u.ru_maxrss/1024)"
    )
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, env=env, check=True)
    cpu, wall, memory = (float(part) for part in done.stdout.split())
    return cpu, wall, memory


def startup() -> None:
    nothing = best([sys.executable, "-c", "pass"])
    version = best([*GPUDOCTOR, "--version"])
    print(
        f"startup: --version {version * 1000:.0f} ms = {version / nothing:.1f} x python -c pass ({nothing * 1000:.0f} ms); at most 5"
    )


def live(nvitop: str | None) -> None:
    import tempfile

    from nvml.build import build_fake_nvml, scenario_env

    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | scenario_env("h100x8", build_fake_nvml(Path(folder)))
        runs = {"standard": [*GPUDOCTOR, "--json"], "quick": [*GPUDOCTOR, "--profile", "quick", "--json"]}
        if nvitop:
            runs["nvitop -1"] = [nvitop, "-1"]
        used = {name: min(cpu_and_memory(command, env) for _ in range(5)) for name, command in runs.items()}
    nothing, *_ = min(cpu_and_memory([sys.executable, "-c", "pass"]) for _ in range(5))
    for name, (cpu, wall, memory) in used.items():
        most = {"standard": " (at most 1.5)", "quick": " (at most 0.6)"}.get(name, "")
        print(
            f"live: 8 GPUs, {name}: {cpu:.2f} s CPU{most} = {cpu / nothing:.0f} x python -c pass, {wall:.2f} s wall, {memory:.0f} MB"
        )


def make_log(path: Path, size: int) -> None:
    """A kernel log as nodes write it: mostly noise, now and then the driver."""
    draw = random.Random(7)
    noise = (
        "usb 1-{a}: new high-speed USB device number {b} using xhci_hcd",
        'audit: type=1400 audit(1718000000.{b}:{a}): apparmor="STATUS" operation="profile_load" name="snap.{a}"',
        "IPv6: ADDRCONF(NETDEV_CHANGE): veth{a}: link becomes ready",
        "docker0: port {a}(veth{b}) entered forwarding state",
        "EXT4-fs (nvme0n1p{a}): mounted filesystem with ordered data mode. Quota mode: none.",
        "mlx5_core 0000:{a:02x}:00.0: Port module event: module {b}, Cable plugged",
    )
    with path.open("w") as file:
        written = 0
        seconds = 0.0
        while written < size:
            lines = []
            for _ in range(5000):
                seconds += draw.random() / 50
                text = draw.choice(noise).format(a=draw.randrange(200), b=draw.randrange(9999))
                lines.append(
                    f"Jun 10 {int(seconds / 3600) % 24:02}:{int(seconds / 60) % 60:02}:{int(seconds) % 60:02} node kernel: [{seconds:12.6f}] {text}\n"
                )
            lines[2500] = (
                f"Jun 10 00:00:00 node kernel: [{seconds:12.6f}] NVRM: Xid (PCI:0000:3b:00): 31, pid={draw.randrange(9999)}, name=python3, Ch 00000008\n"
            )
            written += file.write("".join(lines))


def log(hotsos: str | None) -> None:
    root = HERE / "data" / "root"
    path = root / "var" / "log" / "kern.log"
    if not path.exists():
        path.parent.mkdir(parents=True)
        make_log(path, 200_000_000)
    cpu, wall, memory = min(cpu_and_memory([*GPUDOCTOR, "diagnose", "--json", str(path)]) for _ in range(3))
    print(f"log: 200 MB in {wall:.2f} s wall, {cpu:.2f} s CPU, peak {memory:.0f} MB (at most 200)")
    if hotsos:
        env = os.environ | {"HOTSOS_DATA_ROOT": str(root)}
        _, other, _ = cpu_and_memory([hotsos, "--all-logs", "--kernel", "--system", str(root)], env)
        print(f"log: hotsos {other:.1f} s wall on the same file: {other / wall:.0f} times as long (at least 50)")


def make_bug_report(path: Path, size: int) -> None:
    """A report as nvidia-bug-report.sh writes it: a gzip member per section, most of the text in the kernel's logs."""
    import gzip

    log_path = path.with_suffix(".text")
    make_log(log_path, size // 12)
    kernel = log_path.read_bytes()
    log_path.unlink()
    rule = b"_" * 44 + b"\n\n"
    sections = [
        b"Start of NVIDIA bug report log file.  Please include this file.\n\nnvidia-bug-report.sh Version: 34275561\n\n"
        b"Date: Mon Jun 10 23:59:57 UTC 2024\nuname: Linux node 6.8.0-62-generic #65-Ubuntu SMP x86_64 GNU/Linux\n",
        b"*** /proc/driver/nvidia/./version\n*** ls: -r--r--r-- 1 root root 0 2024-06-10 23:59:50.000000000 +0000 /proc/driver/nvidia/./version\n"
        b"NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version:  gcc version 12.2.0\n",
    ]
    sections += [b"*** /proc/irq/%d/smp_affinity_list\n%d\n" % (number, number % 64) for number in range(440)]
    logs = [
        b"/usr/bin/dmesg:\n\n",
        *(b"journalctl -b -%d:\n\n" % boot for boot in range(6)),
        b"*** /var/log/kern.log\n",
        b"*** /var/log/syslog\n",
    ]
    logs += [b"*** /var/log/messages\n", b"*** /var/log/kern.log.1\n", b"*** /var/log/dmesg\n"]
    noisy = random.Random(8)
    with path.open("wb") as out:
        for section in sections:
            out.write(gzip.compress(rule + section + b"\n", 6))
        for heading in logs:
            salt = b"%d" % noisy.randrange(9)  # no two logs alike
            out.write(gzip.compress(rule + heading + kernel.replace(b" node kernel", b" node%s kernel" % salt), 6))
        out.write(gzip.compress(rule + b"End of NVIDIA bug report log file.\n", 6))


UNPACK = """
import sys, importlib
module = importlib.import_module(sys.argv[1])
decoder, size = module.decompressobj(wbits=31), 0
with open(sys.argv[2], "rb") as file:
    while data := file.read(1 << 18):
        while data:
            size += len(decoder.decompress(data, 1 << 20))  # larger pieces are slower: each is new memory
            data = decoder.unconsumed_tail
            if decoder.eof:
                data, decoder = decoder.unused_data, module.decompressobj(wbits=31)
print(size)
"""


def bundle() -> None:
    path = HERE / "data" / "nvidia-bug-report.log.gz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        make_bug_report(path, 500_000_000)
    size = path.stat().st_size / 1e6
    times = {}
    for module in ("isal.isal_zlib", "zlib_ng.zlib_ng", "zlib"):
        if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode == 0:
            times[module] = best([sys.executable, "-c", UNPACK, module, str(path)], runs=3)
    fastest = min(times, key=times.__getitem__)
    runs = [cpu_and_memory([*GPUDOCTOR, "diagnose", "--json", str(path)]) for _ in range(3)]
    wall, cpu, memory = min((wall, cpu, memory) for cpu, wall, memory in runs)
    others = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in times.items())
    used = {
        module: min(cpu_and_memory([sys.executable, "-c", UNPACK, module, str(path)])[0] for _ in range(3))
        for module in times
    }
    print(
        f"bundle: CPU {cpu:.2f} s; unpacking alone: {', '.join(f'{name} {seconds:.2f} s' for name, seconds in used.items())}"
    )
    print(
        f"bundle: {size:.0f} MB report in {wall:.2f} s wall, {cpu:.2f} s CPU = {wall / times[fastest]:.2f} x unpacking it (at most 1.5; {others})"
    )
    print(f"bundle: peak {memory:.0f} MB (at most 250)")


def make_nccl_log(path: Path, size: int, ranks: int = 1024, late: int = 613) -> None:
    """The joined NCCL log of a job's ranks: half of it communicators that are set up, half calls; in the end one rank is late."""
    draw = random.Random(7)
    heads = [
        f"node-{rank // 8:03}:{20_000 + draw.randrange(9_000)}:{40_000 + rank} [{rank % 8}] NCCL INFO "
        for rank in range(ranks)
    ]
    with path.open("w") as file:
        written = 0
        while written < size // 2:
            unique = draw.randrange(1 << 60)
            for rank, head in enumerate(heads):
                lines = [f"{head}{line}\n" for line in _set_up(rank, ranks, unique)]
                written += file.write("".join(lines))
        call = 0
        while written < size:
            call += 1
            for head in heads:
                what = draw.choice(("AllReduce", "AllGather", "ReduceScatter"))
                buffer = f"0x7f{draw.randrange(1 << 36):010x}"
                written += file.write(
                    f"{head}{what}: opCount {call:x} sendbuff {buffer} recvbuff {buffer} count {draw.choice((64, 8388608, 33554432))} datatype 9 op 0 root 0 comm 0x55d0a1f0 [nranks={ranks}] stream 0x55cf8b0\n"
                )
        for rank in range(ranks):
            number = call - (rank == late)
            file.write(
                f"[rank{rank}]:[E ProcessGroupNCCL.cpp:563] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={number}, OpType=ALLREDUCE, NumelIn=33554432, NumelOut=33554432, Timeout(ms)=600000) ran for {600_000 + draw.randrange(90)} milliseconds before timing out.\n"
            )


def _set_up(rank: int, ranks: int, unique: int) -> Iterator[str]:
    node, gpu = divmod(rank, 8)
    comm = f"comm 0x55{unique + rank & 0xFFFFFFFF:08x} rank {rank} nranks {ranks} cudaDev {gpu} nvmlDev {gpu} busId {0x1B000 + gpu * 0x17000:x} commId 0x{unique:x}"
    yield "cudaDriverVersion 12020"
    yield "NCCL version 2.19.3+cuda12.2"
    yield f"Bootstrap : Using eth0:192.0.2.{node + 1}<0>"
    yield "NET/Plugin : dlerror=libnccl-net.so: cannot open shared object file: No such file or directory No plugin found (libnccl-net.so), using internal implementation"
    yield f"NET/IB : Using {' '.join(f'[{i}]mlx5_{i}:1/IB' for i in range(8))} [RO]; OOB eth0:192.0.2.{node + 1}<0>"
    yield "Using non-device net plugin version 0"
    yield "Using network IB"
    yield f"{comm} - Init START"
    yield f"Setting affinity for GPU {gpu} to ffffffff,ffff0000,00000000,ffffffff,ffff0000,00000000"
    yield f"NVLS multicast support is available on dev {gpu}"
    yield "Trees " + " ".join(f"[{c}] {rank + 1}/-1/-1->{rank}->{rank - 1}" for c in range(16))
    yield "P2P Chunksize set to 131072"
    for offset in (1, 8, 16, 24, 32):
        peer = (rank + offset) % ranks
        via = "P2P/CUMEM/read" if peer // 8 == node else "NET/IB/{}/GDRDMA"
        for c in range(16):
            yield f"Channel {c:02}/0 : {rank}[{gpu}] -> {peer}[{peer % 8}] [send] via {via.format(c % 8)}"
    yield "Connected all rings"
    yield "Connected all trees"
    yield "Connected NVLS tree"
    yield "threadThresholds 8/8/64 | 8192/8/64 | 512 | 512"
    yield "16 coll channels, 16 nvls channels, 16 p2p channels, 2 p2p channels per peer"
    yield f"{comm} - Init COMPLETE"


def nccl() -> None:
    path = HERE / "data" / "nccl.log"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        make_nccl_log(path, 200_000_000)
    cpu, wall, memory = min(cpu_and_memory([*GPUDOCTOR, "diagnose", "--json", str(path)]) for _ in range(3))
    print(
        f"nccl: 200 MB of 1,024 ranks in {wall:.1f} s wall, {cpu:.1f} s CPU (at most 6, so that 2 GB take less than 60), peak {memory:.0f} MB (at most 500)"
    )


def tui() -> None:
    from screens import measure

    measure(make_log)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hotsos")
    parser.add_argument("--nvitop")
    parser.add_argument("what", nargs="*", default=["startup", "live", "log", "nccl", "bundle", "tui"])
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is measured is an installed package, which has its bytecode
    for name in args.what:
        {
            "startup": startup,
            "live": lambda: live(args.nvitop),
            "log": lambda: log(args.hotsos),
            "bundle": bundle,
            "nccl": nccl,
            "tui": tui,
        }[name]()


if __name__ == "__main__":
    main()
