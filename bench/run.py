"""Measures what the product promises, as ratios against something in the same run.

usage: python bench/run.py [--hotsos /path/to/hotsos] [startup] [live] [log]

startup   `gpudoctor --version` against `python -c pass`
live      CPU of `gpudoctor --json` on the fake 8-GPU node (needs a C compiler)
log       a 200 MB kernel log against hotsos on the same file (hotsos is skipped where it isn't given), and peak memory
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import time
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
    print(f"startup: --version {version * 1000:.0f} ms = {version / nothing:.1f} x python -c pass ({nothing * 1000:.0f} ms); at most 5")


def live() -> None:
    import tempfile

    from nvml.build import build_fake_nvml, scenario_env

    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | scenario_env("h100x8", build_fake_nvml(Path(folder)))
        runs = [cpu_and_memory([*GPUDOCTOR, "--json"], env) for _ in range(3)]
    cpu, wall, memory = min(runs)
    nothing, *_ = min(cpu_and_memory([sys.executable, "-c", "pass"]) for _ in range(5))
    print(f"live: 8 GPUs: {cpu:.2f} s CPU (at most 1.5), {wall:.2f} s wall, {memory:.0f} MB; {cpu / nothing:.0f} x python -c pass")


def make_log(path: Path, size: int) -> None:
    """A kernel log as nodes write it: mostly noise, now and then the driver."""
    draw = random.Random(7)
    noise = (
        "usb 1-{a}: new high-speed USB device number {b} using xhci_hcd",
        "audit: type=1400 audit(1718000000.{b}:{a}): apparmor=\"STATUS\" operation=\"profile_load\" name=\"snap.{a}\"",
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
                lines.append(f"Jun 10 {int(seconds / 3600) % 24:02}:{int(seconds / 60) % 60:02}:{int(seconds) % 60:02} node kernel: [{seconds:12.6f}] {text}\n")
            lines[2500] = f"Jun 10 00:00:00 node kernel: [{seconds:12.6f}] NVRM: Xid (PCI:0000:3b:00): 31, pid={draw.randrange(9999)}, name=python3, Ch 00000008\n"
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hotsos")
    parser.add_argument("what", nargs="*", default=["startup", "live", "log"])
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name in args.what:
        {"startup": startup, "live": live, "log": lambda: log(args.hotsos)}[name]()


if __name__ == "__main__":
    main()
