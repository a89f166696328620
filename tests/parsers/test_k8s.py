"""Kubernetes formats beyond the samples in the docstrings."""

from __future__ import annotations

import contextlib
import json
import re
from itertools import pairwise

import pytest

from gpudoctor.facts.container import K8sPod
from gpudoctor.parsers.base import Malformed, NotThisFormat
from gpudoctor.parsers.container import compose_file
from gpudoctor.parsers.formats import FORMATS
from gpudoctor.parsers.k8s import component_of, described, manifest, pod_row, scheduling
from gpudoctor.parsers.scan import Scanner


@pytest.mark.parametrize(
    ("name", "component"),
    [
        ("nvidia-operator-validator-qpv7s", "validator"),
        ("nvidia-device-plugin-daemonset-4ghzp", "device-plugin"),
        ("nvdp-nvidia-device-plugin-x2kq1", "device-plugin"),
        ("nvidia-gpu-driver-ubuntu22.04-7d8c-abcde", "driver"),
        ("nvidia-container-toolkit-daemonset-ktrv6", "toolkit"),
        ("gpu-operator-1743541061-node-feature-discovery-gc-5c45", "node-feature-discovery"),
        ("neuron-device-plugin-daemonset-x", None),
        ("web-6c8b", None),
    ],
)
def test_components(name: str, component: str | None) -> None:
    assert component_of(name) == component


@pytest.mark.parametrize("status", ["Init:0/1", "ContainerCreating", "Pending", "Running", "Completed", "Terminating"])
def test_waiting_is_not_failing(status: str) -> None:
    assert next(pod_row(f"nvidia-device-plugin-daemonset-x   0/1   {status}   0   3m")).failing is False


def test_a_row_of_something_else() -> None:
    with pytest.raises(NotThisFormat):
        next(pod_row("nvidia-smi 535 is running 3/4 of the time"))


def test_several_taints() -> None:
    line = (
        "0/5 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, "
        "2 node(s) had untolerated taint {dedicated: ml}, 2 node(s) didn't match Pod's node affinity/selector."
    )
    fact = next(scheduling(line))
    assert (fact.taint, fact.tainted, fact.role_tainted, fact.affinity, fact.all_out) == (
        "dedicated: ml",
        2,
        1,
        2,
        True,
    )


def test_the_old_wording_of_taints() -> None:
    fact = next(scheduling("0/2 nodes are available: 2 node(s) had taints that the pod didn't tolerate."))
    assert fact.role_tainted == 2
    assert fact.all_out


def test_a_described_pod_tells_its_worst_state() -> None:
    text = (
        "Name:  nvidia-operator-validator-x\nNamespace:  gpu-operator\nStatus:  Pending\nInit Containers:\n"
        "  driver-validation:\n    State:  Terminated\n      Reason:  Completed\n"
        "  toolkit-validation:\n    State:  Waiting\n      Reason:  CrashLoopBackOff\nContainers:\n  v:\n    Image:  x\n"
    )
    pod = next(described(text))
    assert (pod.value("status"), pod.value("failing"), pod.value("component")) == (
        "CrashLoopBackOff",
        True,
        "validator",
    )


def test_limits_of_all_containers_of_a_deployment() -> None:
    text = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: d\nspec:\n  template:\n    spec:\n      containers:\n"
        "      - name: a\n        resources:\n          limits:\n            nvidia.com/gpu: 2\n      - name: b\n"
    )
    assert next(manifest(text)).value("gpus") == 2


@pytest.mark.parametrize(
    "aliases",
    [
        "a: &a [x, x]\n"
        + "".join(f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in pairwise("abcdefghijkl"))
        + "spec: *l\n",
        "a: &a {x: 1}\n"
        + "".join(f"{new}: &{new} {{<<: [{', '.join([f'*{old}'] * 9)}]}}\n" for old, new in pairwise("abcdefghijkl")),
        "metadata: &m {name: x, labels: *m}\n",
    ],
)
def test_aliases_that_grow_beyond_all_measure(aliases: str) -> None:
    with pytest.raises(NotThisFormat):
        list(manifest(f"apiVersion: v1\nkind: Pod\n{aliases}"))
    with pytest.raises(NotThisFormat):
        list(compose_file(f"services:\n  s: {{image: x}}\n{aliases}"))


POD = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}'


def test_a_cut_object_is_told_as_such() -> None:
    with pytest.raises(Malformed, match="cut or damaged"):
        list(manifest(POD[:60]))


def test_of_a_list_too_long_for_one_look_each_member_is_read() -> None:
    with pytest.raises(NotThisFormat):
        list(manifest("{\n" + '"x": 1,\n' * 2000))


@pytest.mark.parametrize(
    "odd",
    [
        '{"kind": "List", "items": {"a": 1}}',
        '{"kind": "Node", "metadata": [], "spec": {"taints": 7}, "status": {"nodeInfo": "x", "capacity": []}}',
        '{"kind": "Pod", "spec": {"containers": [{"env": {"a": 1}, "resources": [], "securityContext": 3}, 7]}}',
        "[" * 5000,
    ],
)
def test_objects_of_an_unheard_shape(odd: str) -> None:
    with contextlib.suppress(NotThisFormat, Malformed):
        assert all(fact.kind in ("k8s_node", "k8s_pod") for fact in manifest(odd))


NODE = {"kind": "Node", "metadata": {"name": "a"}, "status": {"capacity": {"nvidia.com/gpu": "8"}}}
NONSENSE = {
    "items are no list": ("List", "nonsense", 0),
    "item 2: it is no object (and 1 more)": ("List", [NODE, 1, None], 1),
    "item 1: the Node b has a status that holds no fields": (
        "NodeList",
        [{"metadata": {"name": "b"}, "status": "x"}, NODE],
        1,
    ),
    "the Pod unnamed has a metadata that holds no fields": ("PodList", [{"metadata": "x", "status": [1]}], 0),
}


@pytest.mark.parametrize("reason", NONSENSE)
def test_a_list_of_the_wrong_types_is_named_and_the_rest_is_read(reason):
    kind, items, read = NONSENSE[reason]
    facts = []
    with pytest.raises(Malformed, match=re.escape(reason)):
        for fact in manifest(json.dumps({"apiVersion": "v1", "kind": kind, "items": items}, indent=4)):
            facts.append(fact)
    assert [(fact.name, fact.capacity) for fact in facts] == [("a", 8)] * read


def test_an_empty_list_and_the_api_s_own_lists_are_read():
    assert list(manifest('{"apiVersion": "v1", "kind": "PodList", "items": null}')) == []
    member = {name: value for name, value in NODE.items() if name != "kind"}
    [node] = manifest(json.dumps({"apiVersion": "v1", "kind": "NodeList", "items": [member]}))
    assert (node.name, node.capacity) == ("a", 8)


def test_each_member_of_a_list_has_its_line_and_its_containers_tell_the_state() -> None:
    def pod(name: str, state: dict[str, object]) -> dict[str, object]:
        status = {"phase": "Running", "containerStatuses": [{"name": "c", "restartCount": 7, "state": state}]}
        return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c"}]}, "status": status}

    pods = [
        pod("nvidia-driver-daemonset-a", {"running": {}}),
        pod("nvidia-driver-daemonset-b", {"waiting": {"reason": "CrashLoopBackOff"}}),
    ]
    text = json.dumps({"kind": "PodList", "apiVersion": "v1", "items": pods}, indent=4)
    first, second = manifest(text)
    assert (first.status, first.failing, second.status, second.failing, second.restarts) == (
        "Running",
        False,
        "CrashLoopBackOff",
        True,
        7,
    )
    lines = text.split("\n")
    assert '"nvidia-driver-daemonset-b"' in lines[second.at]
    assert '"CrashLoopBackOff"' in lines[second.at_fields["status"]]


def test_members_of_a_list_too_long_for_one_look() -> None:
    member = "- apiVersion: v1\n  kind: Pod\n  metadata:\n" + "".join(f"    k{n}: v\n" for n in range(300))
    spec = "  spec: {containers: []}\n"
    bad = f"{spec}  status:\n    initContainerStatuses:\n    - state:\n        waiting:\n          reason: ImagePullBackOff\n"
    members = "".join(f"{member}    name: p{n}\n{bad if n == 9 else spec}" for n in range(12))
    text = f"apiVersion: v1\nitems:\n{members}kind: List\n"
    facts = Scanner(FORMATS, ()).scan("pods.yaml", [text.encode()]).facts
    pods = [fact for fact in facts if isinstance(fact, K8sPod)]
    assert [pod.name for pod in pods] == [f"p{n}" for n in range(12)]
    assert [(pod.name, pod.status) for pod in pods if pod.failing] == [("p9", "Init:ImagePullBackOff")]
    assert pods[9].where.text == "name: p9"
