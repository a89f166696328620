"""Facts about the driver: modules, libraries, packages, nodes, and what its tools answered."""

from typing import ClassVar

from gpudoctor.facts.base import Fact


class KernelModule(Fact, kw_only=True):
    """A kernel module that is in memory (lsmod, /proc/modules, /proc/driver/nvidia/version, the load line of a log)."""

    kind: ClassVar[str] = "kernel_module"

    name: str
    version: str | None = None
    branch: int | None = None  # first number of the version
    flavour: str | None = None  # open, proprietary
    loaded: bool = True
    used_by: int | None = None
    seen_by: str | None = None  # lsmod, proc, log, mismatch (the driver's complaint about a client)


class ModuleFile(Fact, kw_only=True):
    """A module on disk, as modinfo or a file listing shows it, and the kernel that it was built for."""

    kind: ClassVar[str] = "module_file"

    name: str
    version: str | None = None
    branch: int | None = None
    kernel: str | None = None
    flavour: str | None = None
    path: str | None = None
    signer: str | None = None
    found: bool = True


class DriverLibrary(Fact, kw_only=True):
    """A user-space driver library or client, its version as the loader, its own output or its file name shows it."""

    kind: ClassVar[str] = "driver_library"

    name: str  # libnvidia-ml, libcuda, nvidia-smi, ...
    version: str | None = None
    branch: int | None = None
    path: str | None = None
    found: bool = True
    stub: bool | None = None
    seen_by: str | None = None  # mismatch: the driver's complaint about a client


class DriverVersion(Fact, kw_only=True):
    """The driver version and the highest CUDA version that it supports, as nvidia-smi or NVML report them."""

    kind: ClassVar[str] = "driver_version"

    version: str
    branch: int | None = None
    cuda: str | None = None
    seen_by: str | None = None


class SmiError(Fact, kw_only=True):
    """nvidia-smi or NVML failed as a whole. `reason` is a stable word for the message.

    library_mismatch, driver_not_loaded, no_devices, unknown_error, insufficient_permissions, library_not_found, not_found
    (the command), gpu_lost, timeout, crashed, blocked_by_os, wsl, other.
    """

    kind: ClassVar[str] = "smi_error"

    reason: str
    message: str = ""
    library_version: str | None = None
    exit_code: int | None = None
    seen_by: str | None = None  # nvidia-smi, nvml, dcgm, container


class Package(Fact, kw_only=True):
    """An installed package of the operating system's package manager."""

    kind: ClassVar[str] = "package"

    name: str
    version: str | None = None
    branch: int | None = None
    manager: str | None = None  # apt, dnf, zypper, pacman, portage, nix, runfile
    installed: bool = True
    held: bool | None = None


class DkmsModule(Fact, kw_only=True):
    """A line of `dkms status`. state: added, built, installed, broken, error ..."""

    kind: ClassVar[str] = "dkms_module"

    name: str
    version: str | None = None
    kernel: str | None = None
    state: str | None = None


class DeviceNode(Fact, kw_only=True):
    """A device file; `mode` in octal digits such as 666; `present` false where it was looked for and is not there."""

    kind: ClassVar[str] = "device_node"

    path: str
    present: bool = True
    mode: str | None = None
    owner: str | None = None
    group: str | None = None
    readable: bool | None = None
    writable: bool | None = None


class Service(Fact, kw_only=True):
    """A service. state: active, inactive, failed, activating, not_found; `enabled` as systemd has it."""

    kind: ClassVar[str] = "service"

    name: str
    state: str
    sub: str | None = None
    enabled: bool | None = None
    exit_code: int | None = None
    version: str | None = None


class ModuleParameter(Fact, kw_only=True):
    """A module parameter (modprobe.d option, /sys/module/*/parameters, /proc/driver/nvidia/params) or blacklist line."""

    kind: ClassVar[str] = "module_parameter"

    module: str
    name: str
    value_: str | None = None


class SecureBoot(Fact, kw_only=True):
    """State of Secure Boot and of the kernel lockdown."""

    kind: ClassVar[str] = "secure_boot"

    enabled: bool | None = None
    lockdown: str | None = None


class GpuRefusal(Fact, kw_only=True):
    """The driver's own word that it will not serve a GPU. `legacy` is the branch that it names instead.

    reason: not_supported, legacy, open_required, open_unsupported, open_unready, fallen_off.
    """

    kind: ClassVar[str] = "gpu_refusal"

    reason: str
    pci: str | None = None
    device_id: int | None = None
    name: str | None = None
    version: str | None = None
    branch: int | None = None
    legacy: str | None = None


class ModuleLoadError(Fact, kw_only=True):
    """modprobe, insmod or the kernel refused a module. reason: not_found, key_rejected, unknown_symbol, bad_format,
    no_such_device, busy, not_permitted, not_implemented, other."""

    kind: ClassVar[str] = "module_load_error"

    name: str  # with underscores
    reason: str
    kernel: str | None = None  # where the tool names its directory
    message: str = ""
