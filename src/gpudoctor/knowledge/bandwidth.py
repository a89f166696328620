"""What bus bandwidth a collective should reach, and why: measured tables, not data-sheet sums."""

from __future__ import annotations

import msgspec

from gpudoctor.knowledge import gpus
from gpudoctor.knowledge.tables import Row, table

# all_reduce is what the tables measure; these reach about the ring figure of it, point-to-point patterns clearly less.
_SHARE = {
    "all_reduce": 1.0,
    "all_gather": 0.75,
    "reduce_scatter": 0.75,
    "broadcast": 0.7,
    "reduce": 0.6,
    "alltoall": 0.4,
    "sendrecv": 0.35,
    "scatter": 0.3,
    "gather": 0.3,
    "hypercube": 0.2,
}
_NIC_SHARE = 0.6  # of the adapters' sum: healthy clusters reach 0.85 and more, odd topologies two thirds
_MEASURED_SHARE = 0.7  # of what a bandwidth test moved through the one adapter in use
_DEFAULT_NIC = 100.0  # Gb/s where the port's rate is not known: the slowest adapter that GPU nodes are sold with


class Expectation(msgspec.Struct, frozen=True):
    """Bandwidths in GB/s; below `low` something is wrong. `why` is the reasoning in one sentence."""

    low: float
    high: float
    why: str


def fabric_gpu(name: str | None) -> bool:
    """Tell whether this GPU is of a kind that is built with NVLink between all GPUs of the node.

    >>> fabric_gpu("NVIDIA H100 80GB HBM3"), fabric_gpu("NVIDIA GeForce RTX 4090"), fabric_gpu("NVIDIA H100 PCIe")
    (True, False, False)
    """
    row = _row(name)
    return row is not None and row["kind"] == "nvlink"


def _row(name: str | None) -> Row | None:
    if not name or "PCIE" in name.upper():
        return None
    return next((row for row in table("busbw").rows if row.get("gpu", "\0") in name), None)


def _pcie(name: str) -> Row | None:
    product = gpus.by_name(name)
    generation = product.pcie_gen if product else None
    return next((row for row in table("busbw").rows if row.get("generation", 0) == generation), None)


def ramp(size: int) -> float | None:
    """Return the share of the plateau that a healthy node reaches at this size; None where it can't be judged.

    >>> ramp(8 << 30), ramp(1 << 20)
    (1.0, None)
    """
    return next((float(row["share"]) for row in table("busbw").rows if size >= row.get("size", size + 1)), None)


# Of what PCIe carries: copies from card to card reach most of it, by way of host memory it is used twice.
_PEER_LOW, _HOST_HIGH = 0.3, 0.7


def inside_node(
    name: str | None, ranks: int, links: int | None = None, peers: bool | None = None
) -> Expectation | None:
    """Expect the bandwidth of all_reduce between the GPUs of one node.

    links: NVLinks that every pair is shown to have. peers: cards without NVLink reach each other directly below one CPU
    (True), or only through host memory (False); None where that isn't known.

    >>> inside_node("NVIDIA A100-SXM4-80GB", 8).low
    170.0
    >>> inside_node("NVIDIA GeForce RTX 4090", 4).high
    26.0
    >>> inside_node("NVIDIA GeForce RTX 4090", 4, peers=True).low, inside_node("NVIDIA GeForce RTX 4090", 4, peers=False).high
    (7.8, 18.2)
    >>> inside_node(None, 4, links=12).low
    120.0
    """
    if ranks < 2:
        return None
    row = _row(name)
    if row and row["kind"] == "bridge":
        return Expectation(
            row["low"], row["ring"], f"{name}: PCIe between the cards, NVLink bridges only within a pair"
        )
    if row and ranks >= row.get("min_ranks", 2):
        high = float(row.get("nvls", row["ring"]))
        return Expectation(float(row["low"]), high, f"{name}: healthy nodes reach about {row['ring']} GB/s over NVLink")
    if row:
        return None
    if links:
        each = 25.0 * links
        return Expectation(
            0.4 * each, 0.8 * each, f"all pairs are joined by {links} NVLinks ({each:.0f} GB/s each way)"
        )
    pcie = _pcie(name) if name else None
    if pcie is None:
        return None
    why = f"{name}: PCIe {pcie['generation']}.0 between the cards"
    low, high = float(pcie["low"]), float(pcie["ring"])
    if peers:
        return Expectation(round(_PEER_LOW * high, 1), high, f"{why}, peer-to-peer")
    if peers is False:
        return Expectation(low, round(_HOST_HIGH * high, 1), f"{why}, through host memory")
    return Expectation(low, high, why)


def across_nodes(name: str | None, per_node: int | None, nics: int, rate: float | None) -> Expectation:
    """Expect the bandwidth of all_reduce across nodes with this many adapters each; rate in Gb/s where it is known.

    >>> across_nodes("NVIDIA H100 80GB HBM3", 8, 8, 400.0)
    Expectation(low=240.0, high=388.0, why='8 adapters of 400 Gb/s per node carry 400 GB/s')
    """
    total = nics * (rate or _DEFAULT_NIC) / 8
    low, high = _NIC_SHARE * total, 0.97 * total
    said = f"{rate:.0f} Gb/s" if rate else f"at least {_DEFAULT_NIC:.0f} Gb/s"
    why = f"{nics} adapters of {said} per node carry {total:.0f} GB/s"
    inside = inside_node(name, per_node or 0)
    if inside and inside.low < low:
        low, why = inside.low, f"{why}; {inside.why}"
    return Expectation(round(low, 1), round(high, 1), why)


def beside(moved: float, device: str) -> Expectation:
    """Expect the bandwidth of all_reduce with one GPU per node, where a test of perftest moved so much (Gb/s) through its adapter.

    >>> beside(395.0, "mlx5_0").low
    34.6
    """
    total = moved / 8
    return Expectation(
        round(_MEASURED_SHARE * total, 1), round(total, 1), f"ib_write_bw moves {moved:.0f} Gb/s through {device}"
    )


def share(collective: str | None) -> float:
    """Return what part of the all_reduce figure another collective should reach at least."""
    return _SHARE.get((collective or "all_reduce").lower(), 0.3)
