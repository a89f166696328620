"""Processors: frequency governor, NUMA nodes, what a process is bound to."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudoctor.facts.host import (
    Cpu,
    Numa,
    NumaNode,
)
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex

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
    Format("CPU affinity", ("affinity list: ", "Cpus_allowed_list:"), affinity, lines=1),
    Format("NUMA node", ("NUMA node",), node_cpus, lines=1),
    Format("CPU governor", ("scaling_governor", 'The governor "'), governor, lines=2),
    Format("numactl --show", ("membind:",), numactl_show, lines=10, back=5),
)
