"""Facts about NCCL, its logs and its measurements."""

from __future__ import annotations

from typing import ClassVar

from gpudoctor.facts.base import Fact


class NcclTest(Fact):
    """One nccl-tests table. Bandwidths in GB/s, sizes in bytes; `busbw_max` is over the largest sizes measured."""

    kind: ClassVar[str] = "nccl_test"

    collective: str | None = None
    ranks: int | None = None
    nodes: int | None = None
    gpus_per_node: int | None = None
    gpu_name: str | None = None
    size_max: int | None = None
    busbw_max: float | None = None
    busbw_at_largest: float | None = None
    busbw_average: float | None = None
    wrong: int | None = None
    out_of_bounds: int | None = None
    flat: bool | None = None  # the same bandwidth at all sizes: one slow path, not latency
    expected_low: float | None = None  # from the expectation model
    expected_high: float | None = None
    expectation: str | None = None  # its reasoning


class NcclRank(Fact):
    """What one rank said of itself in a log or in the device list of nccl-tests."""

    kind: ClassVar[str] = "nccl_rank"

    rank: int
    ranks: int | None = None
    host: str | None = None
    pid: int | None = None
    device: int | None = None
    pci: str | None = None
    version: str | None = None
    network: str | None = None  # IB, Socket, or the plugin's name
    interface: str | None = None
    init_complete: bool | None = None
    gpu_name: str | None = None


class NcclConnection(Fact):
    """A channel connection in an NCCL log. via: P2P, SHM, NET/IB, NET/Socket ...; `gdr` where the line says GDRDMA."""

    kind: ClassVar[str] = "nccl_connection"

    a: int
    b: int
    via: str
    gdr: bool | None = None
    channels: int | None = None


class NcclWarning(Fact):
    """A `NCCL WARN` line; `position` is file:line in NCCL's source where the line gives it."""

    kind: ClassVar[str] = "nccl_warning"

    message: str
    position: str | None = None
    rank: int | None = None
    host: str | None = None


class CollectiveTimeout(Fact):
    """A torch.distributed watchdog message."""

    kind: ClassVar[str] = "collective_timeout"

    rank: int | None = None
    sequence: int | None = None
    operation: str | None = None
    elements: int | None = None
    timeout_ms: int | None = None
    elapsed_ms: int | None = None
