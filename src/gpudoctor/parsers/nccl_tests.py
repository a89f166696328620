"""Tables of nccl-tests: all versions, with launchers' prefixes, cut, without heading, as CSV, and the JSON report."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from gpudoctor.facts.base import Fact
from gpudoctor.facts.comms import NcclRank, NcclTest
from gpudoctor.parsers.base import Format, NotThisFormat, json_object
from gpudoctor.patterns.address import pci_address
from gpudoctor.patterns.lazy import LazyRegex

# Prefixes of mpirun --tag-output, srun -l, kubectl logs --prefix; some stand in the middle of a line.
_PREFIX = LazyRegex(
    r"\[\d{1,6}(?:,\d{1,6})?\](?:<std(?:out|err|diag)>:?)?(?=[\s#:\d])|^\s*\d{1,4}: (?=\s*[#\d])|^\[[\w./-]{1,120}\] ?(?=[#\s])"
)
_STATEMENT = LazyRegex(r"(?P<name>[a-z_]+_perf)(?:_mpi)?\b")
_HEADING = LazyRegex(
    r"nThread\s+(?P<threads>\d+)\s+nGpus\s+(?P<gpus>\d+)\s+minBytes\s+(?P<low>\d+)\s+maxBytes\s+(?P<high>\d+)"
)
_DEVICE = LazyRegex(
    r"#\s+Rank\s+(?P<rank>\d+)\s+(?:Group\s+\d+\s+)?(?:Pid\s+(?P<pid>\d+)\s+)?(?:on\s+(?P<host>\S+)|uses)\s+device\s+(?P<device>\d+)"
    r"\s+\[(?P<bus>[0-9a-fA-Fx:.]+)\]\s*(?P<name>[^\r\n]*)"
)
_ROW = LazyRegex(
    r"(?:^|[\s|>:\]])(?P<size>\d+)\s+(?P<count>\d+)\s+(?P<type>u?int\d+|u?char|float|double|half|bfloat16|f8e\w+|fp8\w*)"
    r"(?:\s+(?P<op>sum|prod|max|min|avg|mulsum|none|all))?(?:\s+(?P<root>-?\d+)(?=\s))?(?P<numbers>(?:\s+[-+\w./]+){3,16})"
    r"(?:\s+\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)?\s*$"
)
_TITLES = LazyRegex(r"#\s+(?:size\s+count|bytes\s+N)\b.*\balgbw\b")
_BOUNDS = LazyRegex(r"Out of bounds values\s*:\s*(?P<number>\d+)\s*(?P<verdict>OK|FAILED)?")
_AVERAGE = LazyRegex(r"Avg bus bandwidth\s*:\s*(?P<number>\d+(?:\.\d+)?(?:e[-+]\d+)?)")
_NUMBER = LazyRegex(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?$")

_ITERATIONS = 16  # columns of a table with a report of single iterations
FLAT_SPREAD = 1.15  # largest to smallest bandwidth of a curve without a ramp


class _Row(msgspec.Struct):
    at: int
    size: int
    busbw: float
    wrong: int | None


class _Table(msgspec.Struct):
    collective: str | None = None
    devices: list[NcclRank] = []
    rows: list[_Row] = []
    launches: int = 0
    titles: int = 0
    gpus: int | None = None
    processes: int | None = None  # of which the JSON report lists one device each
    bounds: int | None = None
    failed: bool = False
    average: float | None = None
    at: int = 0
    last: int = 0
    # where nobody tells the collective: how bus and algorithm bandwidth differ, and the columns for operation and root
    ratios: list[float] = []
    rooted: bool = False
    reduces: bool | None = None


def table(text: str) -> Iterator[Fact]:
    """One run of an nccl-tests program: the devices, then the table.

    >>> sample = '''# nThread 1 nGpus 2 minBytes 8388608 maxBytes 33554432 step: 2(factor) warmup iters: 5 iters: 20
    ... # Using devices
    ... #  Rank  0 Group  0 Pid   1849 on  gpu-17 device  0 [0x07] NVIDIA A100-SXM4-80GB
    ... #  Rank  1 Group  0 Pid   1849 on  gpu-17 device  1 [0x0b] NVIDIA A100-SXM4-80GB
    ... #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
    ... #        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
    ...      8388608       2097152     float     sum      -1    118.1   71.03   71.03      0    117.9   71.15   71.15      0
    ...     33554432       8388608     float     sum      -1    230.4  145.64  145.64      0    231.0  145.26  145.26      0
    ... # Out of bounds values : 0 OK
    ... # Avg bus bandwidth    : 108.27'''
    >>> *ranks, run = table(sample)
    >>> len(ranks), run.busbw_at_largest, run.busbw_average, run.wrong, run.nodes, run.gpu_name
    (2, 145.64, 108.27, 0, 1, 'NVIDIA A100-SXM4-80GB')
    """
    run = _Table()
    for number, raw in enumerate(text.split("\n")):
        line = _PREFIX.sub("", raw[:600]) if "[" in raw or ": " in raw[:8] else raw[:600]
        if run.rows and (_HEADING.search(line) or (_titled(line) and run.average is not None)):
            break
        if run.launches and _STATEMENT.search(line) and re.search(r"[$#>%] |mpirun|mpiexec|srun", line[:200]):
            break  # the next command
        if not _take(run, line, number):
            continue
        run.last = number
        if run.average is not None:
            break
    if not run.rows and not run.titles and not run.devices:
        raise NotThisFormat
    yield from run.devices
    if run.rows or run.titles or (run.launches > 1 and run.devices):
        yield _judged(run)


def _titled(line: str) -> bool:
    return _TITLES.search(line) is not None


def _take(run: _Table, line: str, number: int) -> bool:
    if found := _ROW.search(line):
        row = _row(found, number)
        if row is None:
            return False
        run.rows.append(row)
        _factor(run, found)
        return True
    if not run.collective and (found := _STATEMENT.search(line)):
        run.collective = found["name"].removesuffix("_perf")
    if found := _DEVICE.search(line):
        run.devices.append(_device(found, number))
    elif found := _HEADING.search(line):
        run.launches += 1
        run.gpus = int(found["gpus"]) * int(found["threads"])
    elif _titled(line):
        run.titles += 1
        run.at = number
    elif found := _BOUNDS.search(line):
        run.bounds, run.failed = int(found["number"]), found["verdict"] == "FAILED"
    elif found := _AVERAGE.search(line):
        run.average = float(found["number"])
    else:
        return False
    return True


def _row(found: re.Match[str], number: int) -> _Row | None:
    """Columns are time, algbw, busbw, wrong; once out of place, once in place; extra columns follow.

    A report of single iterations adds four columns (least, most, p99, variation) to each half.
    """
    words = found["numbers"].split()
    if found["root"] is not None and len(words) % 4 == 3:
        words = [found["root"], *words]  # an old table without root: what looked like it is the time
    columns = [_value(word) for word in words]
    best: float | None = None
    wrong: int | None = None
    for start in (0, 8 if len(columns) == _ITERATIONS else 4):
        part = columns[start : start + 4]
        if len(part) < 3 or part[2] is None:
            continue
        best = part[2] if best is None else max(best, part[2])
        if len(part) > 3 and part[3] is not None:
            # Old tables print the largest error there, such as 4e-07; a count is a whole number.
            errors = int(part[3]) if part[3] >= 1 else 0
            wrong = errors + (wrong or 0)
    return None if best is None else _Row(number, int(found["size"]), best, wrong)


def _factor(run: _Table, found: re.Match[str]) -> None:
    """Remember what tells one collective from another."""
    words = found["numbers"].split()
    algbw, busbw = (_value(word) for word in words[1:3])
    if found["op"]:
        run.reduces = found["op"] not in ("none", "all")
    run.rooted = run.rooted or bool(found["root"] and not found["root"].startswith("-"))
    if algbw and busbw and algbw >= 1 and len(words) % 4 != 3:
        run.ratios.append(busbw / algbw)


def _by_factor(ratios: list[float], rooted: bool, reduces: bool | None, ranks: int | None) -> str | None:
    """Tell the collective by the factor between its two bandwidths; all_gather and alltoall have the same.

    >>> _by_factor([1.75, 1.76], False, True, 8), _by_factor([0.874], False, False, 8), _by_factor([1.0], True, False, 8)
    ('all_reduce', 'all_gather or alltoall', 'broadcast')
    """
    if not ratios or reduces is None or not ranks or ranks < 2:
        return None
    ratio, part = sorted(ratios)[len(ratios) // 2], (ranks - 1) / ranks
    if reduces:
        kinds = {"reduce": 1.0} if rooted else {"all_reduce": 2 * part, "reduce_scatter": part}
    elif rooted:
        kinds = {"broadcast": 1.0, "gather or scatter": part}
    else:
        kinds = {"sendrecv": 1.0, "all_gather or alltoall": part}
    name, factor = min(kinds.items(), key=lambda kind: abs(kind[1] - ratio))
    return name if abs(factor - ratio) < 0.05 * factor else None


def _value(word: str) -> float | None:
    return float(word) if _NUMBER.match(word) else None


def _device(found: re.Match[str], number: int) -> NcclRank:
    return NcclRank(
        at=number,
        rank=int(found["rank"]),
        host=found["host"],
        pid=int(found["pid"]) if found["pid"] else None,
        device=int(found["device"]),
        pci=_bus(found["bus"]),
        gpu_name=found["name"].strip() or None,
        listed=True,
    )


def _bus(text: str) -> str:
    """Newer programs print domain, bus and device; older ones the bus alone."""
    try:
        return pci_address(text) if ":" in text else text.lower()
    except ValueError:
        return text.lower()


def _judged(run: _Table) -> NcclTest:
    rows = run.rows
    ranks = max((rank.rank for rank in run.devices), default=-1) + 1 or None
    hosts = {rank.host for rank in run.devices}
    whole = ranks is not None and len({rank.rank for rank in run.devices}) == ranks
    listed = len(run.devices)
    if run.processes and run.gpus:
        listed, whole = run.processes * run.gpus, True
        ranks = max(ranks or 0, listed)
    fact = NcclTest(
        at=run.at,
        at_fields={"complete": run.last},
        collective=run.collective or _by_factor(run.ratios, run.rooted, run.reduces, ranks),
        ranks=ranks if ranks is not None else run.gpus,
        nodes=len(hosts) if whole else None,
        gpus_per_node=listed // len(hosts) if whole and hosts else None,
        gpu_name=run.devices[-1].gpu_name if run.devices else None,
        rows=len(rows),
        complete=run.average is not None or run.bounds is not None,
        launches=run.launches or None,
        busbw_average=run.average,
        out_of_bounds=run.bounds,
    )
    if not run.devices and run.launches == 0:
        fact.ranks = None
    if rows:
        _curve(fact, rows)
    if run.failed and not fact.wrong:
        fact.wrong = run.bounds
    return fact


def _curve(fact: NcclTest, rows: list[_Row]) -> None:
    largest = max(rows, key=lambda row: row.size)
    peak = max(rows, key=lambda row: row.busbw)
    fact.at = largest.at
    fact.curve = sorted((row.size, row.busbw) for row in rows)
    fact.size_min, fact.size_max = min(row.size for row in rows), largest.size
    fact.busbw_at_largest, fact.busbw_peak, fact.size_peak = largest.busbw, peak.busbw, peak.size
    # The largest sizes are the plateau; a sweep's mean, or its small sizes, say nothing about the links.
    plateau = [row.busbw for row in rows if row.size * 4 >= largest.size]
    fact.busbw_max = max(plateau)
    counted = [row for row in rows if row.wrong is not None]
    if counted:
        fact.wrong = sum(row.wrong or 0 for row in counted)
        bad = [row for row in counted if row.wrong]
        if bad:
            fact.wrong_from = min(row.size for row in bad)
            fact.at = bad[0].at
    if len(rows) >= 3:
        low = min(row.busbw for row in rows)
        fact.flat = low > 0 and peak.busbw / low < FLAT_SPREAD
        larger = [row.busbw for row in rows if row.size > peak.size]
        fact.collapse = len(larger) >= 2 and max(larger) < peak.busbw / 2 and peak.busbw > 1
    elif len(rows) == 2:
        fact.flat = False


def report(text: str) -> Iterator[Fact]:
    """The report that `-J FILE` writes.

    >>> sample = '''{"version": 1, "args": ["./build/all_gather_perf"], "nccl_version": 22703,
    ... "config": {"nthreads": 1, "ngpus": 8, "devices": [{"rank": 0, "group": 0, "pid": 7, "hostname": "n1", "device": 0,
    ... "device_hex": "0000:1b:00", "device_info": "NVIDIA H100 80GB HBM3"}]}, "results": [{"size": 1073741824, "count": 1,
    ... "type": "float", "redop": "none", "root": "-1", "out_of_place": {"time": 1.0, "alg_bw": 300.0, "bus_bw": 281.2,
    ... "nwrong": 0}, "in_place": {"time": 1.0, "alg_bw": 300.0, "bus_bw": 283.0, "nwrong": 0}}],
    ... "out_of_bounds": {"count": 0, "okay": true}, "average_bus_bandwidth": {"bandwidth": 281.9}}'''
    >>> *_, run = report(sample)
    >>> run.collective, run.busbw_at_largest, run.gpu_name, run.ranks
    ('all_gather', 283.0, 'NVIDIA H100 80GB HBM3', 8)
    """
    start = text.find("{")
    if text[: max(start, 0)].strip():
        raise NotThisFormat
    data = json_object(text, start, "the JSON report of nccl-tests", ('"average_bus_bandwidth"', '"out_of_place"'))
    if not isinstance(data.get("results"), list):
        raise NotThisFormat
    run = _Table(launches=1)
    config = data["config"] if isinstance(data.get("config"), dict) else {}
    for entry in _records(config.get("devices") or data.get("devices")):
        name = entry.get("device_info")
        run.devices.append(
            NcclRank(
                rank=_integer(entry.get("rank")) or 0,
                host=str(entry["hostname"]) if entry.get("hostname") else None,
                pid=_integer(entry.get("pid")),
                device=_integer(entry.get("device")),
                pci=_bus(str(entry["device_hex"])) if entry.get("device_hex") else None,
                gpu_name=str(name).strip() if name else None,
                listed=True,
            )
        )
    threads, gpus = _integer(config.get("nthreads")), _integer(config.get("ngpus"))
    if threads and gpus:
        run.gpus, run.processes = threads * gpus, len({(rank.host, rank.pid) for rank in run.devices}) or None
    for entry in _records(data["results"]):
        sides = [side for side in (entry.get("out_of_place"), entry.get("in_place")) if isinstance(side, dict)]
        speeds = [float(side["bus_bw"]) for side in sides if isinstance(side.get("bus_bw"), (int, float))]
        wrongs = [int(side["nwrong"]) for side in sides if isinstance(side.get("nwrong"), (int, float))]
        size = _integer(entry.get("size"))
        if speeds and size is not None:
            run.rows.append(_Row(0, size, max(speeds), sum(wrongs) if wrongs else None))
    if not run.rows:
        raise NotThisFormat
    run.last = text.rstrip().count("\n")
    statement = _STATEMENT.search(" ".join(str(word) for word in data.get("args") or []))
    run.collective = statement["name"].removesuffix("_perf") if statement else None
    average, bounds = data.get("average_bus_bandwidth"), data.get("out_of_bounds")
    run.average = average.get("bandwidth") if isinstance(average, dict) else None
    run.bounds = _integer(bounds.get("count")) if isinstance(bounds, dict) else None
    yield from run.devices
    yield _judged(run)


_COLUMN = LazyRegex(r"[^a-z0-9#]+")
_SIZE_NAMES = ("size", "b", "bytes", "message_size", "size_b", "size_bytes")


def comma_separated(text: str) -> Iterator[Fact]:
    """Results as CSV with a heading: what the test programs write as such, and what scripts make of their tables.

    >>> sample = '''collective,gpus,size,type,redop,inplace,time,algbw,busbw,#wrong
    ... AllReduce,8,1048576,float,sum,0,40.1,26.15,45.76,0
    ... AllReduce,8,1048576,float,sum,1,39.0,26.89,47.05,0
    ... AllReduce,8,1073741824,float,sum,0,4210.0,255.05,446.33,0'''
    >>> (run,) = comma_separated(sample)
    >>> run.collective, run.ranks, run.rows, run.busbw_at_largest, run.wrong
    ('all_reduce', 8, 3, 446.33, 0)
    """
    lines = text.split("\n")
    names = [_COLUMN.sub("_", word.strip().strip('"').lower()).strip("_") for word in lines[0].split(",")]
    sizes = [place for place, name in enumerate(names) if name in _SIZE_NAMES]
    speeds = [place for place, name in enumerate(names) if "busbw" in name.replace("_", "") and "factor" not in name]
    wrongs = [place for place, name in enumerate(names) if "wrong" in name]
    if not sizes or not speeds:
        raise NotThisFormat
    run = _Table(average=0.0)
    cells: list[str] = []
    for at, line in enumerate(lines[1:], start=1):
        values = [word.strip().strip('"') for word in line[:2000].split(",")]
        if len(values) != len(names) or not values[sizes[0]].isdigit():
            break
        cells = values
        found = [value for place in speeds if (value := _value(values[place])) is not None]
        counts = [int(value) for place in wrongs if (value := _value(values[place])) is not None]
        if found:
            run.rows.append(_Row(at, int(values[sizes[0]]), max(found), sum(counts) if counts else None))
    if not run.rows:
        raise NotThisFormat
    run.last = run.rows[-1].at
    last = dict(zip(names, cells, strict=True))
    run.collective = _collective(next((last[name] for name in ("collective", "operation", "test", "name") if name in last), ""))  # fmt: skip
    fact = _judged(run)
    fact.busbw_average = None
    ranks = next((last[name] for name in ("ranks", "gpus", "nranks", "ngpus") if last.get(name, "").isdigit()), None)
    nodes = last.get("nodes", "")
    fact.ranks = int(ranks) if ranks else None
    fact.nodes = int(nodes) if nodes.isdigit() else None
    yield fact


def _collective(word: str) -> str | None:
    """AllReduce, all_reduce_perf and all-reduce are one."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])|[- ]", "_", word.strip()).lower().removesuffix("_perf")
    return {"allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter"}.get(name, name) or None  # fmt: skip


def _records(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _integer(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) else None


FORMATS = (
    Format(
        "nccl-tests",
        (
            "_perf -b",
            "Collective test starting",
            "# nThread ",
            "#   Rank ",
            "#  Rank ",
            "algbw   busbw",
            "algbw  busbw",
            "float     sum",
            "half     sum",
            "bfloat16     sum",
            "float    none",
            "int8     sum",
        ),
        table,
        lines=2200,
        answers=("nccl_test",),
    ),
    Format(
        "nccl-tests as CSV",
        ("algbw,", "algBw,", "alg_bw,", "algbw_", "busbw,", "busBw,", "busbw_"),
        comma_separated,
        lines=2200,
        answers=("nccl_test",),
    ),
    Format("nccl-tests report", ('"nccl_version":', '"average_bus_bandwidth"'), report, lines=20_000, back=400),
)
