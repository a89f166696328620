"""What several facts say together about memory: why a GPU ran out of it, who holds it, whether it grows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from msgspec.structs import replace

from gpudoctor.facts.base import Fact
from gpudoctor.facts.gpu import Gpu, GpuProcess
from gpudoctor.facts.host import HostMemory
from gpudoctor.facts.memory import GpuMemoryUse, GpuOom, GpuOrphan, HostOomKill, HostRatio
from gpudoctor.facts.store import FactStore
from gpudoctor.parsers.memuse import growth

CONTEXT = 800.0  # MiB of a context with its libraries, on the generous side
FRAGMENTED = 0.08  # of the card: "about a tenth", rounded down for what the driver keeps of it
OTHERS = 0.12  # of the card: a desktop and the driver's own share stay below
_LEAST_OTHERS = 1200.0  # MiB
_PLENTY = 0.3  # of the card free: then a missing handle is not a matter of memory
_IDLE_SHARE, _IDLE = 0.08, 1500.0  # what an idle GPU may have in use without an owner (driver, ECC, firmware)
_SNAPSHOTS = 4  # pictures of one GPU or process that make a series
_WHOLE_TABLE = 20  # a list of fewer processes than this is a part of the host's
_NEAR = 150  # lines of a kernel log that one OOM event takes

F = TypeVar("F", bound=Fact)


def explain_memory(store: FactStore) -> Iterable[Fact]:
    """Judge every failed allocation and OOM kill; add orphans, series and ratios."""
    smi = _of(store, "gpu", Gpu)
    processes = _of(store, "gpu_process", GpuProcess)
    _liveness(store, processes)
    ooms = _of(store, "gpu_oom", GpuOom)
    _take_statistics(ooms)
    for oom in ooms:
        _join_processes(oom, processes, smi)
        oom.shortage = judge(oom)
        oom.account = account(oom)
    _shares(_of(store, "host_memory", HostMemory), smi)
    _settle_scopes(_of(store, "host_oom_kill", HostOomKill))
    yield from _orphans(store, smi)
    yield from _series(smi, processes, _of(store, "gpu_memory_use", GpuMemoryUse))
    yield from _host_ratio(_of(store, "host_memory", HostMemory), smi)


def _of(store: FactStore, kind: str, type_: type[F]) -> list[F]:
    return [fact for fact in store.of(kind) if isinstance(fact, type_)]


def judge(oom: GpuOom) -> str:
    """Say which kind of shortage the numbers show.

    >>> judge(GpuOom(framework="pytorch", requested=2048, total=24576, free=100, allocated=14000, reserved_unallocated=9000))
    'fragmentation'
    >>> judge(GpuOom(framework="pytorch", requested=90, total=8192, free=0, allocated=7301, reserved_unallocated=127))
    'too_big'
    >>> judge(GpuOom(framework="pytorch", requested=64, total=24576, free=10, allocated=900, others=22000, process=1500))
    'others'
    """
    if oom.what in ("statistics", "session", "pinned"):
        return oom.what
    room = oom.limit or oom.total
    if oom.what == "handle":
        if oom.free is not None and oom.total and oom.free / oom.total > _PLENTY:
            return "not_memory"
        return "preallocation" if oom.framework in ("tensorflow", "jax") else "unknown"
    if oom.holders is None and oom.others is None and oom.what in ("context", "pool"):
        return "others" if oom.what == "context" else "preallocation"
    requested = oom.requested or 0.0
    if room and requested > room:
        return "too_big"
    slack = oom.reserved_unallocated
    if slack is not None and room and requested and slack >= requested and slack / room >= FRAGMENTED:
        return "fragmentation"
    others = oom.others or 0.0
    if oom.total and others >= max(_LEAST_OTHERS, OTHERS * oom.total):
        own = oom.process if oom.process is not None else (oom.allocated or 0.0) + (slack or 0.0) + CONTEXT
        if own + requested <= oom.total:
            return "others"
        return "too_big"
    if oom.holders and oom.total is None:
        return "others"
    if room and requested >= 0.02 * room and slack is not None and slack + (oom.free or 0.0) >= requested:
        return "tight"
    known = oom.total is not None and (oom.allocated is not None or oom.process is not None)
    return "too_big" if known or (oom.limit and oom.allocated is not None) else "unknown"


def account(oom: GpuOom) -> str | None:
    """Put the numbers that are known into one clause.

    >>> account(GpuOom(framework="pytorch", requested=90, total=8192, free=0, allocated=7301, reserved_unallocated=127))
    'asked for 90 MiB; free 0 MiB of 8.00 GiB; in live tensors 7.13 GiB; cached but unused 127 MiB'
    """
    parts = []
    if oom.requested is not None:
        parts.append(f"asked for {_size(oom.requested)}")
    if oom.free is not None and oom.total is not None:
        parts.append(f"free {_size(oom.free)} of {_size(oom.total)}")
    elif oom.free is not None:
        parts.append(f"free {_size(oom.free)}")
    elif oom.total is not None:
        parts.append(f"the GPU has {_size(oom.total)}")
    if oom.limit is not None:
        parts.append(f"its pool may take {_size(oom.limit)}")
    if oom.process is not None:
        parts.append(f"this process holds {_size(oom.process)}")
    if oom.allocated is not None:
        parts.append(f"in live tensors {_size(oom.allocated)}")
    if oom.reserved_unallocated is not None:
        parts.append(f"cached but unused {_size(oom.reserved_unallocated)}")
    if oom.others is not None and oom.others >= _LEAST_OTHERS / 2:
        parts.append(f"held by others {_size(oom.others)}")
    return "; ".join(parts) or None


def _take_statistics(ooms: list[GpuOom]) -> None:
    """Give a BFC allocator's statistics to the failure that they were printed for."""
    for number, fact in enumerate(ooms):
        if fact.what != "statistics" or fact.where is None:
            continue
        for other in reversed(ooms[:number]):
            if other.where is None or other.where.source != fact.where.source:
                break
            if other.what == "tensor" and other.framework in ("tensorflow", "jax") and other.limit is None:
                other.limit, other.allocated = fact.limit, fact.allocated
                other.reserved_unallocated = fact.reserved_unallocated
                break


def _join_processes(oom: GpuOom, processes: list[GpuProcess], gpus: list[Gpu]) -> None:
    """Name the other processes of nvidia-smi's list where the message itself doesn't tell."""
    if oom.what in ("statistics", "handle", "session", "pinned") or oom.holders is not None:
        return
    known = {gpu.gpu: gpu for gpu in gpus if gpu.gpu and gpu.memory_total}
    name = oom.gpu if oom.gpu in known else next(iter(known)) if len(known) == 1 and oom.gpu is None else None
    if name is None:
        return
    total = known[name].memory_total or 0.0
    own = oom.process or ((oom.reserved + CONTEXT / 2) if oom.reserved is not None else None)
    others: dict[int, GpuProcess] = {}
    for process in processes:
        if process.gpu != name or process.memory is None or process.pid is None or process.pid == oom.pid:
            continue
        if own is not None and oom.pid is None and abs(process.memory - own) <= max(CONTEXT, 0.1 * own):
            continue  # the process that failed and still lives
        others[process.pid] = process
    held = sum(process.memory or 0.0 for process in others.values())
    if held < max(_LEAST_OTHERS, OTHERS * total):
        return
    oom.gpu = name
    if oom.total is None:
        oom.total = total
    elif abs(oom.total - total) > 0.1 * total:
        return  # a MIG slice, or another GPU
    oom.others = held
    oom.others_share = round(held / total, 4)
    largest = sorted(others.values(), key=lambda process: -(process.memory or 0.0))[:6]
    oom.holders = ", ".join(
        f"process {p.pid}{f' {p.name}' if p.name else ''} ({_size(p.memory or 0.0)})" for p in largest
    )


def _liveness(store: FactStore, processes: list[GpuProcess]) -> None:
    """Tell which processes of the GPUs exist, where the host's whole list of processes was read."""
    table = {fact.value("pid") for fact in store.of("process")}
    if not store.probed("process") or len(table) < _WHOLE_TABLE or store.of("container"):
        return
    for process in processes:
        if process.alive is None and process.pid is not None:
            process.alive = process.pid in table


def _settle_scopes(kills: list[HostOomKill]) -> None:
    """Old kernels say in one line what was short and in another whom they killed: join them."""
    told = [kill for kill in kills if kill.scope != "unknown"]
    for kill in kills:
        if kill.scope != "unknown":
            continue
        match = next((other for other in told if kill.pid is not None and other.pid == kill.pid), None)
        if match is None:
            near = [other for other in told if _distance(kill, other) <= _NEAR]
            match = min(near, key=lambda other: _distance(kill, other), default=None)
        kill.scope = match.scope if match else "host"
        if match:
            kill.limit, kill.cgroup = match.limit, match.cgroup
            if match.killer != "kernel":
                kill.killer = match.killer


def _distance(one: Fact, other: Fact) -> int:
    if one.where is None or other.where is None or one.where.source != other.where.source:
        return _NEAR + 1
    return abs(one.where.line - other.where.line)


def _orphans(store: FactStore, gpus: list[Gpu]) -> Iterator[GpuOrphan]:
    """Find idle GPUs whose memory is in use though the list of processes, which was read, does not say by whom."""
    if not store.probed("gpu_process") or store.of("container"):
        return  # not listed, or a container, which doesn't see the processes of its host
    processes = _of(store, "gpu_process", GpuProcess)
    seen: set[str] = set()
    for gpu in gpus:
        used, total = gpu.memory_used, gpu.memory_total
        if gpu.gpu is None or gpu.gpu in seen or not used or not total or gpu.mig or gpu.utilization != 0:
            continue
        if any(name in (gpu.name or "") for name in ("GH200", "GB10", "GB200", "GB300")):
            continue  # memory that the host uses as its own counts there
        mine = [process for process in processes if process.gpu == gpu.gpu]
        if any(process.memory is None and process.alive is not False for process in mine):
            continue
        listed = sum(process.memory or 0.0 for process in mine if process.alive is not False)
        if used - listed < max(_IDLE, _IDLE_SHARE * total):
            continue
        seen.add(gpu.gpu)
        yield GpuOrphan(used=used - listed, total=total, listed=listed, gpu=gpu.gpu, where=gpu.where, time=gpu.time)


def _series(gpus: list[Gpu], processes: list[GpuProcess], logged: list[GpuMemoryUse]) -> Iterator[GpuMemoryUse]:
    """Join what monitors and logs sampled: repeated nvidia-smi output, and long logs that were read in blocks."""
    by_gpu: dict[tuple[str, str], list[Gpu]] = {}
    for gpu in gpus:
        if gpu.gpu and gpu.memory_used is not None and gpu.where is not None:
            by_gpu.setdefault((gpu.gpu, gpu.where.source), []).append(gpu)
    for (name, _), samples in by_gpu.items():
        use = growth("memory in use", [sample.memory_used or 0.0 for sample in samples], fewest=_SNAPSHOTS)
        if use.growing:
            yield replace(use, gpu=name, where=samples[-1].where)
    by_process: dict[tuple[int, str | None], list[GpuProcess]] = {}
    for process in processes:
        if process.pid is not None and process.memory:
            by_process.setdefault((process.pid, process.gpu), []).append(process)
    for (pid, gpu_name), snapshots in by_process.items():
        use = growth(f"of process {pid}", [shot.memory or 0.0 for shot in snapshots], fewest=_SNAPSHOTS)
        if use.growing:
            yield replace(use, gpu=gpu_name, where=snapshots[-1].where)
    blocks: dict[tuple[str, str], list[GpuMemoryUse]] = {}
    for block in logged:
        if block.where is not None:
            blocks.setdefault((block.label, block.where.source), []).append(block)
    for (label, _), parts in blocks.items():
        if len(parts) > 2:
            use = growth(label, [value for part in parts for value in (part.first, part.last)])
            if use.growing:
                yield replace(use, where=parts[-1].where)


def _shares(memory: list[HostMemory], gpus: list[Gpu]) -> None:
    for fact in memory:
        if fact.total and fact.available is not None:
            fact.available_share = round(fact.available / fact.total, 4)
        if fact.swap_total and fact.swap_used is not None:
            fact.swap_share = round(fact.swap_used / fact.swap_total, 4)
    for gpu in gpus:
        if gpu.bar1_total and gpu.bar1_used is not None:
            gpu.bar1_share = round(gpu.bar1_used / gpu.bar1_total, 4)


def _host_ratio(memory: list[HostMemory], gpus: list[Gpu]) -> Iterator[HostRatio]:
    host = max((fact for fact in memory if fact.total), key=lambda fact: fact.total or 0.0, default=None)
    sizes = {gpu.gpu: gpu.memory_total for gpu in gpus if gpu.gpu and gpu.memory_total}
    if host is None or host.total is None or not sizes:
        return
    together = sum(size or 0.0 for size in sizes.values())
    yield HostRatio(
        host=host.total,
        gpus=together,
        number=len(sizes),
        ratio=round(host.total / together, 3),
        where=host.where_fields.get("total") or host.where,
    )


def _size(mib: float) -> str:
    return f"{mib / 1024:.2f} GiB" if mib >= 1024 else f"{mib:.0f} MiB"
