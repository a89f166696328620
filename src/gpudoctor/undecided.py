"""What would decide the rules that are open: for each kind of fact that they lack, the cheapest thing to send."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from gpudoctor.collect.probe import COSTS, load_probes
from gpudoctor.engine.infer import Missing
from gpudoctor.facts import KINDS
from gpudoctor.facts.store import FactStore
from gpudoctor.findings.model import Undecided

MAX_UNDECIDED = 40
# What shows facts that no probe reads from a machine, or that its probe reads in a way of its own.
_SHOWN_BY = {
    "cdi_spec": "the output of `nvidia-ctk cdi list`",
    "container_run": "the command that started the container, or the output of `docker inspect`",
    "cpu": "the output of `lscpu; grep -H . /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor`",
    "cuda_error": "the program's whole output, from its first error on",
    "device_node": "the output of `ls -l /dev/nvidia*`",
    "driver_library": "the output of `ls -l /usr/lib*/libcuda.so* /usr/lib/*/libcuda.so*`",
    "env_var": "the output of `env` where the job runs",
    "file_system": "the output of `df -h`",
    "gid_entry": "the output of `show_gids`",
    "gpu_refusal": "the output of `sudo dmesg -T`",
    "host_oom_kill": "the output of `sudo dmesg -T`",
    "k8s_daemonset": "the output of `kubectl get daemonset -A`",
    "k8s_node": "the output of `kubectl describe node`",
    "k8s_pod": "the output of `kubectl get pod -A -o wide`",
    "k8s_scheduling": "the output of `kubectl describe pod` for the pod that waits",
    "kernel_trace": "the output of `sudo dmesg -T`",
    "limit": "the output of `ulimit -a` where the job runs",
    "module_load_error": "the output of `sudo modprobe nvidia` and of `sudo dmesg -T`",
    "nccl_connection": "the job's log with NCCL_DEBUG=INFO",
    "nccl_process": "the job's log with NCCL_DEBUG=INFO",
    "nccl_rank": "the job's log with NCCL_DEBUG=INFO",
    "nccl_test": "the output of `all_reduce_perf` (nccl-tests)",
    "net_interface": "the output of `ip -d addr`",
    "numa_node": "the output of `lscpu`",
    "nvlink_link": "the output of `nvidia-smi nvlink -s`",
    "nvlink_state": "the output of `nvidia-smi nvlink -s`",
    "peer_access": "the output of `nvidia-smi topo -p2p r`",
    "pcie_error": "the output of `sudo dmesg -T`",
    "pcie_link": "the output of `nvidia-smi -q`",
    "process": "the output of `ps axo user,pid,stat,wchan,comm`",
    "runtime_class": "the output of `kubectl get runtimeclass`",
    "slurm_gres": "the files slurm.conf and gres.conf",
    "slurm_job": "the batch script, or the output of `scontrol show job`",
    "slurm_node": "the output of `scontrol show node`",
    "smi_error": "the output of `nvidia-smi`",
    "topology_path": "the output of `nvidia-smi topo -m`",
}

_KUBERNETES = ("k8s_pod", "k8s_node", "k8s_scheduling", "k8s_daemonset", "runtime_class")
_SLURM = ("slurm_node", "slurm_job", "slurm_gres")
_HEALTHY = ("driver_version", "kernel_module", "gpu", "gpu_count", "pci_device")  # what every machine in order shows
# What only those have who run such a thing: where a rule rests on a healthy machine alone, nobody is asked for it.
_ONLY_WITH = (
    dict.fromkeys(_KUBERNETES, _KUBERNETES)
    | dict.fromkeys(_SLURM, _SLURM)
    | {"cdi_spec": ("container_engine", "container_run", "hook_error", *_KUBERNETES)}
)


def undecided(found: Iterable[Missing], store: FactStore) -> list[Undecided]:
    """Return the open rules, those that need least first; each with the cheapest probe that gives what is missing."""
    asked = (
        missing
        for missing in found
        if not set(missing.given) <= set(_HEALTHY)
        or all(any(map(store.of, _ONLY_WITH[kind])) for kind in missing.kinds if kind in _ONLY_WITH)
    )
    ordered = sorted(asked, key=lambda missing: (len(missing.kinds), -len(missing.given), missing.rule_id))
    if not ordered:
        return []
    asks = _asks()
    return [
        Undecided(
            id=missing.rule_id,
            missing=missing.kinds,
            ask="send "
            + " and ".join(
                dict.fromkeys(_SHOWN_BY.get(kind) or asks.get(kind) or _describe(kind) for kind in missing.kinds)
            ),
        )
        for missing in ordered[:MAX_UNDECIDED]
    ]


def _describe(kind: str) -> str:
    """Say what shows a kind of fact, where nothing else tells."""
    summary = (KINDS[kind].__doc__ or kind).strip().partition("\n")[0].partition(". ")[0].partition(";")[0].rstrip(".")
    if summary.startswith(("A ", "An ", "The ")) or summary[1:2].islower():
        summary = summary[0].lower() + summary[1:]
    return f"what shows this: {summary}"


@cache
def _asks() -> dict[str, str]:
    """Return, for each kind of fact, what to ask for: the cheapest probe that gives it."""
    probes = sorted(load_probes(), key=lambda probe: COSTS.index(probe.cost))
    return {kind: probe.ask for probe in reversed(probes) for kind in probe.gives if probe.ask}
