"""The kernel, the operating system, how it was booted, what it runs on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudoctor.facts.driver import ModuleParameter, SecureBoot
from gpudoctor.facts.host import (
    Cpu,
    Kernel,
    KernelOption,
    Os,
)
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex
from gpudoctor.patterns.stamp import parse_stamp

_RELEASE = r"\d+\.\d+\.\d+[\w.+~-]*"
_UNAME = LazyRegex(rf"\bLinux (?P<node>[\w.-]+) (?P<release>{_RELEASE}) #\d+.*?(?P<machine>x86_64|aarch64|ppc64le)?")
_BANNER = LazyRegex(rf"\bLinux version (?P<release>{_RELEASE})(?: \(|\s*$)")
_HOST_KERNEL = LazyRegex(
    rf"^\W*(?:Kernel(?: Version)?|kernel-version\.full|uname -r)\s*[:=]\s*(?:Linux )?(?P<release>{_RELEASE})\s*$"
)
_BARE_RELEASE = LazyRegex(rf"^(?P<release>{_RELEASE})\s*$")


def uname(text: str) -> Iterator[Kernel]:
    """`uname -a`, the kernel's own banner, or a line that names the kernel.

    >>> next(uname("Linux node01 5.15.0-87-generic #97~20.04.1-Ubuntu SMP Thu Oct 5 08:25:28 UTC 2023 x86_64 GNU/Linux")).release
    '5.15.0-87-generic'
    >>> next(uname("[    0.0] Linux version 6.8.0-45-generic (buildd@host) (gcc 13) #45-Ubuntu SMP")).release
    '6.8.0-45-generic'
    >>> next(uname("Linux version 5.15.167.4-microsoft-standard-WSL2")).release
    '5.15.167.4-microsoft-standard-WSL2'
    """
    line = text.partition("\n")[0]
    found = _UNAME.search(line) or _BANNER.search(line)
    if not found:
        raise NotThisFormat
    groups = found.groupdict()
    machine = next((name for name in ("x86_64", "aarch64", "ppc64le") if name in line), None)
    yield Kernel(release=found["release"], machine=machine, node=groups.get("node"))


def kernel_release(text: str) -> Iterator[Kernel]:
    r"""The answer to `uname -r` in a pasted session, or a `Kernel Version:` line of a report.

    >>> next(kernel_release("$ uname -r\n7.0.0-1019-nvidia\n")).release
    '7.0.0-1019-nvidia'
    >>> next(kernel_release("Kernel Version: 5.15.0-112-generic\n")).release
    '5.15.0-112-generic'
    """
    lines = text.split("\n")
    if found := _HOST_KERNEL.match(lines[0]):
        yield Kernel(release=found["release"])
        return
    if re.search(r"uname -r\w*\s*$", lines[0]) and len(lines) > 1 and (found := _BARE_RELEASE.match(lines[1].strip())):
        yield Kernel(release=found["release"], at=1)
        return
    raise NotThisFormat


_MANAGERS = {
    "apt": "ubuntu debian linuxmint pop raspbian kali proxmox elementary zorin neon",
    "dnf": "rhel centos fedora rocky almalinux ol amzn scientific openeuler anolis nobara",
    "zypper": "sles opensuse opensuse-leap opensuse-tumbleweed suse sled",
    "pacman": "arch manjaro endeavouros cachyos garuda steamos",
    "apk": "alpine",
    "emerge": "gentoo",
    "nix": "nixos",
}
_FAMILIES = {name: manager for manager, names in _MANAGERS.items() for name in names.split()}


def manager_of(os_id: str | None, like: str = "") -> str | None:
    """Return the package manager of an os-release id.

    >>> manager_of("linuxmint"), manager_of("pop_os", "ubuntu debian")
    ('apt', 'apt')
    """
    names = [os_id or "", *like.split()]
    return next((_FAMILIES[name] for name in names if name in _FAMILIES), None)


_OS_LINE = LazyRegex(r"^(?P<key>NAME|ID|ID_LIKE|VERSION_ID|PRETTY_NAME)=\"?(?P<value>[^\"\n]*)\"?\s*$")


def os_release(text: str) -> Iterator[Os]:
    r"""/etc/os-release.

    >>> fact = next(os_release('NAME="Ubuntu"\nVERSION_ID="22.04"\nID=ubuntu\nPRETTY_NAME="Ubuntu 22.04.4 LTS"'))
    >>> fact.id, fact.version, fact.manager
    ('ubuntu', '22.04', 'apt')
    """
    fields: dict[str, str] = {}
    last = 0
    for number, line in enumerate(text.split("\n")):
        if found := _OS_LINE.match(line.strip()):
            fields.setdefault(found["key"], found["value"])
            last = number
        elif number and not re.match(r"^\s*[A-Z_]+=", line):
            break
    if "ID" not in fields and "PRETTY_NAME" not in fields:
        raise NotThisFormat
    os_id = fields.get("ID", "").lower() or None
    yield Os(
        id=os_id,
        version=fields.get("VERSION_ID"),
        name=fields.get("PRETTY_NAME") or fields.get("NAME"),
        manager=manager_of(os_id, fields.get("ID_LIKE", "")),
        at=last,
    )


_OS_NAME = LazyRegex(
    r"(?:(?:OS|Operating System|Distributor ID|Description|OS/Version|Distribution|DISTRIB_DESCRIPTION)\s*[:=]\s*\"?)?"
    r"\b(?P<name>Ubuntu|Debian GNU/Linux|CentOS(?: Linux| Stream)?|Red Hat Enterprise Linux(?: Server)?|Rocky Linux|AlmaLinux|Fedora(?: Linux)?"
    r"|Amazon Linux|openSUSE Leap|SUSE Linux Enterprise Server|Linux Mint|Oracle Linux Server)"
    r"(?: release)? (?P<version>\d+(?:\.\d+)?)"
)
_OS_IDS = {
    "ubuntu": "ubuntu", "debian": "debian", "centos": "centos", "red": "rhel", "rocky": "rocky", "almalinux": "almalinux",
    "fedora": "fedora", "amazon": "amzn", "opensuse": "opensuse-leap", "suse": "sles", "linux": "linuxmint", "oracle": "ol",
}  # fmt: skip


def os_name(text: str) -> Iterator[Os]:
    r"""/etc/issue, /etc/redhat-release, `lsb_release -d` and hostnamectl: the name of the system in one line.

    >>> fact = next(os_name("Ubuntu 20.04.2 LTS \\n \\l\n")); fact.id, fact.version
    ('ubuntu', '20.04')
    >>> next(os_name("CentOS Linux release 7.9.2009 (Core)\n")).version
    '7.9'
    >>> next(os_name("Description:\tUbuntu 24.04.1 LTS\n")).name
    'Ubuntu 24.04.1 LTS'
    """
    line = text.partition("\n")[0].strip()
    found = _OS_NAME.match(line)
    if not found:
        raise NotThisFormat
    os_id = _OS_IDS[found["name"].split()[0].lower()]
    yield Os(
        id=os_id,
        version=found["version"],
        name=line[found.start("name") :][:80].replace("\\n", "").replace("\\l", "").strip(),
        manager=manager_of(os_id),
    )


def command_line(text: str) -> Iterator[KernelOption]:
    """/proc/cmdline, or the line in which the kernel repeats it.

    >>> [fact.name for fact in command_line("BOOT_IMAGE=/boot/vmlinuz-6.8 root=UUID=1 ro nouveau.modeset=0 iommu=pt")][-2:]
    ['nouveau.modeset', 'iommu']
    """
    message = parse_stamp(text.partition("\n")[0]).message
    words = message.partition("ommand line: ")[2] or message
    if "BOOT_IMAGE=" not in words and "root=" not in words:
        raise NotThisFormat
    for word in words.split():
        name, _, setting = word.partition("=")
        if name and name not in ("BOOT_IMAGE", "root", "initrd"):
            yield KernelOption(name=name, setting=setting or None)


def secure_boot(text: str) -> Iterator[SecureBoot]:
    """mokutil --sb-state, bootctl, or the kernel's own line.

    >>> next(secure_boot("SecureBoot enabled")).enabled, next(secure_boot("[    0.9] secureboot: Secure boot disabled")).enabled
    (True, False)
    """
    line = text.partition("\n")[0]
    found = re.search(r"(?:SecureBoot|Secure ?[Bb]oot:?) (?P<state>enabled|disabled)\b", line)
    if not found:
        raise NotThisFormat
    yield SecureBoot(enabled=found["state"] == "enabled")


def lockdown(text: str) -> Iterator[SecureBoot]:
    """/sys/kernel/security/lockdown.

    >>> next(lockdown("none [integrity] confidentiality")).lockdown
    'integrity'
    """
    found = re.search(r"\[?none\]? \[?integrity\]? \[?confidentiality\]?", text.partition("\n")[0])
    chosen = re.search(r"\[(\w+)\]", found[0]) if found else None
    if not chosen:
        raise NotThisFormat
    yield SecureBoot(lockdown=chosen[1])


_HYPERVISORS = (
    ("vmware", LazyRegex(r"VMware", re.IGNORECASE)),
    ("hyper-v", LazyRegex(r"Hyper-?V|Microsoft Corporation Virtual Machine|^\s*microsoft\s*$", re.IGNORECASE)),
    ("xen", LazyRegex(r"\bXen\b")),
    ("virtualbox", LazyRegex(r"VirtualBox|innotek")),
    ("nutanix", LazyRegex(r"Nutanix|\bAHV\b")),
    ("kvm", LazyRegex(r"KVM|QEMU|oVirt|Bochs", re.IGNORECASE)),
)
_VIRTUAL = LazyRegex(
    r"Hypervisor detected: (?P<a>.*)|DMI: (?P<b>.*)|Hypervisor vendor:\s*(?P<c>.*)|Detected virtualization:? (?P<d>.*)"
    r"|Virtualization: (?P<f>\w+)\s*$|System manufacturer: (?P<g>.*)|Manufacturer: (?P<h>QEMU|VMware.*|Xen|Nutanix.*|Red Hat)\s*$"
    r"|Host bridge: .*?(?P<e>440BX/ZX/DX|440FX).*|(?P<i>Red Hat, Inc\.? (?:QEMU|Virtio|virtio)|VMware SVGA|VMware VMXNET|Virtio (?:network|block|SCSI|console))"
)


def hypervisor(text: str) -> Iterator[Cpu]:
    """Lines in which a machine shows that it is virtual, and by whom.

    >>> next(hypervisor("[    0.000000] Hypervisor detected: VMware")).hypervisor
    'vmware'
    >>> next(hypervisor("Hypervisor vendor:                  Microsoft")).hypervisor
    'hyper-v'
    """
    message = parse_stamp(text.partition("\n")[0]).message
    found = _VIRTUAL.search(message)
    if not found:
        raise NotThisFormat
    if found["e"] or found["i"]:
        yield Cpu(virtual=True)
        return
    named = next((value for value in found.groups() if value), "")
    name = next((name for name, pattern in _HYPERVISORS if pattern.search(named)), None)
    if name is None:
        raise NotThisFormat
    yield Cpu(virtual=True, hypervisor=name)


def modprobe_options(text: str) -> Iterator[ModuleParameter]:
    """Lines of /etc/modprobe.d: options and blacklists of the driver.

    >>> [(fact.module, fact.name, fact.value_) for fact in modprobe_options("options nvidia NVreg_DeviceFileMode=0660")]
    [('nvidia', 'NVreg_DeviceFileMode', '0660')]
    """
    words = text.partition("\n")[0].split("#")[0].split()
    if len(words) < 2 or not re.fullmatch(r"nvidia[\w-]*|nouveau|vfio-pci|vfio_pci", words[1]):
        raise NotThisFormat
    module = words[1].replace("-", "_")
    if words[0] == "blacklist" or (
        words[0] == "install" and len(words) > 2 and words[2] in ("/bin/false", "/bin/true", "/usr/bin/false")
    ):
        yield ModuleParameter(module=module, name="blacklist", value_="1")
    elif words[0] == "options":
        for word in words[2:]:
            name, _, value = word.partition("=")
            yield ModuleParameter(module=module, name=name, value_=value)
    else:
        raise NotThisFormat


_PARAM = LazyRegex(r"(?P<name>[A-Z]\w{2,60}): (?P<value>.*?)\s*$")


def driver_params(text: str) -> Iterator[ModuleParameter]:
    r"""/proc/driver/nvidia/params: every option of the nvidia module, without the NVreg_ that goes before it in modprobe.d.

    >>> facts = list(driver_params("ResmanDebugLevel: 4294967295\nRmLogonRC: 1\nModifyDeviceFiles: 1\nDeviceFileMode: 432"))
    >>> facts[-1].name, facts[-1].value_
    ('NVreg_DeviceFileMode', '432')
    """
    for at, line in enumerate(text.split("\n")):
        found = _PARAM.match(line)
        if not found:
            if at < 3:  # a log may begin with such words
                raise NotThisFormat
            break
        yield ModuleParameter(at=at, module="nvidia", name=f"NVreg_{found['name']}", value_=found["value"].strip('"'))


FORMATS = (
    Format("uname", ("Linux version ", " #1 ", "-Ubuntu SMP", " SMP "), uname, lines=1),
    Format(
        "kernel release",
        ("uname -r", "Kernel Version:", "Kernel: Linux", "kernel-version.full"),
        kernel_release,
        lines=2,
    ),
    Format("os-release", ("PRETTY_NAME=", "VERSION_ID="), os_release, lines=20, back=3),
    Format(
        "system name",
        (
            "Ubuntu ",
            "CentOS ",
            "Debian GNU",
            "Red Hat Enterprise",
            "Rocky Linux",
            "AlmaLinux",
            "Amazon Linux",
            "openSUSE Leap",
            "Linux Mint ",
        ),
        os_name,
        lines=1,
    ),
    Format("kernel command line", ("ommand line: ", "BOOT_IMAGE="), command_line, lines=1, answers=("kernel_option",)),
    Format("Secure Boot", ("SecureBoot ", "ecure boot "), secure_boot, lines=1),
    Format("lockdown", ("integrity",), lockdown, lines=1),
    Format("/proc/driver/nvidia/params", ("ResmanDebugLevel: ",), driver_params, lines=200),
    Format(
        "virtual machine",
        (
            "Hypervisor detected",
            "DMI: ",
            "Hypervisor vendor",
            "Detected virtualization",
            "Virtualization: ",
            "System manufacturer",
            "Manufacturer: ",
            "Host bridge: Intel",
            "Red Hat, Inc",
            "VMware ",
            "Virtio ",
        ),
        hypervisor,
        lines=1,
    ),
    Format(
        "modprobe.d",
        ("options nvidia", "blacklist n", "options vfio", "install nouveau", "install nvidia"),
        modprobe_options,
        lines=1,
    ),
)
