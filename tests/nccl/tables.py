"""Public results of nccl-tests, and a writer that prints them as the program does."""

from __future__ import annotations

from dataclasses import dataclass

MIB, GIB = 1 << 20, 1 << 30


@dataclass(frozen=True)
class Table:
    """rows: size -> bus bandwidth in GB/s as published. topology and network: what else the source says of the machine."""

    source: str
    platform: str
    gpu: str
    ranks: int
    rows: dict[int, float]
    nodes: int = 1
    collective: str = "all_reduce"
    links: int | None = None
    nics: int | None = None
    rate: int | None = None
    verdict: str = "fast enough"


_BOOK = "Machine Learning Engineering, network chapter"
_AZURE = "Azure HPC node health checks, acceptance limits"

TABLES = [
    # one node
    Table(_BOOK, "H200 SXM 8x, NVLS", "NVIDIA H200", 8, {MIB: 39.93, 16 * MIB: 219.89, 256 * MIB: 436.15, GIB: 463.58, 4 * GIB: 473.1, 16 * GIB: 482.26}),
    Table(_BOOK, "H200 SXM 8x, Ring", "NVIDIA H200", 8, {16 * GIB: 367.61}),
    Table(_BOOK, "H200 SXM, 4 of 8", "NVIDIA H200", 4, {8 * GIB: 363.3}),
    Table(_BOOK, "H200 SXM, 5 of 8", "NVIDIA H200", 5, {8 * GIB: 414.2}),
    Table(_BOOK, "H200 SXM, 7 of 8", "NVIDIA H200", 7, {8 * GIB: 460.0}),
    Table(_BOOK, "H200 SXM 8x, all_gather", "NVIDIA H200", 8, {16 * GIB: 361.4}, collective="all_gather"),
    Table(_BOOK, "H200 SXM 8x, reduce_scatter", "NVIDIA H200", 8, {16 * GIB: 362.9}, collective="reduce_scatter"),
    Table(_BOOK, "B200 SXM 8x (AWS P6), NVLS", "NVIDIA B200", 8, {MIB: 36.06, 16 * MIB: 254.96, 128 * MIB: 568.38, 512 * MIB: 688.99, 16 * GIB: 845.67}),
    Table(_BOOK, "B200 SXM, 4 of 8, Ring", "NVIDIA B200", 4, {8 * GIB: 673.2}),
    Table(_BOOK, "A100 SXM 8x", "NVIDIA A100-SXM4-80GB", 8, {16 * GIB: 234.89}),
    Table(_AZURE, "H100 SXM 8x (ND H100 v5)", "NVIDIA H100 80GB HBM3", 8, {16 * GIB: 460.0}),
    Table(_AZURE, "GB200, one tray", "NVIDIA GB200", 4, {16 * GIB: 432.0}),
    Table(_AZURE, "A100 PCIe 4x (NC A100 v4)", "NVIDIA A100 80GB PCIe", 4, {8 * GIB: 25.0}),
    Table("NVIDIA/nccl-tests issue 212", "H100 SXM 8x, Ring", "NVIDIA H100 80GB HBM3", 8, {8 * GIB: 370.0}),
    Table("NVIDIA/nccl-tests issue 290", "H100 SXM 8x, NVLS", "NVIDIA H100 80GB HBM3", 8, {8 * GIB: 476.0}),
    Table("NVIDIA/nccl-tests issue 175", "A100 SXM 8x", "NVIDIA A100-SXM4-80GB", 8, {4 * GIB: 232.54}),
    Table("NVIDIA/nccl issue 527", "A100 SXM 8x (AWS P4d)", "NVIDIA A100-SXM4-40GB", 8, {GIB: 230.81}),
    Table("NVIDIA/nccl issue 1374", "H800 SXM 8x", "NVIDIA H800", 8, {8 * GIB: 215.0}),
    Table("NVIDIA/nccl-tests issue 178", "A100 PCIe, pair on a bridge", "NVIDIA A100 80GB PCIe", 2, {12 * GIB: 208.0}, links=12),
    Table("NVIDIA/nccl-tests issue 178", "A100 PCIe 3x", "NVIDIA A100 80GB PCIe", 3, {12 * GIB: 20.0}),
    Table("NVIDIA/nccl issue 1639", "RTX 5090 8x, PCIe 5", "NVIDIA GeForce RTX 5090", 8, {8 * GIB: 28.0}),
    Table("NVIDIA/nccl issue 1639", "RTX 5090 4x, PCIe 5", "NVIDIA GeForce RTX 5090", 4, {8 * GIB: 35.0}),
    Table("tinygrad/open-gpu-kernel-modules issue 36", "RTX 4090 4x, patched for P2P", "NVIDIA GeForce RTX 4090", 4, {256 * MIB: 25.72, 512 * MIB: 25.83, GIB: 25.95}),
    # several nodes
    Table("NVIDIA/nccl issue 1576", "A100 SXM, 8x HDR 200", "NVIDIA A100-SXM4-80GB", 16, {8 * GIB: 192.0}, nodes=2, nics=8, rate=200),
    Table("NVIDIA/nccl-tests issue 175", "A100 SXM, 4x 200", "NVIDIA A100-SXM4-80GB", 16, {4 * GIB: 86.0}, nodes=2, nics=4, rate=200),
    Table("NVIDIA/nccl-tests issue 119", "A100 SXM, 4x 200", "NVIDIA A100-SXM4-80GB", 16, {GIB: 96.69}, nodes=2, nics=4, rate=200),
    Table("NVIDIA/nccl-tests issue 29", "V100 SXM, 1x EDR 100", "Tesla V100-SXM2-16GB", 32, {GIB: 12.0}, nodes=4, nics=1, rate=100),
    Table(_BOOK, "H200 SXM (AWS P5en), 16x 200", "NVIDIA H200", 32, {16 * GIB: 364.65}, nodes=4, nics=16, rate=200),
    Table(_BOOK, "B200 SXM (AWS P6), 8x 400", "NVIDIA B200", 32, {512 * MIB: 326.9, 16 * GIB: 381.8}, nodes=4, nics=8, rate=400),
    # degraded ones, and how far
    Table("public thread on a DGX A100 with NCCL_P2P_DISABLE left set", "A100 SXM, 4 of 8", "NVIDIA A100-SXM4-80GB", 4, {GIB: 5.2, 8 * GIB: 5.2}, verdict="too slow"),
    Table("public thread on RTX 5090: two ranks on one GPU, over sockets", "RTX 5090 2x", "NVIDIA GeForce RTX 5090", 2, {MIB: 0.24, 8 * MIB: 1.91, 128 * MIB: 2.31}, verdict="too slow"),
    Table("NVIDIA/nccl issue 1454 (300 nodes there)", "H100 SXM, 4 adapters", "NVIDIA H100 80GB HBM3", 16, {8 * GIB: 14.0}, nodes=2, nics=4, rate=400, verdict="too slow"),
    Table("NVIDIA/nccl issue 949", "A100 SXM in virtual machines, 2x 200", "NVIDIA A100-SXM4-80GB", 16, {GIB: 27.0}, nodes=2, nics=2, rate=200, verdict="too slow"),
    Table("NVIDIA/nccl-tests issue 152", "A100 SXM, 4x 200", "NVIDIA A100-SXM4-80GB", 16, {4 * GIB: 30.0}, nodes=2, nics=4, rate=200, verdict="too slow"),
    Table("NVIDIA/nccl issue 2409", "H100 SXM, 8x 400, a platform fault and a wrong setting", "NVIDIA H100 80GB HBM3", 16, {GIB: 216.5, 8 * GIB: 231.0}, nodes=2, nics=8, rate=400, verdict="too slow"),
    Table("NVIDIA/nccl issue 2171", "H100 SXM in virtual machines, 8x 400", "NVIDIA H100 80GB HBM3", 16, {8 * GIB: 154.9}, nodes=2, nics=8, rate=400, verdict="too slow"),
    Table("NVIDIA/nccl issue 1453", "H100 SXM, three nodes in two racks, 8x 200", "NVIDIA H100 80GB HBM3", 24, {8 * MIB: 16.31, 32 * MIB: 29.5, 64 * MIB: 5.27, 128 * MIB: 5.3, 512 * MIB: 5.33}, nodes=3, nics=8, rate=200, verdict="too slow"),
]  # fmt: skip


def printed(table: Table) -> str:
    """Return the table as all_reduce_perf and its sisters print it."""
    lines = [f"# Collective test starting: {table.collective}_perf"]
    lines.append(
        f"# nThread 1 nGpus 1 minBytes {min(table.rows)} maxBytes {max(table.rows)} step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0"
    )
    lines += ["#", "# Using devices"]
    per_node = table.ranks // table.nodes
    for rank in range(table.ranks):
        node, device = divmod(rank, per_node)
        lines.append(
            f"#  Rank {rank:2} Group  0 Pid {4000 + rank:6} on     node{node} device {device:2} [0x{0x10 + 8 * device:02x}] {table.gpu}"
        )
    lines.append("#")
    lines.append(
        "#                                                              out-of-place                       in-place          "
    )
    lines.append(
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"
    )
    lines.append(
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       "
    )
    for size, busbw in table.rows.items():
        half = f"{size / busbw / 1000:8.1f} {busbw / 2:7.2f} {busbw:7.2f}      0"
        lines.append(f"{size:12} {size // 4:13}     float     sum      -1 {half} {half}")
    lines += [
        "# Out of bounds values : 0 OK",
        f"# Avg bus bandwidth    : {sum(table.rows.values()) / len(table.rows):.3f} ",
        "#",
    ]
    if table.nics:
        adapters = " ".join(f"[{nic}]mlx5_{nic}:1/IB" for nic in range(table.nics))
        lines.insert(0, f"node0:4000:4100 [0] NCCL INFO NET/IB : Using {adapters} [RO]; OOB eth0:192.0.2.1<0>")
    return "\n".join(lines) + "\n"


def ports(table: Table) -> str:
    """Return what ibstat says of the adapters."""
    return "".join(
        f"CA 'mlx5_{nic}'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: {table.rate}\n\t\tLink layer: InfiniBand\n"
        for nic in range(table.nics or 0)
    )


def matrix(table: Table) -> str:
    """Return nvidia-smi topo -m where the source tells the links of each pair."""
    names = [f"GPU{number}" for number in range(table.ranks)]
    rows = ["\t".join(["", *names, "CPU Affinity", "NUMA Affinity"])]
    for name in names:
        cells = ["X" if other == name else f"NV{table.links}" for other in names]
        rows.append("\t".join([name, *cells, "0-31", "0"]))
    return "\n".join(rows) + "\n"
