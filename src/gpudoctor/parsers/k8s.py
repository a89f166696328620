"""Formats of Kubernetes: what kubectl lists and describes, manifests, and the scheduler's sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from gpudoctor.facts.base import Fact
from gpudoctor.facts.container import K8sDaemonSet, K8sNode, K8sPod, K8sScheduling, RuntimeClass
from gpudoctor.parsers.base import Format, Malformed, NotThisFormat, yaml_data
from gpudoctor.patterns.lazy import LazyRegex

_LONGEST = 2000  # lines of an object that is read at once
_LONGEST_LIST = 100_000
_MEMBERS = 500  # of a list
_KINDS = ("Pod", "Node", "Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Job", "CronJob")

# Names under which the plugin, the operator and their charts deploy; the first that fits decides.
_COMPONENTS: tuple[tuple[str, LazyRegex], ...] = tuple(
    (component, LazyRegex(pattern))
    for component, pattern in (
        ("validator", r"nvidia-(?:operator|cuda|driver|device-plugin|container-toolkit)-validat"),
        ("driver", r"nvidia-(?:driver|gpu-driver|vgpu-manager)|nvidia-vgpu-host-driver"),
        ("toolkit", r"nvidia-container-toolkit"),
        ("device-plugin", r"(?:nvidia|nvdp|nvidia-gpu)\S*-device-plugin|^k8s-device-plugin|nvidia-gpu-device-plugin"),
        ("dcgm", r"dcgm"),
        ("feature-discovery", r"gpu-feature-discovery"),
        ("mig-manager", r"nvidia-mig-manager"),
        ("node-feature-discovery", r"node-feature-discovery"),
        ("operator", r"^gpu-operator"),
    )
)
_FAILING = LazyRegex(
    r"(?:Init:)?(?:CrashLoopBackOff|Error|ImagePullBackOff|ErrImagePull|InvalidImageName|OOMKilled|RunContainerError"
    r"|CreateContainer(?:Config)?Error|StartError|ContainerCannotRun|Failed)$"
)
_ROW = LazyRegex(
    r"^\s*(?:(?P<namespace>[a-z0-9][a-z0-9-]*)\s+)?(?:pod/)?(?P<name>[a-z0-9][a-z0-9.-]{2,252})\s+(?P<ready>\d+/\d+)\s+"
    r"(?P<status>[A-Z][\w:/.-]*)\s+(?P<restarts>\d+)(?:\s+\([^)]{1,40}\))?(?:\s+(?P<age>\d\S*|<\w+>)|\s*$)"
)


def component_of(name: str) -> str | None:
    """Return which part of NVIDIA's set-up a pod or daemon set is.

    >>> component_of("nvidia-driver-daemonset-5.15.0-1-ubuntu22.04-x7k2p"), component_of("nvdp-nvidia-device-plugin-l7zqm")
    ('driver', 'device-plugin')
    """
    return next((component for component, pattern in _COMPONENTS if pattern.search(name)), None)


def pod_row(text: str) -> Iterator[K8sPod]:
    """A row of `kubectl get pods`, with or without namespace.

    >>> pod = next(pod_row("gpu-operator   nvidia-driver-daemonset-x7k2p   0/1   Init:CrashLoopBackOff   9 (65s ago)   22m"))
    >>> pod.component, pod.status, pod.failing, pod.restarts
    ('driver', 'Init:CrashLoopBackOff', True, 9)
    """
    found = _ROW.match(text.partition("\n")[0])
    if not found:
        raise NotThisFormat
    status = found["status"]
    yield K8sPod(
        name=found["name"],
        namespace=found["namespace"],
        ready=found["ready"],
        status=status,
        restarts=int(found["restarts"]),
        component=component_of(found["name"]),
        failing=bool(_FAILING.match(status)),
        reason=status if status in ("UnexpectedAdmissionError", "TopologyAffinityError") else None,
    )


_DAEMONSET = LazyRegex(
    r"^\s*(?:[a-z0-9-]+\s+)?(?:daemonset\.apps/)?(?P<name>[a-z0-9][a-z0-9.-]+)\s+(?P<desired>\d+)\s+\d+\s+(?P<ready>\d+)\s+\d+\s+\d+\s+(?P<selector>\S+=\S*|<none>)\s+\d"
)


def daemonset_row(text: str) -> Iterator[K8sDaemonSet]:
    """A row of `kubectl get daemonset`.

    >>> row = "nvidia-device-plugin-daemonset  0  0  0  0  0  nvidia.com/gpu.deploy.device-plugin=true  3d"
    >>> fact = next(daemonset_row(row))
    >>> fact.desired, fact.selector
    (0, 'nvidia.com/gpu.deploy.device-plugin=true')
    """
    found = _DAEMONSET.match(text.partition("\n")[0])
    if not found:
        raise NotThisFormat
    selector = found["selector"]
    yield K8sDaemonSet(
        name=found["name"],
        component=component_of(found["name"]),
        desired=int(found["desired"]),
        ready=int(found["ready"]),
        selector=None if selector == "<none>" else selector,
    )


def runtime_classes(text: str) -> Iterator[RuntimeClass]:
    r"""`kubectl get runtimeclass`.

    >>> next(runtime_classes("NAME     HANDLER   AGE\nnvidia   nvidia    7d1h")).handler
    'nvidia'
    """
    lines = text.split("\n")
    if not re.match(r"\s*NAME\s+HANDLER\b", lines[0]):
        raise NotThisFormat
    for offset, line in enumerate(lines[1:], start=1):
        words = line.split()
        if len(words) < 2 or not re.match(r"[a-z0-9-]+$", words[0]):
            return
        yield RuntimeClass(at=offset, name=words[0], handler=words[1])


# --- the scheduler ------------------------------------------------------------------------------------------------

_NODES = LazyRegex(r"(?P<fit>\d+)/(?P<nodes>\d+) nodes are (?:un)?available: (?P<reasons>.*)")
_ROLE_TAINTS = ("node-role.kubernetes.io/", "node.kubernetes.io/master", "CriticalAddonsOnly")
_CARD_RESOURCES = {"CardInsufficientMemory": "nvidia.com/gpumem", "CardInsufficientCore": "nvidia.com/gpucores"}
_STATE_TAINTS = (
    "node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "node.cilium.io/", "ToBeDeleted", "DeletionCandidate",
    "karpenter.sh/", "ebs.csi.aws.com/",
)  # fmt: skip


_ASSIGNED = LazyRegex(r"\bScheduled\s.*Successfully assigned")
_EVENT = LazyRegex(r"^\s*(?:\S+\s+)?(?:Normal|Warning)\s+\w+\s")


def _events(text: str) -> Iterator[str]:
    """Return the rows of the same table of events."""
    for line in text.split("\n"):
        if not _EVENT.match(line):
            return
        yield line


def scheduling(text: str) -> Iterator[K8sScheduling]:
    """The scheduler's sentence about a pod that fits nowhere.

    >>> line = "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }. preemption: 0/3"
    >>> fact = next(scheduling(line))
    >>> fact.insufficient, fact.resource, fact.tainted, fact.role_tainted
    (1, 'nvidia.com/gpu', 0, 2)
    >>> next(scheduling("0/1 nodes are available: 1 node(s) had taint {gpu: yes}, that the pod didn't tolerate.")).taint
    'gpu: yes'
    """
    line, _, following = text.partition("\n")
    found = _NODES.search(line)
    if not found:
        raise NotThisFormat
    reasons = re.split(r"\.? *preemption: |\. *(?:no new claims|pod didn't)", found["reasons"])[0]
    fact = K8sScheduling(nodes=int(found["nodes"]), message=line.strip()[:300])
    if "FailedScheduling" in line and any(_ASSIGNED.search(event) for event in _events(following)):
        fact.assigned = True
    if short := re.search(r"(\d+) Insufficient ((?:alpha\.kubernetes\.io/nvidia-|nvidia\.com/)[\w.-]*\w)", reasons):
        fact.insufficient, fact.resource = int(short[1]), short[2]
    elif card := re.search(
        r"(\d+) (\w*Insufficient(?:Memory|Core|Device|Request)|Card\w+Exhausted)\b", reasons
    ):  # HAMi
        fact.insufficient, fact.resource = int(card[1]), _CARD_RESOURCES.get(card[2], "nvidia.com/gpu")
    for number, braces in re.findall(r"(\d+) node\(s\) had (?:untolerated )?taints? \{([^}]*)\}", reasons):
        taint = braces.strip().removesuffix(":").strip()
        if taint.startswith(_ROLE_TAINTS):
            fact.role_taint, fact.role_tainted = taint, fact.role_tainted + int(number)
        elif not taint.startswith(_STATE_TAINTS):
            fact.taint, fact.tainted = fact.taint or taint, fact.tainted + int(number)
    if plain := re.search(
        r"(\d+) node\(s\) had (?:untolerated )?taint(?:s that the pod didn't tolerate|\(s\))", reasons
    ):
        fact.role_taint, fact.role_tainted = fact.role_taint or "not named", fact.role_tainted + int(plain[1])
    for number in re.findall(r"(\d+) node\(s\) didn't match (?:Pod's )?(?:node affinity|node selector)", reasons):
        fact.affinity += int(number)
    for number in re.findall(r"(\d+) node\(s\) didn't match pod (?:anti-)?affinity", reasons):
        fact.affinity += int(number)
    for number, predicate in re.findall(r"(\d+) (PodToleratesNodeTaints|MatchNodeSelector)\b", reasons):  # before 1.12
        if predicate == "MatchNodeSelector":
            fact.affinity += int(number)
        else:
            fact.role_taint, fact.role_tainted = fact.role_taint or "not named", fact.role_tainted + int(number)
    fact.all_out = fact.tainted + fact.role_tainted + fact.affinity >= int(found["nodes"]) > 0
    yield fact


# --- describe -----------------------------------------------------------------------------------------------------

_FIELD = LazyRegex(r"^(?P<indent>\s*)(?P<key>[A-Z][\w /-]*?|[\w./-]+):\s*(?P<value>.*)$")


def described(text: str) -> Iterator[Fact]:
    r"""`kubectl describe pod` or `kubectl describe node`, as much of it as there is.

    >>> node = next(described("Name:   n1\nRoles:  <none>\nTaints: gpu:NoSchedule\nCapacity:\n  cpu: 8\nAllocatable:\n  cpu: 8\n"))
    >>> node.name, node.taints, node.capacity
    ('n1', 'gpu:NoSchedule', 0)
    >>> pod = next(described("Name:  p\nNamespace: x\nContainers:\n  a:\n    Image: i\n    Limits:\n      nvidia.com/gpu:  2\n"))
    >>> pod.gpus, pod.namespace
    (2, 'x')
    """
    lines = text.split("\n")
    if re.match(r"Capacity:\s*$", lines[0]):  # the part of a node's description that people paste
        lines.insert(0, "Name:  node")
        yield _node(lines, {"Name": "node"}, -1)
        return
    if not re.match(r"Name: +\S+\s*$", lines[0]):
        raise NotThisFormat
    end = next(
        (number for number, line in enumerate(lines[1:], start=1) if re.match(r"Name: +\S+\s*$", line)), len(lines)
    )
    lines = lines[:end]
    top = {
        found["key"]: found["value"].strip() for line in lines if (found := _FIELD.match(line)) and not found["indent"]
    }
    if "Roles" in top or "Capacity" in top or "Taints" in top:
        yield _node(lines, top, 0)
    elif "Namespace" in top and ("Containers" in top or "Node" in top or "Status" in top):
        yield _pod(lines, top)
    else:
        raise NotThisFormat


def _section(lines: list[str], head: str) -> list[str] | None:
    """Return the indented lines below a heading at the left margin; None where the heading is missing."""
    for number, line in enumerate(lines):
        if line.startswith(head + ":"):
            rest = lines[number + 1 :]
            end = next((n for n, below in enumerate(rest) if below and not below.startswith((" ", "\t"))), len(rest))
            return [line[len(head) + 1 :], *rest[:end]]
    return None


def _gpus(section: list[str] | None) -> int | None:
    if section is None or not any(line.strip() for line in section):
        return None
    numbers = [
        int(found[1]) for line in section if (found := re.match(r"\s+nvidia\.com/(?:gpu|mig-)\S*:?\s+(\d+)", line))
    ]
    return sum(numbers)


def node_list(text: str) -> Iterator[K8sNode]:
    r"""`kubectl get nodes` with a column for the GPUs, as the documentation tells people to print it.

    >>> [node.capacity for node in node_list("NAME      GPU\ngpu-a     4\ncpu-a     <none>\n")]
    [4, 0]
    """
    lines = text.split("\n")
    if not re.match(r"\s*NAME\s+(?:GPUS?|GPU\(S\)|NVIDIA\S*|nvidia\.com/gpu)\s*$", lines[0]):
        raise NotThisFormat
    for offset, line in enumerate(lines[1:], start=1):
        found = re.match(r"\s*([a-z0-9][\w.-]*)\s+(\d+|<none>)\s*$", line)
        if not found:
            return
        count = int(found[2]) if found[2].isdigit() else 0
        yield K8sNode(at=offset, name=found[1], capacity=count, allocatable=count, listed=True)


def _difference(whole: int | None, part: int | None) -> int | None:
    return None if whole is None or part is None else whole - part


def _node(lines: list[str], top: dict[str, str], shift: int) -> K8sNode:
    taints = _section(lines, "Taints") or []
    shown = [line.strip() for line in taints if line.strip() and line.strip() != "<none>"]
    labels = " ".join(_section(lines, "Labels") or [])
    allocated = None
    for line in _section(lines, "Allocated resources") or []:
        if found := re.match(r"\s+nvidia\.com/gpu\S*\s+(\d+)", line):
            allocated = int(found[1])
    system = {f["key"]: f["value"].strip() for line in lines if (f := _FIELD.match(line)) and f["indent"]}
    ready = next((found[1] for line in lines if (found := re.match(r"\s+Ready\s+(True|False|Unknown)\b", line))), None)
    capacity, allocatable = _gpus(_section(lines, "Capacity")), _gpus(_section(lines, "Allocatable"))
    return K8sNode(
        at=next((number + shift for number, line in enumerate(lines) if line.startswith("Allocatable:")), 0),
        name=top["Name"],
        capacity=capacity,
        allocatable=allocatable,
        allocated=allocated,
        withheld=_difference(capacity, allocatable),
        free=_difference(allocatable, allocated),
        ready=None if ready is None else ready == "True",
        taints=", ".join(shown) or None,
        labelled="nvidia.com/" in labels or None,
        runtime=system.get("Container Runtime Version"),
        kubelet=system.get("Kubelet Version"),
    )


def _pod(lines: list[str], top: dict[str, str]) -> K8sPod:
    body = "\n".join(lines)
    containers = _section(lines, "Containers")
    gpus = None
    if containers and re.search(
        r"^\s+(?:Image|Limits|Requests|Environment|Mounts):", "\n".join(containers), re.MULTILINE
    ):
        gpus = sum(
            int(number)
            for limits in re.findall(r"Limits:\n((?:\s{6,}\S+\s+\S+)+)", "\n".join(containers) + "\n")
            for number in re.findall(r"nvidia\.com/\S+:\s+(\d+)", limits)
        )
    visible = re.search(r"^\s+NVIDIA_VISIBLE_DEVICES:\s+(\S+)", body, re.MULTILINE)
    reason = top.get("Reason")
    reasons = re.findall(r"^\s+Reason:\s+(\w+)", body, re.MULTILINE)
    worst = next((word for word in reasons if _FAILING.match(word)), None)
    waiting = worst or next((word for word in reasons if word != "Completed"), None)
    restarts = re.search(r"^\s+Restart Count:\s+(\d+)", body, re.MULTILINE)
    code = re.search(r"^\s+Exit Code:\s+(\d+)", body, re.MULTILINE)
    status = reason or waiting or top.get("Status")
    node = top.get("Node", "")
    return K8sPod(
        name=top["Name"],
        namespace=top.get("Namespace"),
        status=status,
        reason=reason,
        message=top.get("Message"),
        gpus=gpus,
        restarts=int(restarts[1]) if restarts else None,
        exit_code=int(code[1]) if code else None,
        runtime_class=top.get("Runtime Class Name"),
        component=component_of(top["Name"]),
        failing=bool(status and _FAILING.match(status)),
        on_node=node.partition("/")[0] if node and node != "<none>" else None,
        visible_devices=visible[1] if visible else None,
    )


def amounts(text: str) -> Iterator[K8sNode]:
    r"""The part of a node's status in YAML that people paste: allocatable and capacity.

    >>> node = next(amounts('  allocatable:\n    cpu: "48"\n    nvidia.com/gpu: "0"\n  capacity:\n    nvidia.com/gpu: "16"\n'))
    >>> node.allocatable, node.capacity
    (0, 16)
    """
    lines = text.split("\n")
    head = re.match(r"(\s*)(?:allocatable|capacity):\s*$", lines[0])
    if not head:
        raise NotThisFormat
    margin = len(head[1])
    counts: dict[str, int] = {}
    key, last = "", 0
    for offset, line in enumerate(lines):
        if not line.strip() or len(line) - len(line.lstrip()) < margin:
            break
        if found := re.match(r"\s*(allocatable|capacity):\s*$", line):
            if found[1] in counts:
                break
            key, last = found[1], offset
            counts[key] = 0
        elif len(line) - len(line.lstrip()) == margin:
            break
        elif found := re.match(r"\s*\"?nvidia\.com/(?:gpu|mig-)[\w.-]*\"?:\s*\"?(\d+)", line):
            counts[key] += int(found[1])
    if last == 0 and len(lines) < 3:
        raise NotThisFormat
    capacity, allocatable = counts.get("capacity"), counts.get("allocatable")
    yield K8sNode(
        at=last,
        name="node",
        capacity=capacity,
        allocatable=allocatable,
        withheld=_difference(capacity, allocatable),
    )


# --- manifests ----------------------------------------------------------------------------------------------------


class _Lines:
    """Finds the lines of an object's fields; members of a list come in the order in which they stand."""

    def __init__(self, lines: list[str], first: int) -> None:
        self._lines = lines
        self._at = first

    def find(self, key: str, value: str | None) -> int | None:
        """Return the next line with that field, and go on behind it; None where there is none near."""
        if value is not None:
            wanted = re.compile(rf"[\s-]*\"?{key}\"?: [\"']?{re.escape(value)}[\"']?,?\s*$")
            for number in range(self._at, min(self._at + _LONGEST, len(self._lines))):
                if key in self._lines[number] and wanted.match(self._lines[number]):
                    self._at = number + 1
                    return number
        return None

    def place(self) -> int:
        """Return the line behind which the last field was found."""
        return self._at


def manifest(text: str) -> Iterator[Fact]:
    r"""A pod, or what makes pods, in YAML or JSON: its state, GPU limits, runtime class, the NVIDIA variables.

    >>> doc = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  runtimeClassName: nvidia\n  containers:\n  - name: c\n    resources: {limits: {nvidia.com/gpu: 1}}\n"
    >>> pod = next(manifest(doc))
    >>> pod.gpus, pod.runtime_class
    (1, 'nvidia')
    >>> state = "\n  status: {containerStatuses: [{restartCount: 7, state: {waiting: {reason: CrashLoopBackOff}}}]}"
    >>> pod = next(manifest(f"- apiVersion: v1\n  kind: Pod\n  metadata: {{name: p}}\n  spec: {{containers: []}}{state}\n- apiVersion: v1"))
    >>> pod.status, pod.failing, pod.restarts
    ('CrashLoopBackOff', True, 7)
    """
    lines = text.split("\n")
    first = next((number for number in range(min(len(lines), 3)) if lines[number].strip() == "{"), None)
    if first is None and lines[0].lstrip().startswith("{"):
        first = 0
    first, data = _from_yaml(lines) if first is None else (first, _from_json(lines, first))
    if isinstance(data, dict):
        yield from _object(data, 0, _Lines(lines, first))


def _from_json(lines: list[str], first: int) -> Any:
    try:
        data, _ = json.JSONDecoder().raw_decode("\n".join(lines[first:]).lstrip())
    except (json.JSONDecodeError, RecursionError) as error:
        if len(lines) >= _LONGEST:  # a list longer than is read at once: its members are read each
            raise NotThisFormat from None
        where = f", in line {error.lineno} of it" if isinstance(error, json.JSONDecodeError) else ""
        said = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deep"
        raise Malformed(f"the JSON is cut or damaged ({said}{where}); what follows was not read") from None
    return data


_YAML_START = LazyRegex(r"(?P<margin> *)(?P<item>- )?(?:apiVersion|kind): *\S+")
_YAML_KIND = LazyRegex(r"^[ -]*kind: *[\"']?(?P<kind>\w+)")


def _from_yaml(lines: list[str]) -> tuple[int, Any]:
    """Return an object at the left margin, or a member of a list, with its first line: the anchor's, or the one before."""
    first = 0 if _YAML_START.match(lines[0]) else 1
    start = _YAML_START.match(lines[first]) if first < len(lines) else None
    if start is None or (start["margin"] and not start["item"]):
        raise NotThisFormat
    margin = len(start["margin"])
    body: list[str] = []
    for number, line in enumerate(lines[first:]):
        if start["item"]:
            if number and line.strip() and len(line) - len(line.lstrip()) <= margin:
                break
            body.append(line[margin + 2 :])
        elif line.strip() and not re.match(r"[ \t#]|[A-Za-z]\w*:(?:\s|$)|- ", line):
            break
        else:
            body.append(line)
    kinds = [found["kind"] for line in body[:3] if (found := _YAML_KIND.match(line)) and not line.startswith("  ")]
    if start["item"] and kinds and kinds[0] not in (*_KINDS, "RuntimeClass"):
        raise NotThisFormat
    if len(lines) >= _LONGEST and any(line.startswith("items:") for line in body):
        raise NotThisFormat  # a list longer than is read at once: its members are read each
    return first, yaml_data("\n".join(body))


def _object(data: Any, depth: int, lines: _Lines) -> Iterator[Fact]:
    if not isinstance(data, dict) or depth > 3:
        return
    kind = data.get("kind")
    metadata = data["metadata"] if isinstance(data.get("metadata"), dict) else {}
    name = str(metadata.get("name") or metadata.get("generateName") or "unnamed")
    if (
        isinstance(kind, str) and kind.endswith("List") and "items" in data
    ):  # kubectl's own, the API's PodList, NodeList
        yield from _members(kind, data["items"] or [], depth + 1, lines)
        return
    wrong = next((key for key in ("metadata", "spec", "status") if not isinstance(data.get(key) or {}, dict)), None)
    if kind in _KINDS and wrong:
        raise Malformed(f"the {kind} {name} has a {wrong} that holds no fields; it was not read")
    if kind == "RuntimeClass" and data.get("handler"):
        yield RuntimeClass(name=name, handler=str(data["handler"]), at=lines.find("name", name) or lines.place())
        return
    if kind == "Node":
        yield _node_object(name, data, lines.find("name", name) or lines.place())
        return
    spec = data.get("spec")
    for _ in range(3):  # Deployment -> template -> spec; CronJob -> jobTemplate -> spec -> template -> spec
        if isinstance(spec, dict) and "containers" not in spec:
            inner = spec.get("template") or spec.get("jobTemplate")
            spec = inner.get("spec") if isinstance(inner, dict) else spec
    if not isinstance(spec, dict) or not isinstance(spec.get("containers"), list):
        return
    yield _pod_object(name, data, spec, lines)


def _pod_object(name: str, data: dict[str, Any], spec: dict[str, Any], lines: _Lines) -> K8sPod:
    at = lines.find("name", name)
    gpus, visible, privileged = 0, None, False
    for container in spec["containers"]:
        if not isinstance(container, dict):
            continue
        resources = container.get("resources")
        limits = resources.get("limits") if isinstance(resources, dict) else None
        for key, value in (limits or {}).items() if isinstance(limits, dict) else ():
            if str(key).startswith("nvidia.com/") and str(value).isdigit():
                gpus += int(value)
        variables = container.get("env")
        for variable in variables if isinstance(variables, list) else ():
            if isinstance(variable, dict) and variable.get("name") == "NVIDIA_VISIBLE_DEVICES":
                visible = str(variable.get("value"))
        security = container.get("securityContext")
        privileged |= isinstance(security, dict) and security.get("privileged") is True
    status = data["status"] if isinstance(data.get("status"), dict) else {}
    metadata = data["metadata"] if isinstance(data.get("metadata"), dict) else {}
    reason = _text(status.get("reason"))
    state = _state_of_containers(status)
    shown = reason or state.reason
    pod = K8sPod(
        name=name,
        namespace=_text(metadata.get("namespace")),
        status=shown or _text(status.get("phase")),
        reason=reason,
        message=(_text(status.get("message")) or "")[:300] or None,
        gpus=gpus,
        runtime_class=_text(spec.get("runtimeClassName")),
        component=component_of(name),
        on_node=_text(spec.get("nodeName")),
        visible_devices=visible,
        privileged=privileged,
        restarts=state.restarts,
        exit_code=state.exit_code,
        at=at or lines.place(),
    )
    pod.failing = bool(pod.status and _FAILING.match(pod.status)) if status else None
    where = lines.find("reason", shown.removeprefix("Init:")) if shown else None
    pod.at_fields = {"status": where, "failing": where} if where is not None else {}
    return pod


class _Containers(NamedTuple):
    """What the containers of a pod come to, as kubectl sums them up."""

    reason: str | None = None
    restarts: int | None = None
    exit_code: int | None = None


def _state_of_containers(status: dict[str, Any]) -> _Containers:
    found = _Containers()
    for key, prefix in (("initContainerStatuses", "Init:"), ("containerStatuses", "")):
        listed = status.get(key)
        for container in listed if isinstance(listed, list) else ():
            if not isinstance(container, dict):
                continue
            restarts = container.get("restartCount")
            if isinstance(restarts, int):
                found = found._replace(restarts=max(found.restarts or 0, restarts))
            for when in ("state", "lastState"):
                states = container.get(when)
                for name in ("waiting", "terminated"):
                    detail = states.get(name) if isinstance(states, dict) else None
                    if not isinstance(detail, dict):
                        continue
                    reason, code = detail.get("reason"), detail.get("exitCode")
                    if when == "state" and isinstance(reason, str) and reason not in ("Completed", "PodInitializing"):
                        found = found._replace(reason=found.reason or prefix + reason)
                    if isinstance(code, int) and code:
                        found = found._replace(exit_code=found.exit_code or code)
    return found


def _members(kind: str, items: Any, depth: int, lines: _Lines) -> Iterator[Fact]:
    """Read the members of a list; says at the end what was wrong with some."""
    if not isinstance(items, list):
        raise Malformed(f"the {kind}'s items are no list; nothing of it was read")
    wrong = []
    for number, member in enumerate(items[:_MEMBERS], start=1):
        try:
            if not isinstance(member, dict):
                raise Malformed("it is no object")
            yield from _object({"kind": kind.removesuffix("List"), **member}, depth, lines)
        except Malformed as error:
            wrong.append(f"item {number}: {error}")
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise Malformed(f"{kind}, {wrong[0]}{more}")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _node_object(name: str, data: dict[str, Any], at: int) -> K8sNode:
    status = data["status"] if isinstance(data.get("status"), dict) else {}

    def count(key: str) -> int | None:
        amounts = status.get(key)
        if not isinstance(amounts, dict):
            return None
        return sum(int(v) for k, v in amounts.items() if str(k).startswith("nvidia.com/") and str(v).isdigit())

    spec = data["spec"] if isinstance(data.get("spec"), dict) else {}
    listed = spec.get("taints")
    taints = [t for t in listed if isinstance(t, dict)] if isinstance(listed, list) else []
    metadata = data["metadata"] if isinstance(data.get("metadata"), dict) else {}
    labels = metadata["labels"] if isinstance(metadata.get("labels"), dict) else {}
    info = status["nodeInfo"] if isinstance(status.get("nodeInfo"), dict) else {}
    conditions = status.get("conditions")
    ready = next(
        (
            str(condition.get("status"))
            for condition in (conditions if isinstance(conditions, list) else ())
            if isinstance(condition, dict) and condition.get("type") == "Ready"
        ),
        None,
    )
    return K8sNode(
        at=at,
        name=name,
        ready=None if ready is None else ready == "True",
        capacity=count("capacity"),
        allocatable=count("allocatable"),
        withheld=_difference(count("capacity"), count("allocatable")),
        taints=", ".join(f"{t.get('key')}={t.get('value', '')}:{t.get('effect')}" for t in taints) or None,
        labelled=any(str(label).startswith("nvidia.com/") for label in labels) or None,
        runtime=info.get("containerRuntimeVersion"),
        kubelet=info.get("kubeletVersion"),
    )


FORMATS = (
    Format(
        "kubectl get pods",
        (
            "nvidia-", "gpu-operator", "dcgm-", "gpu-feature-discovery", "CrashLoopBackOff", "Init:", "BackOff ", "ErrImagePull",
            "ContainerCreating", "UnexpectedAdmissionError", "TopologyAffinityError", "OutOfnvidia", "ContainerError", "Pending ",
        ),
        pod_row,
        lines=1,
    ),
    Format("kubectl get daemonset", ("nvidia-", "device-plugin", "gpu-feature-discovery"), daemonset_row, lines=1),
    Format("kubectl get runtimeclass", ("HANDLER",), runtime_classes, lines=20),
    Format("scheduler message", (" nodes are available: ", " nodes are unavailable: "), scheduling, lines=30),
    Format("kubectl get nodes", ("NAME ",), node_list, lines=300),
    Format("node status", ("allocatable:", "capacity:"), amounts, lines=60),
    Format("kubectl describe", ("Name:  ", "Capacity:"), described, lines=300),
    Format("Kubernetes object", ("apiVersion: ",), manifest, lines=_LONGEST, back=1),
    Format("Kubernetes object", ('"apiVersion": ',), manifest, lines=_LONGEST, back=2),
    # What `kubectl cluster-info dump` prints: its members tell neither their kind nor a version.
    Format("Kubernetes object", ('"kind": "NodeList"', '"kind": "PodList"'), manifest, lines=_LONGEST_LIST, back=1),
)  # fmt: skip
