"""Every format that gpudoctor recognises, in one list; a new parser is added here."""

from __future__ import annotations

from gpudoctor.parsers import cuda, driver, live, nvml, packages, python
from gpudoctor.parsers.base import Format

FORMATS: tuple[Format, ...] = (*driver.FORMATS, *packages.FORMATS, *live.FORMATS, *nvml.FORMATS, *cuda.FORMATS, *python.FORMATS,)
