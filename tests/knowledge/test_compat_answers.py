"""Known answers from public tables, each with where it stands."""

import pytest

from gpudoctor.knowledge.compat import Framework, Setup, check

RELEASE_NOTES = "CUDA toolkit release notes, toolkit and minimum driver versions"
COMPATIBILITY = "CUDA compatibility guide, minor-version compatibility: 11.x from 450.80.02, 12.x from 525.60.13"
MATRIX = "NVIDIA data-center matrix of CUDA toolkit, driver and architecture"
MODULES = "NVIDIA driver installation guide, open and proprietary kernel modules"
TORCH = "PyTorch RELEASE.md, release compatibility matrix"
TORCH_BUILD = "PyTorch, .ci/manywheel/build_cuda.sh, TORCH_CUDA_ARCH_LIST"
TENSORFLOW = "TensorFlow, tested build configurations"
TENSORFLOW_GPU = "package index, tensorflow-gpu 2.12.0: removed, install tensorflow"
JAX = "JAX installation guide: driver 525 and SM 5.2 for CUDA 12, driver 580 and SM 7.5 for CUDA 13"
VLLM = "vLLM installation guide and metadata of the wheels"
XFORMERS = "metadata of the xFormers wheels"
FLASH = "flash-attention README: Ampere, Ada or Hopper; version 3 Hopper only"
BNB = "bitsandbytes installation guide: compute capability 6.0 and newer from 0.48 on"
CUPY = "CuPy installation guide"
ORT = "ONNX Runtime, CUDA execution provider, requirements"
WHEELS = "platform tags of the published wheels (manylinux_2_28 means glibc 2.28)"
INSTALL = "CUDA installation guide for Linux, supported distributions"

W, D, U = "works", "doesn't", "unknown"


def setup(text, **more):
    """Read 'driver=… cuda=… gpu=…' with underscores for blanks; frameworks as torch==2.4.1+cu121."""
    found, frameworks = {}, []
    for part in text.split():
        if "==" in part:
            name, _, version = part.partition("==")
            version, _, build = version.partition("+")
            frameworks.append(Framework(name, version, build or None))
        else:
            key, _, value = part.partition("=")
            found[key] = value.replace("_", " ")
    return Setup(**found, frameworks=tuple(frameworks), **more)


KNOWN = [
    # driver and CUDA
    ("driver=550.54.14 cuda=12.4", W, RELEASE_NOTES),
    ("driver=550.54.15 cuda=12.4.1", W, RELEASE_NOTES),
    ("driver=535.104.05 cuda=12.2.2", W, RELEASE_NOTES),
    ("driver=535.54.03 cuda=12.2", W, RELEASE_NOTES),
    ("driver=525.60.13 cuda=12.0", W, RELEASE_NOTES),
    ("driver=520.61.05 cuda=11.8", W, RELEASE_NOTES),
    ("driver=470.57.02 cuda=11.4.2", W, RELEASE_NOTES),
    ("driver=450.51.06 cuda=11.0.3", W, RELEASE_NOTES),
    ("driver=440.33 cuda=10.2", W, RELEASE_NOTES),
    ("driver=440.33 cuda=11.0", D, RELEASE_NOTES),
    ("driver=418.39 cuda=10.1", W, RELEASE_NOTES),
    ("driver=410.48 cuda=10.1", D, RELEASE_NOTES),
    ("driver=384.81 cuda=9.0", W, RELEASE_NOTES),
    ("driver=384.81 cuda=9.1", D, RELEASE_NOTES),
    ("driver=570.124.06 cuda=12.8.1", W, RELEASE_NOTES),
    ("driver=580.65.06 cuda=13.0", W, RELEASE_NOTES),
    ("driver=575.57.08 cuda=13.0", D, RELEASE_NOTES),
    ("driver=595.45.04 cuda=13.2", W, RELEASE_NOTES),
    ("driver=580.65.06 cuda=12.4", W, RELEASE_NOTES),
    ("driver=525.60.13 cuda=12.9", W, COMPATIBILITY),
    ("driver=590.44.01 cuda=13.2", W, COMPATIBILITY),
    ("driver=450.80.02 cuda=11.8", W, COMPATIBILITY),
    ("driver=450.51.06 cuda=11.2", D, COMPATIBILITY),
    ("driver=525.53 cuda=12.4", D, COMPATIBILITY),
    ("driver=520.61.05 cuda=12.1", D, COMPATIBILITY),
    # GPU and CUDA
    ("gpu=Tesla_K80 cuda=11.8", W, MATRIX),
    ("gpu=Tesla_K80 cuda=12.0", D, MATRIX),
    ("gpu=Tesla_V100-SXM2-16GB cuda=12.9", W, MATRIX),
    ("gpu=Tesla_V100-SXM2-16GB cuda=13.0", D, MATRIX),
    ("gpu=Tesla_P100-PCIE-16GB cuda=13.0", D, MATRIX),
    ("gpu=GTX_1080_Ti cuda=12.8", W, MATRIX),
    ("gpu=Tesla_T4 cuda=10.0", W, MATRIX),
    ("gpu=Tesla_T4 cuda=9.2", D, MATRIX),
    ("gpu=Tesla_T4 cuda=13.0", W, MATRIX),
    ("gpu=A100-SXM4-80GB cuda=11.0", W, MATRIX),
    ("gpu=A100-SXM4-80GB cuda=10.2", D, MATRIX),
    ("gpu=RTX_3090 cuda=11.1", W, MATRIX),
    ("gpu=RTX_3090 cuda=10.2", D, MATRIX),
    ("gpu=RTX_4090 cuda=11.8", W, MATRIX),
    ("gpu=RTX_4090 cuda=10.2", D, MATRIX),
    ("gpu=RTX_4090 cuda=11.7", D, MATRIX),
    ("gpu=NVIDIA_H100_80GB_HBM3 cuda=11.8", W, MATRIX),
    ("gpu=NVIDIA_H100_80GB_HBM3 cuda=11.7", D, MATRIX),
    ("gpu=NVIDIA_H200 cuda=12.4", W, MATRIX),
    ("gpu=NVIDIA_B200 cuda=12.8", W, MATRIX),
    ("gpu=NVIDIA_B200 cuda=12.4", D, MATRIX),
    ("gpu=RTX_5090 cuda=12.8", W, MATRIX),
    ("gpu=RTX_5090 cuda=12.6", D, MATRIX),
    # GPU and driver
    ("gpu=Tesla_K80 driver=470.82.01", W, MATRIX),
    ("gpu=Tesla_K80 driver=535.104.05", D, MATRIX),
    ("gpu=Tesla_V100-SXM2-16GB driver=580.65.06", W, MATRIX),
    ("gpu=Tesla_V100-SXM2-16GB driver=590.48.01", D, MATRIX),
    ("gpu=GTX_1080 driver=595.58.03", D, MATRIX),
    ("gpu=NVIDIA_H100_80GB_HBM3 driver=535.104.05", W, MATRIX),
    ("gpu=NVIDIA_H100_80GB_HBM3 driver=470.82.01", D, MATRIX),
    ("gpu=RTX_4090 driver=515.48.07", D, MATRIX),
    ("gpu=RTX_5090 driver=565.57.01", D, MATRIX),
    ("gpu=10de:2b85 driver=570.124.06", W, MATRIX),
    # kernel modules
    ("gpu=Tesla_V100-SXM2-16GB modules=open", D, MODULES),
    ("gpu=Tesla_P40 modules=open", D, MODULES),
    ("gpu=Tesla_T4 modules=open", W, MODULES),
    ("gpu=RTX_5090 modules=proprietary", D, MODULES),
    ("gpu=NVIDIA_GH200_480GB modules=proprietary", D, MODULES),
    ("driver=510.47.03 modules=open", D, MODULES),
    # PyTorch
    ("torch==2.4.1+cu121 python=3.12", W, TORCH),
    ("torch==2.4.1+cu121 python=3.13", D, TORCH),
    ("torch==2.4.1+cu126", D, TORCH),
    ("torch==2.9.1 python=3.9", D, TORCH),
    ("torch==2.0.1+cu118 python=3.12", D, TORCH),
    ("torch==2.5.1+cu124 driver=525.60.13", W, COMPATIBILITY),
    ("torch==2.5.1+cu124 driver=470.82.01", D, COMPATIBILITY),
    ("torch==2.11.0+cu130 driver=570.124.06", D, RELEASE_NOTES),
    ("torch==2.6.0 gpu=RTX_5090", D, TORCH_BUILD),
    ("torch==2.7.1+cu126 gpu=RTX_5090", D, TORCH_BUILD),
    ("torch==2.7.0+cu128 gpu=RTX_5090", W, TORCH_BUILD),
    ("torch==2.8.0+cu128 gpu=Tesla_V100-SXM2-32GB", W, TORCH_BUILD),
    ("torch==2.11.0+cu128 gpu=Tesla_V100-SXM2-32GB", D, TORCH_BUILD),
    ("torch==2.14.0+cu126 gpu=Tesla_V100-SXM2-32GB", W, TORCH),
    ("torch==2.14.0+cu130 gpu=Tesla_V100-SXM2-32GB", D, TORCH),
    ("torch==2.0.1+cu117 gpu=RTX_4090", W, TORCH_BUILD),
    ("torch==2.0.1+cu117 gpu=NVIDIA_H100_PCIe", D, TORCH_BUILD),
    ("torch==2.1.2+cu121 gpu=NVIDIA_H100_PCIe", W, TORCH_BUILD),
    ("torch==2.8.0+cu128 os=centos_7", D, WHEELS),
    ("torch==2.8.0+cu128 os=ubuntu_18.04", D, WHEELS),
    ("torch==2.9.1+cu128 os=ubuntu_22.04", W, WHEELS),
    # TensorFlow
    ("tensorflow==2.15 cuda=12.2 python=3.11", W, TENSORFLOW),
    ("tensorflow==2.15 cuda=11.8", D, TENSORFLOW),
    ("tensorflow==2.15 python=3.12", D, TENSORFLOW),
    ("tensorflow==2.10 cuda=11.2 python=3.10", W, TENSORFLOW),
    ("tensorflow==2.10 python=3.11", D, TENSORFLOW),
    ("tensorflow==2.18 cuda=12.5 python=3.12", W, TENSORFLOW),
    ("tensorflow==2.20.0 cuda=13.0", D, "metadata of the TensorFlow 2.20 wheels: CUDA below 13"),
    ("tensorflow-gpu==2.12.0 python=3.10", D, TENSORFLOW_GPU),
    ("tensorflow-gpu==1.15 cuda=10.0 python=3.7", W, TENSORFLOW),
    # JAX
    ("jax==0.4.30 driver=525.60.13 python=3.11", W, JAX),
    ("jax==0.4.30 driver=520.61.05", D, JAX),
    ("jax==0.8.0+cuda13 driver=575.57.08", D, JAX),
    ("jax==0.8.0+cuda13 gpu=Tesla_V100-SXM2-16GB", D, JAX),
    ("jax==0.6.0 gpu=NVIDIA_H100_80GB_HBM3", W, "JAX 0.6.0, .bazelrc: code for 9.0"),
    ("jax==0.4.38 python=3.9", D, "JAX 0.4.38: Python 3.10 or newer"),
    # others
    ("vllm==0.11.0 gpu=Tesla_P100-PCIE-16GB", D, VLLM),
    ("vllm==0.9.2 torch==2.7.0", W, VLLM),
    ("vllm==0.9.2 torch==2.6.0", D, VLLM),
    ("xformers==0.0.30 torch==2.7.0", W, XFORMERS),
    ("xformers==0.0.30 torch==2.6.0", D, XFORMERS),
    ("triton==3.0.0 torch==2.4.1", W, "metadata of the PyTorch 2.4.1 wheel: triton 3.0.0"),
    ("flash-attn==2.7.4 gpu=Tesla_T4", D, FLASH),
    ("flash-attn==2.7.4 gpu=NVIDIA_A100-SXM4-40GB", W, FLASH),
    ("flash-attn==3.0.0 gpu=NVIDIA_A100-SXM4-40GB", D, FLASH),
    ("flash-attn==2.7.4 cuda=11.8", D, "flash-attention README: CUDA 12.0 and above"),
    ("bitsandbytes==0.48.2 gpu=GTX_980_Ti", D, BNB),
    ("bitsandbytes==0.48.2 gpu=Tesla_T4", W, BNB),
    ("cupy==13.2.0+cuda12x cuda=12.4 python=3.12", W, CUPY),
    ("cupy==14.0.0+cuda12x python=3.9", D, CUPY),
    ("onnxruntime-gpu==1.18.0 cuda=11.8", W, ORT),
    ("onnxruntime-gpu==1.19.0 cuda=11.8", D, ORT),
    ("onnxruntime-gpu==1.20.1 cuda=12.6", W, ORT),
    ("cuda=12.8 os=ubuntu_24.04", W, INSTALL),
    ("cuda=13.0 os=rhel_9", W, INSTALL),
]

SILENT = [
    "driver=700.10 cuda=13.0",
    "driver=580.65.06 cuda=14.0",
    "driver=560.28.03 cuda=12.7",
    "gpu=RTX_5090 driver=595.45.04 torch==9.9",
    "gpu=NVIDIA_H20-3e driver=550.54.15",
    "gpu=RTX_3090 cuda=11.0",
    "flash-attn==2.8.3 gpu=RTX_5090",
    "vllm==0.11.0 gpu=RTX_5090",
    "tensorflow==2.18 gpu=RTX_5090",
    "tensorflow==2.15 cuda=12.4",
    "jax==0.8.0 python=3.15",
    "torch==2.5.1 python=3.13",
    "torch==2.5.1 python=3",
    "cuda=12.8 os=debian_9",
    "gpu=RTX_4090",
    "gpu=10de:2bb2 driver=580.65.06",
]


@pytest.mark.parametrize(("text", "answer", "source"), KNOWN, ids=[item[0] for item in KNOWN])
def test_known_answer(text, answer, source):
    verdict = check(setup(text), nearest=False)
    assert verdict.answer == answer, [reason.text for reason in verdict.reasons]
    assert source


def test_there_are_enough_known_answers():
    assert len(KNOWN) >= 60
    assert len({source for _, _, source in KNOWN}) >= 15


@pytest.mark.parametrize("text", SILENT)
def test_silent_tables_are_never_called_working(text):
    assert check(setup(text), nearest=False).answer == U


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("driver=470.82.01 cuda=12.4 gpu=NVIDIA_A100-SXM4-40GB", {"driver 525.60.13", "CUDA 11.8"}),
        ("tensorflow==2.15 python=3.13", {"framework tensorflow 2.20", "Python 3.11"}),
        ("gpu=RTX_4090 cuda=11.7", {"CUDA 11.8"}),
        ("vllm==0.9.2 torch==2.6.0", {"framework vllm 0.8", "framework torch 2.7"}),
        ("gpu=Tesla_V100-SXM2-16GB driver=590.48.01", {"driver 580.95.05"}),
        ("gpu=RTX_5090 modules=proprietary", {"kernel modules open"}),
    ],
)
def test_nearest_working_combinations(text, expected):
    verdict = check(setup(text))
    assert expected <= {item.change for item in verdict.nearest}


@pytest.mark.parametrize("text", [item[0] for item in KNOWN if item[1] == D][:30])
def test_what_is_offered_instead_really_works(text):
    for item in check(setup(text)).nearest:
        assert check(item.setup, nearest=False).answer == W


def test_two_changes_are_found_where_one_is_not_enough():
    verdict = check(setup("gpu=RTX_5090 driver=550.54.15 torch==2.6.0"))
    assert verdict.nearest
    assert "driver 57" in verdict.nearest[0].change
    assert "torch 2.7" in verdict.nearest[0].change


def test_minor_version_compatibility_comes_with_its_limits():
    verdict = check(setup("driver=535.104.05 cuda=12.4"))
    assert verdict.answer == W
    assert any("222" in text for text in verdict.caveats)


def test_forward_compatibility_is_refused_on_geforce_and_unknown_elsewhere():
    geforce = check(setup("gpu=RTX_3090 driver=470.82.01 cuda=12.4", forward_compat=True), nearest=False)
    assert any("804" in reason.text for reason in geforce.reasons)
    assert geforce.answer == D
    server = check(setup("gpu=NVIDIA_A100-SXM4-40GB driver=470.82.01 cuda=12.4", forward_compat=True), nearest=False)
    assert server.answer == U


def test_plain_pip_takes_a_build_that_does_not_fit_and_another_does():
    verdict = check(setup("torch==2.14.0 gpu=Tesla_V100-SXM2-16GB"))
    assert verdict.answer == W
    assert any("cu130" in text and "cu126" in text for text in verdict.caveats)


def test_a_family_name_is_answered_only_where_all_members_agree():
    assert check(setup("gpu=H100 cuda=12.4"), nearest=False).answer == W
    assert check(setup("gpu=H100 cuda=11.2"), nearest=False).answer == D


def test_every_reason_about_a_known_thing_names_its_source():
    for text, answer, _ in KNOWN:
        for reason in check(setup(text), nearest=False).reasons:
            if reason.answer != U:
                assert reason.sources, (text, answer, reason.text)
