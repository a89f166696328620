"""Stands in for all_reduce_perf where PyTorch is there and nccl-tests is not: the same options, the same table.

It is run as a file by whatever Python has torch, so it imports nothing of gpudoctor and does with Python 3.8. One process
per visible GPU; torch sums in place only. With --device cpu the same is done by gloo in host memory, which any build of torch can.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_FLOAT = 4  # bytes
_POLL = 0.05  # seconds
_WRONG = 3  # status of every rank where sums were wrong


def size(text: str) -> int:
    """Return a size as nccl-tests' options write it.

    >>> size("8M"), size("1G"), size("4096")
    (8388608, 1073741824, 4096)
    """
    unit = _UNITS.get(text[-1:].upper(), 1)
    return int(text if unit == 1 else text[:-1]) * unit


def main() -> int:
    """Start one process per GPU and end with the worst of their statuses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-b", type=size, default=size("8M"), help="smallest message")
    parser.add_argument("-e", type=size, default=size("1G"), help="largest message")
    parser.add_argument("-f", type=int, default=2, help="factor between sizes")
    parser.add_argument("-g", type=int, default=1, help="GPUs")
    parser.add_argument("-w", type=int, default=5, help="warm-up iterations")
    parser.add_argument("-n", type=int, default=20, help="iterations")
    parser.add_argument(
        "--device", choices=("cuda", "cpu"), default="cuda", help="cpu: processes of this host, over gloo"
    )
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        return _rank(options)
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, __file__, *sys.argv[1:], "--store", str(Path(folder) / "store")]
        ranks = [subprocess.Popen([*words, "--rank", str(rank)]) for rank in range(options.g)]
        while any(rank.poll() is None for rank in ranks):
            first = next((rank for rank in ranks if rank.poll() not in (None, 0, _WRONG)), None)
            if first:  # the others would wait for it
                print(f"torch error: rank {ranks.index(first)} ended first, {_ending(first.returncode)}", flush=True)
                time.sleep(1)
                for rank in ranks:
                    rank.kill()
                break
            time.sleep(_POLL)
        worst: int = max(min(abs(rank.wait()), 255) for rank in ranks)
        return worst


def _ending(code: int) -> str:
    """Say how a process ended.

    >>> _ending(1), _ending(-9)
    ('with status 1', 'by signal 9')
    """
    return f"with status {code}" if code > 0 else f"by signal {-code}"


def _rank(options: argparse.Namespace) -> int:
    import torch  # type: ignore[import-not-found, unused-ignore]
    import torch.distributed as dist  # type: ignore[import-not-found, unused-ignore]

    rank: int = options.rank
    ranks: int = options.g
    if options.device == "cuda":
        if torch.cuda.device_count() < ranks:
            print(f"torch error: {ranks} GPUs asked for, torch sees {torch.cuda.device_count()}", flush=True)
            return 1
        torch.cuda.set_device(rank)
    if rank == 0:
        _heading(options, torch)
    backend = "nccl" if options.device == "cuda" else "gloo"
    dist.init_process_group(backend, init_method=f"file://{options.store}", rank=rank, world_size=ranks)
    wrong = 0
    bandwidths: list[float] = []
    bytes_: int = options.b
    while bytes_ <= options.e:
        count = bytes_ // _FLOAT
        bad, seconds = _measure(options, torch, dist, count)
        wrong += bad
        algbw = count * _FLOAT / seconds / 1e9
        bandwidths.append(algbw * 2 * (ranks - 1) / ranks)
        if rank == 0:
            line = f"{count * _FLOAT:12} {count:13} {'float':>9} {'sum':>7} {-1:7}"
            print(f"{line} {seconds * 1e6:8.1f} {algbw:7.2f} {bandwidths[-1]:7.2f} {bad:6}", flush=True)
        bytes_ *= max(2, options.f)
    if rank == 0:
        print(f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}")
        print(f"# Avg bus bandwidth    : {sum(bandwidths) / max(1, len(bandwidths)):g}\n#", flush=True)
    dist.destroy_process_group()
    return _WRONG if wrong else 0


def _measure(options: argparse.Namespace, torch: Any, dist: Any, count: int) -> tuple[int, float]:
    """Check one sum, then time many; returns wrong values of all ranks and seconds per operation."""
    data = torch.full((count,), float(options.rank + 1), device=options.device)
    dist.all_reduce(data)
    bad = (data != float(options.g * (options.g + 1) // 2)).sum()
    dist.all_reduce(bad)
    data.zero_()
    for _ in range(options.w):
        dist.all_reduce(data)
    dist.barrier()
    seconds = (_host_seconds if options.device == "cpu" else _gpu_seconds)(options.n, torch, dist, data)
    return int(bad.item()), max(seconds / options.n, 1e-9)


def _gpu_seconds(times: int, torch: Any, dist: Any, data: Any) -> float:
    """The GPU's own clock: the calls only queue the work."""
    torch.cuda.synchronize()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(times):
        dist.all_reduce(data)
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / 1000


def _host_seconds(times: int, torch: Any, dist: Any, data: Any) -> float:
    begin = time.perf_counter()
    for _ in range(times):
        dist.all_reduce(data)
    return time.perf_counter() - begin


def _heading(options: argparse.Namespace, torch: Any) -> None:
    library = f"NCCL {torch.cuda.nccl.version()}" if options.device == "cuda" else "gloo"
    print(f"# Collective test starting: all_reduce_perf by torch {torch.__version__}, {library}")
    print(f"# nThread 1 nGpus {options.g} minBytes {options.b} maxBytes {options.e} step: {options.f}(factor) warmup iters: {options.w} iters: {options.n}")  # fmt: skip
    print("# Using devices")
    host = platform.node() or "localhost"
    for device in range(options.g):
        bus, name = 0, "CPU"
        if options.device == "cuda":
            properties = torch.cuda.get_device_properties(device)
            bus, name = getattr(properties, "pci_bus_id", 0), properties.name
        print(f"#  Rank {device:2} Group  0 on {host} device {device:2} [0x{bus:02x}] {name}")
    print("#       size         count      type   redop    root     time   algbw   busbw #wrong", flush=True)


if __name__ == "__main__":
    sys.exit(main())
