"""Formats of package managers and of the module tools: which driver is installed, and for which kernel it is built."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudoctor.facts.driver import DkmsModule, DriverLibrary, KernelModule, ModuleFile, ModuleLoadError, Package
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.parsers.driver import branch_of
from gpudoctor.patterns.lazy import LazyRegex
from gpudoctor.patterns.stamp import parse_stamp

# Packages of other things are of no use to any rule.
_RELEVANT = LazyRegex(
    r"nvidia|cuda|cudnn|nccl|nouveau|linux-(?:headers|image|modules|zen|lts|hardened)|kernel-(?:devel|headers|default-devel|core)"
    r"|libnv|dkms|xserver-xorg-video-nv|docker|containerd|^linux$",
    re.IGNORECASE,
)
_UPSTREAM = LazyRegex(r"^(?:\d+:)?(?P<version>\d{2,3}\.\d+(?:\.\d+)?)")
_KERNEL = r"\d+\.\d+\.\d+[\w.+~-]*"


def _rows(row: LazyRegex, text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the rows of relevant packages from the first line on, up to the first line of anything else.

    Whole lists hold thousands of packages: stopping at once keeps them linear, the next relevant row begins anew.
    """
    for number, line in enumerate(text.split("\n")):
        found = row.match(line.strip())
        if not found or not _RELEVANT.search(found["name"]):
            if number:
                return
            raise NotThisFormat
        yield number, found


def package(name: str, version: str | None, manager: str, *, installed: bool = True, at: int = 0) -> Package:
    """Make a package fact; the driver branch comes from the name, else from the version of a driver package."""
    branch = None
    if re.search(r"nvidia|cuda-drivers", name):
        named = re.search(r"(?<![\d.])(\d{3})(?![\d.])", name)
        upstream = _UPSTREAM.match(version or "")
        if named:
            branch = int(named[1])
        elif upstream and int(upstream["version"].split(".")[0]) >= 100:
            branch = branch_of(upstream["version"])
    return Package(name=name, version=version, branch=branch, manager=manager, installed=installed, at=at)


_DPKG = LazyRegex(r"^(?P<state>[uirph][nicurHWtTF]R?)\s+(?P<name>[\w.+-]+)(?::\w+)?\s+(?P<version>\S+)\s")


def dpkg_list(text: str) -> Iterator[Package]:
    r"""`dpkg -l`, whole or grepped.

    >>> sample = "ii  nvidia-driver-535  535.183.01-0ubuntu1  amd64  NVIDIA driver metapackage\n"
    >>> fact = next(dpkg_list(sample)); fact.name, fact.branch, fact.manager
    ('nvidia-driver-535', 535, 'apt')
    """
    for number, found in _rows(_DPKG, text):
        fact = package(found["name"], found["version"], "apt", installed=found["state"][1] == "i", at=number)
        fact.held = found["state"][0] == "h" or None
        yield fact


_APT_LIST = LazyRegex(r"^(?P<name>[\w.+-]+)/\S+\s+(?P<version>\S+)\s+\w+\s+\[(?P<state>[^\]]+)\]")


def apt_list(text: str) -> Iterator[Package]:
    r"""`apt list --installed`.

    >>> sample = "nvidia-driver-550/jammy-updates,now 550.120-0ubuntu0.22.04.1 amd64 [installed]\n"
    >>> next(apt_list(sample)).version
    '550.120-0ubuntu0.22.04.1'
    """
    for number, found in _rows(_APT_LIST, text):
        if "installed" in found["state"]:
            yield package(found["name"], found["version"], "apt", at=number)


_RPM = LazyRegex(
    r"^(?P<name>[A-Za-z][\w.+-]*?)-(?P<version>(?:\d+:)?\d[\w.~^+]*-[\w.~^+]+?)(?:\.(?:x86_64|aarch64|noarch|i686))?(?:(?:\t|\s{2,})\S.*)?$"
)


def rpm_list(text: str) -> Iterator[Package]:
    r"""`rpm -qa`, whole or grepped; sosreports put the date of the installation behind.

    >>> next(rpm_list("nvidia-driver-latest-dkms-550.54.15-1.el8.x86_64\n")).name
    'nvidia-driver-latest-dkms'
    >>> next(rpm_list("nvidia-fabric-manager-550.90.07-1.x86_64              Tue Apr  8 12:41:17 2025\n")).version
    '550.90.07-1'
    """
    for number, found in _rows(_RPM, text):
        yield package(found["name"], found["version"], "dnf", at=number)


_SUSE_ROW = LazyRegex(r"^(?P<name>[A-Za-z][\w.+-]*)\s.*\s(?P<version>[\w.:~^+]+-[\w.~^+]+)$")


def suse_list(text: str) -> Iterator[Package]:
    r"""The list of packages in a supportconfig: name, distribution, version.

    >>> rows = "bash     SUSE Linux Enterprise 15    4.4-9.14.1\nnvidia-compute-G06   (none)   570.86.15-1\n"
    >>> [(fact.name, fact.branch) for fact in suse_list("NAME     DISTRIBUTION     VERSION\n" + rows)]
    [('nvidia-compute-G06', 570)]
    """
    for number, line in enumerate(text.split("\n")):
        if number == 0:
            continue
        found = _SUSE_ROW.match(line.rstrip())
        if not found:
            return
        if _RELEVANT.search(found["name"]):
            yield package(found["name"], found["version"], "zypper", at=number)


_YUM_ROW = LazyRegex(
    r"^(?P<name>[\w.+-]+)\.(?:x86_64|aarch64|noarch|i686|ppc64le)\s+(?P<version>\S+)\s+(?P<repo>\S+)\s*$"
)


def yum_list(text: str) -> Iterator[Package]:
    r"""`yum list` and `dnf list`: the rows below "Installed Packages".

    >>> sample = "Installed Packages\ncuda-drivers.x86_64     384.81-1    @cuda-9-0-local\n"
    >>> fact = next(yum_list(sample)); fact.name, fact.branch
    ('cuda-drivers', 384)
    """
    for number, line in enumerate(text.split("\n")):
        if number == 0:
            continue
        found = _YUM_ROW.match(line)
        if not found:
            return
        if _RELEVANT.search(found["name"]):
            yield package(found["name"], found["version"], "dnf", at=number)


_NO_MATCH = LazyRegex(
    r"No [Mm]atch for argument: (?P<a>\S+)|package (?P<b>[\w.+-]+) is not installed|Package '?(?P<c>[\w.+-]+)'? is not installed"
    r"|no packages found matching (?P<d>[\w.*+-]+)|error: package '(?P<e>[\w.+-]+)' was not found"
)


def package_absent(text: str) -> Iterator[Package]:
    """The answer of a package manager that was asked for a package that is not installed.

    >>> fact = next(package_absent("No Match for argument: nvidia-driver-latest-dkms")); fact.name, fact.installed
    ('nvidia-driver-latest-dkms', False)
    """
    found = _NO_MATCH.search(text.partition("\n")[0])
    name = next((value for value in found.groups() if value), "") if found else ""
    if not re.search(r"nvidia|cuda-driver", name):
        raise NotThisFormat
    yield Package(name=name, installed=False)


_PACMAN = LazyRegex(r"^(?:local/|extra/|core/)?(?P<name>[a-z][\w.+-]*) (?P<version>\d[\w.:+~]*-\d[\w.]*)\s*(?:\[.*)?$")


def pacman_list(text: str) -> Iterator[Package]:
    r"""`pacman -Q`, whole or grepped.

    >>> fact = next(pacman_list("nvidia-dkms 550.78-1\nnvidia-utils 550.78-1\n")); fact.branch, fact.manager
    (550, 'pacman')
    """
    for number, found in _rows(_PACMAN, text):
        yield package(found["name"], found["version"], "pacman", at=number)


_DKMS = LazyRegex(
    rf"^(?:\S*[$#] )?(?P<name>[\w.+-]*nvidia[\w.+-]*)(?:/|, )(?P<version>\d[\w.]*)"
    rf"(?:, (?P<kernel>{_KERNEL}), (?P<arch>\w+))?: (?P<state>\w+)"
)


def dkms_status(text: str) -> Iterator[DkmsModule]:
    r"""`dkms status`, with a slash (3.x) or a comma (2.x) behind the name.

    >>> sample = "nvidia/535.183.01, 6.8.0-45-generic, x86_64: installed\nnvidia, 470.57.02: added\n"
    >>> [(fact.version, fact.kernel, fact.state) for fact in dkms_status(sample)]
    [('535.183.01', '6.8.0-45-generic', 'installed'), ('470.57.02', None, 'added')]
    """
    for number, line in enumerate(text.split("\n")):
        found = _DKMS.match(line.strip())
        if not found:
            if number:
                return
            raise NotThisFormat
        yield DkmsModule(
            name=found["name"],
            version=found["version"],
            kernel=found["kernel"],
            state=found["state"].lower(),
            at=number,
        )


_KO = LazyRegex(
    rf"(?P<path>/(?:usr/)?lib/modules/(?P<kernel>{_KERNEL})/\S*?/(?P<name>nvidia[\w-]*)\.ko(?:\.[xg]z|\.zst)?)(?=[\s:'\"]|$)"
)
_FIELD = LazyRegex(r"^(?P<key>filename|version|license|vermagic|signer|firmware):\s+(?P<value>.*)$")


def modinfo(text: str) -> Iterator[ModuleFile]:
    r"""`modinfo nvidia`, whole, or the vermagic line alone.

    >>> sample = '''filename:       /lib/modules/6.5.0-15-generic/updates/dkms/nvidia.ko
    ... version:        535.154.05
    ... license:        NVIDIA
    ... vermagic:       6.5.0-15-generic SMP preempt mod_unload'''
    >>> fact = next(modinfo(sample)); fact.version, fact.kernel, fact.flavour
    ('535.154.05', '6.5.0-15-generic', 'proprietary')
    """
    lines = text.split("\n")
    fields: dict[str, str] = {}
    at: dict[str, int] = {}
    for number, line in enumerate(lines):
        found = _FIELD.match(line.strip())
        if found and found["key"] not in fields:
            fields[found["key"]] = found["value"].strip()
            at[found["key"]] = number
        elif number and not re.match(r"^(?:[a-z_]+:|\s)", line):
            break
    path = fields.get("filename", "")
    if path and "nvidia" not in path:
        raise NotThisFormat
    if not path and "vermagic" not in fields:
        raise NotThisFormat
    inside = _KO.search(path)
    kernel = fields.get("vermagic", "").split(" ")[0] or (inside["kernel"] if inside else None)
    version = fields.get("version")
    licence = fields.get("license", "")
    yield ModuleFile(
        name=inside["name"].replace("-", "_") if inside else "nvidia",
        version=version,
        branch=branch_of(version) if version else None,
        kernel=kernel or None,
        flavour="open" if "MIT" in licence else "proprietary" if licence == "NVIDIA" else None,
        path=path or None,
        signer=fields.get("signer") or None,
        at=max(at.values(), default=0),
    )


_VERSION_ALONE = LazyRegex(
    r"(?:version:\s+)?(?P<version>\d{3}\.\d+(?:\.\d+)?)[ \t]*(?:\n(?!\s*(?:filename|vermagic|license):)|$)"
)


def modinfo_query(text: str) -> Iterator[ModuleFile]:
    r"""A modinfo command and its answer, where that is no more than the version: empty where no module is found.

    >>> [fact.found for fact in modinfo_query("/sbin/modinfo nvidia | grep vermagic\n\n\n")]
    [False]
    >>> next(modinfo_query("$ modinfo nvidia | grep version\nversion:        450.142.00\n")).branch
    450
    """
    lines = text.split("\n")
    if not re.search(r"modinfo (?:-F version )?nvidia\b", lines[0]):
        raise NotThisFormat
    if found := _VERSION_ALONE.match("\n".join(lines[1:4])):
        yield ModuleFile(name="nvidia", version=found["version"], branch=branch_of(found["version"]), at=1)
        return
    answer = [line for line in lines[1:6] if line.strip() and not re.match(r"^\S*[$#>]|^_{10}", line.strip())]
    if answer:
        raise NotThisFormat
    yield ModuleFile(name="nvidia", found=False)


def module_listing(text: str) -> Iterator[ModuleFile]:
    r"""Paths of module files, as find, ls or dpkg -L list them.

    >>> fact = next(module_listing("/lib/modules/6.12.73+deb13-amd64/updates/dkms/nvidia-current-open.ko.xz\n"))
    >>> fact.kernel, fact.flavour
    ('6.12.73+deb13-amd64', 'open')
    """
    for number, line in enumerate(text.split("\n")):
        found = _KO.match(line.strip())
        if not found:
            if number:
                return
            raise NotThisFormat
        name = found["name"]
        if re.fullmatch(r"nvidia(?:-current)?(?:-open)?|nvidia-\d{3}(?:-open)?", name):
            yield ModuleFile(
                name="nvidia",
                kernel=found["kernel"],
                path=found["path"],
                flavour="open" if "open" in name else None,
                at=number,
            )


_LSMOD = LazyRegex(r"^(?P<name>\w+)\s+(?P<size>\d+)\s+(?P<used>\d+)(?:\s+(?P<by>[\w,\[\]-]+))?\s*$")
_PROC = LazyRegex(r"^(?P<name>\w+) (?P<size>\d+) (?P<used>\d+) (?P<by>\S+) (?P<state>Live|Loading|Unloading)\b")


def lsmod(text: str) -> Iterator[KernelModule]:
    r"""`lsmod`.

    >>> sample = "Module                  Size  Used by\nnvidia_uvm           1540096  0\nnvidia              56418304  1 nvidia_uvm\n"
    >>> [(fact.name, fact.used_by) for fact in lsmod(sample)]
    [('nvidia_uvm', 0), ('nvidia', 1)]
    """
    for number, line in enumerate(text.split("\n")):
        if number == 0:
            continue
        found = _LSMOD.match(line.strip())
        if not found:
            return
        yield KernelModule(name=found["name"], used_by=int(found["used"]), seen_by="lsmod", at=number)


def proc_modules(text: str) -> Iterator[KernelModule]:
    r"""/proc/modules.

    >>> next(proc_modules("nvidia 56418304 1 nvidia_uvm, Live 0x0000000000000000 (POE)\n")).name
    'nvidia'
    """
    for number, line in enumerate(text.split("\n")):
        found = _PROC.match(line)
        if not found:
            if number:
                return
            raise NotThisFormat
        yield KernelModule(name=found["name"], used_by=int(found["used"]), seen_by="lsmod", at=number)


_PROMPT = LazyRegex(r"^(?:\[?[\w.-]+@\S+.*?[$#%>]\s*|[$#%>+]\s*|\S+[$#]\s+)")


_LSMOD_GREP = LazyRegex(r"lsmod\s*\|\s*(?:sudo )?[ef]?grep\s+(?P<pattern>.*(?:nv|NV|nouveau).*)")
# A pattern that every module of the driver fits; one that goes on (nvidia_uvm, nvme) asks for less.
_WHOLE = LazyRegex(r"(?:^|[\s\"'|^(])(?:nv|nvi|nvid|nvidi|nvidia)(?=$|[\s\"'|)\\;#])", re.IGNORECASE)


def lsmod_grep(text: str) -> Iterator[KernelModule]:
    r"""`lsmod | grep nvidia` in a pasted session: its rows, or nothing at all before the next prompt.

    >>> list(lsmod_grep("# lsmod |grep nvidia\n# \n"))
    []
    >>> [fact.name for fact in lsmod_grep("$ lsmod | grep nvidia\nnvidia_drm   69632  0\n")]
    ['nvidia_drm']
    """
    lines = text.split("\n")
    asked = _LSMOD_GREP.search(lines[0])
    if not asked or not _WHOLE.search(asked["pattern"]):
        raise NotThisFormat
    yield from _grepped(lines)


def lsmod_grep_part(text: str) -> Iterator[KernelModule]:
    r"""`lsmod | grep` for one of the modules: its rows say what is loaded; what isn't shown was not asked for.

    >>> [fact.name for fact in lsmod_grep_part("$ lsmod | grep nvidia_uvm\nnvidia_uvm   1540096  0\n")]
    ['nvidia_uvm']
    """
    lines = text.split("\n")
    asked = _LSMOD_GREP.search(lines[0])
    if not asked or _WHOLE.search(asked["pattern"]):
        raise NotThisFormat
    yield from _grepped(lines)


def _grepped(lines: list[str]) -> Iterator[KernelModule]:
    if len(lines) < 2 or not any(lines[1:]):
        raise NotThisFormat  # the paste ends with the command: no answer is known
    for number, line in enumerate(lines[1:], start=1):
        found = _LSMOD.match(line.strip())
        if not found:
            if number == 1 and line.strip() and not _PROMPT.match(line):
                raise NotThisFormat
            return
        yield KernelModule(name=found["name"], used_by=int(found["used"]), seen_by="lsmod", at=number)


_LIBRARY_FILE = LazyRegex(r"(?P<name>libcuda|libnvidia-ml)\.so\.(?P<version>\d{3}\.\d+(?:\.\d+)?)(?![\w.])")
_FOREIGN = LazyRegex(r"/(?:docker|containers|overlay2?|snap|flatpak|enroot|rootfs|merged|compat|stubs)\b")


def library_file(text: str) -> Iterator[DriverLibrary]:
    """A driver library's file name, which carries its version, in `ls`, `find`, `ldconfig -v` or `dpkg -L`.

    >>> fact = next(library_file("/usr/lib/x86_64-linux-gnu/libcuda.so.535.86.05")); fact.name, fact.version
    ('libcuda', '535.86.05')
    """
    line = text.partition("\n")[0]
    found = _LIBRARY_FILE.search(line)
    if not found or _FOREIGN.search(line):
        raise NotThisFormat
    version = found["version"]
    before = line[: found.start()]
    folder = before.split()[-1] if before[-1:] == "/" else ""
    yield DriverLibrary(
        name=found["name"], version=version, branch=branch_of(version), path=f"{folder}{found['name']}.so.{version}"
    )


_REFUSALS: tuple[tuple[str, LazyRegex], ...] = (
    (
        "key_rejected",
        LazyRegex(r"Required key not available|Key was rejected by service|Key has expired|Key was revoked"),
    ),
    ("unknown_symbol", LazyRegex(r"Unknown symbol in module")),
    ("bad_format", LazyRegex(r"Invalid module format|Exec format error")),
    ("no_such_device", LazyRegex(r"No such device")),
    ("not_permitted", LazyRegex(r"Operation not permitted")),
    ("not_implemented", LazyRegex(r"Function not implemented")),
    ("busy", LazyRegex(r"Device or resource busy")),
    ("no_memory", LazyRegex(r"Cannot allocate memory")),
)
_NOT_FOUND = LazyRegex(
    rf"(?:FATAL: |ERROR: )?[Mm]odule (?P<a>nvidia[\w-]*) not found(?: in directory /(?:usr/)?lib/modules/(?P<kernel>{_KERNEL}))?"
    r"|could not find module by name='(?P<b>nvidia[\w-]*)'"
    r'|error loading module \\?"(?P<c>nvidia[\w-]*)\\?": module not found'  # Talos
)
_INSERT = LazyRegex(
    r"(?:could not insert (?:module )?|Failed to insert (?:module )?|could not load module |Error: could not insert module )"
    r"'?(?P<path>\S*?)(?P<name>nvidia[\w-]*)(?:\.ko\S*?)?'?: (?P<why>.*)"
)
_EXIT = LazyRegex(r"Failed to insert module '?(?P<name>nvidia[\w-]*)'?: (?P<why>.*)")


def module_load_error(text: str) -> Iterator[ModuleLoadError]:
    """What modprobe, insmod and systemd-modules-load say when a module of the driver can't be loaded.

    >>> fact = next(module_load_error("modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.8.0-49-generic"))
    >>> fact.reason, fact.kernel
    ('not_found', '6.8.0-49-generic')
    >>> next(module_load_error("modprobe: ERROR: could not insert 'nvidia': Key was rejected by service")).reason
    'key_rejected'
    """
    message = parse_stamp(text.partition("\n")[0]).message.strip()
    if found := _NOT_FOUND.search(message):
        name = (found["a"] or found["b"] or found["c"]).replace("-", "_")
        yield ModuleLoadError(name=name, reason="not_found", kernel=found["kernel"], message=message[:300])
        return
    inserted = _INSERT.search(message) or _EXIT.search(message)
    if not inserted:
        raise NotThisFormat
    why = inserted["why"]
    reason = next((reason for reason, pattern in _REFUSALS if pattern.search(why)), "other")
    yield ModuleLoadError(name=inserted["name"].replace("-", "_"), reason=reason, message=message[:300])


FORMATS = (
    Format("dpkg -l", ("ii  ", "rc  ", "hi  ", "iU  ", "iF  "), dpkg_list, lines=40),
    Format("apt list", (" amd64 [installed", " arm64 [installed", " all [installed"), apt_list, lines=40),
    Format(
        "rpm -qa",
        (
            ".el7.x86_64",
            ".el8.x86_64",
            ".el9.x86_64",
            ".el10.x86_64",
            ".el7_",
            ".el8_",
            ".el9_",
            ".el8.aarch64",
            ".el9.aarch64",
            ".el10.aarch64",
            ".amzn2",
            ".azl3.",
            "1.x86_64",
            "1.aarch64",
            ".fc3",
            ".fc4",
        ),
        rpm_list,
        lines=40,
    ),
    Format("rpm -qa of a supportconfig", ("DISTRIBUTION                        VERSION",), suse_list, lines=20_000),
    Format("yum list", ("Installed Packages",), yum_list, lines=400),
    Format(
        "package not installed",
        ("o Match for argument", "is not installed", "o packages found matching", "' was not found"),
        package_absent,
        lines=1,
    ),
    Format(
        "pacman -Q",
        (
            "nvidia-utils ",
            "nvidia-dkms ",
            "nvidia-open ",
            "nvidia-open-dkms ",
            "nvidia-lts ",
            "linux-headers ",
            "-headers ",
        ),
        pacman_list,
        lines=20,
    ),
    Format(
        "dkms status",
        (": installed", ": added", ": built", ": broken"),
        dkms_status,
        lines=60,
        answers=("dkms_module",),
    ),
    Format("modinfo", ("filename:  ", "vermagic:  "), modinfo, lines=80, answers=("module_file",)),
    Format(
        "modinfo nvidia",
        ("modinfo nvidia", "modinfo -F version nvidia"),
        modinfo_query,
        lines=6,
        answers=("module_file",),
    ),
    Format("module files", ("lib/modules/",), module_listing, lines=20),
    Format("driver library file", ("libcuda.so.", "libnvidia-ml.so."), library_file, lines=1),
    Format("lsmod", ("Module                  Size  Used by",), lsmod, lines=2000, answers=("kernel_module",)),
    Format("/proc/modules", (" Live 0x",), proc_modules, lines=2000, answers=("kernel_module",)),
    Format("lsmod | grep", ("lsmod",), lsmod_grep, lines=40, answers=("kernel_module",)),
    Format("lsmod | grep one", ("lsmod",), lsmod_grep_part, lines=40),
    Format(
        "module load error",
        (
            "odule nvidia",
            "could not find module by name='nvidia",
            "error loading module",
            "could not insert",
            "ailed to insert module",
            "could not load module",
        ),
        module_load_error,
        lines=1,
    ),
)
