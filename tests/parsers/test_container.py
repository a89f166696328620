"""Container formats beyond the samples in the docstrings."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest

from gpudoctor.facts.base import Fact
from gpudoctor.parsers import container, k8s, slurm
from gpudoctor.parsers.base import Malformed, NotThisFormat


def run(line: str) -> Fact:
    return next(iter(container.run_command(line)))


@pytest.mark.parametrize(
    ("line", "gpus"),
    [
        ("docker run --rm --gpus=all ubuntu nvidia-smi", True),
        ("sudo docker run -e NVIDIA_VISIBLE_DEVICES=all --runtime=nvidia img", True),
        ("podman run --device nvidia.com/gpu=0 img", True),
        ("$ podman run --device=/dev/nvidia0 --device=/dev/nvidiactl img", True),
        ("apptainer exec --nv img.sif python x.py", True),
        ("# docker run -it -p 8888:8888 -v /data:/data img:1 bash", False),
        ("singularity shell img.sif", False),
    ],
)
def test_whether_a_run_asks_for_gpus(line: str, gpus: bool) -> None:
    assert run(line).value("gpus") is gpus


def test_the_image_is_not_an_options_value() -> None:
    assert run("docker run -v /a:/b -w /b --name x -e A=B --shm-size 8g img:2 python -u t.py").value("image") == "img:2"


@pytest.mark.parametrize(
    "line",
    ["docker: Error response from daemon: run it", "docker run --help-me-not", "then you docker run", "docker run"],
)
def test_no_command_line(line: str) -> None:
    with pytest.raises(NotThisFormat):
        run(line)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open",
            "library_missing",
        ),
        (
            "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown",
            "library_mismatch",
        ),
        ("nvidia-container-cli: detection error: nvml error: unknown error: unknown", "nvml"),
        ("nvidia-container-cli: device error: unknown device id: 8: unknown", "unknown_device"),
        ("nvidia-container-cli.real: ldcache error: process /sbin/ldconfig terminated with signal 9", "ldcache"),
        ("nvidia-container-cli: container error: cgroup subsystem devices not found: unknown", "cgroup"),
        (
            "nvidia-container-cli: mount error: file creation failed: /x/merged/usr/lib/libcuda.so.1: file exists",
            "file_exists",
        ),
        ("nvidia-container-cli: initialization error: driver rpc error: timed out: unknown", "timeout"),
        ("nvidia-container-cli: error parsing IMEX info: unsupported IMEX channel value: all", "imex"),
    ],
)
def test_reasons_of_the_hook(line: str, reason: str) -> None:
    assert next(container.container_cli(line)).reason == reason


def test_a_call_of_the_tool_is_no_error() -> None:
    with pytest.raises(NotThisFormat):
        next(container.container_cli("nvidia-container-cli: version 1.17.4"))


def test_a_trailing_comma_breaks_daemon_json() -> None:
    text = '{\n  "runtimes": {\n    "nvidia": {"path": "nvidia-container-runtime"},\n  }\n}\n'
    assert next(container.daemon_json(text)).key == "invalid"


def test_a_cut_daemon_json_says_nothing() -> None:
    assert list(container.daemon_json('{\n  "runtimes": {\n    "nvidia": {\n')) == []


PARSERS = [format_.parse for module in (container, k8s, slurm) for format_ in module.FORMATS]
SEEDS = (
    "NAME READY STATUS RESTARTS AGE\nnvidia-device-plugin-daemonset-x 0/1 CrashLoopBackOff 5 (2m ago) 4m\n",
    "Name:   n\nNamespace: x\nContainers:\n  a:\n    Limits:\n      nvidia.com/gpu:  2\n",
    "services:\n  a: [1, {b: &x c}]\n  d: *x\n",
    "apiVersion: v1\nkind: Pod\nspec: {containers: [{resources: 5}, 3, null]}\n",
    '{"apiVersion": "v1", "kind": "List", "items": [1, {"kind": "Node", "status": []}, null]}\n',
    "NodeName=a Gres=gpu:x:3(S:0-1),gpu Arch=x State=IDLE+DRAIN Reason=\n",
    "Name=gpu File=/dev/nvidia[0-99999999,x-] Count=\nAutoDetect=nvml\n",
    "docker run -e 'open quote --gpus all img\\\n  more\n",
    "0/x nodes are available: 3 node(s) had untolerated taint {a: }, 1 Insufficient nvidia.com/.\n",
    "cdiVersion: 0.5.0\n  hostPath: /usr/lib/libcuda.so.550.54.15\n",
    "[plugins.'x'.containerd.runtimes.nvidia.options]\n BinaryName = 'x\n = \n",
)


def garbled() -> Iterator[str]:
    source = random.Random(7)
    for seed in SEEDS:
        yield seed
        for _ in range(30):
            text = list(seed)
            for _ in range(source.randint(1, 6)):
                where = source.randrange(len(text))
                text[where : where + source.randint(0, 9)] = source.choice(
                    ["\x00", "{", "[", ":", "\n", "é", "", " " * 40]
                )
            yield "".join(text)
    for piece in ("docker run ", "a ", "0/1 ", "--x ", "nvidia-", ": ", "(", "{", "  "):
        yield piece * 4000


def test_garbled_text_breaks_no_parser_and_takes_no_time() -> None:
    started = time.perf_counter()
    for text in garbled():
        for parse in PARSERS:
            try:
                list(parse(text))
            except (NotThisFormat, Malformed):
                continue
    assert time.perf_counter() - started < 10


def test_a_command_line_of_many_options_is_read_at_once():
    """With options that could be split in many ways it once took years."""
    with pytest.raises(NotThisFormat):
        list(container.run_command("docker" + " --a" * 400))
    [run] = container.run_command(f"docker -D --log-level debug --host=tcp://a:1 run --gpus all image {'--a ' * 400}")
    assert (run.engine, run.image, run.gpus) == ("docker", "image", True)
    with pytest.raises(NotThisFormat):
        list(container.engine_version("nvidia-docker2" + " " * 400 + "x"))
    [found] = container.engine_version('"nvidia-docker2", version: 2.13.0')
    assert (found.name, found.version) == ("nvidia-docker2", "2.13.0")
