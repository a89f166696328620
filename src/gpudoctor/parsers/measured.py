"""Bandwidth as test programs measure it: nvbandwidth (text and JSON), the CUDA sample bandwidthTest, and perftest (ib_write_bw)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gpudoctor.facts.base import Fact
from gpudoctor.facts.gpu import CopyRate, PeerAccess
from gpudoctor.facts.host import RdmaTest
from gpudoctor.parsers.base import Format, NotThisFormat, json_object
from gpudoctor.patterns.lazy import LazyRegex

_CASE = LazyRegex(r"Running (?P<name>\w+)\.|SUM (?P<sum>\w+) ")
_TITLE = LazyRegex(
    r"memcpy \w+ (?P<row>CPU|GPU)\(row\) (?P<way><?-+>?) (?P<column>GPU|CPU)\(column\) bandwidth \(GB/s\)"
)
_ROW = LazyRegex(r"\s*(?P<number>\d{1,3})\s+(?P<cells>(?:N/A|\d+\.\d+)(?:\s+(?:N/A|\d+\.\d+))*)\s*$")
_ONE_WAY = ("host_to_device_memcpy", "device_to_host_memcpy", "device_to_device_memcpy_read", "device_to_device_memcpy_write")  # fmt: skip


def nvbandwidth(text: str) -> Iterator[Fact]:
    """A matrix of nvbandwidth, copies one way at a time; from its title, or from the line that names the test above it.

    >>> sample = '''memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
    ...            0         1
    ...  0     26.03     6.44
    ...
    ... SUM host_to_device_memcpy_ce 32.47'''
    >>> [(fact.gpu, fact.way, fact.bandwidth) for fact in nvbandwidth(sample)]
    [('GPU 0', 'from host', 26.03), ('GPU 1', 'from host', 6.44)]
    """
    lines = text.split("\n")
    at = next((place for place, line in enumerate(lines[:3]) if _TITLE.search(line)), None)
    title = _TITLE.search(lines[at]) if at is not None else None
    if at is None or title is None:
        raise NotThisFormat
    if title["way"] == "<->":
        raise NotThisFormat  # both ways at once: what each is worth depends on the other
    name = _CASE.search(lines[0])
    if name and not (name["name"] or name["sum"]).startswith(_ONE_WAY):
        raise NotThisFormat
    given = False
    for number, line in enumerate(lines[at + 1 :], start=at + 1):
        if found := _ROW.match(line[:4000]):
            given = True
            cells = found["cells"].split()
            for fact in _cells(title["row"] == "CPU", title["way"] == "->", int(found["number"]), cells):
                fact.at = number
                yield fact
        elif given:
            break
    if not given:
        raise NotThisFormat


def _cells(host: bool, forward: bool, row: int, cells: list[str]) -> Iterator[CopyRate | PeerAccess]:
    for column, cell in enumerate(cells):
        if cell == "N/A":
            continue
        bandwidth = float(cell)
        if host:
            yield CopyRate(gpu=f"GPU {column}", way="from host" if forward else "to host", bandwidth=bandwidth)
        else:
            yield PeerAccess(a=f"GPU{row}", b=f"GPU{column}", status="ok", bandwidth=bandwidth)


def nvbandwidth_json(text: str) -> Iterator[Fact]:
    """What `nvbandwidth -j` prints; cells are texts, N/A where a pair was not measured.

    >>> import json
    >>> sample = json.dumps({"nvbandwidth": {"testcases": [{"name": "host_to_device_memcpy_ce", "status": "Passed",
    ...     "bandwidth_matrix": [["55.2", "27.5"]]}]}})
    >>> [(fact.gpu, fact.bandwidth) for fact in nvbandwidth_json(sample)]
    [('GPU 0', 55.2), ('GPU 1', 27.5)]
    """
    start = text.rfind("{", 0, max(0, text.find('"nvbandwidth"')))
    body = json_object(text, start, "the JSON of nvbandwidth").get("nvbandwidth")
    cases = body.get("testcases") if isinstance(body, dict) else None
    if not isinstance(cases, list):
        raise NotThisFormat
    for case in cases:
        name, matrix = (case.get("name"), case.get("bandwidth_matrix")) if isinstance(case, dict) else (None, None)
        if not isinstance(name, str) or not name.startswith(_ONE_WAY) or not isinstance(matrix, list):
            continue
        at = text.count("\n", 0, max(0, text.find(f'"{name}"')))
        for row, cells in enumerate(matrix):
            known = [_cell(cell) for cell in cells] if isinstance(cells, list) else []
            for fact in _cells(not name.startswith("device_to_device"), name.startswith("host"), row, known):
                fact.at = at
                yield fact


def _cell(value: Any) -> str:
    return str(value) if re.fullmatch(r"\d+(?:\.\d+)?", str(value)) else "N/A"


_SAMPLE = LazyRegex(r"(?P<way>Host to Device|Device to Host) Bandwidth, (?P<devices>\d+) Device\(s\)")
_SAMPLE_UNIT = LazyRegex(r"Transfer Size \(Bytes\)\s+Bandwidth\((?P<unit>[MG])B/s\)")
_SAMPLE_ROW = LazyRegex(r"\s*(?P<size>\d+)\s+(?P<bandwidth>\d+(?:\.\d+)?)\s*$")


def bandwidth_test(text: str) -> Iterator[Fact]:
    """The CUDA sample bandwidthTest with pinned memory, its largest transfer; the first device where it names none.

    >>> sample = " Host to Device Bandwidth, 1 Device(s)\\n PINNED Memory Transfers\\n"
    >>> sample += "   Transfer Size (Bytes)\\tBandwidth(GB/s)\\n   32000000\\t\\t\\t25.1"
    >>> [(fact.gpu, fact.way, fact.bandwidth) for fact in bandwidth_test(sample)]
    [('GPU 0', 'from host', 25.1)]
    """
    lines = text.split("\n")
    at = next((place for place, line in enumerate(lines) if _SAMPLE.search(line)), None)
    head = _SAMPLE.search(lines[at]) if at is not None else None
    if at is None or head is None or head["devices"] != "1":
        raise NotThisFormat  # pageable memory and sums over devices say nothing about one link
    if not any("PINNED Memory Transfers" in line for line in lines[at + 1 : at + 3]):
        raise NotThisFormat
    devices = [found[1] for line in lines[:at] if (found := re.match(r"\s*Device (\d{1,3}):", line))]
    unit, best = 0.0, None
    for number, line in enumerate(lines[at + 1 :], start=at + 1):
        if found := _SAMPLE_UNIT.search(line):
            unit = 1.0 if found["unit"] == "G" else 0.001
        elif unit and (found := _SAMPLE_ROW.match(line)):
            way = "from host" if head["way"].startswith("Host") else "to host"
            best = CopyRate(
                gpu=f"GPU {devices[-1] if devices else 0}", way=way, bandwidth=float(found["bandwidth"]) * unit
            )
            best.at = number
        elif best is not None:
            break
    if best is None:
        raise NotThisFormat
    yield best


_TEST = LazyRegex(r"RDMA_(?P<what>Write|Read)|(?P<send>Send) (?:Bidirectional )?BW Test")
_PAIR = LazyRegex(r"(?P<key>Device|Mtu|Link type)\s*: (?P<value>[\w.+-]+)")
_RESULTS = LazyRegex(r"#bytes\s+#?iterations\s+BW peak\[(?P<unit>MB|Gb|MiB)/sec\]")
_RESULT = LazyRegex(
    r"\s*(?P<size>\d+)\s+(?P<count>\d+)\s+(?P<peak>\d+(?:\.\d+)?)\s+(?P<average>\d+(?:\.\d+)?)\s+(?P<rate>\d+(?:\.\d+)?)"
)
_MIB_TO_GBITS = 1.048576 * 8 / 1000


def perftest(text: str) -> Iterator[Fact]:
    """A bandwidth test of perftest: the average at its largest message, in Gb/s each way.

    >>> sample = '''                    RDMA_Write BW Test
    ...  Dual-port       : OFF          Device         : mlx5_0
    ...  Mtu             : 4096[B]
    ...  Link type       : IB
    ...  #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
    ...  65536      5000             23512.11            23508.77             0.376140'''
    >>> fact = next(perftest(sample))
    >>> fact.device, fact.operation, round(fact.rate), fact.mtu, fact.size
    ('mlx5_0', 'write', 197, 4096, 65536)
    """
    lines = text.split("\n")
    at = next((place for place, line in enumerate(lines) if _TEST.search(line)), None)
    if at is None:
        raise NotThisFormat
    head = _TEST.search(lines[at])
    test = RdmaTest(operation=((head["what"] or "send") if head else "").lower(), device="?")
    test.gpu_memory = any("allocated GPU buffer" in line or "cuMemAlloc" in line for line in lines[:at])
    ways = 2 if "Bidirectional" in lines[at] else 1
    unit = 0.0
    for number, line in enumerate(lines[at + 1 :], start=at + 1):
        for pair in _PAIR.finditer(line):
            if pair["key"] == "Device":
                test.device = pair["value"]
            elif pair["key"] == "Mtu" and (digits := re.match(r"\d+", pair["value"])):
                test.mtu = int(digits[0])
            elif pair["key"] == "Link type":
                test.link_layer = "infiniband" if pair["value"] == "IB" else "ethernet"
        if found := _RESULTS.search(line):
            unit = 1.0 if found["unit"] == "Gb" else _MIB_TO_GBITS
        elif unit and (found := _RESULT.match(line)):
            if test.size is None or int(found["size"]) >= test.size:
                test.size, test.rate, test.at = int(found["size"]), float(found["average"]) * unit / ways, number
        elif unit and test.rate is not None:
            break
    if test.rate is None:
        raise NotThisFormat
    yield test


FORMATS = (
    Format("nvbandwidth", (" bandwidth (GB/s)",), nvbandwidth, lines=80, back=1),
    Format("nvbandwidth as JSON", ('"nvbandwidth"',), nvbandwidth_json, lines=20_000, back=2),
    Format("bandwidthTest", (" Bandwidth, 1 Device(s)",), bandwidth_test, lines=80, back=8),
    Format("perftest", (" BW Test", "RDMA_Write B", "RDMA_Read B"), perftest, lines=120, back=12),
)
