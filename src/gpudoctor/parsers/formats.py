"""Every format that gpudoctor recognises, in one list; a new parser is added here."""

from __future__ import annotations

from gpudoctor.parsers import container, cuda, driver, host, k8s, kernel_trace, live, nvml, packages, python, slurm, smi, smi_csv, smi_query, topology
from gpudoctor.parsers.base import Format

FORMATS: tuple[Format, ...] = (*driver.FORMATS, *host.FORMATS, *kernel_trace.FORMATS, *container.FORMATS, *k8s.FORMATS, *slurm.FORMATS, *packages.FORMATS, *live.FORMATS, *nvml.FORMATS, *cuda.FORMATS, *python.FORMATS, *smi.FORMATS, *smi_query.FORMATS, *smi_csv.FORMATS, *topology.FORMATS,)
