"""CUDA formats that one sample in a docstring does not cover."""

import time

import pytest

from gpudoctor.facts.base import Fact
from gpudoctor.parsers import cuda
from gpudoctor.parsers.base import Format, NotThisFormat, Parser


def read(parser: Parser, text: str) -> list[Fact]:
    try:
        return list(parser(text))
    except NotThisFormat:
        return []


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (
            "THCudaCheck FAIL file=/pytorch/aten/src/THC/THCGeneral.cpp line=50 error=59 : device-side assert triggered",
            710,
        ),
        ("cuda runtime error (77) : an illegal memory access was encountered", 700),
        ("CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version ; GPU=0", 35),
        ("[CUDA @ 0x1] cu->cuInit(0) failed -> CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected", 100),
        ("Call to cuLaunchKernel results in CUDA_ERROR_LAUNCH_FAILED", 719),
        ("cudaGetDeviceCount returned 30", 999),
        ("Error 802: system not yet initialized", 802),
        ("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`", None),
        ("    case cudaErrorInsufficientDriver:", None),
        ("if (err == cudaErrorNoDevice) return;", None),
        ("built with CUDA 12.4", None),
    ],
)
def test_error_number(line: str, number: int | None) -> None:
    assert [fact.value("number") for fact in read(cuda.cuda_error, line)] == ([] if number is None else [number])


def test_error_rank() -> None:
    assert read(cuda.cuda_error, "[rank7]: RuntimeError: CUDA error: misaligned address")[0].value("rank") == 7
    assert read(cuda.cuda_error, "2047: cudaErrorDevicesUnavailable")[0].value("rank") == 2047


@pytest.mark.parametrize(
    ("line", "name", "version", "seen_by"),
    [
        (
            "OSError: libcublas.so.11: cannot open shared object file: No such file or directory",
            "cublas",
            "11",
            "loader",
        ),
        ("\tlibcusolver.so.11 => not found", "cusolver", "11", "ldd"),
        (
            "Could not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: cannot open",
            "cudnn",
            "8",
            "tensorflow",
        ),
        (
            "Could not load dynamic library 'cudart64_110.dll'; dlerror: cudart64_110.dll not found",
            "cudart",
            "110",
            "tensorflow",
        ),
        ("Unable to load any of {libcudnn_graph.so.9.1.0, libcudnn_graph.so.9}", "cudnn_graph", "9.1.0", "loader"),
        ("Library libcublas.so.12 is not found or cannot be loaded", "cublas", "12", "loader"),
        ("libnvrtc.so.12: 无法打开共享对象文件: 没有那个文件或目录", "nvrtc", "12", "loader"),
        ("/usr/bin/ld: cannot find -lcublas: No such file or directory", "cublas", None, "linker"),
    ],
)
def test_library_not_found(line: str, name: str, version: str | None, seen_by: str) -> None:
    [fact] = read(cuda.library_not_found, line)
    assert (fact.value("name"), fact.value("version"), fact.value("seen_by"), fact.value("found")) == (
        name,
        version,
        seen_by,
        False,
    )


@pytest.mark.parametrize(
    "line",
    [
        "Could not load library libcudnn_cnn_train.so.8. Error: /usr/lib/libcudnn_cnn_train.so.8: undefined symbol: x",
        "dxcore.c:208] Core Nvidia library libcuda.so.1.1 not found in /usr/lib/wsl/drivers/x",
        "Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered",
        "Successfully opened dynamic library libcudart.so.11.0",
    ],
)
def test_library_is_not_missing(line: str) -> None:
    assert read(cuda.library_not_found, line) == []


def test_stub() -> None:
    [fact] = read(cuda.library_found, "\tlibcuda.so.1 => /usr/local/cuda/lib64/stubs/libcuda.so.1 (0x00007f10)")
    assert fact.value("stub") is True
    assert fact.value("seen_by") == "ldd"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("export LD_LIBRARY_PATH=/a/lib:$LD_LIBRARY_PATH", [("LD_LIBRARY_PATH", "/a/lib:$LD_LIBRARY_PATH")]),
        ('ENV NVIDIA_DRIVER_CAPABILITIES="compute,utility"', [("NVIDIA_DRIVER_CAPABILITIES", "compute,utility")]),
        ("ENV CUDA_HOME /usr/local/cuda", [("CUDA_HOME", "/usr/local/cuda")]),
        ("setenv CUDA_VISIBLE_DEVICES 0,1", [("CUDA_VISIBLE_DEVICES", "0,1")]),
        ("      NCCL_DEBUG: INFO", [("NCCL_DEBUG", "INFO")]),
        ("user@node01:~$ CUDA_VISIBLE_DEVICES= python a.py", [("CUDA_VISIBLE_DEVICES", "")]),
        ("docker run --gpus all -e NCCL_P2P_DISABLE=1 -e NCCL_IB_HCA=mlx5_0 image", [("NCCL_P2P_DISABLE", "1"), ("NCCL_IB_HCA", "mlx5_0")]),
        ("os.environ['CUDA_VISIBLE_DEVICES'] = '-1'", [("CUDA_VISIBLE_DEVICES", "-1")]),
        ("    - name: NVIDIA_VISIBLE_DEVICES\n      value: \"all\"", [("NVIDIA_VISIBLE_DEVICES", "all")]),
        ("$ echo $CUDA_VISIBLE_DEVICES\n0,1", [("CUDA_VISIBLE_DEVICES", "0,1")]),
        ("node01:77:77 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0", [("NCCL_SOCKET_IFNAME", "eth0")]),
        ("For debugging consider passing CUDA_LAUNCH_BLOCKING=1.", []),
        ("CUDA_ERROR_UNKNOWN: unknown error", []),
        ("e.g. changing env variable CUDA_VISIBLE_DEVICES after program start", []),
        ("cmake -DCUDA_ARCHITECTURES=80 ..", []),
    ],
)  # fmt: skip
def test_env_var(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(fact.value("name"), fact.value("setting")) for fact in read(cuda.env_var, text)] == expected


HOSTILE = ["+" * 4000, "set -x " * 600, "setenv" * 700, "- " * 2000, "lib" * 1500, "CUDA_" * 800, "A." * 2000, "=>" * 2000, "\x00" * 100, "", "(" * 3000, "libcuda.so." + "1." * 1900]  # fmt: skip


@pytest.mark.parametrize("format_", cuda.FORMATS, ids=lambda format_: format_.name)
def test_hostile_lines_take_no_time(format_: Format) -> None:
    start = time.process_time()
    for text in HOSTILE:
        for line in (text, f"CUDA_VISIBLE_DEVICES {text}", f"{text} libcudart.so.12", f"undefined symbol {text}"):
            read(format_.parse, line)
    assert time.process_time() - start < 2
