"""Evidence as people read it: the lines that gpudoctor's own children print are turned into words, all others stay as they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gpudoctor.facts.base import Where

MAX_QUOTE = 300
_SHOWN_FIELDS = 8
_FEW_ANSWERS = 4
_SPELLED = {
    **{word: word.upper() for word in ("bar1", "ecc", "gsp", "mig", "pci", "sm", "sram", "uuid", "vbios")},
    "gen": "generation",
    "hw": "hardware",
    "mem": "memory",
    "nvlink": "NVLink",
    "pcie": "PCIe",
    "sw": "software",
}
# What the NVML child counts in, by how a field's name begins.
_UNITS = {
    "temperature": " °C",
    "memory_temperature": " °C",
    "memory_utilization": " %",
    "utilization": " %",
    "power": " W",
    "clock_": " MHz",
    "memory_": " MiB",
    "bar1_": " MiB",
}


def quote(where: Where) -> str:
    """Return what the place says, cut where it is long.

    >>> quote(Where("NVML", 9, '{"nvml": "gpu", "index": 5, "set": {"index": 5, "state": "lost", "error": "GPU is lost"}}'))
    'GPU 5: state lost, error GPU is lost'
    >>> quote(Where("NVML", 1, "begin nvmlDeviceGetPowerUsage:5"))
    'nvmlDeviceGetPowerUsage of GPU 5 was called'
    """
    text = where.text
    if text.startswith("begin nvml"):
        function, _, gpu = text.removeprefix("begin ").partition(":")
        text = f"{function}{f' of GPU {gpu}' if gpu else ''} was called"
    elif text.startswith('{"nvml"'):
        text = _nvml(text) or text
    return text if len(text) <= MAX_QUOTE else text[:MAX_QUOTE].rstrip() + "…"


def _nvml(text: str) -> str:
    """Say one object of the NVML child in words, of a line that was cut its whole part; nothing where it is no such object."""
    entry = _object(text) or _object(text[: text.rfind(', "')] + "}}")
    if not entry:
        return ""
    what = entry.pop("nvml", "")
    values = entry.pop("set", {})
    said = {**entry, **values} if isinstance(values, dict) else entry
    lead = ""
    if what == "pair":
        lead = f"GPU {said.pop('a', '?')} and GPU {said.pop('b', '?')}"
    elif "index" in said:
        lead = f"GPU {said.pop('index')}"
        if what == "nvlink" and "link" in said:
            lead += f", NVLink {said.pop('link')}"
    else:
        lead = {"failed": "NVML failed", "hung": "NVML gave no answer"}.get(str(what), f"NVML, {what}")
    said.pop("seen_by", None)
    return f"{lead}: {_listed(said)}" if said else lead


def _object(text: str) -> dict[str, Any]:
    try:
        entry = json.loads(text)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}


def _listed(values: Mapping[str, Any]) -> str:
    """List values; of many yes-and-no values only those that are so."""
    known = {name: value for name, value in values.items() if value is not None}
    answers = [name for name, value in known.items() if isinstance(value, bool)]
    if len(answers) > _FEW_ANSWERS and any(known[name] for name in answers):
        known = {name: value for name, value in known.items() if value is not False}
    shown = [f"{_words(name)} {_value(name, value)}" for name, value in known.items()]
    more = len(shown) - _SHOWN_FIELDS
    return ", ".join(shown[:_SHOWN_FIELDS]) + (f" and {more} more values" if more > 0 else "")


def _words(name: str) -> str:
    """Return a field's name as people write it.

    >>> _words("throttle_hw_power_brake"), _words("pcie_width")
    ('throttle hardware power brake', 'PCIe width')
    """
    return " ".join(_SPELLED.get(part, part) for part in name.split("_"))


def _value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return f"{value:g}" + next((unit for start, unit in _UNITS.items() if name.startswith(start)), "")
    return str(value).replace("_", " ") if name.endswith("action") else str(value)
