"""Facts about the machine around the GPUs."""

from typing import ClassVar

from gpudoctor.facts.base import Fact


class Os(Fact, kw_only=True):
    """The operating system; id and version as in /etc/os-release."""

    kind: ClassVar[str] = "os"

    id: str | None = None
    version: str | None = None
    name: str | None = None
    manager: str | None = None  # apt, dnf, zypper, pacman, apk, emerge, nix
    end_of_life: str | None = None  # ISO date, from the tables
    ended: bool | None = None  # past it on the day the evidence was taken


class Kernel(Fact, kw_only=True):
    """The running kernel."""

    kind: ClassVar[str] = "kernel"

    release: str
    machine: str | None = None
    running: bool = True


class Boot(Fact, kw_only=True):
    """A boot that a log holds."""

    kind: ClassVar[str] = "boot"

    id: str | None = None
    kernel: str | None = None


class KernelOption(Fact, kw_only=True):
    """One option of the kernel command line."""

    kind: ClassVar[str] = "kernel_option"

    name: str
    setting: str | None = None


class EnvVar(Fact, kw_only=True):
    """An environment variable of the user, a job, a container or a configuration file."""

    kind: ClassVar[str] = "env_var"

    name: str
    setting: str
    scope: str | None = None


class Limit(Fact, kw_only=True):
    """A process limit as ulimit -a or /proc/PID/limits shows it; size -1 means unlimited; memory in KiB."""

    kind: ClassVar[str] = "limit"

    name: str  # memlock, nofile, nproc, stack, ...
    soft: int
    hard: int | None = None


class HostMemory(Fact, kw_only=True):
    """Host memory in MiB."""

    kind: ClassVar[str] = "host_memory"

    total: float | None = None
    available: float | None = None
    free: float | None = None
    swap_total: float | None = None
    swap_used: float | None = None
    cma_total: float | None = None
    huge_pages: int | None = None
    available_share: float | None = None  # available / total
    swap_share: float | None = None  # swap_used / swap_total


class Pressure(Fact, kw_only=True):
    """A /proc/pressure line: share of time (percent, over 10/60/300 s) that some or all tasks stalled."""

    kind: ClassVar[str] = "pressure"

    resource: str  # cpu, memory, io
    scope: str  # some, full
    avg10: float
    avg60: float | None = None
    avg300: float | None = None


class FileSystem(Fact, kw_only=True):
    """A mounted file system; sizes in MiB, use in percent."""

    kind: ClassVar[str] = "file_system"

    mount: str
    device: str | None = None
    type: str | None = None
    size: float | None = None
    used: float | None = None
    available: float | None = None
    use_percent: float | None = None
    inode_percent: float | None = None


class Cpu(Fact, kw_only=True):
    """The processors that this machine (or container) has."""

    kind: ClassVar[str] = "cpu"

    logical: int | None = None
    sockets: int | None = None
    numa_nodes: int | None = None
    governor: str | None = None
    model: str | None = None
    load1: float | None = None
    virtual: bool | None = None
    hypervisor: str | None = None


class Process(Fact, kw_only=True):
    """A process of the host; state as in ps (R, S, D, Z ...)."""

    kind: ClassVar[str] = "process"

    pid: int
    name: str | None = None
    state: str | None = None
    wchan: str | None = None
    user: str | None = None


class PciDevice(Fact, kw_only=True):
    """A PCI device (lspci, sysfs). Speeds in GT/s; `gpu` is set for NVIDIA GPUs; `revision` ff means it doesn't answer."""

    kind: ClassVar[str] = "pci_device"

    pci: str
    vendor_id: int | None = None
    device_id: int | None = None
    class_id: int | None = None
    type: str | None = None  # gpu, audio, nvswitch, bridge, nic, ...
    name: str | None = None
    driver: str | None = None
    modules: str | None = None
    revision: str | None = None
    link_speed: float | None = None
    link_width: int | None = None
    link_speed_max: float | None = None
    link_width_max: int | None = None
    link_speed_downgraded: bool | None = None  # what lspci says beside the value
    link_width_downgraded: bool | None = None
    slot: str | None = None
    numa_node: int | None = None
    iommu_group: int | None = None
    iommu: str | None = None  # what the IOMMU does with its group: pass-through, translating
    parent: str | None = None
    secondary_bus: str | None = None  # of a bridge, such as 0000:3b
    unreadable: bool | None = None  # configuration space reads all ones (rev ff, header type 7f)
    bar_unassigned: bool | None = None
    acs_redirect: bool | None = None  # request or completion redirect on
    power_state: str | None = None


class RdmaPort(Fact, kw_only=True):
    """A port of an RDMA device (ibstat, ibv_devinfo, sysfs). rate in Gb/s; link_layer infiniband or ethernet."""

    kind: ClassVar[str] = "rdma_port"

    device: str
    port: int = 1
    state: str | None = None  # active, down, init, armed
    physical: str | None = None  # linkup, polling, disabled
    rate: float | None = None
    rate_max: float | None = None
    lanes: int | None = None
    speed_name: str | None = None  # SDR, QDR, FDR, EDR, HDR, NDR, XDR
    slow: bool | None = None  # below what the adapter, or all of its neighbours, can do
    link_layer: str | None = None
    mtu: int | None = None
    netdev: str | None = None
    pci: str | None = None
    gdr: bool | None = None  # NCCL can let it read and write GPU memory
    numa_node: int | None = None
    errors: int | None = None


class PortCounter(Fact, kw_only=True):
    """An error counter of a network port that is not zero. means: signal, down (link lost), loss (packets lost), failed (transfers).

    serious: more than a healthy port gathers in its life; grown: by how much between two readings of the same source.
    """

    kind: ClassVar[str] = "port_counter"

    device: str | None = None
    port: int | None = None
    name: str
    number: int
    means: str
    serious: bool | None = None
    grown: int | None = None


class RdmaTest(Fact, kw_only=True):
    """A bandwidth test of perftest. operation: write, read, send; rate in Gb/s one way, at the largest message (bytes)."""

    kind: ClassVar[str] = "rdma_test"

    operation: str
    device: str
    size: int | None = None
    rate: float | None = None
    mtu: int | None = None
    link_layer: str | None = None
    gpu_memory: bool | None = None
    port_rate: float | None = None  # what the port of that name can do, where it was read
    shortfall: bool | None = None


class NetInterface(Fact, kw_only=True):
    """A network interface; speed in Mb/s."""

    kind: ClassVar[str] = "net_interface"

    name: str
    state: str | None = None
    address: str | None = None
    speed: int | None = None
    speed_max: int | None = None  # the fastest mode that the port supports
    slow: bool | None = None  # speed is below speed_max
    mtu: int | None = None
    loopback: bool | None = None
    virtual: bool | None = None


class Truncated(Fact, kw_only=True):
    """The source breaks off; `reason` says where and how."""

    kind: ClassVar[str] = "truncated"

    reason: str


class Config(Fact, kw_only=True):
    """A setting of a configuration file (daemon.json, config.toml, slurm.conf ...), flattened: key a.b.c."""

    kind: ClassVar[str] = "config"

    file: str
    key: str
    setting: str


class KernelTrace(Fact, kw_only=True):
    """A stack that the kernel printed: event oops, blocked (hung task), lockup or warning.

    nvidia: a function of the NVIDIA driver is in the stack; function: the first of them.
    """

    kind: ClassVar[str] = "kernel_trace"

    event: str
    task: str | None = None
    pid: int | None = None
    seconds: int | None = None
    nvidia: bool = False
    gpu_task: bool = False  # the task itself belongs to the driver or its tools (nvidia-smi, nv_queue ...)
    function: str | None = None
    message: str = ""


class StepTime(Fact, kw_only=True):
    """Seconds of one training step and the part of it that waited for data, as the training log shows them."""

    kind: ClassVar[str] = "step_time"

    step: float
    data: float
    share: float | None = None  # data / step


class Numa(Fact, kw_only=True):
    """Where a process may run and allocate, as numactl --show, taskset or a job's log tells it."""

    kind: ClassVar[str] = "numa_binding"

    cpu_nodes: str | None = None
    memory_nodes: str | None = None
    pid: int | None = None
    cpus: str | None = None  # as a list, 0-15,32
    gpu_node: int | None = None  # of the GPU that it uses
    far: bool | None = None  # bound to one node while its GPU sits on another


class NumaNode(Fact, kw_only=True):
    """The CPUs of a NUMA node, as lscpu or the topology matrix lists them."""

    kind: ClassVar[str] = "numa_node"

    number: int
    cpus: str
