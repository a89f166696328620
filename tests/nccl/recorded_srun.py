"""Stands for srun and mpirun inside of a job: prints what all_reduce_perf printed across H100 nodes with eight adapters of 400 Gb/s.

RECORDED_FAULT: slow-node:NAME, slow-path:NAME,NAME, hang-node:NAME; none is a healthy job.
"""

import os
import sys
import time

CURVE = {8: 40.2, 64: 160.4, 256: 301.7, 512: 340.9, 1024: 358.8, 4096: 371.6}  # MiB -> GB/s, all of the path


def main() -> None:
    words = sys.argv[1:]
    if "-w" in words[: words.index("-b")]:
        nodes = words[words.index("-w") + 1].split(",")
        per_node = int(next(word for word in words if word.startswith("--ntasks-per-node=")).partition("=")[2])
    else:
        hosts = words[words.index("--host") + 1].split(",")
        nodes, per_node = [host.partition(":")[0] for host in hosts], int(hosts[0].partition(":")[2])
    least, most = (
        int(words[words.index(name) + 1][:-1]) * {"M": 1, "G": 1024}[words[words.index(name) + 1][-1]]
        for name in ("-b", "-e")
    )
    fault, _, which = os.environ.get("RECORDED_FAULT", "").partition(":")
    hit = bool(which) and set(which.split(",")) <= set(nodes)
    adapters = " ".join(f"[{nic}]mlx5_{nic}:1/IB" for nic in range(8))
    for node in nodes:
        print(f"{node}:4000:4100 [0] NCCL INFO NET/IB : Using {adapters} [RO]; OOB eth0:192.0.2.1<0>")
    print(
        f"# nThread 1 nGpus 1 minBytes {least << 20} maxBytes {most << 20} step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0"
    )
    print("#\n# Using devices")
    for rank in range(len(nodes) * per_node):
        node, device = divmod(rank, per_node)
        print(
            f"#  Rank {rank:2} Group  0 Pid {4000 + device:6} on {nodes[node]:>10} device {device:2} [0x{16 + device:02x}] NVIDIA H100 80GB HBM3"
        )
    print(
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong",
        flush=True,
    )
    if fault == "hang-node" and hit:
        time.sleep(600)
    slower = 8 if hit else 1
    for size, healthy in CURVE.items():
        if least <= size <= most:
            busbw = healthy / slower if len(nodes) > 1 else 460.0 / slower
            half = f"{(size << 20) / busbw / 1000:8.1f} {busbw / 2:7.2f} {busbw:7.2f}      0"
            print(f"{size << 20:12} {size << 18:13}     float     sum      -1 {half} {half}")
    print("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 200.1 \n#", flush=True)


if __name__ == "__main__":
    main()
