"""Every format that gpudoctor recognises, in one list; a new parser is added here."""

from __future__ import annotations

from gpudoctor.parsers import container, cuda, dcgm, driver, gpustat, host, hostoom, k8s, kernel_gpu, kernel_trace, kvcache, live, memuse, nccl, nccl_tests, nvml, oom, packages, pci, peer, python, rdma, slurm, smi, smi_csv, smi_query, topology
from gpudoctor.parsers.base import Format

FORMATS: tuple[Format, ...] = (*driver.FORMATS, *host.FORMATS, *kernel_trace.FORMATS, *container.FORMATS, *k8s.FORMATS, *slurm.FORMATS, *packages.FORMATS, *live.FORMATS, *nvml.FORMATS, *cuda.FORMATS, *python.FORMATS, *smi.FORMATS, *smi_query.FORMATS, *smi_csv.FORMATS, *topology.FORMATS, *pci.FORMATS, *kernel_gpu.FORMATS, *peer.FORMATS, *dcgm.FORMATS, *oom.FORMATS, *kvcache.FORMATS, *memuse.FORMATS, *gpustat.FORMATS, *hostoom.FORMATS, *nccl.FORMATS, *nccl_tests.FORMATS, *rdma.FORMATS,)
