"""Facts about memory that ran out."""

from __future__ import annotations

from typing import ClassVar

from gpudoctor.facts.base import Fact


class GpuOom(Fact):
    """An allocation on a GPU that failed, as the framework tells it. Sizes in MiB.

    requested: what was asked for; total and free: of the GPU; process: what this process holds in all; allocated: live
    tensors; reserved_unallocated: held by the framework's pool and not in use; others: held by other processes.
    """

    kind: ClassVar[str] = "gpu_oom"

    framework: str
    requested: float | None = None
    total: float | None = None
    free: float | None = None
    process: float | None = None
    allocated: float | None = None
    reserved: float | None = None
    reserved_unallocated: float | None = None
    others: float | None = None
    device: int | None = None
    pid: int | None = None
    rank: int | None = None
    reserved_share: float | None = None  # reserved_unallocated / total
    others_share: float | None = None  # others / total


class HostOomKill(Fact):
    """A process that an OOM killer ended. scope: host, cgroup, systemd-oomd, earlyoom, pod. Sizes in MiB."""

    kind: ClassVar[str] = "host_oom_kill"

    pid: int | None = None
    process: str | None = None
    scope: str = "host"
    resident: float | None = None
    limit: float | None = None
    cgroup: str | None = None
