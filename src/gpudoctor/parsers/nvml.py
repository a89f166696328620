"""What gpudoctor's NVML child prints (see collect/children/nvml.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from gpudoctor.facts import fact_from
from gpudoctor.facts.base import Fact, ProbeFailed
from gpudoctor.facts.driver import DriverLibrary, DriverVersion, SmiError
from gpudoctor.facts.gpu import Gpu, GpuCount, GpuProcess, NvlinkLink, PeerAccess, TopologyPath
from gpudoctor.parsers.base import Format, Malformed, NotThisFormat

# NVML return codes that mean that nothing works at all, as smi_error reasons
_REASONS = {
    4: "insufficient_permissions",
    6: "no_devices",
    9: "driver_not_loaded",
    12: "library_not_found",
    15: "gpu_lost",
    18: "library_mismatch",
    999: "unknown_error",
}


def _branch(version: str) -> int | None:
    head = version.split(".", maxsplit=1)[0]
    return int(head) if head.isdigit() else None


def nvml(text: str) -> Iterator[Fact]:
    """Lines of JSON between `begin` lines; the last line may be cut. Malformed where they are not as the child prints them.

    >>> sample = 'begin nvmlInit\\n{"nvml": "gpu", "index": 0, "set": {"pci": "0000:3b:00.0", "temperature": 41}}'
    >>> next(fact for fact in nvml(sample)).temperature
    41.0
    """
    try:
        for fact in _read(text):
            yield fact_from(fact.kind, fact.plain())
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise Malformed(f"a line is not as the NVML child prints it ({type(error).__name__}: {error})") from None


def _read(text: str) -> Iterator[Fact]:
    gpus: dict[int, dict[str, Any]] = {}
    places: dict[int, dict[str, int]] = {}
    driver: dict[str, str] = {}
    later: list[tuple[int, dict[str, Any]]] = []
    if not text.startswith("begin nvmlInit"):
        raise NotThisFormat
    number = -1
    for number, line in enumerate(text.split("\n")):
        if not line.startswith("{"):
            continue
        try:
            entry = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue
        match entry.get("nvml"):
            case "gpu":
                gpus.setdefault(entry["index"], {}).update(entry["set"])
                places.setdefault(entry["index"], {}).update(dict.fromkeys(entry["set"], number))
            case "driver":
                driver.update(entry["set"])
            case "failed":
                code = entry.get("code")
                yield SmiError(
                    at=number,
                    reason=_REASONS.get(code, "other"),
                    message=str(entry.get("message", "")),
                    library_version=entry.get("library"),
                    exit_code=code,
                    seen_by="nvml",
                )
            case "count":
                yield from _count(number, entry["number"])
            case "hung":
                yield ProbeFailed(
                    at=number, probe="nvml", status="timeout", reason=f"{entry['function']}:{entry['gpu']}"
                )
            case "process" | "nvlink" | "pair":
                later.append((number, entry))
    if version := driver.get("version"):
        yield DriverVersion(version=version, branch=_branch(version), cuda=driver.get("cuda"), seen_by="nvml")
    if library := driver.get("library"):
        version = library.partition(".")[2] if library.count(".") > 2 else library
        yield DriverLibrary(name="libnvidia-ml", version=version, branch=_branch(version))
    names = {index: str(fields.get("pci") or fields.get("uuid") or f"GPU {index}") for index, fields in gpus.items()}
    for index, fields in gpus.items():
        known = {name: value for name, value in fields.items() if name in Gpu.__struct_fields__}
        at = min(places[index].values(), default=0)
        yield Gpu(at=at, at_fields=places[index], gpu=names[index], **known)
    for place, entry in later:
        if entry["nvml"] == "pair":
            a, b = names.get(entry["a"], str(entry["a"])), names.get(entry["b"], str(entry["b"]))
            if entry.get("path"):
                yield TopologyPath(at=place, a=a, b=b, path=entry["path"], a_kind="gpu", b_kind="gpu")
            if entry.get("peer"):
                yield PeerAccess(at=place, a=a, b=b, status=entry["peer"], capability="read")
            continue
        gpu = names.get(entry["index"], f"GPU {entry['index']}")
        if entry["nvml"] == "process":
            yield GpuProcess(
                at=place, gpu=gpu, pid=entry["pid"], name=entry["name"], type=entry["type"], memory=entry["memory"]
            )
        else:
            yield NvlinkLink(at=place, gpu=gpu, link=entry["link"], **entry["set"])


def _count(at: int, number: int) -> Iterator[Fact]:
    yield GpuCount(at=at, seen_by="nvml", number=number)
    if number == 0:  # as nvidia-smi says it
        yield SmiError(at=at, reason="no_devices", message="No devices were found", seen_by="nvml")


FORMATS = (Format("NVML", ("begin nvmlInit",), nvml, lines=100_000, answers=("gpu_process", "gpu_count")),)
