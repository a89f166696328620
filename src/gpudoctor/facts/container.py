"""Facts about containers, Kubernetes and Slurm."""

from __future__ import annotations

from typing import ClassVar

from gpudoctor.facts.base import Fact


class Container(Fact):
    """Where gpudoctor, or the program that was logged, runs: engine docker, podman, containerd, kubernetes, lxc, wsl."""

    kind: ClassVar[str] = "container"

    engine: str
    id: str | None = None


class ContainerEngine(Fact):
    """A container engine or tool of the host and its version. name: docker, podman, nvidia-ctk, runc ..."""

    kind: ClassVar[str] = "container_engine"

    name: str
    version: str | None = None
    runtime: str | None = None  # default runtime
    nvidia_runtime: bool | None = None
    context: str | None = None
    desktop: bool | None = None
    snap: bool | None = None
    rootless: bool | None = None


class K8sPod(Fact):
    """A pod. status as kubectl prints it; gpus is the nvidia.com/gpu limit."""

    kind: ClassVar[str] = "k8s_pod"

    name: str
    namespace: str | None = None
    status: str | None = None
    ready: str | None = None
    restarts: int | None = None
    gpus: int | None = None
    reason: str | None = None
    exit_code: int | None = None
    runtime_class: str | None = None


class K8sNode(Fact):
    """A node of the cluster: GPUs advertised and allocatable, conditions, taints (joined by commas)."""

    kind: ClassVar[str] = "k8s_node"

    name: str
    capacity: int | None = None
    allocatable: int | None = None
    allocated: int | None = None
    ready: bool | None = None
    taints: str | None = None


class SlurmNode(Fact):
    """A node as `scontrol show node` or `sinfo` shows it."""

    kind: ClassVar[str] = "slurm_node"

    name: str
    state: str | None = None
    reason: str | None = None
    gres: str | None = None
    gres_used: str | None = None
