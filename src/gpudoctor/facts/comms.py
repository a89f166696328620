"""Facts about NCCL, its logs and its measurements."""

from typing import ClassVar

from gpudoctor.facts.base import Fact


class NcclTest(Fact, kw_only=True):
    """One nccl-tests table. Bandwidths in GB/s, sizes in bytes; `busbw_max` is over the largest sizes measured.

    `launches` counts the headings that were printed before the first result: above 1, each process runs on its own.
    """

    kind: ClassVar[str] = "nccl_test"

    collective: str | None = None
    ranks: int | None = None
    nodes: int | None = None
    gpus_per_node: int | None = None
    gpu_name: str | None = None
    rows: int | None = None
    curve: list[tuple[int, float]] = []  # (size, best bus bandwidth), by size
    complete: bool | None = None  # the closing lines were printed
    launches: int | None = None
    size_min: int | None = None
    size_max: int | None = None
    busbw_max: float | None = None
    busbw_at_largest: float | None = None
    busbw_average: float | None = None
    busbw_peak: float | None = None  # best of all sizes
    size_peak: int | None = None
    wrong: int | None = None
    wrong_from: int | None = None  # smallest size with wrong values
    out_of_bounds: int | None = None
    flat: bool | None = None  # the same bandwidth at all sizes: one slow path, not latency
    collapse: bool | None = None  # bandwidth falls to less than half of its peak at larger sizes
    expected_low: float | None = None  # from the expectation model
    expected_high: float | None = None
    expectation: str | None = None  # its reasoning
    shortfall: bool | None = None  # clearly under expected_low


class NcclRank(Fact, kw_only=True):
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
    listed: bool | None = None  # in the device list of nccl-tests


class NcclProcess(Fact, kw_only=True):
    """What one process of a job said of its library and network, before it knows its rank.

    `era` is the wording of its messages where that differs between releases: ranks of one job word them alike.
    """

    kind: ClassVar[str] = "nccl_process"

    host: str | None = None
    pid: int | None = None
    device: int | None = None
    version: str | None = None
    cuda: str | None = None
    era: str | None = None
    network: str | None = None
    interface: str | None = None  # of the bootstrap
    address: str | None = None
    nics: int | None = None  # RDMA adapters in use
    link_layer: str | None = None  # ib, roce


class NcclConnection(Fact, kw_only=True):
    """A channel connection in an NCCL log. via: P2P, SHM, NET/IB, NET/Socket ...; `gdr` where the line says GDRDMA."""

    kind: ClassVar[str] = "nccl_connection"

    a: int
    b: int
    via: str
    gdr: bool | None = None
    channels: int | None = None


class NcclChoice(Fact, kw_only=True):
    """What NCCL settled on, in its own words. what: channels (kinds and numbers), tuner, algorithm (with the protocol, for a
    collective), ring (ranks in the order of the first), tree (root of the first, and who is below it), nvls."""

    kind: ClassVar[str] = "nccl_choice"

    what: str
    chosen: str


class NcclWarning(Fact, kw_only=True):
    """A `NCCL WARN` line; `position` is file:line in NCCL's source where the line gives it."""

    kind: ClassVar[str] = "nccl_warning"

    message: str
    position: str | None = None
    rank: int | None = None
    host: str | None = None
    device: int | None = None


class NcclJob(Fact, kw_only=True):
    """What the ranks of one log have in common or not; lists are joined by commas."""

    kind: ClassVar[str] = "nccl_job"

    versions: str | None = None
    version_hosts: str | None = None  # host version, host version ...
    mixed: str | None = None  # how it shows: version, wording
    hosts: int | None = None
    host_names: str | None = None
    ranks: int | None = None
    network: str | None = None  # the one that the processes chose, if it is one
    gpu_name: str | None = None
    fabric_gpus: bool | None = None  # GPUs of a kind that is built into clusters with RDMA


class DuplicateGpu(Fact, kw_only=True):
    """Two ranks of one job on one GPU."""

    kind: ClassVar[str] = "duplicate_gpu"

    a: int
    b: int
    host: str | None = None
    pci: str | None = None


class CollectiveTimeout(Fact, kw_only=True):
    """A torch.distributed watchdog message."""

    kind: ClassVar[str] = "collective_timeout"

    rank: int | None = None
    group: str | None = None  # name of the process group where it is told
    sequence: int | None = None
    operation: str | None = None
    elements: int | None = None
    timeout_ms: int | None = None
    elapsed_ms: int | None = None
    last_enqueued: int | None = None
    last_completed: int | None = None


class FlightRecord(Fact, kw_only=True):
    """One process group in a rank's flight recorder dump; sequence, operation and elements are of the first operation that never ended."""

    kind: ClassVar[str] = "flight_record"

    group: str
    rank: int | None = None  # from the name of the file
    last_enqueued: int | None = None
    last_completed: int | None = None
    sequence: int | None = None
    operation: str | None = None
    elements: int | None = None


class CollectiveSkew(Fact, kw_only=True):
    """Ranks of one job stand at different operations. reason: lag (same kind, a count behind; lag of many where only their
    number is told), absent, mismatch, init (never set up the communicator that the others have set up or wait in), state (sets
    up or takes down what the others use, by RAS), silent (no answer to RAS), moment (lag in the only answer of RAS there is)."""

    kind: ClassVar[str] = "collective_skew"

    reason: str
    ranks: str = ""  # those that are behind, absent or different
    sequence: int | None = None
    ahead: int | None = None
    detail: str = ""
    snapshots: int | None = None  # how often the same picture was seen


class NcclDeparture(Fact, kw_only=True):
    """The host whose connections were closed by what most other hosts say: it left first."""

    kind: ClassVar[str] = "nccl_departure"

    host: str
    reporters: int  # hosts that name it


class RasAnswer(Fact, kw_only=True):
    """One whole answer of NCCL's RAS, whatever it holds."""

    kind: ClassVar[str] = "ras_answer"


class RasGroup(Fact, kw_only=True):
    """A communicator whose ranks stand at different counts, in one answer of NCCL's RAS."""

    kind: ClassVar[str] = "ras_group"

    communicator: str
    operation: str | None = None  # of which the counts are, from NCCL 2.26 on
    ahead: int
    behind: int
    lag: int
    ranks_behind: int | None = None
    first_rank: int | None = None
    host: str | None = None


class RasProcess(Fact, kw_only=True):
    """A process of the job that gave no answer to NCCL's RAS. state: silent (this time), dead (given up by RAS)."""

    kind: ClassVar[str] = "ras_process"

    pid: int
    host: str
    gpus: str
    state: str


class RasRank(Fact, kw_only=True):
    """A rank that stands out in one answer of NCCL's RAS. state: init, running, finalize, abort, nocomm, or error with what
    it reported; `usual` is the state of most ranks."""

    kind: ClassVar[str] = "ras_rank"

    communicator: str
    rank: int
    host: str | None = None
    state: str
    usual: str | None = None
    error: str | None = None


class GidEntry(Fact, kw_only=True):
    """A row of show_gids: version v1 or v2, local for link-local addresses."""

    kind: ClassVar[str] = "gid_entry"

    device: str
    port: int = 1
    index: int
    label: str  # the index as settings write it
    gid: str
    version: str | None = None
    address: str | None = None
    local: bool | None = None
    netdev: str | None = None
