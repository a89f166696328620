"""The suppressions file: what a site has decided to live with, why, and until when.

[[suppress]]
id = "pcie.width-degraded"        # or an area: "pcie"
subject = "0000:3b:00.0"          # pattern with * and ?; every subject of the finding must fit; default "*"
reason = "riser card carries x8 only"
expires = 2027-03-31              # last day, or "never"
"""

from __future__ import annotations

import json
import re
from datetime import date, datetime
from pathlib import Path
from typing import Annotated

import msgspec
from pydantic import BaseModel, ConfigDict, Field, field_validator

from gpudoctor.findings.model import Suppression
from gpudoctor.findings.policy import NEVER
from gpudoctor.monitor.configfile import check, read_toml
from gpudoctor.monitor.files import write_whole

_ID = re.compile(r"[a-z0-9]+(?:\.[a-z0-9-]+)?")


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: str
    subject: Annotated[str, Field(min_length=1)] = "*"
    reason: Annotated[str, Field(min_length=3)]
    expires: date | str

    @field_validator("id")
    @classmethod
    def _is_id(cls, value: str) -> str:
        if not _ID.fullmatch(value):
            raise ValueError('an id such as "pcie.width-degraded" or an area such as "pcie"')
        return value

    @field_validator("expires", mode="before")
    @classmethod
    def _is_day(cls, value: object) -> date | str:
        if isinstance(value, datetime):
            return value.date()
        if isinstance(value, date):
            return value
        if value == NEVER:
            return NEVER
        try:
            return date.fromisoformat(str(value))
        except ValueError:
            raise ValueError('a day such as 2027-03-31, or "never"') from None


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    suppress: list[_Entry] = []


def read_suppressions(path: Path) -> list[Suppression]:
    """Return the file's suppressions; raises ConfigError."""
    data, text = read_toml(path)
    return [
        Suppression(
            id=entry.id,
            subject=entry.subject,
            reason=" ".join(entry.reason.split()),
            expires=entry.expires if isinstance(entry.expires, str) else entry.expires.isoformat(),
        )
        for entry in check(_File, data, path, text).suppress
    ]


def add_suppression(path: Path, suppression: Suppression) -> None:
    """Append a suppression to the file, or make the file; what stands there stays as it is. Raises ConfigError, OSError."""
    check(_File, {"suppress": [msgspec.structs.asdict(suppression)]}, path, "")
    before = ""
    if path.exists():
        read_suppressions(path)  # what can't be read isn't added to
        before = path.read_text(encoding="utf-8").rstrip("\n") + "\n\n"
    words = {name: json.dumps(value, ensure_ascii=False) for name, value in msgspec.structs.asdict(suppression).items()}
    expires = words["expires"] if suppression.expires == NEVER else suppression.expires
    lines = [f"{name} = {words[name]}" for name in ("id", "subject", "reason")]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, before + "\n".join(["[[suppress]]", *lines, f"expires = {expires}"]) + "\n")
