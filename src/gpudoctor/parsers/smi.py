"""nvidia-smi's table, its list of GPUs, its monitor, and what it says of a GPU that it can't open."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudoctor.facts.base import Fact, Probed
from gpudoctor.facts.driver import DriverLibrary, DriverVersion
from gpudoctor.facts.gpu import Gpu, GpuCount, GpuProcess
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.parsers.smi_values import integer, is_error, mebibytes, number, pstate, snake, switch, word
from gpudoctor.patterns.address import pci_address
from gpudoctor.patterns.lazy import LazyRegex

_VERSION = r"(?P<{}>\d+(?:\.\d+)+)"
_BANNER = LazyRegex(
    r"NVIDIA-SMI(?: version)?\s*:?\s+" + _VERSION.format("client") + r"(?:.*?(?:KMD|Driver) Version\s*:\s*" + _VERSION.format("driver") + ")?"
    r"(?:.*?CUDA(?: UMD)? Version\s*:\s*(?P<cuda>\d+\.\d+))?"
)  # fmt: skip
_GPU_ROW = LazyRegex(r"\s*(?P<index>\d{1,3})\s+(?P<name>\S.*?)(?:\s+(?P<mode>On|Off|WDDM|TCC|MCDM|N/A|ERR!))?\s*$")
_BUS_CELL = LazyRegex(r"\s*(?P<pci>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s+(?P<display>\S+)?")
_STATE_ROW = LazyRegex(
    r"\s*(?P<fan>\d+%|N/A|ERR!|\[?Unknown Error\]?)\s+(?P<temp>\d+C|N/A|ERR!|\[?Unknown Error\]?)\s+"
    r"(?P<perf>P\d+|N/A|ERR!|\[?Unknown Error\]?)?\s*(?P<power>[\d.]+W|N/A|ERR!|\[?Unknown Error\]?|Unknown)?\s*/\s*(?P<cap>\S+)?"
)
_MEMORY_CELL = LazyRegex(r"\s*(?P<used>\d+\s?MiB|\S+)\s*/\s*(?P<total>\d+\s?MiB|\S+)")
_LOAD_CELL = LazyRegex(r"\s*(?P<load>\d+%|N/A|ERR!)?\s+(?P<mode>Default|E\. Process|E\. Thread|Prohibited|N/A|ERR!)")
_PROCESS = LazyRegex(
    r"\|\s+(?P<gpu>\d{1,3})\s+(?:(?P<gi>N/A|\d+)\s+(?P<ci>N/A|\d+)\s+)?(?P<pid>\d+)\s+"
    r"(?P<type>C\+G|M\+C|C|G|M)\s+(?P<name>.*?)\s+(?P<memory>\d+\s?MiB|N/A)\s*\|"
)
_MIG_ROW = LazyRegex(r"\|\s+(?P<gpu>\d{1,3})\s+\d+\s+\d+\s+\d+\s+\|\s+\d+MiB")
_LIST = LazyRegex(r"GPU (?P<index>\d{1,3}): (?P<name>\S.*?) \(UUID: (?P<uuid>GPU-[0-9a-fA-F-]+)\)?")
_MIG_LIST = LazyRegex(r"\s+MIG \S+\s+Device\s+\d+: \(UUID: MIG-")
_HANDLE = LazyRegex(
    r"Unable to determine the device handle for (?:GPU|gpu)\s*(?:(?P<index>\d{1,3}):?\s+)?"
    r"(?P<pci>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)?:?\s*(?P<error>.*)"
)


def table(text: str) -> Iterator[Fact]:
    """The table that a bare `nvidia-smi` prints, of every generation, also a part of it.

    >>> facts = list(table('''| NVIDIA-SMI 440.33.01    Driver Version: 440.33.01    CUDA Version: 10.2     |
    ... |-------------------------------+----------------------+----------------------+
    ... |   0  Tesla V100-SXM2...  On   | 00000000:1A:00.0 Off |                    0 |
    ... | N/A   34C    P0    ERR! / 300W |      0MiB / 16160MiB |      0%      Default |
    ... +-------------------------------+----------------------+----------------------+'''))
    >>> gpu = next(fact for fact in facts if fact.kind == "gpu")
    >>> gpu.index, gpu.pci, gpu.temperature, gpu.memory_total, gpu.power_error
    (0, '0000:1a:00.0', 34.0, 16160.0, True)
    """
    lines = [_bare(line) for line in text.split("\n")]
    start = next((at for at in (0, 1) if at < len(lines) and _BANNER.search(lines[at])), None)
    banner = None if start is None else _BANNER.search(lines[start])
    gpus: list[Gpu] = []
    processes: list[GpuProcess] = []
    mig: dict[int, int] = {}
    in_processes = ended = False
    last = 0
    for at, line in enumerate(lines):
        if not line.startswith(("|", "+")):
            if line.strip() and at and at != start:
                break
            continue
        last = at
        if "Processes:" in line:
            in_processes = True
        elif in_processes:
            if found := _PROCESS.match(line):
                processes.append(_process(found, at))
            elif line.startswith("+"):
                ended = True
                break
        elif _BUS_CELL.match(_cell(line, 2)) and (row := _GPU_ROW.match(_cell(line, 1))):
            gpus.append(_gpu(row, line, lines, at))
        elif found := _MIG_ROW.match(line):
            mig[int(found["gpu"])] = mig.get(int(found["gpu"]), 0) + 1
    if not gpus and not processes and not (banner and banner["driver"]):
        raise NotThisFormat
    if banner and banner["driver"]:
        yield from _versions(banner, start or 0)
        if gpus:
            yield Probed(what="smi_error", at=start or 0)  # it answered, so there is none
    for gpu in gpus:
        if gpu.mig:
            gpu.mig_instances = mig.get(gpu.index or 0, 0)
        yield gpu
    closed = in_processes or lines[last].startswith("+")
    if banner and closed and gpus and [gpu.index for gpu in gpus] == list(range(len(gpus))):
        yield GpuCount(seen_by="nvidia-smi", number=len(gpus), at=gpus[0].at)
        yield Probed(what="gpu", at=last)
    yield from processes
    if in_processes and ended:
        yield Probed(what="gpu_process", at=last)


def _versions(banner: re.Match[str], at: int) -> Iterator[Fact]:
    version, client = banner["driver"], banner["client"]
    yield DriverVersion(
        version=version, branch=int(version.split(".")[0]), cuda=banner["cuda"], seen_by="nvidia-smi", at=at
    )
    yield DriverLibrary(name="nvidia-smi", version=client, branch=int(client.split(".")[0]), at=at)


def _bare(line: str) -> str:
    """Cut a quoting or numbering prefix in front of the table's edge."""
    edge = min((position for position in (line.find("|"), line.find("+-")) if position >= 0), default=0)
    return line[edge:] if edge <= 80 else line


def _cell(line: str, number_: int) -> str:
    cells = line.split("|")
    return cells[number_] if number_ < len(cells) else ""


def _gpu(row: re.Match[str], line: str, lines: list[str], at: int) -> Gpu:
    bus = _BUS_CELL.match(_cell(line, 2))
    pci = pci_address(bus["pci"]) if bus else None
    name = row["name"].strip()
    gpu = Gpu(index=int(row["index"]), pci=pci, name=name, seen_by="nvidia-smi", at=at)
    if row["mode"] in ("On", "Off"):
        gpu.persistence = row["mode"] == "On"
    if bus and bus["display"] in ("On", "Off"):
        gpu.display_active = bus["display"] == "On"
    ecc = _cell(line, 3).strip()
    gpu.ecc = False if ecc in ("Off", "Disabled") else True if ecc.isdigit() else None
    gpu.ecc_uncorrectable_volatile = int(ecc) if ecc.isdigit() else None
    errors = sum(is_error(text) for text in (name, ecc))
    below = lines[at + 1] if at + 1 < len(lines) else ""
    at_fields = {"ecc_uncorrectable_volatile": at, "name": at, "persistence": at}
    if state := _STATE_ROW.match(_cell(below, 1)):
        gpu.fan, gpu.fan_error = number(state["fan"]), is_error(state["fan"])
        gpu.temperature, gpu.temperature_error = number(state["temp"]), is_error(state["temp"])
        gpu.pstate = pstate(state["perf"] or "")
        gpu.power, gpu.power_error = number(state["power"] or ""), is_error(state["power"] or "")
        gpu.power_limit = number(state["cap"] or "")
        errors += sum(is_error(state[key] or "") for key in ("fan", "temp", "perf", "power"))
    if memory := _MEMORY_CELL.match(_cell(below, 2)):
        gpu.memory_used, gpu.memory_total = mebibytes(memory["used"]), mebibytes(memory["total"])
        if gpu.memory_used is not None and gpu.memory_total is not None:
            gpu.memory_free = gpu.memory_total - gpu.memory_used
    if load := _LOAD_CELL.match(_cell(below, 3)):
        gpu.utilization = number(load["load"] or "")
        gpu.compute_mode = snake(load["mode"])
        errors += is_error(load["load"] or "") + is_error(load["mode"])
    third = lines[at + 2] if at + 2 < len(lines) else ""
    mig = _cell(third, 3).strip()
    if not _cell(third, 1).strip() and mig:
        gpu.mig = switch(mig)
        if mig.endswith("*"):
            gpu.mig_pending = not gpu.mig
    fields = ("fan", "fan_error", "temperature", "temperature_error", "pstate", "power", "power_error", "power_limit")
    more = ("memory_used", "memory_total", "memory_free", "utilization", "compute_mode")
    at_fields.update({field: at + 1 for field in (*fields, *more) if getattr(gpu, field) is not None})
    gpu.at_fields = at_fields
    gpu.state = "ok"
    if is_error(name) or errors >= 4:
        gpu.state, gpu.error = "error", "the table shows ERR! in place of its values"
    if "GPU is lost" in below:
        gpu.state, gpu.error = "lost", "the table says that the GPU is lost"
        gpu.at_fields["state"] = at + 1
    if is_error(name):
        gpu.name = None
    return gpu


def _process(found: re.Match[str], at: int) -> GpuProcess:
    return GpuProcess(
        gpu=f"GPU {found['gpu']}",
        pid=int(found["pid"]),
        name=word(found["name"]),
        type=found["type"],
        memory=mebibytes(found["memory"]),
        at=at,
    )


def listing(text: str) -> Iterator[Fact]:
    """`nvidia-smi -L`.

    >>> facts = list(listing("GPU 0: NVIDIA A2 (UUID: GPU-6ec42d23-20d8-4a32-b811-7d3a51020301)"))
    >>> facts[0].name, facts[1].number
    ('NVIDIA A2', 1)
    """
    gpus: list[Gpu] = []
    plain = True
    at = 0
    for at, line in enumerate(text.split("\n")):
        if found := _LIST.search(line):
            if found["uuid"] in {gpu.uuid for gpu in gpus}:  # a second listing
                break
            gpus.append(
                Gpu(index=int(found["index"]), uuid=found["uuid"], name=found["name"], seen_by="nvidia-smi", at=at)
            )
        elif gpus and _MIG_LIST.match(line):
            gpus[-1].mig = True
            gpus[-1].mig_instances = (gpus[-1].mig_instances or 0) + 1
        elif re.match(r"\s+Link \d+", line) or "Nvlink" in line or "NVLink" in line:
            plain = False  # the heads of `nvidia-smi nvlink`: not every GPU has to be there
        elif line.strip():
            break
    if not gpus:
        raise NotThisFormat
    yield from gpus
    if plain and [gpu.index for gpu in gpus] == list(range(len(gpus))):
        yield GpuCount(seen_by="nvidia-smi", number=len(gpus), at=gpus[0].at)
        yield Probed(what="gpu", at=gpus[-1].at)


def device_handle(text: str) -> Iterator[Fact]:
    """The line about a GPU that the driver lists and can't open any more.

    >>> fact = next(device_handle("Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot"))
    >>> fact.pci, fact.state
    ('0000:3b:00.0', 'lost')
    >>> next(device_handle("Unable to determine the device handle for GPU0: 0000:02:00.0: Unknown Error")).index
    0
    """
    found = _HANDLE.search(text.partition("\n")[0])
    if not found:
        raise NotThisFormat
    error = found["error"].strip()
    state = "lost" if "lost" in error.lower() else "error"
    yield Gpu(
        index=integer(found["index"] or ""),
        pci=pci_address(found["pci"]) if found["pci"] else None,
        state=state,
        error=error[:200],
        seen_by="nvidia-smi",
    )


_DMON = {
    "pwr": "power",
    "gtemp": "temperature",
    "temp": "temperature",
    "mtemp": "memory_temperature",
    "sm": "utilization",
    "mem": "memory_utilization",
    "mclk": "clock_mem",
    "pclk": "clock_sm",
    "fb": "memory_used",
    "sbecc": "ecc_correctable_volatile",
    "dbecc": "ecc_uncorrectable_volatile",
    "pci": "pcie_replays",
}
_WHOLE = ("clock_mem", "clock_sm", "ecc_correctable_volatile", "ecc_uncorrectable_volatile", "pcie_replays")
_CAPPED = 50.0  # percent of the time that the power limit held the clocks


def dmon(text: str) -> Iterator[Fact]:
    """`nvidia-smi dmon`, with any columns; the last row of each GPU counts.

    >>> sample = '''# gpu    pwr  gtemp    sm   mem   mclk   pclk  pviol  tviol
    ... # Idx      W      C     %     %    MHz    MHz      %   bool
    ...     0    248     87    99    62    877    952      0      1'''
    >>> fact = next(dmon(sample)); fact.power, fact.clock_sm, fact.throttle_sw_thermal, fact.throttle_sw_power
    (248.0, 952, True, False)
    """
    lines = text.split("\n")
    columns = lines[0].strip().lstrip("# ").split()
    if columns[:1] != ["gpu"] or not set(columns) & _DMON.keys():
        raise NotThisFormat
    gpus: dict[int, Gpu] = {}
    for at, line in enumerate(lines[1:], start=1):
        values = line.split()
        if line.lstrip().startswith("#"):
            continue
        if len(values) != len(columns) or not values[0].isdigit():
            break
        gpu = Gpu(index=int(values[0]), seen_by="nvidia-smi", state="ok", at=at)
        for column, text_ in zip(columns, values, strict=True):
            value = number(text_)
            if value is None:
                continue
            if field := _DMON.get(column):
                setattr(gpu, field, int(value) if field in _WHOLE else value)
            elif column == "tviol":
                gpu.throttle_sw_thermal = value > 0
            elif column == "pviol":
                gpu.throttle_sw_power = value >= _CAPPED
        gpus[int(values[0])] = gpu
    if not gpus:
        raise NotThisFormat
    yield from gpus.values()


FORMATS = (
    Format("nvidia-smi", ("| NVIDIA-SMI ", "| Processes:", "MiB | "), table, lines=400, back=1),
    Format("nvidia-smi dmon", ("# gpu ",), dmon, lines=2000),
    Format("nvidia-smi -L", ("(UUID: GPU-",), listing, lines=400),
    Format("nvidia-smi device handle", ("Unable to determine the device handle",), device_handle, lines=1),
)
