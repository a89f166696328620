"""Driver versions and branches, and which CUDA toolkit needs which driver."""

from functools import cache
from typing import Literal

import msgspec

from gpudoctor.knowledge.gpus import Product
from gpudoctor.knowledge.tables import sources, table, words

Version = tuple[int, ...]
BranchKind = Literal["long-term", "production", "new-feature", "developer"]
Support = Literal["works", "doesn't", "unknown"]


class Branch(msgspec.Struct, frozen=True):
    """A driver branch. end_of_life is the month its support ends, if published; ended means it has."""

    number: int
    kind: BranchKind | None
    end_of_life: str | None
    ended: bool
    ships_cuda: str | None
    max_cuda_major: int | None
    last_for: tuple[str, ...]
    open_modules: Literal["default", "offered", "none"]
    sources: tuple[str, ...]


class Toolkit(msgspec.Struct, frozen=True):
    """A CUDA toolkit release; linux_min is the driver it was released with, None where that is not known."""

    cuda: str
    version: str
    release: str
    linux_min: str | None
    windows_min: str | None
    branch: int | None
    sources: tuple[str, ...]


def parse_version(text: str) -> Version:
    """Read a dotted version as numbers that compare rightly.

    >>> parse_version("535.104.05") < parse_version("535.104.12") < parse_version("550.54")
    True
    >>> parse_version("12.10") > parse_version("12.4")
    True
    """
    parts = text.strip().split(".")
    if not all(part.isdigit() for part in parts):
        raise ValueError(f"not a version: {text!r}")
    return tuple(int(part) for part in parts)


@cache
def branches() -> tuple[Branch, ...]:
    """All known branches, newest first."""
    return tuple(
        Branch(
            number=row["branch"],
            kind=row.get("kind"),
            end_of_life=row.get("end_of_life"),
            ended=row.get("ended", False),
            ships_cuda=row.get("ships_cuda"),
            max_cuda_major=row.get("max_cuda_major"),
            last_for=words(row, "last_for"),
            open_modules=row["open_modules"],
            sources=sources("driver_branches", row["source"]),
        )
        for row in table("driver_branches").rows
    )


def branch(version: str | int) -> Branch | None:
    """Branch of a driver version.

    >>> branch("550.54.15").kind
    'production'
    >>> branch("580.65.06").last_for
    ('Maxwell', 'Pascal', 'Volta')
    """
    number = version if isinstance(version, int) else parse_version(version)[0]
    return next((item for item in branches() if item.number == number), None)


@cache
def toolkits() -> tuple[Toolkit, ...]:
    """All known toolkit releases, newest first."""
    found = [
        Toolkit(
            cuda=row["cuda"],
            version=row["version"],
            release=row["release"],
            linux_min=row.get("linux_min"),
            windows_min=row.get("windows_min"),
            branch=row.get("branch"),
            sources=sources("cuda_driver", row["source"]),
        )
        for row in table("cuda_driver").rows
    ]
    return tuple(sorted(found, key=lambda item: parse_version(item.version), reverse=True))


def toolkit(cuda: str) -> Toolkit | None:
    """Find a toolkit: "12.4" is its first release, "12.4.1" that update, a build number is left aside.

    >>> toolkit("12.4").linux_min, toolkit("12.4.1").linux_min, toolkit("12.4.131").linux_min
    ('550.54.14', '550.54.15', '550.54.15')
    """
    wanted = parse_version(cuda)
    same = [item for item in toolkits() if parse_version(item.cuda) == wanted[:2]]
    if not same:
        return None
    if len(wanted) == 2:
        return same[-1]
    below = [item for item in same if parse_version(item.version) <= wanted]
    return below[0] if below else same[-1]


def min_driver_for_cuda(cuda: str) -> str | None:
    """Driver that a toolkit was released with (Linux).

    >>> min_driver_for_cuda("12.4")
    '550.54.14'
    """
    found = toolkit(cuda)
    return found.linux_min if found else None


def floor_for_cuda(cuda: str) -> str | None:
    """Oldest driver that runs programs of a CUDA major version (minor-version compatibility, CUDA 11 and later).

    >>> floor_for_cuda("12.4"), floor_for_cuda("11.8"), floor_for_cuda("10.2")
    ('525.60.13', '450.80.02', None)
    """
    major = parse_version(cuda)[0]
    return next((row["linux_min"] for row in table("cuda_minor_compat").rows if row["cuda_major"] == major), None)


def max_cuda_for_driver(version: str) -> str | None:
    """Newest CUDA release that a driver fully supports, as nvidia-smi shows it.

    >>> max_cuda_for_driver("535.104.05"), max_cuda_for_driver("550.54.15")
    ('12.2', '12.4')
    """
    wanted = parse_version(version)
    if branch(version) is None or wanted > _newest_with_toolkit():
        return None
    for item in toolkits():
        if item.linux_min and parse_version(item.linux_min) <= wanted:
            return item.cuda
    return None


@cache
def _newest_with_toolkit() -> Version:
    newest = max(item.branch for item in toolkits() if item.branch)
    return (newest, 10**6)


def supports(version: str, gpu: Product) -> tuple[Support, str]:
    """Whether a driver version drives a GPU, with the reason.

    >>> from gpudoctor.knowledge import gpus
    >>> supports("550.54.15", gpus.by_name("GeForce RTX 5090"))[0]
    "doesn't"
    >>> supports("470.82.01", gpus.by_name("Tesla K80"))[0]
    'works'
    """
    number = parse_version(version)[0]
    if gpu.last_driver_branch is not None and number > gpu.last_driver_branch:
        return "doesn't", (
            f"{gpu.last_driver_branch} is the last driver branch for {gpu.architecture} GPUs; {version} is newer"
        )
    if gpu.first_driver_branch is not None and number < gpu.first_driver_branch:
        return "doesn't", (
            f"{gpu.architecture} GPUs with compute capability {gpu.compute_capability} need driver branch "
            f"{gpu.first_driver_branch} or newer; {version} is older"
        )
    if branch(version) is None:
        return "unknown", f"driver branch {number} is not in the tables"
    if gpu.mig_driver and parse_version(version) >= parse_version(gpu.mig_driver):
        return "works", f"the driver branch supports {gpu.name}"
    if gpu.known_driver is not None and parse_version(version) >= parse_version(gpu.known_driver):
        return "works", f"{gpu.name} is known to work from driver {gpu.known_driver} on"
    if gpu.first_driver_branch is None and gpu.known_driver is None:
        return "unknown", f"the tables do not say which driver is the first for {gpu.name}"
    known = f"; it is known to work from {gpu.known_driver} on" if gpu.known_driver else ""
    return "unknown", (
        f"branch {number} knows the architecture, but the tables do not say whether it knows {gpu.name}{known}"
    )


def open_modules_allowed(gpu: Product, flavour: Literal["open", "proprietary"]) -> bool:
    """Whether a flavour of the kernel modules drives a GPU.

    >>> from gpudoctor.knowledge import gpus
    >>> open_modules_allowed(gpus.by_name("Tesla V100-SXM2-16GB"), "open")
    False
    """
    return gpu.open_modules != ("impossible" if flavour == "open" else "required")
