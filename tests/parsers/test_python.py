"""Python formats that one sample in a docstring does not cover."""

import time

import pytest

from gpudoctor.facts.base import Fact
from gpudoctor.parsers import python
from gpudoctor.parsers.base import Format, NotThisFormat, Parser


def read(parser: Parser, text: str) -> list[Fact]:
    try:
        return list(parser(text))
    except NotThisFormat:
        return []


@pytest.mark.parametrize(
    ("text", "type_", "message"),
    [
        ("ValueError: bad\n", "ValueError", "bad"),
        ("(EngineCore pid=41) ERROR 08-27 10:00:00 [core.py:1] RuntimeError: no GPU", "RuntimeError", "no GPU"),
        ("RuntimeError: first\nsecond line\n\nunrelated", "RuntimeError", "first second line"),
        ("KeyboardInterrupt", "KeyboardInterrupt", ""),
        ("nothing: to see", None, None),
    ],
)
def test_error(text: str, type_: str | None, message: str | None) -> None:
    found = read(python.python_error, text)
    assert [(fact.value("type"), fact.value("message")) for fact in found] == ([(type_, message)] if type_ else [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch==2.6.0+cu124", [("torch", "2.6.0", "cu124")]),
        ("torch @ https://example.com/whl/torch-2.1.0%2Bcu118-cp310-cp310-linux_x86_64.whl", [("torch", "2.1.0", "cu118")]),
        ("Name: tensorflow\nVersion: 2.16.1", [("tensorflow", "2.16.1", None)]),
        ("pytorch                   2.0.1           py3.10_cuda11.7_cudnn8.5.0_0    pytorch", [("torch", "2.0.1", "cu117")]),
        ("pytorch  2.4.0  cpu_generic_py311h1_0  conda-forge", [("torch", "2.4.0", "cpu")]),
        ("[pip3] torchvision==0.20.1", [("torchvision", "0.20.1", None)]),
        ("  - tensorflow-gpu=2.4.1", [("tensorflow-gpu", "2.4.1", None)]),
        (">>> torch.__version__\n'2.1.0+cpu'", [("torch", "2.1.0", "cpu")]),
        ("jax_cuda12_plugin         0.6.0", [("jax-cuda12-plugin", "0.6.0", None)]),
        ("Requirement already satisfied: torch>=1.8 in /opt/venv/lib (from accelerate) (2.2.0+cu121)", [("torch", "2.2.0", "cu121")]),
        ("PyTorch version: 2.5.1+cu124", [("torch", "2.5.1", "cu124")]),
        ("    PyTorch 2.2.0+cu121 with CUDA 1201 (you have 2.2.0+cpu)", [("torch", "2.2.0", "cpu")]),
        ("torchvision 0.15.2 requires torch==2.0.1, but you have torch 2.1.0 which is incompatible.", []),
        ("ERROR: No matching distribution found for torch==1.7.0", []),
        ("| NVIDIA-SMI 535.54.03    Driver Version: 535.54.03    CUDA Version: 12.2 |", []),
        ("nvidia-driver-535 535.104.05-0ubuntu1", []),
        ("nvidia-cu  2093 root  mem", []),  # lsof, cut to its first columns
        ('  File "/opt/venv/lib/python3.10/site-packages/torch/serialization.py", line 1.0', []),
    ],
)  # fmt: skip
def test_packages(text: str, expected: list[tuple[str, str, str | None]]) -> None:
    found = read(python.python_packages, text)
    assert [(fact.value("name"), fact.value("version"), fact.value("local")) for fact in found] == expected


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("Is TensorFlow built with CUDA?: False", "cpu_only", True),
        ("TensorFlow built with CUDA: True", "cpu_only", False),
        ("tf.test.is_built_with_cuda() -> False", "cpu_only", True),
        (">>> torch.version.cuda\n>>> ", "cpu_only", True),
        (">>> torch.version.cuda\n'12.1'", "cuda", "12.1"),
        ("torch.cuda.is_available(): False", "sees_gpu", False),
        (">>> tf.config.list_physical_devices('GPU')\n[]", "sees_gpu", False),
        ("Num GPUs Available:  0", "sees_gpu", False),
    ],
)
def test_statements(text: str, field: str, value: object) -> None:
    [fact] = read(python.framework_statement, text)
    assert fact.value(field) == value


def test_collect_env_of_a_rocm_build_is_no_cpu_build() -> None:
    text = "PyTorch version: 2.5.1+rocm6.2\nCUDA used to build PyTorch: N/A\nROCM used to build PyTorch: 6.2.4\nIs CUDA available: True"
    [fact] = read(python.collect_env, text)
    assert fact.value("cpu_only") is None
    assert fact.value("sees_gpu") is True


HOSTILE = [
    "A." * 2000,
    "torch " * 700,
    "torch-" * 700,
    "requires " * 400,
    "1." * 2000,
    "\x00" * 100,
    "",
    "=" * 4000,
    "Error" * 800,
]


@pytest.mark.parametrize("format_", python.FORMATS, ids=lambda format_: format_.name)
def test_hostile_lines_take_no_time(format_: Format) -> None:
    start = time.process_time()
    for text in HOSTILE:
        for line in (
            text,
            f"torch 1.0 requires {text}",
            f"{text} but you have x 1",
            f"Successfully installed {text}",
            f"{text}Error: ",
        ):
            read(format_.parse, line)
    assert time.process_time() - start < 2
