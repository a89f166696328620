"""Facts about memory that ran out."""

from typing import ClassVar

from gpudoctor.facts.base import Fact


class GpuOom(Fact, kw_only=True):
    """An allocation on a GPU that failed, as the framework tells it. Sizes in MiB.

    requested: what was asked for; total and free: of the GPU; process: what this process holds in all; allocated: live
    tensors; reserved: the framework's pool; reserved_unallocated: in the pool and not in use; others: held by other
    processes; limit: the most that this process's pool may take.

    what: tensor (an ordinary allocation), handle (a CUDA library found no room for its handle), context (the process
    could not even begin), pool (the framework's own pool at start), weights, session (video encoder), pinned (host memory
    that the driver was to lock).
    """

    kind: ClassVar[str] = "gpu_oom"

    framework: str
    what: str = "tensor"
    requested: float | None = None
    total: float | None = None
    free: float | None = None
    process: float | None = None
    allocated: float | None = None
    reserved: float | None = None
    reserved_unallocated: float | None = None
    others: float | None = None
    limit: float | None = None
    device: int | None = None
    pid: int | None = None
    rank: int | None = None
    reserved_share: float | None = None  # reserved_unallocated / total
    others_share: float | None = None  # others / total
    holders: str | None = None  # other processes, largest first
    # what the numbers say (combiners/memory.py): too_big, tight (free and cached memory together would just do),
    # fragmentation, others, preallocation, not_memory, unknown; statistics, session and pinned as `what` says
    shortage: str | None = None
    account: str | None = None  # the numbers that are known, as a clause


class KvCache(Fact, kw_only=True):
    """An inference server's room for its KV cache, in tokens or MiB, where it says that it is too small.

    needed and available belong together and share `unit` (tokens, MiB). fatal: the server refused to start or serve.
    """

    kind: ClassVar[str] = "kv_cache"

    server: str
    fatal: bool = True
    unit: str | None = None
    needed: float | None = None
    available: float | None = None
    max_length: int | None = None  # the longest sequence that the server itself estimates to fit
    account: str = ""


class FreeAtStart(Fact, kw_only=True):
    """GPU memory that a program found free before it took any of its own. Sizes in MiB."""

    kind: ClassVar[str] = "free_at_start"

    program: str
    total: float
    free: float
    wanted: float | None = None
    taken: float  # total - free: held by someone else
    taken_share: float  # taken / total
    device: int | None = None
    refused: bool = False  # the program gave up for it


class GpuOrphan(Fact, kw_only=True):
    """Memory of an idle GPU that no listed process owns. Sizes in MiB."""

    kind: ClassVar[str] = "gpu_orphan"

    used: float
    total: float
    listed: float  # what the listed processes hold together


class GpuMemoryUse(Fact, kw_only=True):
    """GPU memory in use over time, as a program or a monitor logs it from step to step. Sizes in MiB.

    growing: it rises from sample to sample to the end and never gives back.
    """

    kind: ClassVar[str] = "gpu_memory_use"

    label: str
    samples: int
    first: float
    last: float
    per_sample: float
    growing: bool


class HostOomKill(Fact, kw_only=True):
    """A process that an OOM killer ended. Sizes in MiB.

    scope: host (the whole machine was short), cgroup (a limit was reached), pod (Kubernetes says OOMKilled), unknown.
    killer: kernel, systemd-oomd, earlyoom, nohang, kubelet, slurm, ray, ...
    """

    kind: ClassVar[str] = "host_oom_kill"

    pid: int | None = None
    process: str | None = None
    scope: str = "host"
    killer: str = "kernel"
    resident: float | None = None
    total: float | None = None
    limit: float | None = None
    cgroup: str | None = None
    account: str | None = None  # the numbers that are known, as a clause


class HostRatio(Fact, kw_only=True):
    """Host memory against the memory of the GPUs that it feeds; MiB."""

    kind: ClassVar[str] = "host_ratio"

    host: float
    gpus: float
    number: int
    ratio: float
