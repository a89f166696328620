"""Formats of the driver: its version file, its kernel messages, and what its tools say when they fail."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudoctor.facts.base import Fact
from gpudoctor.facts.driver import DriverLibrary, GpuRefusal, KernelModule, SmiError
from gpudoctor.facts.gpu import Gpu
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.address import pci_address
from gpudoctor.patterns.lazy import LazyRegex
from gpudoctor.patterns.stamp import parse_stamp

_VERSION = LazyRegex(r"NVRM version: .*?(?P<open>Open )?Kernel Module(?: for \w+)?\s+(?P<version>\d+(?:\.\d+)+)")
_LOADING = LazyRegex(
    r"NVRM: loading NVIDIA UNIX .{0,20}?(?P<open>Open )?Kernel Module(?: for \w+)?\s+(?P<version>\d+(?:\.\d+)+)"
)
_PREFIX = LazyRegex(r"^\W*NVRM:\s*")


def branch_of(version: str) -> int | None:
    """Return the branch of a driver version.

    >>> branch_of("550.54.15")
    550
    """
    found = re.match(r"\d+", version)
    return int(found[0]) if found else None


def proc_driver_version(text: str) -> Iterator[KernelModule]:
    """Version line of /proc/driver/nvidia/version.

    >>> sample = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024"
    >>> next(proc_driver_version(sample)).version
    '550.54.15'
    """
    found = _VERSION.search(text.partition("\n")[0])
    if not found:
        raise NotThisFormat
    yield _module(found, "proc")


def _module(found: re.Match[str], seen_by: str) -> KernelModule:
    version = found["version"]
    flavour = "open" if found["open"] else "proprietary"
    return KernelModule(name="nvidia", version=version, branch=branch_of(version), flavour=flavour, seen_by=seen_by)


def module_loading(text: str) -> Iterator[KernelModule]:
    """The line that the module logs when it is loaded.

    >>> sample = "[ 5.7] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.158.01  Release Build"
    >>> fact = next(module_loading(sample)); fact.version, fact.flavour
    ('570.158.01', 'open')
    """
    found = _LOADING.search(text.partition("\n")[0])
    if not found:
        raise NotThisFormat
    yield _module(found, "log")


def module_unloading(text: str) -> Iterator[KernelModule]:
    """The line that the module logs when it is unloaded, or gives up.

    >>> next(module_unloading("[ 9.1] nvidia-nvlink: Unregistered Nvlink Core, major device number 511")).loaded
    False
    """
    yield KernelModule(name="nvidia", loaded=False, seen_by="log")


_GPU_PCI = LazyRegex(r"NVIDIA GPU (?P<pci>(?:PCI:)?[0-9a-fA-F:]{7,16}(?:\.[0-7])?)")
_PCI_ID = LazyRegex(r"\(PCI ID: 10de:(?P<id>[0-9a-fA-F]{4})\)")
# Pagers cut the first line, so the words that decide stand for the whole sentence.
_LEGACY = LazyRegex(r"supported through the\s+NVIDIA (?P<legacy>\d+)(?:\.\w+)? [Ll]egacy", re.DOTALL)
_LEGACY_NAME = LazyRegex(r"The NVIDIA (?P<name>.{3,60}?) GPU installed in")
_RELEASE = LazyRegex(
    r"(?:supported by the\s+(?:NVIDIA )?|NVIDIA |The )(?P<version>\d{2,3}\.\d+(?:\.\d+)?)\s+(?:NVIDIA )?"
    r"(?:Linux |driver|graphics)"
)
_END = LazyRegex(
    r"driver release|www\.nvidia\.com\.|will ignore|this GPU\.|System Processor|kernel modules\.|to commands\."
)


def gpu_refusal(text: str) -> Iterator[Fact]:
    r"""The message, split over several lines, in which the driver says that it won't serve a GPU.

    >>> sample = '''[    8.2] NVRM: The NVIDIA GPU 0000:3c:00.0 (PCI ID: 10de:2d04)
    ...                NVRM: installed in this system is not supported by the
    ...                NVRM: NVIDIA 550.163.01 driver release.'''
    >>> fact = list(gpu_refusal(sample))[0]
    >>> fact.reason, hex(fact.device_id), fact.version
    ('not_supported', '0x2d04', '550.163.01')
    """
    parts: list[str] = []
    for number, line in enumerate(text.split("\n")[:9]):
        message = parse_stamp(line).message.strip()
        if number and not _PREFIX.match(message) and not line.startswith(" "):
            break
        if number and re.match(r"\W*NVRM: The NVIDIA ", message):
            break
        parts.append(_PREFIX.sub("", message))
        if _END.search(message):
            break
    joined = " ".join(parts)
    reason = _reason(joined)
    if reason is None:
        raise NotThisFormat
    address, device, release = _GPU_PCI.search(joined), _PCI_ID.search(joined), _RELEASE.search(joined)
    legacy, name = _LEGACY.search(joined), _LEGACY_NAME.search(joined)
    try:
        pci = pci_address(address["pci"]) if address else None
    except ValueError:
        pci = None
    device_id = int(device["id"], 16) if device else None
    version = release["version"] if release else None
    yield GpuRefusal(
        reason=reason,
        pci=pci,
        gpu=pci,
        device_id=device_id,
        name=name["name"].replace("NVIDIA ", "") if name else None,
        version=version,
        branch=branch_of(version) if version else None,
        legacy=legacy["legacy"] if legacy else None,
        at=0,
    )
    if pci:
        yield Gpu(pci=pci, gpu=pci, device_id=device_id, seen_by="log")


def _reason(joined: str) -> str | None:
    if "fallen off the bus" in joined:
        return "fallen_off"
    if "requires use of the NVIDIA open kernel modules" in joined:
        return "open_required"
    if "not supported by open" in joined or "GPU System Processor" in joined:
        return "open_unsupported"
    if "only ready for use on Data Center GPUs" in joined:
        return "open_unready"
    if _LEGACY.search(joined) or re.search(r"[Ll]egacy.{0,40}drivers", joined):
        return "legacy"
    if "ignoring the legacy GPU" in joined:
        return "legacy"
    if "not supported by" in joined or re.search(
        r"NVIDIA \d[\d.]+\s+driver release|NVIDIA Linux driver release", joined
    ):
        return "not_supported"
    return None


# (reason, what the message looks like), the most telling first.
_FAILURES: tuple[tuple[str, LazyRegex], ...] = tuple(
    (reason, LazyRegex(pattern, re.IGNORECASE))
    for reason, pattern in (
        (
            "library_mismatch",
            r"driver/library version mismatch|RM has detected an NVML/RM version mismatch|LibRmVersionMismatch"
            r"|LIB_RM_VERSION_MISMATCH",
        ),
        (
            "driver_not_loaded",
            r"couldn.t communicate with (?:the )?NVIDIA driver|(?:Failed to initialize NVML|nvmlInit(?:_v2)?(?:\(\))?"
            r"|NVML initialization|nvml error|nvml init failed|nvml: |Unable to init NVML).{0,40}driver.?not.?loaded"
            r"|NVMLError_DriverNotLoaded|\bERROR_DRIVER_NOT_LOADED"
            r"|ERROR: NVIDIA driver is not loaded",
        ),
        (
            "insufficient_permissions",
            r"Failed to initialize NVML: (?:Insufficient Permissions|No Permission)|NVMLError_NoPermission",
        ),
        ("blocked_by_os", r"GPU access blocked by the operating system"),
        (
            "library_not_found",
            r"couldn.t find libnvidia-ml|could not load NVML library|NVML Shared Library Not Found|NVMLError_LibraryNotFound"
            r"|ERROR_LIBRARY_NOT_FOUND|libnvidia-ml\.so(?:\.1)?: cannot open shared object"
            r"|could not dlopen .{0,20}libnvidia-ml|Failed to initialize NVML: NVML Shared Library|NVML library not found"
            r"|NVML doesn't exist on this system",
        ),
        ("gpu_lost", r"Failed to initialize NVML: GPU is lost|NVMLError_GpuIsLost"),
        ("timeout", r"driver (?:rpc )?error: timed out|Failed to initialize NVML: Timeout"),
        (
            "not_found",
            r"nvidia-smi: command not found|nvidia-smi: not found|Command 'nvidia-smi' not found|Unknown command: .?nvidia-smi"
            r"|nvidia-smi.{0,3}: executable file not found|No such file or directory: .?nvidia-smi"
            r"|command not found: nvidia-smi|nvidia-smi: No such file|nvidia-smi: Befehl nicht gefunden|nvidia-smi: orden no encontrada"
            r"|nvidia-smi: commande introuvable|nvidia-smi: \u672a\u627e\u5230\u547d\u4ee4|nvidia-smi.{0,3} is not recognized"
            r"|which: no nvidia-smi in|nvidia-smi: comando n",
        ),
        ("no_devices", r"^\W*No devices were found\W*$"),
        ("wsl", r"WSL environment detected but no adapters were found"),
        ("unknown_error", r"Failed to initialize NVML: Unknown Error|nvml error: unknown error|NVMLError_Unknown\b"),
        ("other", r"Failed to initialize NVML: \S|NVIDIA-SMI has failed|nvml error: \S"),
    )
)
_LIBRARY_VERSION = LazyRegex(r"NVML library version:\s*(?P<version>\d+(?:\.\d+)+)")
_CONTAINER = LazyRegex(r"nvidia-container-cli|OCI runtime|docker: |kubelet|nvidia-container-runtime")
_PYTHON = LazyRegex(r"NVMLError|pynvml|py3nvml")


def smi_failure(text: str) -> Iterator[Fact]:
    r"""What nvidia-smi, NVML or a tool built on it says when it can't do its work at all.

    >>> sample = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.154"
    >>> facts = list(smi_failure(sample)); facts[0].reason, facts[0].library_version, facts[1].version
    ('library_mismatch', '535.154', '535.154')
    """
    lines = text.split("\n")
    message = parse_stamp(lines[0]).message.strip()
    reason = next((reason for reason, pattern in _FAILURES if pattern.search(message)), None)
    if reason is None or message.startswith('{"nvml"'):  # the NVML child's own lines have a parser of their own
        raise NotThisFormat
    version = None
    if reason == "library_mismatch" and len(lines) > 1:
        found = _LIBRARY_VERSION.search(lines[1])
        version = found["version"] if found else None
    seen_by = "nvidia-smi"
    if _CONTAINER.search(lines[0]):
        seen_by = "container"
    elif _PYTHON.search(lines[0]) or "nvml init failed" in message:
        seen_by = "nvml"
    yield SmiError(reason=reason, message=message[:300], library_version=version, seen_by=seen_by)
    if version:
        yield DriverLibrary(name="libnvidia-ml", version=version, branch=branch_of(version), at=1)


_CLIENT = LazyRegex(
    r"API mismatch: (?:the NVIDIA kernel module has version (?P<module1>[\d.]+\d)|the client (?:'(?P<name>[^']*)' )?(?:\(pid (?P<pid>\d+)\) )?"
    r"has the version (?P<client>[\d.]+\d)|this NVIDIA driver component has version)"
)
_MODULE = LazyRegex(r"(?:this kernel module has the version|the kernel module has version) (?P<module>[\d.]+\d)")
_COMPONENT = LazyRegex(r"this NVIDIA driver component has version\s+(?P<client>[\d.]+\d)")


def api_mismatch(text: str) -> Iterator[Fact]:
    r"""The driver's complaint, over two or three lines, that a program came with libraries of another version.

    >>> sample = '''NVRM: API mismatch: the client has the version 525.125.06, but
    ... NVRM: this kernel module has the version 515.65.01.  Please'''
    >>> [(fact.kind, fact.version) for fact in api_mismatch(sample)]
    [('kernel_module', '515.65.01'), ('driver_library', '525.125.06')]
    """
    joined = " ".join(_PREFIX.sub("", parse_stamp(line).message.strip()) for line in text.split("\n")[:4])
    found = _CLIENT.search(joined)
    if not found:
        raise NotThisFormat
    module, component = _MODULE.search(joined), _COMPONENT.search(joined)
    kernel = found["module1"] or (module["module"] if module else None)
    client = found["client"] or (component["client"] if component else None)
    if kernel:
        yield KernelModule(name="nvidia", version=kernel, branch=branch_of(kernel), seen_by="mismatch")
    if client:
        yield DriverLibrary(
            name=found["name"] or "client", version=client, branch=branch_of(client), seen_by="mismatch"
        )


FORMATS = (
    Format("/proc/driver/nvidia/version", ("NVRM version: ",), proc_driver_version, lines=4),
    Format("module loading", ("NVRM: loading NVIDIA UNIX",), module_loading, lines=1),
    Format("module unloading", ("Unregistered Nvlink Core", "Unregistered the Nvlink Core"), module_unloading, lines=1),
    Format(
        "unsupported GPU",
        (
            "NVRM: The NVIDIA ",
            "NVRM: Open nvidia.ko is only ready",
            "NVRM: ignoring the legacy GPU",
            "GPU installed in this system is",
            "GPU(s) installed in this system",
        ),
        gpu_refusal,
        lines=9,
    ),
    Format(
        "nvidia-smi failure",
        (
            "version mismatch",
            "LibRmVersionMismatch",
            "t communicate with",
            "Failed to initialize NVML",
            "nvmlInit",
            "nvml error",
            "nvml init failed",
            "NVML library",
            "NVMLError_",
            "NVIDIA-SMI ",
            "blocked by the operating system",
            "NVIDIA driver is not loaded",
            "libnvidia-ml",
            "ERROR_LIBRARY_NOT_FOUND",
            "ERROR_DRIVER_NOT_LOADED",
            "NVML Shared Library",
            "NVML doesn't exist",
            "error: timed out",
            "nvidia-smi: ",
            "'nvidia-smi'",
            "command not found: nvidia-smi",
            '"nvidia-smi"',
            "no nvidia-smi in",
            "No devices were found",
            "no adapters were found",
        ),
        smi_failure,
        lines=3,
    ),
    Format("API mismatch", ("NVRM: API mismatch:",), api_mismatch, lines=4),
)
