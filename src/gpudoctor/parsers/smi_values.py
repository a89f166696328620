"""What nvidia-smi prints for a value, in each of its spellings, and what it means."""

from __future__ import annotations

import re

from gpudoctor.facts.base import Scalar
from gpudoctor.patterns.lazy import LazyRegex

_NUMBER = LazyRegex(r"-?\d+(?:\.\d+)?")
_ERRORS = ("err!", "unknown error", "[unknown error]", "gpu is lost", "[gpu is lost]", "[error]", "gpu requires reset")


# Why clocks are held down: nvidia-smi's word for the reason (-q writes spaces) and the field that it sets.
THROTTLE_REASONS = {
    "idle": "throttle_idle",
    "applications_clocks_setting": "throttle_app_clocks",
    "sw_power_cap": "throttle_sw_power",
    "hw_slowdown": "throttle_hw_slowdown",
    "hw_thermal_slowdown": "throttle_hw_thermal",
    "hw_power_brake_slowdown": "throttle_hw_power_brake",
    "sync_boost": "throttle_sync_boost",
    "sw_thermal_slowdown": "throttle_sw_thermal",
}


def is_error(text: str) -> bool:
    """Tell whether the driver failed to read the value (not: doesn't have it).

    >>> is_error("ERR!"), is_error("[Unknown Error]"), is_error("N/A")
    (True, True, False)
    """
    return text.strip().lower().startswith(_ERRORS)


def number(text: str) -> float | None:
    """Return the number at the start of a value, without its unit.

    >>> number("81920 MiB"), number("34C"), number("16x"), number("N/A"), number("0x2330")
    (81920.0, 34.0, 16.0, None, None)
    """
    text = text.strip()
    found = _NUMBER.match(text)
    return float(found[0]) if found and not text.startswith("0x") else None


def integer(text: str) -> int | None:
    """Return the whole number at the start of a value."""
    value = number(text)
    return None if value is None else int(value)


def mebibytes(text: str) -> float | None:
    """Return a memory size in MiB; nvidia-smi prints MiB, old ones MB, and some tools of its family GiB or KiB."""
    value = number(text)
    if value is None:
        return None
    unit = text.strip().lstrip("-0123456789. ").lower()
    return value * {"k": 1 / 1024, "g": 1024.0, "t": 1024.0**2}.get(unit[:1], 1.0)


def switch(text: str) -> bool | None:
    """Return on or off; None where it is neither.

    >>> switch("Enabled"), switch("Not Active"), switch("No"), switch("N/A")
    (True, False, False, None)
    """
    word = text.strip().strip("[]*").lower()
    if word in ("enabled", "active", "yes", "on", "true"):
        return True
    if word in ("disabled", "not active", "no", "off", "false", "inactive"):
        return False
    return None


def switch_or_digit(text: str) -> bool | None:
    """Return on or off where 0 and 1 are printed for it as well.

    >>> switch_or_digit("1"), switch_or_digit("No")
    (True, False)
    """
    return {"0": False, "1": True}.get(text.strip(), switch(text))


def seconds(text: str) -> float | None:
    """Return a duration that is printed in microseconds."""
    value = number(text)
    return None if value is None else value / 1e6


def word(text: str) -> str | None:
    """Return a text value; None for the ways to say that there is none."""
    text = text.strip().strip("[]")
    return None if text.lower() in ("", "n/a", "none", "not supported", "insufficient permissions") else text


def snake(text: str) -> str | None:
    """Return a state as gpudoctor writes it: `In Progress` is in_progress.

    >>> snake("Drain and Reset"), snake("Exclusive_Process"), snake("E. Process")
    ('drain_and_reset', 'exclusive_process', 'exclusive_process')
    """
    text = text.strip().strip("[]").lower()
    if text in ("", "n/a"):
        return None
    short = {"e. process": "exclusive_process", "e. thread": "exclusive_thread"}
    return short.get(text, re.sub(r"[^a-z0-9]+", "_", text).strip("_"))


def pstate(text: str) -> int | None:
    """Return the number of a performance state.

    >>> pstate("P8"), pstate("N/A")
    (8, None)
    """
    found = re.fullmatch(r"[Pp](\d+)", text.strip())
    return int(found[1]) if found else None


def device_id(text: str) -> int | None:
    """Return the PCI device id from `0x233010DE` or `233010DE` (device, then vendor).

    >>> hex(device_id("0x233010DE"))
    '0x2330'
    """
    found = re.fullmatch(r"(?:0x)?([0-9a-fA-F]{4})10[dD][eE]", text.strip())
    return int(found[1], 16) if found else None


def sum_of(known: Scalar | list[str], more: int | float | None) -> int | float | None:
    """Add a counter to what is known of it so far."""
    if more is None:
        return known if isinstance(known, (int, float)) else None
    return more + known if isinstance(known, (int, float)) else more
