"""The shape of every table, as strict models: an unknown key or a wrong type fails."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[list[Text], Field(min_length=1)]
Hex4 = Annotated[str, Field(pattern=r"^[0-9A-F]{4}$")]
Version = Annotated[str, Field(pattern=r"^\d+(\.\d+)*$")]
Capability = Annotated[str, Field(pattern=r"^\d+\.\d$")]
Finding = Annotated[str, Field(pattern=r"^[a-z]+\.[a-z0-9-]+$")]
Month = Annotated[str, Field(pattern=r"^\d{4}-\d{2}$")]
Severity = Literal["info", "warning", "critical"]


class Row(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    source: Texts


class Fix(Row):
    key: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    title: Text
    why: Text
    commands: list[Text]
    risk: Literal["read-only", "safe", "restarts-app", "disrupts-node", "data-loss", "vendor"]
    needs: list[Text]


class Xid(Row):
    xid: int
    symbol: Text
    other_symbols: Texts | None = None
    title: Text
    category: Literal["application", "driver", "hardware", "memory", "fabric", "thermal-power", "firmware"]
    severity: Severity
    immediate: Text | None = None
    investigate: Text | None = None
    applies: Texts | None = None
    app_caused: Literal["no", "possible", "often", "usually"]
    first_driver: Version | None = None
    recovery_action_since: Text | None = None
    meaning: Text
    causes: Texts
    check: Texts
    fix: Texts
    findings: list[Finding]
    related: list[int] | None = None
    unverified: bool | None = None


class SXid(Row):
    sxid: int
    symbol: Text | None = None
    title: Text
    block: Text
    event: Text
    fatality: Literal["fatal", "potentially-fatal", "non-fatal", "unknown"]
    severity: Severity
    whole_switch: bool | None = None
    chips: Texts | None = None
    log_text: Texts | None = None
    fix: Texts
    unverified: bool | None = None


class Bucket(Row):
    bucket: Text
    text: Text


class Recovery(Row):
    value: int
    name: Text
    log_text: Text
    text: Text
    severity: Severity
    since: Text
    fix: Texts


class Nvlink5(Row):
    xid: Annotated[int, Field(ge=144, le=150)]
    units: Texts
    part: Text
    reason: Annotated[int, Field(ge=0, le=63)]
    subcode: Annotated[int, Field(ge=0, le=127)]
    v1: Annotated[int, Field(ge=0, le=1023)]
    error_status: int
    severity: Literal["fatal", "link fatal", "non-fatal"]
    immediate: Text
    investigate: Text
    side: Literal["HW", "SW", "HW/SW", "FW", "NA"]
    locality: Literal["local", "remote"]
    promotable: bool


class LinkDown(Row):
    code: int
    text: Text
    peer: bool


class Nvlink4(Row):
    word: Annotated[int, Field(ge=1, le=7)]
    bits: list[int]
    text: Text


class Code(Row):
    code: int
    name: Text
    text: Text | None = None
    meaning: Text
    causes: Texts | None = None
    check: Texts | None = None
    fix: Texts | None = None
    findings: list[Finding] | None = None


class NvStatus(Row):
    code: int
    name: Annotated[str, Field(pattern=r"^NV_(OK|ERR_|WARN_)")]
    text: Text


class CudaError(Row):
    code: int
    runtime: Annotated[str, Field(pattern=r"^cuda(Success|Error)")] | None = None
    driver: Annotated[str, Field(pattern=r"^CUDA_(SUCCESS|ERROR_)")] | None = None
    text: Text | None = None
    meaning: Text
    causes: Texts | None = None
    check: Texts | None = None
    fix: Texts | None = None
    findings: list[Finding] | None = None


class NcclVariable(Row):
    name: Annotated[str, Field(pattern=r"^NCCL_[A-Z0-9_]+$")]
    text: Text
    since: Text | None = None
    default: Text | None = None
    values: Texts | None = None
    harm: Text | None = None
    findings: list[Finding] | None = None
    formerly: Text | None = None
    documented: bool


class LogMessage(Row):
    origin: Literal["kernel", "nvidia-smi", "nccl", "framework"]
    match: Annotated[str, Field(min_length=9)]
    title: Text
    severity: Severity
    meaning: Text
    causes: Texts | None = None
    check: Texts | None = None
    fix: Texts
    findings: list[Finding] | None = None


class Gpu(Row):
    name: Text
    pci_ids: Annotated[list[Hex4], Field(min_length=1)]
    subsystem: Texts | None = None
    shared_ids: list[Hex4] | None = None
    kind: Literal["datacenter", "workstation", "geforce", "embedded"]
    architecture: Text
    compute_capability: Capability
    chip: Text | None = None
    memory_gib: float | int | None = None
    memory_mib: int | None = None
    memory_type: Text | None = None
    memory_gb_s: float | int | None = None
    power_w: float | int | None = None
    power_min_w: int | None = None
    power_max_w: int | None = None
    pcie_gen: Literal[1, 2, 3, 4, 5, 6] | None = None
    pcie_width: Literal[1, 2, 4, 8, 16] | None = None
    nvlink_version: int | None = None
    nvlink_links: int | None = None
    nvlink_gb_s: float | int | None = None
    c2c_gb_s: int | None = None
    mig_max: int | None = None
    mig_driver: Version | None = None
    ecc: Literal["always", "on", "settable", "none"] | None = None
    p2p: Literal["nvlink", "nvlink-bridge", "none"] | None = None
    row_remap_banks: int | None = None
    open_modules: Literal["required", "possible", "impossible"] | None = None
    known_driver: Version
    unverified: bool | None = None


class IdRange(Row):
    first: Hex4
    last: Hex4
    architecture: Text
    compute_capability: Capability
    chip: Text


class Architecture(Row):
    architecture: Text
    compute_capability: Capability
    chips: Text | None = None
    first_cuda: Version
    last_cuda: Version | None = None
    first_driver_branch: int | None = None
    last_driver_branch: int | None = None
    open_modules: Literal["required", "possible", "impossible"]
    embedded: bool | None = None
    renamed_to: Capability | None = None
    examples: Texts | None = None
    unverified: bool | None = None


class CudaDriver(Row):
    cuda: Version
    version: Version
    release: Text
    linux_min: Version | None = None
    windows_min: Version | None = None
    branch: int | None = None


class MinorCompat(Row):
    cuda_major: int
    branch_min: int
    linux_min: Version
    windows_min: Version | None = None


class Branch(Row):
    branch: int
    kind: Literal["long-term", "production", "new-feature", "developer"] | None = None
    end_of_life: Month | None = None
    ended: bool | None = None
    ships_cuda: Version | None = None
    max_cuda_major: int | None = None
    last_for: Texts | None = None
    last_known: Version | None = None
    open_modules: Literal["default", "offered", "none"]


class FrameworkBuild(Row):
    framework: Literal[
        "torch", "tensorflow", "tensorflow-gpu", "jax", "cupy", "onnxruntime-gpu", "vllm", "bitsandbytes", "flash-attn",
        "xformers", "triton",
    ]  # fmt: skip
    version: Text
    build: Text
    cuda: Version | None = None
    cuda_range: Text | None = None
    cuda_pin: Text | None = None
    built_with_cuda: Version | None = None
    any_minor: bool | None = None
    default: bool | None = None
    status: Literal["stable", "experimental"] | None = None
    released: Text | None = None
    last_release: Version | None = None
    cudnn: Text | None = None
    nccl: Text | None = None
    triton: Text | None = None
    cuda_extra: bool | None = None
    python_min: Version | None = None
    python_max: Version | None = None
    python_closed: bool | None = None
    python_experimental: list[Version] | None = None
    architectures: list[Capability] | None = None
    ptx: list[Capability] | None = None
    jit: bool | None = None
    min_capability: Capability | None = None
    stated_capability: Capability | None = None
    driver_min: int | None = None
    glibc_min: Version | None = None
    requires_torch: Text | None = None
    min_torch: Version | None = None
    removed: Text | None = None
    unverified: bool | None = None


class Link(Row):
    kind: Literal["pcie", "nvlink", "nvlink-c2c", "infiniband", "ethernet"]
    generation: Text
    width: int
    gt_s: float | int | None = None
    gb_s: float | int
    reached_gb_s: float | int | None = None
    gbit_s: float | int | None = None
    per_link_gb_s: float | int | None = None
    gpus: Texts | None = None


class Packages(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    proprietary: Text
    open: Text
    headers: Text
    fabric_manager: Text
    repository: Text


class System(Row):
    id: Annotated[str, Field(pattern=r"^[a-z-]+$")]
    version: Version
    end_of_support: Month | None = None
    package_manager: Literal["apt", "dnf", "yum", "tdnf", "zypper"]
    glibc: Version | None = None
    packages: Packages
    driver_guide: int | None = None


class CudaSystems(Row):
    cuda_from: Version
    cuda_to: Version
    systems: Texts


class BusBandwidth(Row):
    kind: Literal["nvlink", "bridge", "pcie", "ramp"]
    gpu: Text | None = None
    generation: int | None = None
    ring: float | int | None = None
    nvls: float | int | None = None
    low: float | int | None = None
    min_ranks: int | None = None
    size: int | None = None
    share: float | int | None = None
    unverified: bool | None = None


TABLES: dict[str, type[Row]] = {
    "fixes": Fix,
    "xid": Xid,
    "sxid": SXid,
    "resolution_buckets": Bucket,
    "recovery_actions": Recovery,
    "nvlink5": Nvlink5,
    "link_down_reasons": LinkDown,
    "nvlink4_bits": Nvlink4,
    "nvidia_smi_exit": Code,
    "nvml_return": Code,
    "nccl_results": Code,
    "ib_completion": Code,
    "cublas_status": Code,
    "cudnn_status": Code,
    "nv_status": NvStatus,
    "cuda_errors": CudaError,
    "nccl_variables": NcclVariable,
    "log_messages": LogMessage,
    "gpus": Gpu,
    "gpu_id_ranges": IdRange,
    "architectures": Architecture,
    "cuda_driver": CudaDriver,
    "cuda_minor_compat": MinorCompat,
    "driver_branches": Branch,
    "frameworks": FrameworkBuild,
    "link_speeds": Link,
    "operating_systems": System,
    "cuda_systems": CudaSystems,
    "busbw": BusBandwidth,
}
