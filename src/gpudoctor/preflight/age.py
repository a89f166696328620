"""Operating systems past their end of support, on the machine or in a guide."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from gpudoctor.knowledge import systems
from gpudoctor.preflight.model import Remark

_MENTION = re.compile(
    r"\b(?P<id>ubuntu|debian|centos|rhel|rocky(?:linux)?|almalinux|fedora|sles)(?:[:\s-]|linux |server |lts )+v?(?P<version>\d{1,2}(?:\.\d{1,2})?)\b",
    re.IGNORECASE,
)


def ended(system_id: str, version: str, today: date) -> str | None:
    """Return the day on which a release's support ended, if that is past.

    >>> ended("ubuntu", "18.04", date(2026, 1, 1))
    '2023-05'
    """
    found = systems.os(system_id, version)
    if found is None or not found.end_of_support:
        return None
    end = found.end_of_support  # a day, or a month
    return end if end < today.isoformat()[: len(end)] else None


def check_system(system_id: str, version: str, today: date, where: str = "") -> Iterator[Remark]:
    """Say that a release is past its end of support."""
    if day := ended(system_id, version, today):
        yield Remark(
            "advice",
            "machine",
            f"{system_id} {version} is past its end of support ({day}): current drivers, frameworks and their Pythons don't come for it.",
            where,
            ("# take a supported release, or run the framework in a container with one",),
        )


def check_guide(name: str, text: str, today: date) -> Iterator[Remark]:
    """Say it of every release that a guide, Dockerfile or script names, once each."""
    seen: set[tuple[str, str]] = set()
    for number, line in enumerate(text.split("\n"), start=1):
        for found in _MENTION.finditer(line[:2000]):
            key = (found["id"].lower(), found["version"])
            if key not in seen:
                seen.add(key)
                yield from check_system(*key, today, f"{name}:{number}")
