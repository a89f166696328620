"""Processes that were ended for lack of host memory: by the kernel, a user-space daemon, Kubernetes, Slurm and others."""

from __future__ import annotations

from collections.abc import Iterator

from gpudoctor.facts.memory import HostOomKill
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex
from gpudoctor.patterns.stamp import parse_stamp
from gpudoctor.patterns.template import size_bytes

_KILL = LazyRegex(
    r"(?P<scope>Memory cgroup out of memory|Out of memory(?: \([\w ]+\))?|OOM killed)?:? ?"
    r"Kill(?:ed)? process (?P<pid>\d+),? (?:\(|\")?(?P<name>[^)\",]{1,64})"
)
_RSS = LazyRegex(r"\banon-rss:(\d+)kB")
_TOTAL_VM = LazyRegex(r"\btotal-vm:(\d+)kB")
_CONSTRAINT = LazyRegex(
    r"oom-kill:constraint=CONSTRAINT_(?P<constraint>\w+).*?(?:,oom_memcg=(?P<memcg>[^,\s]*))?"
    r"(?:,task_memcg=(?P<task_memcg>[^,\s]*))?,task=(?P<task>[^,]*),pid=(?P<pid>\d+)"
)
_LIMIT_OF = LazyRegex(r"Task in (?P<task>\S+) killed as a result of limit of (?P<memcg>\S+)")
_USAGE = LazyRegex(r"memory: usage (?P<usage>\d+)kB, limit (?P<limit>\d+)kB, failcnt (?P<failcnt>\d+)")
_STATS_FOR = LazyRegex(r"[Mm]emory cgroup stats for (?P<memcg>/[^\s:]*)")
_REAPED = LazyRegex(r"oom_reaper: (?:reaped|unable to reap) process (?:pid:)?(?P<pid>\d+) \((?P<name>[^)]{1,64})\)")
_INVOKED = LazyRegex(r"(?P<name>\S[^\[\]:]{0,40}) invoked oom-killer:")
_UNLIMITED = 2**52  # kB; what the kernel prints for no limit


def kernel_oom(text: str) -> Iterator[HostOomKill]:
    """The kernel's OOM killer, from 2.6 to 6.x, of the host and of a memory cgroup (v1 and v2).

    >>> fact = next(kernel_oom("[12.3] Out of memory: Killed process 4711 (python3) total-vm:99kB, anon-rss:62914560kB, file-rss:0kB"))
    >>> fact.process, fact.pid, fact.scope, fact.resident
    ('python3', 4711, 'host', 61440.0)
    >>> next(kernel_oom("memory: usage 131072kB, limit 131072kB, failcnt 15691")).account
    'usage reached the limit of 128 MiB, 15691 failures'
    """
    lines = text.split("\n")
    line = parse_stamp(lines[0]).message
    if found := _KILL.search(line):
        scope = found["scope"] or ""
        rss, virtual = _RSS.search(line), _TOTAL_VM.search(line)
        resident = int(rss[1]) / 1024 if rss else None
        account = f"it held {_size(resident)}" if resident else None
        if account and virtual and "cgroup" not in scope:
            account += " of memory"
        yield HostOomKill(
            pid=int(found["pid"]),
            process=found["name"].strip(),
            scope="cgroup" if "cgroup" in scope else "host" if scope.startswith("Out") else "unknown",
            resident=resident,
            account=account,
        )
    elif found := _CONSTRAINT.search(line):
        cgroup = found["constraint"] == "MEMCG"
        yield HostOomKill(
            pid=int(found["pid"]),
            process=found["task"],
            scope="cgroup" if cgroup else "host",
            cgroup=(found["memcg"] or found["task_memcg"]) if cgroup else None,
        )
    elif found := _LIMIT_OF.search(line):
        root = found["memcg"] == "/"
        yield HostOomKill(scope="host" if root else "cgroup", cgroup=None if root else found["memcg"])
    elif found := _USAGE.search(line):
        usage, limit, failures = (int(found[name]) for name in ("usage", "limit", "failcnt"))
        if not failures or usage < 0.98 * limit or limit >= _UNLIMITED:
            raise NotThisFormat
        group = next((stats["memcg"] for later in lines[:6] if (stats := _STATS_FOR.search(later))), None)
        size = _size(limit / 1024)
        yield HostOomKill(
            scope="cgroup",
            limit=limit / 1024,
            cgroup=group,
            account=f"usage reached the limit of {size}, {failures} failures",
        )
    elif found := _REAPED.search(line):
        yield HostOomKill(pid=int(found["pid"]), process=found["name"], scope="unknown")
    elif _INVOKED.search(line):
        yield HostOomKill(scope="unknown")
    else:
        raise NotThisFormat


_OOMD_UNIT = LazyRegex(
    r"systemd-oomd.{0,40}(?:Killed|Considered|Would kill) (?P<unit>\S+) due to (?P<why>memory (?:pressure|used).{0,240})"
)
_OOMD_COUNT = LazyRegex(r"(?P<unit>\S+): systemd-oomd killed (?P<number>\d+) process")
_EARLYOOM = LazyRegex(
    r"(?:earlyoom|nohang).{0,60}(?:[Ss]ending|[Kk]illing)\b.{0,20}?(?:(?P<signal>SIG\w+) )?(?:to )?process:? ?"
    r"(?P<pid>\d+)?(?: uid \d+)?,? ?\"?(?P<name>[^\",:]{1,64})?\"?.{0,60}"
)
_VMRSS = LazyRegex(r"VmRSS:? (?P<size>\d+) ?(?P<unit>[MK]i?B)")
_AVAILABLE = LazyRegex(r"mem avail: *(?P<free>\d+) of *(?P<total>\d+) Mi?B")
_NOHANG = LazyRegex(r"nohang.{0,40}(?:Sending|sending) SIG\w+ to the victim")


def daemon_oom(text: str) -> Iterator[HostOomKill]:
    """User-space OOM daemons: systemd-oomd, earlyoom, nohang.

    >>> fact = next(daemon_oom('node1 earlyoom[845]: sending SIGTERM to process 3226 uid 1000 "python3.13": oom_score 12, VmRSS 29931 MiB'))
    >>> fact.killer, fact.pid, fact.process, fact.resident
    ('earlyoom', 3226, 'python3.13', 29931.0)
    """
    line = text.split("\n", maxsplit=1)[0][:900]
    if found := _OOMD_UNIT.search(line):
        yield HostOomKill(killer="systemd-oomd", process=_unit(found["unit"]), account=found["why"].strip())
    elif found := _OOMD_COUNT.search(line):
        yield HostOomKill(
            killer="systemd-oomd", process=_unit(found["unit"]), account=f"{found['number']} processes of the unit"
        )
    elif found := _EARLYOOM.search(line):
        rss = _VMRSS.search(line)
        resident = None
        if rss:
            resident = float(rss["size"]) / (1024 if rss["unit"].startswith("K") else 1)
        yield HostOomKill(
            killer="nohang" if "nohang" in line else "earlyoom",
            pid=int(found["pid"]) if found["pid"] else None,
            process=(found["name"] or "").strip() or None,
            resident=resident,
            account=f"it held {_size(resident)}" if resident else None,
        )
    elif _NOHANG.search(line):
        yield HostOomKill(killer="nohang")
    else:
        raise NotThisFormat


def _unit(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path


_S = r"\d[\d.,]*\s*[KMGTkmgt]?i?[bB]?"
# scope, killer, pattern (groups: used, limit, total, process, pid, cgroup)
_OTHERS: tuple[tuple[str, str, LazyRegex], ...] = tuple(
    (scope, killer, LazyRegex(pattern))
    for scope, killer, pattern in (
        ("pod", "kubelet", r"\bOOMKilled\b(?!\"?'?\s*[:=]\s*(?:false|False|0\b|null))"),
        ("host", "kubelet", r"System OOM encountered, victim process: (?P<process>[^,]+), pid: (?P<pid>\d+)"),
        ("cgroup", "slurm", r"[Dd]etected \d+ oom[-_]kill event\(?s?\)? in (?P<cgroup>[Ss]tep(?:Id=| )\S+)"),
        ("cgroup", "slurm", r"[Ee]xceeded (?:job|step) memory limit"),
        ("cgroup", "slurm", rf"[Ee]xceeded (?:virtual )?memory limit \((?P<used>{_S}) > (?P<limit>{_S})\)"),
        ("cgroup", "slurm", r"(?:srun|slurmstepd): error: .{0,120}Out Of Memory"),
        ("cgroup", "slurm", r"\bOUT_OF_ME\w*\+?(?:\s*\|\s*|\s+)\d+:\d+|State=OUT_OF_MEMORY|^\s*\d\S*\s.{0,120}\bOUT_OF_ME\S*\s*$"),
        ("cgroup", "pbs", rf"PBS: job killed: (?:v?mem|pmem|pvmem) (?P<used>{_S}) exceeded limit (?P<limit>{_S})"),
        ("cgroup", "lsf", r"TERM_MEMLIMIT"),
        ("cgroup", "condor", rf"[Jj]ob has gone over (?:cgroup )?memory limit of (?P<limit>{_S})"),
        ("cgroup", "ecs", r"OutOfMemoryError: Container killed due to memory usage"),
        ("cgroup", "yarn", rf"running beyond (?:physical|virtual) memory limits\. Current usage: (?P<used>{_S}) of (?P<limit>{_S})"),
        ("cgroup", "systemd", r"Memory limit (?:of unit )?reached"),
        ("unknown", "kernel", r"[Aa] process of this unit has been killed by the OOM killer|Failed with result '(?:oom-kill|resources-oom)'"),
        ("host", "ray", rf"killed due to the node running low on memory(?:.{{0,200}}was (?P<used>{_S}) / (?P<total>{_S}))?"),
        ("host", "ray", r"Workers \(tasks / actors\) killed due to memory pressure \(OOM\)"),
        ("host", "notebook", r"[Yy]our (?:notebook|session) (?:tried to allocate more memory than is available|crashed after using all available RAM)"),
    )
)  # fmt: skip


def scheduler_oom(text: str) -> Iterator[HostOomKill]:
    """Container platforms and batch systems that report it.

    >>> next(scheduler_oom("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=88.batch. Some of your")).scope
    'cgroup'
    >>> next(scheduler_oom("      Reason:       OOMKilled")).scope
    'pod'
    """
    line = " ".join(text.split("\n")[:1])[:1200]
    for scope, killer, pattern in _OTHERS:
        found = pattern.search(line)
        if found is None:
            continue
        groups = found.groupdict()
        used, limit, total = (_mib(groups.get(name)) for name in ("used", "limit", "total"))
        account = None
        if used is not None and (limit or total):
            account = f"{_size(used)} in use of {_size(limit or total or 0)}"
        elif limit is not None:
            account = f"the limit was {_size(limit)}"
        yield HostOomKill(
            scope=scope,
            killer=killer,
            process=groups.get("process"),
            pid=int(groups["pid"]) if groups.get("pid") else None,
            limit=limit,
            total=total,
            cgroup=(groups.get("cgroup") or "").rstrip(".") or None,
            account=account,
        )
        return
    raise NotThisFormat


def _mib(text: str | None) -> float | None:
    if not text:
        return None
    try:
        return size_bytes(text.strip()) / 2**20
    except ValueError:
        return None


def _size(mib: float) -> str:
    return f"{mib / 1024:.1f} GiB" if mib >= 1024 else f"{mib:.0f} MiB"


FORMATS = (
    Format(
        "kernel OOM killer",
        (
            "Killed process",
            "Kill process",
            "oom-kill:constraint",
            "killed as a result of limit",
            "memory: usage",
            "oom_reaper:",
            "invoked oom-killer",
        ),
        kernel_oom,
        lines=7,
        fold=True,
    ),
    Format("OOM daemon", ("systemd-oomd", "earlyoom", "nohang"), daemon_oom, lines=1, fold=True),
    Format(
        "OOM kill of a container or job",
        (
            "OOMKilled",
            "System OOM encountered",
            "oom-kill event",
            "oom_kill event",
            "exceeded job memory limit",
            "exceeded step memory limit",
            "memory limit (",
            "Out Of Memory",
            "OUT_OF_ME",
            "PBS: job killed",
            "TERM_MEMLIMIT",
            "over memory limit",
            "over cgroup memory limit",
            "Container killed due to memory",
            "beyond physical memory",
            "beyond virtual memory",
            "killed by the OOM killer",
            "result 'oom-kill'",
            "node running low on memory",
            "killed due to memory pressure",
            "tried to allocate more memory than is available",
            "using all available RAM",
        ),
        scheduler_oom,
        lines=1,
        fold=True,
    ),
)
