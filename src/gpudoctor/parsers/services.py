"""Services, as systemctl shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudoctor.facts.driver import Service
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex

_UNIT = LazyRegex(r"^\W*(?P<name>[\w@.-]+)\.service(?: - |\s*$)")
_ACTIVE = LazyRegex(r"^\s*Active: (?P<state>[\w-]+)(?: \((?P<sub>[^)]*)\))?")
_LOADED = LazyRegex(r"^\s*Loaded: (?P<loaded>[\w-]+)(?: \((?P<detail>[^)]*)\))?")
_EXIT = LazyRegex(r"status=(?P<code>\d+)")


def systemctl_status(text: str) -> Iterator[Service]:
    r"""One unit in `systemctl status`.

    >>> sample = '''● nvidia-fabricmanager.service - NVIDIA fabric manager service
    ...      Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; enabled; vendor preset: enabled)
    ...      Active: failed (Result: exit-code) since Tue 2024-02-06 11:07:09 UTC; 1min ago
    ...     Process: 911 ExecStart=/usr/bin/nv-fabricmanager (code=exited, status=1/FAILURE)'''
    >>> fact = next(systemctl_status(sample)); fact.name, fact.state, fact.enabled, fact.exit_code
    ('nvidia-fabricmanager', 'failed', True, 1)
    """
    lines = text.split("\n")
    unit = _UNIT.match(lines[0])
    if not unit:
        raise NotThisFormat
    state = sub = None
    enabled: bool | None = None
    code: int | None = None
    last = 0
    for number, line in enumerate(lines[1:14], start=1):
        if _UNIT.match(line) and not line.startswith(" "):
            break
        if found := _LOADED.match(line):
            if found["loaded"] == "not-found":
                state = "not_found"
            detail = (found["detail"] or "").split("; ")
            enabled = detail[1] == "enabled" if len(detail) > 1 else None
        elif found := _ACTIVE.match(line):
            state, sub, last = state or found["state"], found["sub"], number
        elif (found := _EXIT.search(line)) and code is None:
            code = int(found["code"])
    if state is None:
        raise NotThisFormat
    yield Service(name=unit["name"], state=state, sub=sub, enabled=enabled, exit_code=code, at=last)


_UNIT_ROW = LazyRegex(
    r"\W*(?P<name>[\w@.\\-]+)\.service\s+(?P<load>[a-z-]+)\s+(?P<state>[a-z]+)\s+(?P<sub>[a-z-]+)(?:\s|$)"
)
_OF_GPUS = LazyRegex(r"nvidia|dcgm|docker|containerd|crio|kubelet|slurmd|munge|gdm")


def systemctl_list(text: str) -> Iterator[Service]:
    r"""`systemctl list-units`, all or the failed ones: the services that GPUs, containers and jobs depend on.

    >>> head = "  UNIT                         LOAD   ACTIVE SUB    DESCRIPTION\n"
    >>> fact = next(systemctl_list(head + "● nvidia-fabricmanager.service loaded failed failed NVIDIA fabric manager service\n"))
    >>> fact.name, fact.state
    ('nvidia-fabricmanager', 'failed')
    """
    lines = text.split("\n")
    if lines[0].split()[:4] != ["UNIT", "LOAD", "ACTIVE", "SUB"]:
        raise NotThisFormat
    for number, line in enumerate(lines[1:], start=1):
        if not line.strip():
            break
        if (found := _UNIT_ROW.match(line)) and _OF_GPUS.search(found["name"]):
            state = "not_found" if found["load"] == "not-found" else found["state"]
            yield Service(name=found["name"], state=state, sub=found["sub"], at=number)


_ASKED_STATE = LazyRegex(
    r"systemctl is-active (?P<name>[\w@.-]+)\s*\n\s*(?P<state>active|inactive|failed|activating|unknown)\s*$",
    re.MULTILINE,
)


def systemctl_is_active(text: str) -> Iterator[Service]:
    """The answer below `systemctl is-active`.

    >>> next(systemctl_is_active("$ systemctl is-active nvidia-fabricmanager.service\\ninactive")).state
    'inactive'
    """
    found = _ASKED_STATE.search(text)
    if not found:
        raise NotThisFormat
    state = "not_found" if found["state"] == "unknown" else found["state"]
    yield Service(name=found["name"].removesuffix(".service"), state=state, at=1)


FORMATS = (
    Format("systemctl is-active", ("systemctl is-active",), systemctl_is_active, lines=2),
    Format("systemctl status", (".service - ",), systemctl_status, lines=16, answers=("service",)),
    Format(
        "systemctl list-units",
        ("LOAD   ACTIVE SUB", "LOAD      ACTIVE   SUB", "LOAD  ACTIVE SUB"),
        systemctl_list,
        lines=5_000,
    ),
)
