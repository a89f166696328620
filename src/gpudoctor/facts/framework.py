"""Facts about CUDA, frameworks and the programs that use them."""

from typing import ClassVar

from gpudoctor.facts.base import Fact


class CudaToolkit(Fact, kw_only=True):
    """A CUDA toolkit (nvcc, version.json, a folder /usr/local/cuda-12.4)."""

    kind: ClassVar[str] = "cuda_toolkit"

    version: str | None = None
    path: str | None = None
    seen_by: str | None = None  # nvcc, folder, collect_env
    found: bool = True


class SharedLibrary(Fact, kw_only=True):
    """A shared library as ldconfig, ldd or the loader of a program finds it. name: cudart, cudnn, cublas, nccl ..."""

    kind: ClassVar[str] = "shared_library"

    name: str
    soname: str | None = None
    version: str | None = None
    path: str | None = None
    folder: str | None = None
    found: bool = True
    stub: bool | None = None
    seen_by: str | None = None  # ldconfig, ldd, linker, listing, loader (a program's own message), tensorflow


class SymbolError(Fact, kw_only=True):
    """A symbol that the loader misses. `file` wants it; `library` is the file that should have it, where that is said."""

    kind: ClassVar[str] = "symbol_error"

    file: str | None = None
    path: str | None = None
    symbol: str | None = None
    library: str | None = None


class VersionConflict(Fact, kw_only=True):
    """Two parts whose versions don't go together. `needed` is what `part` would need of `other`; `advice` what to change.

    topic: driver, arch-list, companion, jax, python, wheels, dependency. `cuda` is the CUDA version of the build.
    python-fits is no conflict: a release was refused that does have builds for the Python in use.
    """

    kind: ClassVar[str] = "version_conflict"

    topic: str
    part: str
    version: str | None = None
    other: str
    found: str | None = None
    needed: str | None = None
    cuda: str | None = None
    advice: str = ""


class VisibleDevices(Fact, kw_only=True):
    """A list of visible GPUs in the environment, against what is there; `problem` where the two don't fit."""

    kind: ClassVar[str] = "visible_devices"

    name: str
    setting: str
    listed: int | None = None
    present: int | None = None
    problem: str | None = None


class PythonPackage(Fact, kw_only=True):
    """A Python distribution. `version` without the local part, which is `local` (cu121, cpu, cxx11abi ...)."""

    kind: ClassVar[str] = "python_package"

    name: str
    version: str | None = None
    local: str | None = None
    channel: str | None = None  # pypi, conda, ...
    environment: str | None = None  # the environment's folder


class Python(Fact, kw_only=True):
    """A Python interpreter in use."""

    kind: ClassVar[str] = "python"

    version: str
    path: str | None = None


class RefusedRelease(Fact, kw_only=True):
    """A release that pip was asked for and did not find; `offered` are those that it saw ("none" for no file at all)."""

    kind: ClassVar[str] = "refused_release"

    package: str
    version: str | None = None
    local: str | None = None
    offered: str | None = None


class FrameworkBuild(Fact, kw_only=True):
    """What a framework says, or the tables say, of the build in use; `sees_gpu` only where it was asked."""

    kind: ClassVar[str] = "framework_build"

    name: str  # torch, tensorflow, jax, cupy, ...
    version: str | None = None
    cuda: str | None = None
    cuda_major: int | None = None
    cudnn: str | None = None
    nccl: str | None = None
    cpu_only: bool | None = None
    sees_gpu: bool | None = None
    devices: int | None = None
    arch_list: str | None = None
    min_driver: str | None = None  # for its CUDA, from the tables
    min_driver_branch: int | None = None


class PythonError(Fact, kw_only=True):
    """The end of a Python traceback, or a bare `XError: message` line."""

    kind: ClassVar[str] = "python_error"

    type: str
    message: str = ""
    module: str | None = None
    rank: int | None = None


class CudaError(Fact, kw_only=True):
    """A CUDA error that a program printed, by name and number where either is visible (from the tables)."""

    kind: ClassVar[str] = "cuda_error"

    name: str | None = None
    number: int | None = None
    message: str = ""
    rank: int | None = None


class ArchSupport(Fact, kw_only=True):
    """A framework build against a GPU's compute capability, from the tables or from the framework's own warning."""

    kind: ClassVar[str] = "arch_support"

    framework: str
    capability: str
    supported: bool
    architectures: str | None = None
