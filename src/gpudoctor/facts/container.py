"""Facts about containers, Kubernetes and Slurm."""

from typing import ClassVar

from gpudoctor.facts.base import Fact


class Container(Fact, kw_only=True):
    """Where gpudoctor, or the program that was logged, runs: engine docker, podman, containerd, kubernetes, lxc, wsl."""

    kind: ClassVar[str] = "container"

    engine: str
    id: str | None = None


class ContainerEngine(Fact, kw_only=True):
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
    cgroup_driver: str | None = None
    cgroup_version: int | None = None


class ContainerRun(Fact, kw_only=True):
    """How a container was started: a command line, a compose service or `docker inspect`. `fresh` false for exec."""

    kind: ClassVar[str] = "container_run"

    engine: str
    gpus: bool = False  # any way of asking for NVIDIA devices
    cdi: bool = False
    runtime: str | None = None
    image: str | None = None
    program: str | None = None
    capabilities: str | None = None  # NVIDIA_DRIVER_CAPABILITIES
    privileged: bool = False
    rootless: bool = False
    infiniband: bool = False
    fresh: bool = True


class HookError(Fact, kw_only=True):
    """A line `nvidia-container-cli: <category> error: <message>`, or another hook of the container start that failed.

    `reason` is a stable word: requirement, driver_not_loaded, library_mismatch, library_missing, unknown_device,
    file_exists, file_missing, cgroup, permission, ldcache, timeout, no_device, wsl, imex, nvml, symbol, other.
    """

    kind: ClassVar[str] = "hook_error"

    reason: str
    category: str | None = None
    message: str = ""
    path: str | None = None


class CgroupDevice(Fact, kw_only=True):
    """An entry of a cgroup's device list (v1 devices.list, or a trace of the rules written): `c 195:* m`."""

    kind: ClassVar[str] = "cgroup_device"

    major: str
    minor: str
    access: str


class CdiSpec(Fact, kw_only=True):
    """A CDI specification, or what `nvidia-ctk cdi list` found; driver_version as its library paths name it."""

    kind: ClassVar[str] = "cdi_spec"

    name: str | None = None  # nvidia.com/gpu
    devices: int | None = None
    driver_version: str | None = None


class ImagePackage(Fact, kw_only=True):
    """A package that an image's build file installs."""

    kind: ClassVar[str] = "image_package"

    name: str
    driver: bool = False  # it brings libraries of the NVIDIA driver


class CloudInstance(Fact, kw_only=True):
    """The machine type of a cloud, and whether machines of that type carry NVIDIA GPUs (unknown types say nothing)."""

    kind: ClassVar[str] = "cloud_instance"

    type: str
    nvidia: bool | None = None
    accelerator: str | None = None


class K8sPod(Fact, kw_only=True):
    """A pod. status as kubectl prints it; gpus is the nvidia.com/gpu limit, 0 where its containers show none.

    component: device-plugin, driver, toolkit, validator, dcgm, feature-discovery, mig-manager, operator. `failing` where the
    status says so (a pod that waits for another one is not failing).
    """

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
    component: str | None = None
    failing: bool | None = None
    message: str | None = None
    on_node: str | None = None
    visible_devices: str | None = None  # NVIDIA_VISIBLE_DEVICES in its environment
    privileged: bool | None = None


class K8sNode(Fact, kw_only=True):
    """A node of the cluster: GPUs advertised and allocatable, conditions, taints (joined by commas)."""

    kind: ClassVar[str] = "k8s_node"

    name: str
    capacity: int | None = None
    allocatable: int | None = None
    allocated: int | None = None
    withheld: int | None = None  # capacity less allocatable
    free: int | None = None  # allocatable less allocated
    ready: bool | None = None
    taints: str | None = None
    labelled: bool | None = None  # carries labels of GPU feature discovery or of the operator
    listed: bool | None = None  # a row of a list of nodes with their GPUs
    runtime: str | None = None  # containerd://1.7.2
    kubelet: str | None = None


class K8sScheduling(Fact, kw_only=True):
    """The scheduler's sentence `0/4 nodes are available: ...`: how many nodes fall out for which reason."""

    kind: ClassVar[str] = "k8s_scheduling"

    nodes: int | None = None
    resource: str | None = None  # the NVIDIA resource that is short
    insufficient: int = 0  # nodes short of it
    taint: str | None = None  # a taint that someone set
    tainted: int = 0
    role_taint: str | None = None  # a control-plane or infrastructure taint
    role_tainted: int = 0
    affinity: int = 0
    all_out: bool = False  # taints alone rule out every node
    assigned: bool = False  # a later event says that the pod found its node
    message: str = ""


class K8sDaemonSet(Fact, kw_only=True):
    """A row of `kubectl get daemonset`."""

    kind: ClassVar[str] = "k8s_daemonset"

    name: str
    component: str | None = None
    desired: int
    ready: int
    selector: str | None = None


class RuntimeClass(Fact, kw_only=True):
    """A RuntimeClass object of the cluster."""

    kind: ClassVar[str] = "runtime_class"

    name: str
    handler: str


class SlurmNode(Fact, kw_only=True):
    """A node as `scontrol show node` or `sinfo` shows it."""

    kind: ClassVar[str] = "slurm_node"

    name: str
    state: str | None = None
    reason: str | None = None
    gres: str | None = None
    gres_used: str | None = None
    drained: bool | None = None
    gpu_reason: bool | None = None  # the reason speaks of a GPU
    count_low: bool | None = None  # the reason says that fewer GPUs were reported than configured


class SlurmJob(Fact, kw_only=True):
    """A job: a batch script, `scontrol show job`, or the environment of a job. gpus: GPUs asked for, 0 for none."""

    kind: ClassVar[str] = "slurm_job"

    id: str | None = None
    gpus: int | None = None
    partition: str | None = None
    state: str | None = None
    reason: str | None = None
    seen_by: str | None = None  # script, scontrol


class SlurmGres(Fact, kw_only=True):
    """GPUs of a node as a configuration file declares them."""

    kind: ClassVar[str] = "slurm_gres"

    seen_by: str  # gres.conf, slurm.conf
    nodes: str | None = None
    type: str | None = None
    gpus: int | None = None
    file: str | None = None
    autodetect: str | None = None
    records: int | None = None  # records that describe the same GPUs
