"""NCCL debug logs, and what torch.distributed says when a collective does not end.

Every line is read on its own and equal facts are folded, so that the logs of a thousand ranks stay small.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from gpudoctor.facts.base import Fact
from gpudoctor.facts.comms import CollectiveTimeout, NcclChoice, NcclConnection, NcclProcess, NcclRank, NcclWarning
from gpudoctor.parsers.base import Format, NotThisFormat, Parser
from gpudoctor.patterns.address import nccl_bus
from gpudoctor.patterns.lazy import LazyRegex

# Launchers put their own prefix before it; old releases and cut lines lack host and pid.
_HEAD = LazyRegex(r"(?P<host>[\w.-]*):(?P<pid>\d{1,8}):\d{1,8} \[(?P<device>\d{1,3})\]")
_INIT = LazyRegex(
    r"\brank (?P<rank>\d{1,6}) nranks (?P<ranks>\d{1,6})"
    r"(?: cudaDev (?P<device>\d+))?(?: nvmlDev (?P<nvml>-?\d+))?(?: busId (?P<bus>[0-9a-fA-F]+))?"
    r"(?P<rest>.{0,80})"
)
_VERSION = LazyRegex(r"NCCL version (?P<version>\d+\.\d+(?:\.\d+)?)(?:\.\d+)?(?:\+cuda(?P<cuda>\d+\.\d+))?")
_NETWORK = LazyRegex(r"Using network (?P<network>[^\r\n]{1,40})")
_BOOTSTRAP = LazyRegex(r"Bootstrap ?: Using (?:\[0\])?(?P<interface>[^\s:]+):(?P<address>[^\s<]+)<")
_ADAPTER = LazyRegex(r"\[\d+\](?:\{\d+\} )?[\w.+-]+:\d+/(?P<layer>IB|RoCE)")
_CHANNEL = LazyRegex(
    r"(?:Channel|Ring) \d+(?:/\d+)? : (?P<a>\d+)(?:\[[0-9a-fA-F]+\])? -> (?P<b>\d+)(?:\[[0-9a-fA-F]+\])?"
    r"(?: \[(?:send|receive)\])? via (?P<via>[\w./()+ -]{2,60})"
)
_RING = LazyRegex(r"Channel 00(?:/\d+)? :(?P<ranks>(?:\s+\d{1,6}){2,64})")
_CHANNELS = LazyRegex(r"INFO (?P<channels>\d+ coll channels(?:, \d+ (?:collnet|nvls|p2p) channels){1,3})")
_TUNER = LazyRegex(r"TUNER/Plugin: Using (?:tuner plugin )?(?P<name>[\w.-]{1,60})")
_ALGORITHM = LazyRegex(r"(?P<collective>[A-Za-z]{4,20}): \d+ Bytes -> Algo (?P<algorithm>\w+) proto (?P<protocol>\w+)")
# The root of the first tree has nobody above it, on whichever side the release prints that.
_ROOT = LazyRegex(
    r"Trees \[0\] (?P<below>-?\d+(?:/-?\d+){0,2})->(?P<rank>\d+)->-1(?![\d/])"
    r"|(?:Trees \[0\] -1->|Tree 0 : -1 -> )(?P<root>\d+) ?-> ?(?P<under>-?\d+(?:/-?\d+){0,2})"
)
_NVLS = LazyRegex(r"NVLS multicast support is (?P<said>(?:not )?available)")
# Releases up to 2.21 print numbers.
_ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE")
_PROTOCOLS = ("LL", "LL128", "SIMPLE")
_WARN = LazyRegex(r"(?:(?P<position>[\w./+-]+\.\w+:\d+) )?(?:\([^()]{1,80}\) )?NCCL WARN (?P<message>.*)")

# How the message about the optional network plugin reads in the releases; ranks of one release word it alike.
_ERAS = (
    ("up to 2.15", LazyRegex(r"NET/Plugin : No plugin found \(libnccl-net\.so\)")),
    ("2.16 to 2.18", LazyRegex(r"NET/Plugin : (?:Plugin load \(libnccl-net\.so\) returned|No plugin found, using)")),
    ("2.19 to 2.20", LazyRegex(r"NET/Plugin : dlerror=")),
    ("2.21", LazyRegex(r"NET/Plugin: (?:No plugin found|Plugin load returned)")),
    ("2.22 or newer", LazyRegex(r"NET/Plugin: Could not find: ")),
)


def _line(text: str) -> str:
    return text.partition("\n")[0][:4000]


def _head(line: str) -> tuple[str | None, int | None, int | None]:
    found = _HEAD.search(line)
    if not found:
        return None, None, None
    return found["host"] or None, int(found["pid"]), int(found["device"])


def communicator(text: str) -> Iterator[Fact]:
    """A line of a communicator that begins or has ended its initialisation.

    >>> line = "n1:30:31 [0] NCCL INFO comm 0x5 rank 3 nranks 8 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x2 - Init START"
    >>> fact = next(communicator(line))
    >>> fact.host, fact.rank, fact.ranks, fact.pci, fact.init_complete
    ('n1', 3, 8, '0000:1b:00.0', False)
    """
    line = _line(text)
    found = _INIT.search(line)
    if not found:
        raise NotThisFormat
    rest = found["rest"]
    complete = "COMPLETE" in rest and "Init" in rest
    if not complete and "START" not in rest:
        raise NotThisFormat
    host, pid, device = _head(line)
    pci = nccl_bus(found["bus"]) if found["bus"] else None
    yield NcclRank(
        rank=int(found["rank"]),
        ranks=int(found["ranks"]),
        host=host,
        pid=pid,
        device=int(found["device"]) if found["device"] else device,
        pci=pci,
        init_complete=complete,
    )


def version(text: str) -> Iterator[Fact]:
    """The version that a process (or, in old releases, rank 0 alone) prints.

    >>> fact = next(version("node01:21488:21488 [0] NCCL INFO NCCL version 2.22.3+cuda12.4"))
    >>> fact.host, fact.version, fact.cuda
    ('node01', '2.22.3', '12.4')
    """
    line = _line(text)
    found = _VERSION.search(line)
    if not found:
        raise NotThisFormat
    host, pid, device = _head(line)
    yield NcclProcess(host=host, pid=pid, device=device, version=found["version"], cuda=found["cuda"])


def network(text: str) -> Iterator[Fact]:
    """Which interface and network a process chose.

    >>> sample = "n1:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:192.0.2.1<0>"
    >>> fact = next(network(sample))
    >>> fact.nics, fact.link_layer
    (2, 'roce')
    >>> next(network("n1:1:2 [0] NCCL INFO Bootstrap: Using eth0:192.0.2.1<0>")).interface
    'eth0'
    """
    line = _line(text)
    host, pid, device = _head(line)
    if found := _NETWORK.search(line):
        yield NcclProcess(host=host, pid=pid, device=device, network=found["network"].strip())
    elif found := _BOOTSTRAP.search(line):
        yield NcclProcess(host=host, pid=pid, device=device, interface=found["interface"], address=found["address"])
    elif "NET/IB" in line:
        layers = _ADAPTER.findall(line)
        if not layers:
            raise NotThisFormat
        yield NcclProcess(
            host=host, pid=pid, device=device, nics=len(layers), link_layer="roce" if "RoCE" in layers else "ib"
        )
    else:
        raise NotThisFormat


def plugin_wording(text: str) -> Iterator[Fact]:
    """The message about the optional plugin: harmless by itself, but its wording tells the release.

    >>> next(plugin_wording("n2:9:9 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal")).era
    '2.22 or newer'
    """
    line = _line(text)
    era = next((name for name, pattern in _ERAS if pattern.search(line)), None)
    if era is None:
        raise NotThisFormat
    host, pid, device = _head(line)
    yield NcclProcess(host=host, pid=pid, device=device, era=era)


def connection(text: str) -> Iterator[Fact]:
    """How two ranks reach each other, from the first channel's lines; and its ring.

    >>> fact = next(connection("n1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/2/GDRDMA"))
    >>> fact.a, fact.b, fact.via, fact.gdr
    (0, 8, 'NET/IB', True)
    >>> next(connection("n1:1:2 [0] NCCL INFO Channel 00 : 0[1b000] -> 1[1c000] via SHM/direct/direct")).via
    'SHM'
    >>> next(connection("n1:1:2 [0] NCCL INFO Ring 00 : 3 -> 0 [receive] via NET/IB/0/GDRDMA")).gdr
    True
    >>> next(connection("n1:1:2 [0] NCCL INFO Channel 00/16 :    0   3   2   1")).chosen
    '0 3 2 1'
    """
    line = _line(text)
    found = _CHANNEL.search(line)
    if not found and (ring := _RING.search(line)):
        yield NcclChoice(what="ring", chosen=" ".join(ring["ranks"].split()))
        return
    if not found:
        raise NotThisFormat
    parts = found["via"].strip().split("/")
    via = "/".join(parts[:2]) if parts[0] == "NET" else parts[0]
    yield NcclConnection(
        a=int(found["a"]), b=int(found["b"]), via=via, gdr="GDRDMA" in parts if parts[0] == "NET" else None
    )


def choice(text: str) -> Iterator[Fact]:
    """How many channels of each kind there are, the tuner and what it chooses, the first tree's root, and NVLink SHARP.

    >>> line = "n1:1:2 [0] NCCL INFO 24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per peer"
    >>> next(choice(line)).chosen
    '24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels'
    >>> next(choice("n1:1:2 [0] NCCL INFO Trees [0] 1/4/-1->0->-1 [1] 1/-1/-1->0->4")).chosen
    '0, then 1 and 4'
    >>> next(choice("n1:1:2 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1|-1->0->1/-1/-1 [1] -1/-1/-1->0->1|1->0->-1/-1/-1")).chosen
    '0, then 1'
    >>> next(choice("n1:1:2 [0] NCCL INFO Trees [0] -1->2->3/-1/-1 [1] 1->2->3/-1/-1")).chosen
    '2, then 3'
    >>> next(choice("n1:1:2 [0] NCCL INFO AllReduce: 8388608 Bytes -> Algo 1 proto 2 time 131.9")).chosen
    'AllReduce by RING, SIMPLE'
    """
    line = _line(text)
    if found := _CHANNELS.search(line):
        yield NcclChoice(what="channels", chosen=found["channels"])
    elif found := _TUNER.search(line):
        yield NcclChoice(what="tuner", chosen=found["name"])
    elif found := _ALGORITHM.search(line):
        algorithm, protocol = _named(found["algorithm"], _ALGORITHMS), _named(found["protocol"], _PROTOCOLS)
        yield NcclChoice(what="algorithm", chosen=f"{found['collective']} by {algorithm}, {protocol}")
    elif found := _ROOT.search(line):
        below = [rank for rank in (found["below"] or found["under"]).split("/") if rank != "-1"]
        yield NcclChoice(
            what="tree", chosen=f"{found['rank'] or found['root']}, then {' and '.join(below) or 'nobody'}"
        )
    elif found := _NVLS.search(line):
        yield NcclChoice(what="nvls", chosen=found["said"])
    else:
        raise NotThisFormat


def _named(word: str, names: tuple[str, ...]) -> str:
    return names[int(word)] if word.isdigit() and int(word) < len(names) else word


def warning(text: str) -> Iterator[Fact]:
    """A warning with the place in the source where it was raised.

    >>> fact = next(warning("n1:1:2 [3] misc/socket.cc:480 NCCL WARN Connect to 192.0.2.1<38007> failed"))
    >>> fact.position, fact.message, fact.device
    ('misc/socket.cc:480', 'Connect to 192.0.2.1<38007> failed', 3)
    """
    line = _line(text)
    found = _WARN.search(line)
    if not found:
        raise NotThisFormat
    host, _, device = _head(line)
    yield NcclWarning(message=found["message"].strip()[:300], position=found["position"], host=host, device=device)


_WORK = LazyRegex(
    r"WorkNCCL\((?P<inside>[^()]*(?:\([^()]*\)[^()]*)*)\) (?:ran for (?P<elapsed>\d+) milliseconds|timed out in blocking wait)"
)
_ITEM = LazyRegex(r"(?P<name>SeqNum|OpType|NumelIn|TensorShape|Timeout\(ms\))=(?P<value>\[[^\]]*\]|[^,()]+)")
_RANK = LazyRegex(r"(?i)\brank ?(?P<rank>\d{1,6})\]")
_GROUP = LazyRegex(r"\[PG (?:ID )?(?P<group>[^\]]{0,60}?),? ?Rank (?P<rank>\d+)\]")
_PROGRESS = LazyRegex(
    r"[Ll]ast enqueued NCCL work: (?P<enqueued>-?\d+), last completed NCCL work: (?P<completed>-?\d+)"
)


def _elements(text: str | None) -> int | None:
    """Number of elements, also from a shape such as [1024, 8]; long shapes are cut by nobody, but stay bounded."""
    if text is None:
        return None
    numbers = re.findall(r"\d{1,15}", text)[:8]
    total = 1
    for number in numbers:
        total *= int(number)
    return total if numbers else None


def watchdog(text: str) -> Iterator[Fact]:
    """A collective that the watchdog of torch.distributed gave up on, in all its wordings.

    >>> line = ("[rank3]:[E ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: "
    ...         "WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=600000) "
    ...         "ran for 600060 milliseconds before timing out.")
    >>> fact = next(watchdog(line))
    >>> fact.rank, fact.sequence, fact.operation, fact.elements, fact.timeout_ms
    (3, 1580, 'ALLREDUCE', 64, 600000)
    """
    line = _line(text)
    work, progress = _WORK.search(line), _PROGRESS.search(line)
    if not work and not progress:
        raise NotThisFormat
    group = _GROUP.search(line)
    # A launcher's prefix names the same rank as the message; the message's own comes last.
    ranks = [found["rank"] for found in _RANK.finditer(line[: work.start() if work else None])]
    rank = int(group["rank"]) if group else int(ranks[-1]) if ranks else None
    name = group["group"].strip() or None if group else None
    if work:
        items = {found["name"]: found["value"] for found in _ITEM.finditer(work["inside"])}
        timeout = int(items["Timeout(ms)"]) if items.get("Timeout(ms)", "").isdigit() else None
        yield CollectiveTimeout(
            rank=rank,
            group=name,
            sequence=int(items["SeqNum"]) if items.get("SeqNum", "").isdigit() else None,
            operation=items.get("OpType"),
            elements=_elements(items.get("NumelIn") or items.get("TensorShape")),
            timeout_ms=timeout,
            elapsed_ms=int(work["elapsed"]) if work["elapsed"] else timeout,  # a blocking wait lasts the timeout
        )
    elif progress:
        yield CollectiveTimeout(
            rank=rank,
            group=name,
            last_enqueued=int(progress["enqueued"]),
            last_completed=int(progress["completed"]),
        )


# Jobs have thousands of ranks, and each may be the one that matters.
_RANKS = 20_000

# A job's ranks print the same lines for each of their communicators. Threads and communicator ids differ, and don't matter.
_PROCESS_MESSAGE = re.compile(rb"([\w.-]*:\d{1,8}):\d{1,8}( \[\d{1,3}\] .*)", re.DOTALL)
_INIT_MESSAGE = re.compile(rb"([\w.-]*:\d{1,8}):\d{1,8} .*?(rank \d.*?)(?:commId \w+ )?(- Init|Init COMPLETE)")
_VIA_MESSAGE = re.compile(rb" via (?:NET/[\w-]+|\w+)")


def _process_message(line: bytes) -> bytes:
    found = _PROCESS_MESSAGE.search(line)
    return found[1] + found[2] if found else line


def _init_message(line: bytes) -> bytes:
    found = _INIT_MESSAGE.search(line)
    return b"".join(found.groups()) + line[found.end() :] if found else line


_SIZED_MESSAGE = re.compile(rb": \d+ Bytes -> Algo (\w+ proto \w+)")


def _choice_message(line: bytes) -> bytes:
    """Ranks choose alike; who says it doesn't matter, nor for what size."""
    said = line.partition(b" INFO ")[2] or line
    found = _SIZED_MESSAGE.search(said)
    return said[: found.start()] + found[1] if found else said


def _via_message(line: bytes) -> bytes:
    """How, and whether with GPUDirect; the ranks don't matter: there are as many pairs as the job has."""
    found = _VIA_MESSAGE.search(line)
    return found[0] + (b" GDRDMA" if b"/GDRDMA" in line else b"") if found else line


def _single(
    name: str, anchors: tuple[str, ...], parse: Parser, message: Callable[[bytes], bytes] = _process_message
) -> Format:
    return Format(name, anchors, parse, lines=1, fold=True, keep=_RANKS, message=message)


FORMATS = (
    _single("NCCL communicator", ("- Init START", "Init COMPLETE"), communicator, _init_message),
    _single("NCCL version", ("NCCL version ",), version),
    _single(
        "NCCL network",
        ("Using network ", "NET/IB : Using [", "NET/IB: Using [", "Bootstrap : Using", "Bootstrap: Using"),
        network,
    ),
    _single(
        "NCCL plugin",
        (
            "NET/Plugin : No plugin",
            "NET/Plugin : Plugin load",
            "NET/Plugin : dlerror",
            "NET/Plugin: No plugin",
            "NET/Plugin: Plugin load",
            "NET/Plugin: Could not find",
        ),
        plugin_wording,
    ),
    _single("NCCL connection", ("INFO Channel 00", "INFO Ring 00"), connection, _via_message),
    _single(
        "NCCL choice",
        (
            " coll channels, ",
            "TUNER/Plugin: Using ",
            " Bytes -> Algo ",
            # only lines of the root of the first tree have these
            "->-1 [1] ",
            "->-1|-1->",
            "Trees [0] -1->",
            "INFO Tree 0 : -1 -> ",
            "NVLS multicast support is ",
        ),
        choice,
        _choice_message,
    ),
    _single("NCCL warning", ("NCCL WARN ",), warning),
    _single(
        "torch.distributed watchdog",
        ("milliseconds before timing out", "timed out in blocking wait", "ast enqueued NCCL work"),
        watchdog,
    ),
)
