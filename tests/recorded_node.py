"""A node on disk that can be examined "live": its files below a root, and a recording of what its commands print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from nvml.build import scenario_env

OS_RELEASE = 'NAME="Ubuntu"\nVERSION_ID="22.04"\nID=ubuntu\nPRETTY_NAME="Ubuntu 22.04.5 LTS"\n'
MODULES = "".join(
    f"{name} {size} {used} - Live 0x0000000000000000 (POE)\n"
    for name, size, used in (("nvidia_uvm", 1736704, 8), ("nvidia_drm", 90112, 0), ("nvidia_modeset", 1306624, 1), ("nvidia", 56807424, 120))
)  # fmt: skip
PS = "USER         PID STAT WCHAN  COMMAND\n" + "".join(f"root {pid:>11} S    -  worker{pid}\n" for pid in range(1, 60))
HOST = (
    "Linux node01 5.15.0-119-generic #129-Ubuntu SMP Fri Aug 2 19:25:20 UTC 2024 x86_64 GNU/Linux\n\n# device_nodes\n"
)
LARGEST_PID = 4_194_000  # scenarios give processes that no longer exist a number above it
MEMORY = "MemTotal:       2113464320 kB\nMemFree:        1913464320 kB\nMemAvailable:   2013464320 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"


def record(folder: Path, scenario: str, lib_dir: Path) -> list[str]:
    """Make the node below `folder` and return the options that examine it."""
    root, commands = folder / "root", folder / "commands"
    commands.mkdir(parents=True)
    child = "import sys; sys.argv = ['nvml']; from gpudoctor.collect.children import nvml; nvml.main()"
    done = subprocess.run(
        [sys.executable, "-c", child],
        env=os.environ | scenario_env(scenario, lib_dir),
        capture_output=True,
        text=True,
        check=True,
    )
    (commands / "nvml").write_text(done.stdout)
    gpus = [line.split('"pci": "')[1][:12] for line in done.stdout.splitlines() if '"pci": "' in line]
    nodes = [("nvidiactl", 195, 255), ("nvidia-uvm", 510, 0)] + [(f"nvidia{n}", 195, n) for n in range(len(gpus))]
    listing = "".join(
        f"crw-rw-rw- 1 root root {major}, {minor} Jan  1 00:00 /dev/{name}\n" for name, major, minor in nodes
    )
    (commands / "host").write_text(HOST + listing)
    pids = sorted({int(found) for found in re.findall(r'"pid": (\d+)', done.stdout)})
    living = [pid for pid in pids if pid < LARGEST_PID]
    (commands / "processes").write_text(PS + "".join(f"user {pid:>11} S    -  python3\n" for pid in living))
    version = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Thu Sep 25 12:00:00 UTC 2025\n"
    files = {
        "etc/os-release": OS_RELEASE,
        "proc/version": "Linux version 5.15.0-119-generic (buildd@host) (gcc 11.4.0) #129-Ubuntu SMP\n",
        "proc/modules": MODULES,
        "proc/meminfo": MEMORY,
        "proc/cmdline": "BOOT_IMAGE=/vmlinuz-5.15.0-119-generic root=/dev/sda1 ro quiet\n",
        "proc/driver/nvidia/version": version,
        "proc/1/cgroup": "0::/init.scope\n",
    }
    for gpu in gpus:
        device = f"sys/bus/pci/devices/{gpu}"
        files |= {f"{device}/vendor": "0x10de\n", f"{device}/class": "0x030200\n", f"{device}/numa_node": "0\n"}
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return ["--root", str(root), "--commands", str(commands)]
