"""Many cycles of the watch, back to back: CPU per cycle, memory and descriptors at the start and at the end.

python bench/soak.py [cycles]        with the fake NVML: eval "$(python tests/nvml/build.py h100x8 /tmp/fake-nvml)" first
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import psutil

from gpudoctor.collect.probe import load_probes
from gpudoctor.diagnosis import Doctor
from gpudoctor.monitor.host import WatchedHost
from gpudoctor.monitor.incremental import KeptMatches
from gpudoctor.monitor.site import WatchOptions
from gpudoctor.monitor.watch import Watch
from gpudoctor.report.prometheus import render_prometheus

WARM = 300  # cycles after which memory is expected to stay as it is


def main() -> None:
    """Print one line per figure."""
    cycles = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    probes = [probe for probe in load_probes() if probe.cost == "cheap"]
    with tempfile.TemporaryDirectory() as folder:
        watch = Watch(
            Doctor(engine="builtin", evaluate=KeptMatches()), WatchedHost(), probes, WatchOptions(), Path(folder)
        )
        began = used = 0.0
        memory = descriptors = whole = 0
        process = psutil.Process()
        for number in range(cycles):
            if number == min(WARM, cycles // 2):
                began, used = time.monotonic(), cpu(process)
                memory, whole, descriptors = process.memory_info().rss, resident(process), process.num_fds()
            done = watch.cycle()
            assert done is not None
            render_prometheus(done.report, time.time())
            watch.save()
        measured = cycles - min(WARM, cycles // 2)
        print(f"cycles measured      {measured}, of which judged anew {watch.counters.judged}")
        print(f"CPU per cycle        {1000 * (cpu(process) - used) / measured:.1f} ms, children included")
        print(f"wall per cycle       {1000 * (time.monotonic() - began) / measured:.1f} ms")
        now = process.memory_info().rss
        print(
            f"resident             {memory / 2**20:.1f} -> {now / 2**20:.1f} MB ({100 * (now - memory) / memory:+.1f} %)"
        )
        print(f"with its children    {whole / 2**20:.1f} -> {resident(process) / 2**20:.1f} MB")
        print(f"descriptors          {descriptors} -> {process.num_fds()}")
        watch.close()


def cpu(process: psutil.Process) -> float:
    """Seconds of processor time of a process and its living and ended children."""
    spent = process.cpu_times()
    total = spent.user + spent.system + spent.children_user + spent.children_system
    for child in process.children(recursive=True):
        times = child.cpu_times()
        total += times.user + times.system
    return total


def resident(process: psutil.Process) -> int:
    """Resident bytes of a process and its children."""
    return sum(one.memory_info().rss for one in (process, *process.children(recursive=True)))


if __name__ == "__main__":
    main()
