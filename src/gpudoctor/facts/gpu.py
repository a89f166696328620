"""Facts about GPUs, their memory, links and errors."""

from typing import ClassVar

from gpudoctor.facts.base import Fact


class Gpu(Fact, kw_only=True):
    """One GPU as one source names it. `gpu` is the best name known (PCI address, else UUID, else index).

    Memory in MiB, power in W, temperatures in C, clocks in MHz; throttle reasons are booleans.
    """

    kind: ClassVar[str] = "gpu"

    index: int | None = None
    uuid: str | None = None
    pci: str | None = None
    minor: int | None = None
    serial: str | None = None
    name: str | None = None
    device_id: int | None = None  # PCI device id, such as 0x2330
    seen_by: str | None = None  # nvml, nvidia-smi, lspci, sysfs, proc, log
    vbios: str | None = None
    state: str | None = None  # ok, lost, error: what the driver answers about it
    error: str | None = None
    # memory
    memory_total: float | None = None
    memory_used: float | None = None
    memory_free: float | None = None
    memory_reserved: float | None = None
    bar1_total: float | None = None
    bar1_used: float | None = None
    bar1_share: float | None = None  # bar1_used / bar1_total
    # activity
    utilization: float | None = None
    memory_utilization: float | None = None
    pstate: int | None = None
    compute_mode: str | None = None  # default, exclusive_process, exclusive_thread, prohibited
    persistence: bool | None = None
    mig: bool | None = None
    mig_pending: bool | None = None
    mig_instances: int | None = None
    display_active: bool | None = None
    # heat and power
    temperature: float | None = None
    memory_temperature: float | None = None
    temperature_slowdown: float | None = None
    temperature_shutdown: float | None = None
    temperature_max_operating: float | None = None
    temperature_margin: float | None = None  # T.Limit: degrees left before slowdown
    fan: float | None = None
    fan_error: bool | None = None
    temperature_error: bool | None = None
    power: float | None = None
    power_error: bool | None = None
    power_limit: float | None = None
    power_limit_default: float | None = None
    power_limit_min: float | None = None
    power_limit_max: float | None = None
    clock_sm: int | None = None
    clock_sm_max: int | None = None
    clock_mem: int | None = None
    clock_mem_max: int | None = None
    clock_app_sm: int | None = None
    clock_app_sm_default: int | None = None
    throttle_idle: bool | None = None
    throttle_app_clocks: bool | None = None
    throttle_sw_power: bool | None = None
    throttle_hw_slowdown: bool | None = None
    throttle_hw_thermal: bool | None = None
    throttle_hw_power_brake: bool | None = None
    throttle_sw_thermal: bool | None = None
    throttle_sync_boost: bool | None = None
    # seconds since the driver was loaded that the clocks were held down for this reason
    throttled_sw_power: float | None = None
    throttled_sw_thermal: float | None = None
    throttled_hw_thermal: float | None = None
    throttled_power_brake: float | None = None
    # errors
    ecc: bool | None = None
    ecc_pending: bool | None = None
    ecc_uncorrectable_volatile: int | None = None
    ecc_correctable_volatile: int | None = None
    ecc_uncorrectable_aggregate: int | None = None
    ecc_correctable_aggregate: int | None = None
    sram_threshold_exceeded: bool | None = None
    sram_uncorrectable_aggregate: int | None = None
    retired_single_bit: int | None = None
    retired_double_bit: int | None = None
    retired_pending: bool | None = None
    remapped_correctable: int | None = None
    remapped_uncorrectable: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    remap_banks_low: int | None = None  # banks with few spare rows left
    remap_banks_none: int | None = None  # banks without a spare row
    reset_required: bool | None = None
    drain_recommended: bool | None = None
    recovery_action: str | None = None  # none, gpu_reset, node_reboot, drain_p2p, drain_and_reset
    inforom_corrupt: bool | None = None
    # PCIe
    pcie_gen: int | None = None
    pcie_gen_max: int | None = None  # what GPU and slot can do together
    pcie_gen_device_max: int | None = None
    pcie_gen_host_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    pcie_width_device_max: int | None = None
    pcie_replays: int | None = None
    numa_node: int | None = None
    # fabric and virtualisation
    fabric_state: str | None = None  # not_supported, not_started, in_progress, completed
    fabric_status: str | None = None
    fabric_health: str | None = None  # what the health part of the fabric section complains about
    # worked out from the above
    busy: bool | None = None  # under load when it was read
    clock_share: float | None = None  # SM clock as a share of its maximum
    power_share: float | None = None  # power drawn as a share of the limit
    power_limit_share: float | None = None  # limit as a share of the default limit
    app_clock_share: float | None = None  # application clock as a share of its default
    retired_pages: int | None = None
    degrees_to_slowdown: float | None = None
    virtualization: str | None = None
    vgpu_license: str | None = None
    gsp_firmware: str | None = None
    addressing_mode: str | None = None


class GpuProduct(Fact, kw_only=True):
    """What the product tables say of a GPU that is in evidence (by PCI device id, else by name)."""

    kind: ClassVar[str] = "gpu_product"

    name: str
    architecture: str | None = None
    compute_capability: float | None = None
    class_: str | None = None  # datacenter, workstation, geforce, jetson, ...
    first_driver_branch: int | None = None
    last_driver_branch: int | None = None
    open_modules: str | None = None  # required, possible, impossible
    memory_gib: float | None = None
    nvlink_links: int | None = None
    nvswitch: bool | None = None
    p2p: bool | None = None
    bf16: bool | None = None
    fp8: bool | None = None


class GpuCount(Fact, kw_only=True):
    """How many GPUs one source counts; `seen_by` as in Gpu, plus framework, dev, expected."""

    kind: ClassVar[str] = "gpu_count"

    seen_by: str
    number: int


class GpuProcess(Fact, kw_only=True):
    """A process on a GPU; memory in MiB. `alive` is known only where the process table was read as well."""

    kind: ClassVar[str] = "gpu_process"

    pid: int | None = None
    name: str | None = None
    type: str | None = None  # C, G, C+G, M
    memory: float | None = None
    alive: bool | None = None


class NvlinkLink(Fact, kw_only=True):
    """State of one NVLink link; speed in GB/s each way; errors since the driver was loaded."""

    kind: ClassVar[str] = "nvlink_link"

    link: int | None = None  # None: all links of the GPU together
    state: str | None = None  # active, inactive, not_supported
    speed: float | None = None
    replay_errors: int | None = None
    recovery_errors: int | None = None
    crc_errors: int | None = None
    errors: int | None = None  # the sum of all error counters that were shown
    remote: str | None = None  # gpu, switch, cpu
    remote_pci: str | None = None


class GpuMix(Fact, kw_only=True):
    """The GPUs of one node are not all alike; `what` is name or vbios, `values` lists what was found."""

    kind: ClassVar[str] = "gpu_mix"

    what: str
    values: str


class XidPattern(Fact, kw_only=True):
    """Program faults (Xid 13, 31, 43) of one GPU seen together: many programs on one GPU, or one program on many GPUs."""

    kind: ClassVar[str] = "xid_pattern"

    programs: int = 0
    gpus_hit: int = 0
    gpus: int | None = None


class NvlinkState(Fact, kw_only=True):
    """The NVLinks of one GPU, counted. `others_active`: other GPUs of the node have active links; `module`: an SXM board."""

    kind: ClassVar[str] = "nvlink_state"

    active: int = 0
    inactive: int = 0
    others_active: bool = False
    module: bool | None = None
    gpus: int | None = None
    missing: bool = False  # links are down that this node shows to be wired
    errors: int | None = None  # the worst error counter of a link
    replays: int | None = None
    recoveries: int | None = None
    crc: int | None = None
    slow_link: int | None = None  # an active link that is clearly slower than the GPU's others, and both speeds in GB/s
    slow_speed: float | None = None
    usual_speed: float | None = None


class TopologyPath(Fact, kw_only=True):
    """How two devices reach each other in `nvidia-smi topo -m`: NV<n>, PIX, PXB, PHB, NODE, SYS, X."""

    kind: ClassVar[str] = "topology_path"

    a: str
    b: str
    path: str
    links: int | None = None  # the n of NV<n>
    a_kind: str | None = None  # gpu, nic
    b_kind: str | None = None


class PeerAccess(Fact, kw_only=True):
    """Peer-to-peer ability of a pair: ok, chipset_not_supported, gpu_not_supported, disabled, not_supported, unknown."""

    kind: ClassVar[str] = "peer_access"

    a: str
    b: str
    status: str
    capability: str | None = None  # read, write, nvlink, atomics, proprietary
    bandwidth: float | None = None  # GB/s where it was measured


class CopyRate(Fact, kw_only=True):
    """How fast one GPU copies, measured alone. way: from host, to host; bandwidth in GB/s."""

    kind: ClassVar[str] = "copy_rate"

    way: str
    bandwidth: float


class SlowCopies(Fact, kw_only=True):
    """A GPU that copies much slower than the other GPUs of its machine. way: from host, to host, peers; GB/s."""

    kind: ClassVar[str] = "slow_copies"

    way: str
    bandwidth: float
    usual: float


class DcgmResult(Fact, kw_only=True):
    """A test of `dcgmi diag` that did not pass, or a finding of `dcgmi health`. status: fail, warn, skip."""

    kind: ClassVar[str] = "dcgm_result"

    test: str
    status: str
    message: str = ""
    code: int | None = None


class PcieLink(Fact, kw_only=True):
    """The PCIe link of one GPU, put together from all that was read: width in lanes, generation 1 to 6.

    *_device: what the GPU itself can do; *_port: what the port above it can do; *_max: what the driver says that both
    can do together. busy: the GPU was under load when the generation was read (an idle GPU lowers it).
    """

    kind: ClassVar[str] = "pcie_link"

    width: int | None = None
    width_max: int | None = None
    width_device: int | None = None
    width_port: int | None = None
    gen: int | None = None
    gen_max: int | None = None
    gen_device: int | None = None
    gen_port: int | None = None
    width_missing: int | None = None  # lanes that GPU and port both have and the link doesn't use
    gen_missing: int | None = None
    narrow_port: bool | None = None  # the port has fewer lanes than the GPU and the link uses all of them
    slow_port: bool | None = None  # the port's generation is lower than the GPU's and the link reached it
    busy: bool | None = None


class Xid(Fact, kw_only=True):
    """An Xid (`NVRM: Xid (PCI:0000:3b:00): 79, ...`), from the kernel log or from a program that passes it on.

    name, class_ (the id that the tables give it first), severity: from the tables. seen_by: kernel, companion (an Xid 45
    names it as what came before), device-plugin, dcgm, monitor.
    """

    kind: ClassVar[str] = "xid"

    code: int
    pci: str | None = None
    pid: int | None = None
    process: str | None = None
    detail: str = ""
    name: str | None = None
    class_: str | None = None
    severity: str | None = None
    seen_by: str = "kernel"
    fatal: bool | None = None  # what an NVLink 5 event says of itself
    action: str | None = None  # what an Xid 154 asks for: none, gpu_reset, node_reboot, drain_p2p, drain_and_reset


class PcieError(Fact, kw_only=True):
    """An error of the PCIe bus that the kernel logged (AER, DPC, APEI, hot-plug).

    severity: corrected, nonfatal, fatal, unrecovered (no driver could recover the device), link_down. `gpu` is set where
    the device is known to be a GPU or a function of one.
    """

    kind: ClassVar[str] = "pcie_error"

    severity: str
    pci: str | None = None
    driver: str | None = None  # that holds the device which the line names
    type: str | None = None
    source: str = "aer"  # aer, dpc, apei, hotplug


class Sxid(Fact, kw_only=True):
    """An NVSwitch SXid; `fatal` is what the line itself says, `ignorable` what the tables say."""

    kind: ClassVar[str] = "sxid"

    code: int
    pci: str | None = None
    fatal: bool | None = None
    ignorable: bool | None = None
    switch: str | None = None
    name: str | None = None
    link: int | None = None
    detail: str = ""


class LostTogether(Fact, kw_only=True):
    """Several GPUs that were lost at about the same moment."""

    kind: ClassVar[str] = "lost_together"

    number: int
    gpus: str
    parent: str | None = None  # a bridge that all of them hang on


class FarNic(Fact, kw_only=True):
    """A GPU whose every network adapter (or, of two GPUs, whose peer) sits on another socket."""

    kind: ClassVar[str] = "far_nic"

    name: str
    other: str
    what: str  # nic, peer
    near_elsewhere: bool = False  # other GPUs have an adapter on their own socket
    adapters: int = 0
