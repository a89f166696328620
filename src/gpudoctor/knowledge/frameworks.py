"""Builds of deep-learning frameworks: their CUDA, cuDNN, NCCL, Python and GPU architectures."""

from functools import cache

import msgspec

from gpudoctor.knowledge.drivers import parse_version
from gpudoctor.knowledge.tables import Row, sources, table, words

ALIASES = {
    "pytorch": "torch",
    "tf": "tensorflow",
    "tensorflow-cpu": "tensorflow",
    "jaxlib": "jax",
    "onnxruntime": "onnxruntime-gpu",
    "ort": "onnxruntime-gpu",
    "flash_attn": "flash-attn",
    "flash-attention": "flash-attn",
    "flashattention": "flash-attn",
    "bnb": "bitsandbytes",
    "cupy-cuda11x": "cupy",
    "cupy-cuda12x": "cupy",
    "cupy-cuda13x": "cupy",
    "tensorflow_gpu": "tensorflow-gpu",
}


class Build(msgspec.Struct, frozen=True):
    """One official build. Empty architectures mean that the list is not known."""

    framework: str
    version: str
    build: str
    cuda: str | None
    any_minor: bool
    cuda_range: str | None
    built_with_cuda: str | None
    default: bool
    cudnn: str | None
    nccl: str | None
    triton: str | None
    python_min: str | None
    python_max: str | None
    python_closed: bool
    python_experimental: tuple[str, ...]
    architectures: tuple[str, ...]
    ptx: tuple[str, ...]
    jit: bool
    min_capability: str | None
    stated_capability: str | None
    driver_min: int | None
    glibc_min: str | None
    requires_torch: tuple[str, ...]
    min_torch: str | None
    removed: str | None
    sources: tuple[str, ...]

    @property
    def name(self) -> str:
        """Framework, version and build in one."""
        return f"{self.framework} {self.version} ({self.build})"


def _build(row: Row) -> Build:
    return Build(
        framework=row["framework"],
        version=row["version"],
        build=row["build"],
        cuda=row.get("cuda"),
        any_minor=row.get("any_minor", False),
        cuda_range=row.get("cuda_range"),
        built_with_cuda=row.get("built_with_cuda"),
        default=row.get("default", False),
        cudnn=row.get("cudnn"),
        nccl=row.get("nccl"),
        triton=row.get("triton"),
        python_min=row.get("python_min"),
        python_max=row.get("python_max"),
        python_closed=row.get("python_closed", False),
        python_experimental=words(row, "python_experimental"),
        architectures=words(row, "architectures"),
        ptx=words(row, "ptx"),
        jit=row.get("jit", False),
        min_capability=row.get("min_capability"),
        stated_capability=row.get("stated_capability"),
        driver_min=row.get("driver_min"),
        glibc_min=row.get("glibc_min"),
        requires_torch=tuple(row.get("requires_torch", "").split(",")) if row.get("requires_torch") else (),
        min_torch=row.get("min_torch"),
        removed=row.get("removed"),
        sources=sources("frameworks", row["source"]),
    )


@cache
def _of(framework: str) -> tuple[Build, ...]:
    return tuple(_build(row) for row in table("frameworks").rows if row["framework"] == framework)


def every() -> tuple[Build, ...]:
    """All builds in the tables."""
    return tuple(build for name in names() for build in _of(name))


def names() -> tuple[str, ...]:
    """Names of the frameworks that the tables cover.

    >>> "torch" in names()
    True
    """
    return tuple(dict.fromkeys(row["framework"] for row in table("frameworks").rows))


def canonical(name: str) -> str:
    """Usual package name of a framework.

    >>> canonical("PyTorch")
    'torch'
    """
    folded = name.strip().casefold()
    return ALIASES.get(folded, folded)


def sortable(version: str) -> tuple[int, ...]:
    """Numbers of a version in order, letters left aside.

    >>> sortable("0.0.28.post3") < sortable("0.0.29")
    True
    """
    return tuple(int(digits) for part in version.split(".") if (digits := "".join(c for c in part if c.isdigit())))


def builds(framework: str, version: str) -> tuple[Build, ...]:
    """All official builds of a version; a patch release counts as its minor release.

    >>> [item.build for item in builds("torch", "2.4.1")]
    ['cu118', 'cu121', 'cu124']
    """
    wanted = canonical(framework)
    version = version.split("+", maxsplit=1)[0]
    own = _of(wanted)
    parts = version.split(".")
    for length in range(len(parts), 0, -1):
        head = ".".join(parts[:length])
        found = [item for item in own if item.version == head]
        if found:
            return tuple(found)
    if len(parts) == 2:
        longer = [item for item in own if item.version == f"{version}.0"]
        return tuple(longer)
    return ()


def build(framework: str, version: str, variant: str | None = None) -> Build | None:
    """One official build; without a variant the one that plain pip installs.

    >>> build("torch", "2.4.1", "cu121").cudnn
    '9.1.0.70'
    >>> build("torch", "2.11.0").cuda
    '13.0'
    """
    found = builds(framework, version)
    local = version.partition("+")[2] or None
    wanted = variant or local
    if wanted is None:
        return next((item for item in found if item.default), found[0] if len(found) == 1 else None)
    return next((item for item in found if item.build == wanted), None)


def architecture_list(framework: str, version: str, variant: str | None = None) -> tuple[str, ...]:
    """Compute capabilities for which a build holds machine code.

    >>> architecture_list("torch", "2.11", "cu128")
    ('7.5', '8.0', '8.6', '9.0', '10.0', '12.0')
    """
    found = build(framework, version, variant)
    return found.architectures if found else ()


def versions(framework: str) -> tuple[str, ...]:
    """Versions of a framework in the tables, oldest first."""
    own = {item.version for item in _of(canonical(framework))}
    return tuple(sorted(own, key=sortable))


def covers(native: str, capability: str) -> bool:
    """Whether machine code for one capability runs on another: same major, equal or higher minor.

    >>> covers("8.6", "8.9"), covers("8.6", "8.0"), covers("10.0", "12.0")
    (True, False, False)
    """
    have, want = parse_version(native), parse_version(capability)
    return have[0] == want[0] and have[1] <= want[1]
