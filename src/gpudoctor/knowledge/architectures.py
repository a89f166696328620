"""GPU architectures: which CUDA toolkits and driver branches know them, and what their kernel modules may be."""

from functools import cache
from typing import Literal

import msgspec

from gpudoctor.knowledge.tables import Row, sources, table, words

OpenModules = Literal["required", "possible", "impossible"]


class Architecture(msgspec.Struct, frozen=True):
    """One compute capability. No last toolkit or branch means that the newest known one still serves it."""

    name: str
    compute_capability: str
    chips: str | None
    first_cuda: str
    last_cuda: str | None
    first_driver_branch: int | None
    last_driver_branch: int | None
    open_modules: OpenModules
    embedded: bool
    examples: tuple[str, ...]
    sources: tuple[str, ...]


def _architecture(row: Row) -> Architecture:
    return Architecture(
        name=row["architecture"],
        compute_capability=row["compute_capability"],
        chips=row.get("chips"),
        first_cuda=row["first_cuda"],
        last_cuda=row.get("last_cuda"),
        first_driver_branch=row.get("first_driver_branch"),
        last_driver_branch=row.get("last_driver_branch"),
        open_modules=row["open_modules"],
        embedded=row.get("embedded", False),
        examples=words(row, "examples"),
        sources=sources("architectures", row["source"]),
    )


@cache
def every() -> tuple[Architecture, ...]:
    """All known compute capabilities, oldest first."""
    return tuple(_architecture(row) for row in table("architectures").rows)


def by_capability(capability: str) -> Architecture | None:
    """Look a compute capability up; "sm_90", "90" and "9.0" mean the same.

    >>> by_capability("sm_90").name
    'Hopper'
    >>> by_capability("7.0").last_cuda
    '12.9'
    """
    wanted = normalise(capability)
    return next((item for item in every() if item.compute_capability == wanted), None)


def by_name(name: str) -> tuple[Architecture, ...]:
    """All compute capabilities of an architecture.

    >>> [item.compute_capability for item in by_name("hopper")]
    ['9.0']
    """
    wanted = name.casefold()
    return tuple(item for item in every() if wanted in (item.name.casefold(), item.name.split()[0].casefold()))


def normalise(capability: str) -> str:
    """Bring a compute capability into the form with a dot.

    >>> normalise("sm_120a"), normalise("compute_75"), normalise("8.6")
    ('12.0', '7.5', '8.6')
    """
    text = capability.strip().lower().removeprefix("sm_").removeprefix("compute_").removeprefix("sm").rstrip("af")
    if "." in text or len(text) < 2:
        return text
    return f"{text[:-1]}.{text[-1]}"
