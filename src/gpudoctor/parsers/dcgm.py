"""dcgmi diag and dcgmi health, as tables and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gpudoctor.facts.base import Fact, Probed
from gpudoctor.facts.gpu import DcgmResult, Gpu, NvlinkLink
from gpudoctor.parsers.base import Format, NotThisFormat, json_object
from gpudoctor.patterns.lazy import LazyRegex

_ROW = LazyRegex(r"\|\s?(?P<key>[^|]{1,40}?)\s*\|\s?(?P<value>[^|]*?)\s*\|\s*$")
_STATUS = LazyRegex(r"(?P<status>Pass|Fail|Skip|Warn)\b(?:\s*-\s*(?P<which>All|GPUs?: ?[\d, ]+|.*))?")
_GPU = LazyRegex(r"GPU(?:s:?)? ?(?P<index>\d{1,3})")
_CODE = LazyRegex(r"\((?:Error )?(?:code|Code) ?(?P<code>\d+)\)|error code (?P<other>\d+)")


def diag(text: str) -> Iterator[Fact]:
    """The table of `dcgmi diag`: tests that failed or warned, with the lines that say why.

    >>> sample = '''| Diagnostic                | Result                                         |
    ... +===========================+================================================+
    ... | PCIe                      | Fail - GPU 3                                   |
    ... | Warning                   | GPU 3 The link width is 8, the limit is 16     |
    ... | Memory                    | Pass - All                                     |
    ... +---------------------------+------------------------------------------------+'''
    >>> [(fact.test, fact.status, fact.gpu) for fact in diag(sample) if fact.kind == "dcgm_result"]
    [('PCIe', 'fail', 'GPU 3')]
    """
    results: list[DcgmResult] = []
    open_key = ""
    last = 0
    rows = 0
    for at, line in enumerate(text.split("\n")):
        plain = line.strip()
        if not plain.startswith(("|", "+")):
            if rows and plain:
                break
            continue
        found = _ROW.match(plain)
        if not found:
            continue
        rows += 1
        last = at
        key, value = found["key"].strip(), found["value"].strip()
        status = _STATUS.match(value)
        if status and key:
            open_key = ""
            if status["status"] in ("Fail", "Warn"):
                gpu = _GPU.search(status["which"] or "")
                results.append(
                    DcgmResult(
                        test=key, status=status["status"].lower(), gpu=f"GPU {gpu['index']}" if gpu else None, at=at
                    )
                )
                open_key = key
        elif open_key and results and (not key or key.lower() in ("warning", "error", "info")):
            results[-1].message = f"{results[-1].message} {value}".strip()[:500]
            results[-1].at_fields.setdefault("message", at)
            code = _CODE.search(value)
            if code:
                results[-1].code = int(code["code"] or code["other"])
            if results[-1].gpu is None and (gpu := _GPU.search(value)):
                results[-1].gpu = f"GPU {gpu['index']}"
    if not rows:
        raise NotThisFormat
    yield from results
    yield Probed(what="dcgm_result", at=last)


_ENTITY = LazyRegex(r"(?:->|GPU ID:) ?(?P<index>\d{1,3})$")
_SYSTEM = LazyRegex(
    r"(?:-> )?(?P<system>[A-Za-z][\w ]{1,30} system)(?:: (?P<status>Warning|Failure) - (?P<message>.*))?$"
)
_TROUBLE = {"Warning": "warn", "Failure": "fail"}


def health(text: str) -> Iterator[Fact]:
    """The table of `dcgmi health -c`: which system of which GPU is unwell, and why.

    >>> sample = '''| Overall Health            | Warning                                    |
    ... | GPU                       |                                            |
    ... | -> 4                      | Warning                                    |
    ... |    -> Errors              |                                            |
    ... |       -> PCIe system      | Warning                                    |
    ... |                           | Detected more than 8 PCIe replays per      |
    ... |                           | minute for GPU 4 : 13                      |'''
    >>> fact = next(health(sample)); fact.test, fact.status, fact.gpu, fact.message
    ('PCIe system', 'warn', 'GPU 4', 'Detected more than 8 PCIe replays per minute for GPU 4 : 13')
    """
    results: list[DcgmResult] = []
    gpu: str | None = None
    rows = 0
    for at, line in enumerate(text.split("\n")):
        plain = line.strip()
        if not plain.startswith(("|", "+")):
            if rows and plain:
                break
            continue
        cells = [cell.strip() for cell in plain.strip("|").split("|")]
        if plain.startswith("+") or len(cells) < 2:
            continue
        rows += 1
        key, value = cells[0], cells[1]
        if entity := _ENTITY.match(key):
            gpu = f"GPU {entity['index']}"
        elif system := _SYSTEM.match(key) or _SYSTEM.match(value):
            status = _TROUBLE.get(system["status"] or value)
            if status:
                results.append(DcgmResult(test=system["system"], status=status, gpu=gpu, message=system["message"] or "", at=at))  # fmt: skip
        elif not key and value and results:
            results[-1].message = f"{results[-1].message} {value}".strip()[:500]
            results[-1].at_fields.setdefault("message", at)
    if not rows:
        raise NotThisFormat
    yield from results


_WATCH = LazyRegex(
    r"Detected an? (?P<status>WARNING|FAILURE) in health system (?P<system>[\w ]{1,30}): '(?P<message>[^'\n]{0,400})"
)


def health_log(text: str) -> Iterator[Fact]:
    """A line of the host engine's log about its health watches.

    >>> fact = next(health_log("[[Health]] Detected a WARNING in health system Thermal: 'Detected clocks event in GPU 2."))
    >>> fact.test, fact.status, fact.gpu
    ('Thermal', 'warn', 'GPU 2')
    """
    found = _WATCH.search(text.partition("\n")[0])
    if not found:
        raise NotThisFormat
    gpu = _GPU.search(found["message"])
    yield DcgmResult(
        test=found["system"],
        status=_TROUBLE[found["status"].capitalize()],
        message=found["message"],
        gpu=f"GPU {gpu['index']}" if gpu else None,
    )


def diag_json(text: str) -> Iterator[Fact]:
    """`dcgmi diag -j`, old and new layout.

    >>> sample = '''{"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [{"name": "Memory",
    ... "results": [{"entity_id": 2, "status": "Fail", "warnings": [{"error_id": 5, "warning": "A DBE was seen."}]}]}]}]}}'''
    >>> fact = next(diag_json(sample)); fact.test, fact.gpu, fact.message
    ('Memory', 'GPU 2', 'A DBE was seen.')
    """
    data = json_object(text, text.find("{"), "the JSON of DCGM")
    root = data.get("DCGM Diagnostic") or data.get("DCGM GPU Diagnostic")
    if not isinstance(root, dict):
        raise NotThisFormat
    for category in _dicts(root.get("test_categories")):
        for test in _dicts(category.get("tests")):
            for result in _dicts(test.get("results")):
                if str(result.get("status")).lower() in ("fail", "warn"):
                    fact = _json_result(str(test.get("name")), result)
                    fact.at = _line_of(text, fact.message, fact.test)
                    yield fact


def _line_of(text: str, *words: str) -> int:
    """Return the offset of the line that holds the first of these texts that is there."""
    for word in words:
        if (place := text.find(json.dumps(word)[1:41].rstrip('"'))) >= 0 and word:
            return text.count("\n", 0, place)
    return 0


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _json_result(name: str, result: dict[str, Any]) -> DcgmResult:
    warnings = result.get("warnings")
    if isinstance(warnings, str):  # DCGM 2
        warnings = [warnings]
    texts = [str(item.get("warning", "")) if isinstance(item, dict) else str(item) for item in warnings] if isinstance(warnings, list) else []  # fmt: skip
    texts += [str(result[key]) for key in ("info", "warning") if result.get(key)]
    index = result.get("entity_id", result.get("gpu_id", result.get("gpu_ids")))
    code = next((item.get("error_id") for item in _dicts(warnings) if isinstance(item.get("error_id"), int)), None)
    return DcgmResult(
        test=name,
        status=str(result.get("status")).lower(),
        message=" ".join(texts)[:500],
        code=code,
        gpu=f"GPU {index}" if isinstance(index, int) or (isinstance(index, str) and index.isdigit()) else None,
    )


_OWNER = LazyRegex(r"\s*(?P<what>gpuId|GPU|physicalId) ?(?P<index>\d{1,3}):?\s*$")
_STATES = LazyRegex(r"\s*(?P<states>[UDX_](?: [UDX_]){1,79})\s*$")
_LETTERS = {"U": "active", "D": "inactive", "X": "disabled", "_": "not_supported"}


def link_status(text: str) -> Iterator[Fact]:
    """`dcgmi nvlink --link-status`: one letter per link, U for up and D for down, of the GPUs and the NVSwitches.

    >>> sample = '''|  NvLink Link Status  |
    ... +----------------------+
    ... GPUs:
    ...     gpuId 0:
    ...         U U D _
    ... NvSwitches:
    ...     physicalId 8:
    ...         U X'''
    >>> [(link.gpu, link.link, link.state) for link in link_status(sample) if link.kind == "nvlink_link"]
    [('GPU 0', 0, 'active'), ('GPU 0', 1, 'active'), ('GPU 0', 2, 'inactive'), ('GPU 0', 3, 'not_supported')]
    """
    gpu: str | None = None
    last = number = 0
    for at, line in enumerate(text.split("\n")):
        if owner := _OWNER.match(line):
            gpu = f"GPU {owner['index']}" if owner["what"] != "physicalId" else None
        elif states := _STATES.match(line):
            for link, letter in enumerate(states["states"].split() if gpu else ()):
                number += 1
                yield NvlinkLink(gpu=gpu, link=link, state=_LETTERS[letter], at=at)
        elif line.strip().startswith("Key:") or (
            line.strip() and not line.strip().startswith(("|", "+", "GPUs", "NvSwitches", "No NvSwitches"))
        ):
            break
        last = at
    if not number:
        raise NotThisFormat
    yield Probed(what="nvlink_link", at=last)


_METRIC = LazyRegex(r"(?P<name>DCGM_FI_(?:DEV|PROF)_\w+)\{(?P<labels>[^}]{0,1500})\} (?P<value>[0-9.eE+-]+)")
_LABEL = LazyRegex(r'(?P<key>\w+)="(?P<value>[^"]*)"')
_NUMBERS = {
    "DCGM_FI_DEV_GPU_TEMP": "temperature",
    "DCGM_FI_DEV_MEMORY_TEMP": "memory_temperature",
    "DCGM_FI_DEV_POWER_USAGE": "power",
    "DCGM_FI_DEV_GPU_UTIL": "utilization",
    "DCGM_FI_DEV_FB_USED": "memory_used",
    "DCGM_FI_DEV_FB_FREE": "memory_free",
}
_WHOLE = {
    "DCGM_FI_DEV_SM_CLOCK": "clock_sm",
    "DCGM_FI_DEV_MEM_CLOCK": "clock_mem",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": "pcie_replays",
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": "ecc_correctable_volatile",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": "ecc_uncorrectable_volatile",
    "DCGM_FI_DEV_RETIRED_SBE": "retired_single_bit",
    "DCGM_FI_DEV_RETIRED_DBE": "retired_double_bit",
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": "remapped_correctable",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": "remapped_uncorrectable",
}
_FLAGS = {
    "DCGM_FI_DEV_RETIRED_PENDING": "retired_pending",
    "DCGM_FI_DEV_ROW_REMAP_PENDING": "remap_pending",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": "remap_failed",
}
_LINK_COUNTERS = {
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": "crc_errors",
    "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL": "replay_errors",
    "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": "recovery_errors",
}
_BLANK = 1e15  # DCGM's values from 2^62 - 16 on mean that there is none


def metrics(text: str) -> Iterator[Fact]:
    """Metrics of dcgm-exporter: what it knows of each GPU.

    >>> sample = '''DCGM_FI_DEV_ROW_REMAP_PENDING{gpu="3",UUID="GPU-6ec45129",modelName="NVIDIA A30"} 1
    ... # HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).
    ... DCGM_FI_DEV_GPU_TEMP{gpu="3",UUID="GPU-6ec45129",modelName="NVIDIA A30"} 41'''
    >>> fact = next(metrics(sample)); fact.index, fact.name, fact.remap_pending, fact.temperature
    (3, 'NVIDIA A30', True, 41.0)
    """
    gpus: dict[str, Gpu] = {}
    links: dict[str, NvlinkLink] = {}
    for at, line in enumerate(text.split("\n")):
        found = _METRIC.search(line)
        if not found:
            continue
        labels = {label["key"]: label["value"] for label in _LABEL.finditer(found["labels"])}
        try:
            value = float(found["value"])
        except ValueError:
            continue
        if value >= _BLANK or not labels.get("UUID", "").startswith("GPU-") or "GPU_I_ID" in labels:
            continue
        uuid, name = labels["UUID"], found["name"]
        gpu = gpus.setdefault(uuid, Gpu(uuid=uuid, seen_by="dcgm", at=at))
        gpu.index = int(labels["gpu"]) if labels.get("gpu", "").isdigit() else None
        gpu.name = labels.get("modelName") or None
        if field := _NUMBERS.get(name):
            setattr(gpu, field, value)
        elif field := _WHOLE.get(name):
            setattr(gpu, field, int(value))
        elif field := _FLAGS.get(name):
            setattr(gpu, field, value > 0)
        elif field := _LINK_COUNTERS.get(name):
            setattr(links.setdefault(uuid, NvlinkLink(gpu=uuid, at=at)), field, int(value))
            continue
        else:
            continue
        gpu.at_fields[field] = at
    if not gpus:
        raise NotThisFormat
    yield from gpus.values()
    yield from links.values()


FORMATS = (
    Format("dcgmi diag", ("| Diagnostic  ", "|-----  Integration", "|-----  Hardware", "Successfully ran diagnostic"), diag, lines=300),
    Format("dcgmi health", ("| Health Monitor Report", "| Overall Health"), health, lines=400),
    Format("DCGM health watch", (" in health system ",), health_log, lines=1, fold=True),
    Format("dcgmi nvlink", ("NvLink Link Status", "gpuId 0:"), link_status, lines=300),
    Format("dcgm-exporter", ("DCGM_FI_DEV_", "DCGM_FI_PROF_"), metrics, lines=6000),
    Format("dcgmi diag -j", ('"DCGM Diagnostic"', '"DCGM GPU Diagnostic"'), diag_json, lines=4000, back=1),
)  # fmt: skip
