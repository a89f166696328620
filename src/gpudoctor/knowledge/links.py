"""What links can carry: PCIe, NVLink, InfiniBand and Ethernet, in theory and in practice."""

from functools import cache

import msgspec

from gpudoctor.knowledge.tables import sources, table, words


class Link(msgspec.Struct, frozen=True):
    """One kind of link; speeds are 1e9 bytes per second, one way."""

    kind: str
    generation: str
    width: int
    gb_s: float
    reached_gb_s: float | None
    gbit_s: float | None
    per_link_gb_s: float | None
    gpus: tuple[str, ...]
    sources: tuple[str, ...]


@cache
def every() -> tuple[Link, ...]:
    """All known links."""
    return tuple(
        Link(
            kind=row["kind"],
            generation=row["generation"],
            width=row["width"],
            gb_s=row["gb_s"],
            reached_gb_s=row.get("reached_gb_s"),
            gbit_s=row.get("gbit_s"),
            per_link_gb_s=row.get("per_link_gb_s"),
            gpus=words(row, "gpus"),
            sources=sources("link_speeds", row["source"]),
        )
        for row in table("link_speeds").rows
    )


def find(kind: str, generation: str, width: int | None = None) -> Link | None:
    """Look a link up.

    >>> find("infiniband", "NDR").gb_s
    50.0
    """
    for link in every():
        if link.kind == kind and link.generation == generation.upper() and width in (None, link.width):
            return link
    return None


def pcie_gb_s(generation: int, width: int) -> float | None:
    """Line rate of a PCIe link, one way.

    >>> pcie_gb_s(5, 16)
    63.02
    """
    link = find("pcie", str(generation), width)
    return link.gb_s if link else None


def pcie_reached_gb_s(generation: int, width: int) -> float | None:
    """What a copy from pinned memory commonly reaches over a PCIe link."""
    link = find("pcie", str(generation), width)
    return link.reached_gb_s if link else None


def nvlink_gb_s(version: int, links: int | None = None) -> float | None:
    """NVLink speed of a GPU one way, for all its links or for the given number.

    >>> nvlink_gb_s(4), nvlink_gb_s(4, 17)
    (450, 425)
    """
    link = find("nvlink", str(version))
    if link is None or link.per_link_gb_s is None:
        return None
    return link.gb_s if links is None else link.per_link_gb_s * links
