"""Formats of the machine around the GPUs: kernel, operating system, memory, limits, device nodes, services."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudoctor.facts.base import Fact, Probed
from gpudoctor.facts.driver import DeviceNode, ModuleParameter, SecureBoot, Service
from gpudoctor.facts.host import (
    Cpu,
    FileSystem,
    HostMemory,
    Kernel,
    KernelOption,
    Limit,
    NetInterface,
    Numa,
    NumaNode,
    Os,
    Pressure,
    Process,
    StepTime,
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


_MEMORY = LazyRegex(r"^(?P<key>\w+(?:\(\w+\))?):\s+(?P<value>\d+)(?: kB)?\s*$")


_MEMORY_FIELDS = {
    "total": "MemTotal",
    "available": "MemAvailable",
    "free": "MemFree",
    "swap_total": "SwapTotal",
    "swap_used": "SwapFree",
    "cma_total": "CmaTotal",
    "huge_pages": "HugePages_Total",
}


def meminfo(text: str) -> Iterator[HostMemory]:
    r"""/proc/meminfo, whole or grepped.

    >>> fact = next(meminfo("CmaTotal:              0 kB\nCmaFree:               0 kB\n")); fact.cma_total
    0.0
    """
    values: dict[str, int] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(text.split("\n")):
        found = _MEMORY.match(line.strip())
        if not found:
            if number:
                break
            raise NotThisFormat
        values[found["key"]] = int(found["value"])
        lines[found["key"]] = number

    def mib(key: str) -> float | None:
        return values[key] / 1024 if key in values else None

    swap_total, swap_free = mib("SwapTotal"), mib("SwapFree")
    yield HostMemory(
        total=mib("MemTotal"),
        available=mib("MemAvailable"),
        free=mib("MemFree"),
        swap_total=swap_total,
        swap_used=swap_total - swap_free if swap_total is not None and swap_free is not None else None,
        cma_total=mib("CmaTotal"),
        huge_pages=values.get("HugePages_Total"),
        at=lines.get("MemTotal", 0),
        at_fields={name: lines[key] for name, key in _MEMORY_FIELDS.items() if key in lines},
    )


_SIZE = LazyRegex(r"^(?P<number>\d+(?:[.,]\d+)?)(?P<unit>[BKMGTPkmgt]?)i?B?$")
_MIB = {"B": 1 / 2**20, "K": 1 / 1024, "M": 1, "G": 1024, "T": 2**20, "P": 2**30}


def mib_of(text: str, default: str) -> float | None:
    """Return a size such as 1.5G, 512Mi or 2048 (in the default unit) in MiB.

    >>> mib_of("1.5G", "K"), mib_of("2048", "K")
    (1536.0, 2.0)
    """
    found = _SIZE.match(text)
    if not found:
        return None
    return float(found["number"].replace(",", ".")) * _MIB[(found["unit"] or default).upper()]


def free(text: str) -> Iterator[HostMemory]:
    r"""`free`, with or without -h, -m, -g; the unit is guessed where it isn't printed.

    >>> sample = '''               total        used        free      shared  buff/cache   available
    ... Mem:            31Gi       3.0Gi        12Gi       0.2Gi        15Gi        27Gi
    ... Swap:          2.0Gi          0B       2.0Gi'''
    >>> fact = next(free(sample)); fact.total, fact.available
    (31744.0, 27648.0)
    """
    lines = text.split("\n")
    header = lines[0].split()
    if "total" not in header or "free" not in header:
        raise NotThisFormat
    header = header[header.index("total") :]
    rows: dict[str, list[str]] = {}
    for line in lines[1:5]:
        parts = line.split()
        if len(parts) < 4 or not parts[0].endswith(":"):
            break
        rows[parts[0].rstrip(":").lower()] = parts[1:]
    memory = rows.get("mem") or rows.get("speicher")
    if not memory:
        raise NotThisFormat
    plain = memory[0].isdigit()
    unit = (
        "K"
        if plain and int(memory[0]) > 2_000_000
        else "M"
        if plain and int(memory[0]) > 2_000
        else "G"
        if plain
        else "B"
    )

    def column(row: list[str] | None, name: str) -> float | None:
        if not row or name not in header or header.index(name) >= len(row):
            return None
        return mib_of(row[header.index(name)], unit)

    swap = rows.get("swap")
    yield HostMemory(
        total=column(memory, "total"),
        available=column(memory, "available"),
        free=column(memory, "free"),
        swap_total=column(swap, "total"),
        swap_used=column(swap, "used"),
        at=1,
    )


_DF = LazyRegex(
    r"^(?P<device>\S+)\s+(?:(?P<type>[a-z][\w.]*)\s+)?(?P<size>[\d.,]+[KMGTPkB]?i?B?)\s+(?P<used>[\d.,]+[KMGTPkB]?i?B?)\s+"
    r"(?P<free>-|[\d.,]+[KMGTPkB]?i?B?)\s+(?P<percent>\d+)%\s+(?P<mount>/\S*)\s*$"
)


def df(text: str) -> Iterator[FileSystem]:
    r"""`df`, with or without -h, -T and -i.

    >>> sample = '''Filesystem      Size  Used Avail Use% Mounted on
    ... /dev/nvme0n1p2  100G  100G     0 100% /'''
    >>> fact = next(df(sample)); fact.mount, fact.use_percent, fact.available
    ('/', 100.0, 0.0)
    """
    lines = text.split("\n")
    if not re.search(r"(?:Use|Capacity|IUse|Uso|Verw|Uti)\S*%?", lines[0]) and "%" not in lines[0]:
        raise NotThisFormat
    inodes = "IUse%" in lines[0] or "Inodes" in lines[0]
    unit = "M" if "1M-blocks" in lines[0] else "K"
    for number, line in enumerate(lines[1:], start=1):
        found = _DF.match(line)
        if not found:
            return
        percent = float(found["percent"])
        if inodes:
            yield FileSystem(mount=found["mount"], device=found["device"], inode_percent=percent, at=number)
            continue
        yield FileSystem(
            mount=found["mount"],
            device=found["device"],
            type=found["type"],
            size=mib_of(found["size"], unit),
            used=mib_of(found["used"], unit),
            available=mib_of(found["free"], unit),
            use_percent=percent,
            at=number,
        )


_ULIMIT = LazyRegex(
    r"^(?P<label>[a-z][\w /-]+?)\s+\((?:(?P<unit>[\w-]+), )?-(?P<flag>\w)\)\s+(?P<value>unlimited|\d+)\s*$"
)
_FLAGS = {
    "l": "memlock",
    "n": "nofile",
    "u": "nproc",
    "s": "stack",
    "v": "as",
    "m": "rss",
    "c": "core",
    "i": "sigpending",
}
_PROC_LIMIT = LazyRegex(
    r"^Max (?P<name>locked memory|open files|processes|stack size|address space)\s+(?P<soft>unlimited|\d+)\s+(?P<hard>unlimited|\d+)"
)
_PROC_NAMES = {
    "locked memory": "memlock",
    "open files": "nofile",
    "processes": "nproc",
    "stack size": "stack",
    "address space": "as",
}
_ASKED = LazyRegex(r"ulimit -(?P<hard>H)?(?:S)?(?P<flag>[lnuvs])\s*$")


def _limit(value: str) -> int:
    return -1 if value == "unlimited" else int(value)


def ulimit(text: str) -> Iterator[Limit]:
    r"""`ulimit -a`.

    >>> sample = '''open files                          (-n) 1024
    ... max locked memory           (kbytes, -l) 64'''
    >>> [(fact.name, fact.soft) for fact in ulimit(sample)]
    [('nofile', 1024), ('memlock', 64)]
    """
    for number, line in enumerate(text.split("\n")):
        found = _ULIMIT.match(line.strip())
        if not found:
            if number:
                return
            raise NotThisFormat
        if name := _FLAGS.get(found["flag"]):
            yield Limit(name=name, soft=_limit(found["value"]), at=number)


def ulimit_one(text: str) -> Iterator[Limit]:
    r"""`ulimit -n` or `ulimit -l` with its answer on the next line.

    >>> next(ulimit_one("$ ulimit -n\n1024\n")).soft
    1024
    """
    lines = text.split("\n")
    asked = _ASKED.search(lines[0])
    if not asked or len(lines) < 2 or not re.fullmatch(r"unlimited|\d+", lines[1].strip()):
        raise NotThisFormat
    value = _limit(lines[1].strip())
    name = _FLAGS[asked["flag"]]
    if asked["hard"]:
        yield Limit(name=f"{name}_hard", soft=value, hard=value, at=1)
    else:
        yield Limit(name=name, soft=value, at=1)


def proc_limits(text: str) -> Iterator[Limit]:
    """/proc/PID/limits.

    >>> fact = next(proc_limits("Max open files            1024                 1048576              files"))
    >>> fact.name, fact.soft, fact.hard
    ('nofile', 1024, 1048576)
    """
    for number, line in enumerate(text.split("\n")):
        if not line.startswith("Max "):
            if number:
                return
            raise NotThisFormat
        if found := _PROC_LIMIT.match(line):
            soft, hard = _limit(found["soft"]), _limit(found["hard"])
            if found["name"] == "locked memory":
                soft, hard = (value // 1024 if value > 0 else value for value in (soft, hard))
            yield Limit(name=_PROC_NAMES[found["name"]], soft=soft, hard=hard, at=number)


_PRESSURE = LazyRegex(
    r"(?P<scope>some|full) avg10=(?P<avg10>\d+(?:\.\d+)?) avg60=(?P<avg60>\d+(?:\.\d+)?) avg300=(?P<avg300>\d+(?:\.\d+)?)"
)
_RESOURCE = LazyRegex(r"pressure[/.](?P<resource>cpu|memory|io)\b")


def pressure(text: str) -> Iterator[Pressure]:
    r"""A file of /proc/pressure under a line that names it.

    >>> next(pressure("$ cat /proc/pressure/io\nsome avg10=91.20 avg60=80.00 avg300=60.00 total=1\n")).resource
    'io'
    """
    lines = text.split("\n")
    named = _RESOURCE.search(lines[0])
    if not named:
        raise NotThisFormat
    for number, line in enumerate(lines[1:5], start=1):
        if found := _PRESSURE.search(line):
            yield Pressure(
                resource=named["resource"],
                scope=found["scope"],
                avg10=float(found["avg10"]),
                avg60=float(found["avg60"]),
                avg300=float(found["avg300"]),
                at=number,
            )


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


_UNIT = LazyRegex(r"^\W*(?P<name>[\w@.-]+)\.service(?: - |\s*$)")
_ACTIVE = LazyRegex(r"^\s*Active: (?P<state>[\w-]+)(?: \((?P<sub>[^)]*)\))?")
_LOADED = LazyRegex(r"^\s*Loaded: (?P<loaded>[\w-]+)(?: \((?P<detail>[^)]*)\))?")
_EXIT = LazyRegex(r"status=(?P<code>\d+)")


def systemctl_status(text: str) -> Iterator[Service]:
    r"""One unit in `systemctl status`.

    >>> sample = '''● nvidia-fabricmanager.service - NVIDIA fabric manager service
    ...      Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; enabled; vendor preset: enabled)
    ...      Active: failed (Result: exit-code) since Tue 2024-02-06 11:07:09 UTC; 1min ago
    ...     Process: 911 ExecStart=/usr/bin/nv-fabricmanager (code=exited, status=1/FAILURE)'''
    >>> fact = next(systemctl_status(sample)); fact.name, fact.state, fact.enabled, fact.exit_code
    ('nvidia-fabricmanager', 'failed', True, 1)
    """
    lines = text.split("\n")
    unit = _UNIT.match(lines[0])
    if not unit:
        raise NotThisFormat
    state = sub = None
    enabled: bool | None = None
    code: int | None = None
    last = 0
    for number, line in enumerate(lines[1:14], start=1):
        if _UNIT.match(line) and not line.startswith(" "):
            break
        if found := _LOADED.match(line):
            if found["loaded"] == "not-found":
                state = "not_found"
            detail = (found["detail"] or "").split("; ")
            enabled = detail[1] == "enabled" if len(detail) > 1 else None
        elif found := _ACTIVE.match(line):
            state, sub, last = state or found["state"], found["sub"], number
        elif (found := _EXIT.search(line)) and code is None:
            code = int(found["code"])
    if state is None:
        raise NotThisFormat
    yield Service(name=unit["name"], state=state, sub=sub, enabled=enabled, exit_code=code, at=last)


_UNIT_ROW = LazyRegex(
    r"\W*(?P<name>[\w@.\\-]+)\.service\s+(?P<load>[a-z-]+)\s+(?P<state>[a-z]+)\s+(?P<sub>[a-z-]+)(?:\s|$)"
)
_OF_GPUS = LazyRegex(r"nvidia|dcgm|docker|containerd|crio|kubelet|slurmd|munge|gdm")


def systemctl_list(text: str) -> Iterator[Service]:
    r"""`systemctl list-units`, all or the failed ones: the services that GPUs, containers and jobs depend on.

    >>> head = "  UNIT                         LOAD   ACTIVE SUB    DESCRIPTION\n"
    >>> fact = next(systemctl_list(head + "● nvidia-fabricmanager.service loaded failed failed NVIDIA fabric manager service\n"))
    >>> fact.name, fact.state
    ('nvidia-fabricmanager', 'failed')
    """
    lines = text.split("\n")
    if lines[0].split()[:4] != ["UNIT", "LOAD", "ACTIVE", "SUB"]:
        raise NotThisFormat
    for number, line in enumerate(lines[1:], start=1):
        if not line.strip():
            break
        if (found := _UNIT_ROW.match(line)) and _OF_GPUS.search(found["name"]):
            state = "not_found" if found["load"] == "not-found" else found["state"]
            yield Service(name=found["name"], state=state, sub=found["sub"], at=number)


_ASKED_STATE = LazyRegex(
    r"systemctl is-active (?P<name>[\w@.-]+)\s*\n\s*(?P<state>active|inactive|failed|activating|unknown)\s*$",
    re.MULTILINE,
)


def systemctl_is_active(text: str) -> Iterator[Service]:
    """The answer below `systemctl is-active`.

    >>> next(systemctl_is_active("$ systemctl is-active nvidia-fabricmanager.service\\ninactive")).state
    'inactive'
    """
    found = _ASKED_STATE.search(text)
    if not found:
        raise NotThisFormat
    state = "not_found" if found["state"] == "unknown" else found["state"]
    yield Service(name=found["name"].removesuffix(".service"), state=state, at=1)


_NODE = LazyRegex(
    r"^(?P<mode>[c-][rwx-]{9})[.+]?\s+\d+\s+(?P<owner>\S+)\s+(?P<group>\S+)\s+\d+,\s*\d+\s+.*?(?P<path>/dev/nvidia[\w/-]*|nvidia[\w-]*)\s*$"
)
_NO_NODE = LazyRegex(
    r"(?:cannot access|cannot stat|stat failed:|open|can't open|Could not open|failed to stat|no such file or directory:)"
    r"[^/]{0,60}(?P<path>/dev/(?:nvidia[\w*-]*|nvidia-caps))[^:]{0,4}:.{0,60}(?:No such file or directory|no such file or directory|Datei oder Verzeichnis nicht gefunden"
    r"|Aucun fichier ou dossier|No existe el)"
)


def _octal(mode: str) -> str:
    digits = ""
    for start in (1, 4, 7):
        bits = mode[start : start + 3]
        digits += str(4 * (bits[0] == "r") + 2 * (bits[1] == "w") + (bits[2] in "xst"))
    return digits


def device_nodes(text: str) -> Iterator[Fact]:
    """`ls -l /dev/nvidia*`; where it lists all of them, what isn't there is absent.

    >>> fact = next(device_nodes("crw-rw---- 1 root video 195, 0 Jan  8 10:00 /dev/nvidia0")); fact.mode, fact.group
    ('660', 'video')
    """
    seen: set[str] = set()
    for number, line in enumerate(text.split("\n")):
        found = _NODE.match(line.strip())
        if not found:
            if number:
                break
            raise NotThisFormat
        path = found["path"] if found["path"].startswith("/dev/") else f"/dev/{found['path']}"
        seen.add(path)
        yield DeviceNode(path=path, mode=_octal(found["mode"]), owner=found["owner"], group=found["group"], at=number)
    if {"/dev/nvidiactl", "/dev/nvidia0"} <= seen:
        yield Probed(what="device_node", at=max(len(seen) - 1, 0))


def device_node_absent(text: str) -> Iterator[DeviceNode]:
    """A message that says that a device node of the driver isn't there.

    >>> fact = next(device_node_absent("ls: cannot access '/dev/nvidia*': No such file or directory")); fact.path, fact.present
    ('/dev/nvidia*', False)
    """
    line = text.partition("\n")[0]
    found = _NO_NODE.search(line)
    if not found:
        raise NotThisFormat
    yield DeviceNode(path=found["path"].rstrip("'\""), present=False)


_LISTED_DEV = LazyRegex(r"\bls\s+(?:-\w+\s+)*/dev/?\s*\|\s*[ef]?grep\s+(?:-\w+\s+)*[\"']?nv(?:idia)?[\"']?\s*$")
_NEXT_PROMPT = LazyRegex(r"^(?:\[?[\w.-]+@\S+.*?[$#%>]|[$#%]|\S+[$#])(?:\s|$)")


def device_nodes_grep(text: str) -> Iterator[DeviceNode]:
    r"""`ls /dev | grep nvidia` in a pasted session that shows nothing before the next prompt.

    >>> fact = next(device_nodes_grep("$ ls /dev | grep -i nvidia\n$ lsmod\n")); fact.path, fact.present
    ('/dev/nvidia*', False)
    """
    asked, _, rest = text.partition("\n")
    if not _LISTED_DEV.search(asked.rstrip()) or not _NEXT_PROMPT.match(rest):
        raise NotThisFormat
    yield DeviceNode(path="/dev/nvidia*", present=False)


_PS = LazyRegex(
    r"^(?:(?P<user>[a-z_][\w-]*\+?)\s+)?(?P<pid>\d+)\s.*?\s(?P<state>D[sLl+<N]{0,3})\s.*?(?P<name>\[?nvidia[\w./-]*\]?|nv_queue|nv_open_q|python3?\S*)(?:\s|$)"
)


def stuck_process(text: str) -> Iterator[Process]:
    """A line of `ps aux`, `ps -ef` or top in which a process of the driver is in state D.

    >>> fact = next(stuck_process("root      4711  0.0  0.0  12345  1234 ?  D  10:01  0:00 nvidia-smi -q")); fact.state, fact.name
    ('D', 'nvidia-smi')
    """
    line = text.partition("\n")[0].strip()
    found = _PS.match(line)
    if not found or ("nvidia" not in line and "nv_" not in line):
        raise NotThisFormat
    yield Process(pid=int(found["pid"]), name=found["name"].strip("[]"), state="D", user=found["user"])


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


_LINK = LazyRegex(
    r"(?P<name>e[nt]\w+|ib\w+|bond\w+|mlx5_\w+): (?:\w+ )?(?:NIC )?Link is [Uu]p[ ,-]+(?:at )?(?P<speed>\d+)\s*(?P<unit>[MG])b(?:ps|it)?"
)


def link_up(text: str) -> Iterator[NetInterface]:
    """The speed with which a network port came up.

    >>> fact = next(link_up("[ 9.1] ixgbe 0000:03:00.0 eno1: NIC Link is Up 1 Gbps, Flow Control: RX/TX")); fact.speed
    1000
    """
    message = parse_stamp(text.partition("\n")[0]).message
    found = _LINK.search(message)
    if not found:
        raise NotThisFormat
    speed = int(found["speed"]) * (1000 if found["unit"] == "G" else 1)
    yield NetInterface(name=found["name"], speed=speed, state="up")


_STEP = LazyRegex(
    r"\b(?:Batch |batch_)?[Tt]ime:?\s+(?P<step>\d+\.\d+)s?\s*\((?:\d+\.\d+)\).{0,20}?\b[Dd]ata(?:[ _][Tt]ime)?:?\s+(?P<data>\d+\.\d+)s?\s*\("
)
_STEP_MM = LazyRegex(r"\btime: (?P<step>\d+\.\d+),? +(?:loss: \S+,? +)?data_time: (?P<data>\d+\.\d+)")


def step_time(text: str) -> Iterator[StepTime]:
    """A progress line that tells the time of a step and the part that waited for data.

    >>> fact = next(step_time("Epoch: [0][10/5005]\\tTime 22.424 (7.498)\\tData 22.372 (7.070)\\tLoss 6.9"))
    >>> round(fact.share, 3)
    0.998
    """
    line = text.partition("\n")[0]
    found = _STEP.search(line) or _STEP_MM.search(line)
    if not found:
        raise NotThisFormat
    step, data = float(found["step"]), float(found["data"])
    yield StepTime(step=step, data=data, share=data / step if step else None)


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


_GOVERNORS = r"powersave|conservative|ondemand|performance|schedutil"
_GOVERNOR = LazyRegex(rf'The governor "(?P<said>\w+)" may decide|/scaling_governor(?::(?P<behind>{_GOVERNORS})\s*$|\b)')


def governor(text: str) -> Iterator[Cpu]:
    r"""The frequency governor, as `cpupower frequency-info` says it or a `cat` or `grep -H .` of its file shows it.

    >>> next(governor("$ cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor\npowersave")).governor
    'powersave'
    >>> next(governor("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor:ondemand")).governor
    'ondemand'
    """
    lines = text.split("\n")
    found = _GOVERNOR.search(lines[0])
    if not found:
        raise NotThisFormat
    if said := found["said"] or found["behind"]:
        yield Cpu(governor=said)
    elif len(lines) > 1 and (name := re.match(rf"\s*(?:\d+ )?({_GOVERNORS})\s*$", lines[1])):
        yield Cpu(governor=name[1], at=1)
    else:
        raise NotThisFormat


_OF_DRIVER = LazyRegex(r"\[?(?:nvidia|nv_|nv-)")
_LSTART = 5  # words of a start time as `lstart` prints it; as `start` it is one


def ps(text: str) -> Iterator[Process]:
    """What `ps aux` and its kind show of processes that have ended or hang in the driver.

    One program of the driver in state D may just be at work, so it takes two. The table is no proof that another process is gone:
    bundles ask nvidia-smi at another moment.

    >>> rows = "root 7 0.0 0.0 9 9 ? D Jun01 0:00 nvidia-smi -q\\nroot 8 0.0 0.0 9 9 ? Ds 05:44 0:00 /usr/bin/nvidia-smi"
    >>> [(p.pid, p.name, p.state) for p in ps("USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND\\n" + rows)]
    [(7, 'nvidia-smi', 'D'), (8, 'nvidia-smi', 'D')]
    """
    lines = text.split("\n")
    columns = lines[0].split()
    state = next((name for name in ("STAT", "S") if name in columns), None)
    if state is None or "PID" not in columns or columns[-1] not in ("COMMAND", "CMD"):
        raise NotThisFormat
    if "STARTED" in columns:
        at = columns.index("STARTED")
        columns[at : at + 1] = [f"STARTED{word}" for word in range(_LSTART)]
    ended: list[Process] = []
    stuck: list[Process] = []
    for number, line in enumerate(lines[1:], start=1):
        values = line.split(None, len(columns) - 1)
        if len(values) < len(columns):
            break
        row = dict(zip(columns, values, strict=True))
        letter = row[state][0]
        if not row["PID"].isdigit() and row["PID"] != "-":  # the next table
            break
        if letter not in "DZX" or row["PID"] == "-":
            continue
        name = row[columns[-1]].split()[0].rpartition("/")[2]
        wchan = row.get("WCHAN", "-")
        process = Process(at=number, pid=int(row["PID"]), name=name, state=letter, user=row.get("USER"), wchan=None if wchan == "-" else wchan)  # fmt: skip
        if letter != "D":
            ended.append(process)
        elif _OF_DRIVER.match(name):
            stuck.append(process)
    yield from ended
    if len({process.pid for process in stuck}) > 1:
        yield from stuck


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


_AFFINITY = LazyRegex(
    r"pid (?P<pid>\d+)'s (?:current|new) affinity list: (?P<list>[\d,-]+)|^Cpus_allowed_list:\s*(?P<allowed>[\d,-]+)\s*$"
)
_NODE_CPUS = LazyRegex(r"^\s*NUMA node(?P<node>\d+) CPU\(s\):\s*(?P<cpus>[\d,-]+)\s*$")


def affinity(text: str) -> Iterator[Numa]:
    """The CPUs that a process may use, as taskset or /proc/PID/status tells them.

    >>> next(affinity("pid 4112's current affinity list: 32-63,96-127")).cpus
    '32-63,96-127'
    """
    found = _AFFINITY.search(text.partition("\n")[0])
    if not found:
        raise NotThisFormat
    yield Numa(pid=int(found["pid"]) if found["pid"] else None, cpus=found["list"] or found["allowed"])


def node_cpus(text: str) -> Iterator[NumaNode]:
    """A NUMA node's CPUs in lscpu.

    >>> next(node_cpus("NUMA node1 CPU(s):                  16-31,48-63")).number
    1
    """
    found = _NODE_CPUS.match(text.partition("\n")[0])
    if not found:
        raise NotThisFormat
    yield NumaNode(number=int(found["node"]), cpus=found["cpus"])


def numactl_show(text: str) -> Iterator[Numa]:
    r"""`numactl --show` of a job.

    >>> fact = next(numactl_show("policy: bind\ncpubind: 1 \nnodebind: 1 \nmembind: 1 \n")); fact.cpu_nodes, fact.memory_nodes
    ('1', '1')
    """
    fields: dict[str, str] = {}
    last = 0
    for number, line in enumerate(text.split("\n")[:10]):
        key, _, value = line.partition(":")
        if key.strip() in ("cpubind", "membind", "nodebind"):
            fields[key.strip()] = value.strip()
            last = number
    if not fields:
        raise NotThisFormat
    yield Numa(cpu_nodes=fields.get("nodebind") or fields.get("cpubind"), memory_nodes=fields.get("membind"), at=last)


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
    Format("/proc/meminfo", ("MemTotal:  ", "CmaTotal:  "), meminfo, lines=70, answers=("host_memory",)),
    Format(
        "free",
        ("total        used        free", "total       used       free"),
        free,
        lines=5,
        answers=("host_memory",),
    ),
    Format(
        "df",
        ("Mounted on", "Montado en", "Mont\u00e9 sur", "Eingeh\u00e4ngt auf"),
        df,
        lines=200,
        answers=("file_system",),
    ),
    Format("ulimit -a", ("(blocks, -c)", "(-n) ", "(kbytes, -l)"), ulimit, lines=30),
    Format("ulimit", ("ulimit -",), ulimit_one, lines=2),
    Format("/proc/PID/limits", ("Max cpu time", "Max open files ", "Max locked memory "), proc_limits, lines=20),
    Format("/proc/pressure", ("pressure/", "pressure."), pressure, lines=5),
    Format("Secure Boot", ("SecureBoot ", "ecure boot "), secure_boot, lines=1),
    Format("lockdown", ("integrity",), lockdown, lines=1),
    Format("systemctl is-active", ("systemctl is-active",), systemctl_is_active, lines=2),
    Format("systemctl status", (".service - ",), systemctl_status, lines=16, answers=("service",)),
    Format("/dev/nvidia*", ("/dev/nvidia", " nvidia0", " nvidiactl"), device_nodes, lines=40),
    Format("device node missing", ("/dev/nvidia",), device_node_absent, lines=1),
    Format("ls /dev | grep", ("/dev | grep", "/dev |grep", "/dev/ | grep", "/dev/ |grep"), device_nodes_grep, lines=2),
    Format("CPU affinity", ("affinity list: ", "Cpus_allowed_list:"), affinity, lines=1),
    Format("NUMA node", ("NUMA node",), node_cpus, lines=1),
    Format(
        "systemctl list-units",
        ("LOAD   ACTIVE SUB", "LOAD      ACTIVE   SUB", "LOAD  ACTIVE SUB"),
        systemctl_list,
        lines=5_000,
    ),
    Format("ps", ("PID %CPU %MEM", "ADDR    SZ WCHAN", "ADDR SZ WCHAN", "WCHAN  STAT TTY"), ps, lines=200_000),
    Format("/proc/driver/nvidia/params", ("ResmanDebugLevel: ",), driver_params, lines=200),
    Format("CPU governor", ("scaling_governor", 'The governor "'), governor, lines=2),
    Format("stuck process", (" D ", " D+ ", " Ds ", " Dl ", " DN "), stuck_process, lines=1),
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
    Format("link speed", ("Link is Up", "Link is up", "Link up"), link_up, lines=1),
    Format("step time", ("\tData ", ") Data ", "data_time: "), step_time, lines=1),
    Format(
        "modprobe.d",
        ("options nvidia", "blacklist n", "options vfio", "install nouveau", "install nvidia"),
        modprobe_options,
        lines=1,
    ),
    Format("numactl --show", ("membind:",), numactl_show, lines=10, back=5),
)
