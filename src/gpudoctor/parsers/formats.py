"""Every format that gpudoctor recognises, in one list; a new parser is added here."""

from __future__ import annotations

from gpudoctor.parsers import driver, live, nvml
from gpudoctor.parsers.base import Format

FORMATS: tuple[Format, ...] = (*driver.FORMATS, *live.FORMATS, *nvml.FORMATS,)
