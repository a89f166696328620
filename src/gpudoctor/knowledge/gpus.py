"""GPU products by PCI device id and by the exact name that the driver prints."""

import re
from functools import cache
from typing import Literal

import msgspec

from gpudoctor.knowledge import architectures
from gpudoctor.knowledge.architectures import Architecture, OpenModules
from gpudoctor.knowledge.tables import Row, sources, table, words

Kind = Literal["datacenter", "workstation", "geforce", "embedded"]
Ecc = Literal["always", "on", "settable", "none"]
PeerAccess = Literal["nvlink", "nvlink-bridge", "none"]

_ID = r"(?:10de:)?(?:0x)?([0-9a-f]{4})"


class Product(msgspec.Struct, frozen=True):
    """A GPU as it is sold. None means that the tables do not say."""

    name: str
    kind: Kind | None
    architecture: str
    compute_capability: str
    pci_ids: tuple[int, ...] = ()
    chip: str | None = None
    memory_gib: float | None = None
    memory_mib: int | None = None
    memory_type: str | None = None
    memory_gb_s: float | None = None
    power_w: float | None = None
    power_min_w: float | None = None
    power_max_w: float | None = None
    pcie_gen: int | None = None
    pcie_width: int | None = None
    nvlink_version: int | None = None
    nvlink_links: int | None = None
    nvlink_gb_s: float | None = None
    c2c_gb_s: float | None = None
    mig_max: int | None = None
    mig_driver: str | None = None
    ecc: Ecc | None = None
    p2p: PeerAccess | None = None
    row_remap_banks: int | None = None
    first_driver_branch: int | None = None
    known_driver: str | None = None
    last_driver_branch: int | None = None
    open_modules: OpenModules = "possible"
    shared_id: bool = False
    listed: bool = True
    unverified: bool = False
    sources: tuple[str, ...] = ()


def _product(row: Row) -> Product:
    arch = _arch(row["compute_capability"])
    return Product(
        name=row["name"],
        kind=row["kind"],
        architecture=row["architecture"],
        compute_capability=row["compute_capability"],
        pci_ids=tuple(int(item, 16) for item in row["pci_ids"]),
        chip=row.get("chip"),
        memory_gib=row.get("memory_gib"),
        memory_mib=row.get("memory_mib"),
        memory_type=row.get("memory_type"),
        memory_gb_s=row.get("memory_gb_s"),
        power_w=row.get("power_w"),
        power_min_w=row.get("power_min_w"),
        power_max_w=row.get("power_max_w"),
        pcie_gen=row.get("pcie_gen"),
        pcie_width=row.get("pcie_width"),
        nvlink_version=row.get("nvlink_version"),
        nvlink_links=row.get("nvlink_links"),
        nvlink_gb_s=row.get("nvlink_gb_s"),
        c2c_gb_s=row.get("c2c_gb_s"),
        mig_max=row.get("mig_max"),
        mig_driver=row.get("mig_driver"),
        ecc=row.get("ecc"),
        p2p=row.get("p2p"),
        row_remap_banks=row.get("row_remap_banks"),
        first_driver_branch=arch.first_driver_branch,
        known_driver=row.get("known_driver"),
        last_driver_branch=arch.last_driver_branch,
        open_modules=row.get("open_modules", arch.open_modules),
        shared_id=bool(words(row, "shared_ids")),
        unverified=row.get("unverified", False),
        sources=sources("gpus", row["source"]),
    )


def _arch(capability: str) -> Architecture:
    arch = architectures.by_capability(capability)
    if arch is None:
        raise KeyError(capability)
    return arch


@cache
def _at(index: int) -> Product:
    return _product(table("gpus").rows[index])


def every() -> tuple[Product, ...]:
    """All listed products."""
    return tuple(_at(index) for index in range(len(table("gpus").rows)))


@cache
def _by_id() -> dict[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {}
    for index, row in enumerate(table("gpus").rows):
        for text in row["pci_ids"]:
            number = int(text, 16)
            found[number] = (*found.get(number, ()), index)
    return found


def all_by_pci_id(device_id: int) -> tuple[Product, ...]:
    """All products that carry a PCI device id; some ids are told apart only by the subsystem id.

    >>> [item.name for item in all_by_pci_id(0x25B6)]
    ['NVIDIA A2', 'NVIDIA A16']
    """
    return tuple(_at(index) for index in _by_id().get(device_id, ()))


def by_pci_id(device_id: int) -> Product | None:
    """Look a PCI device id of NVIDIA up; an unlisted id falls back to the architecture of its range.

    >>> by_pci_id(0x2330).name
    'NVIDIA H100 80GB HBM3'
    >>> found = by_pci_id(0x23FF)
    >>> found is None
    True
    >>> by_pci_id(0x2BB2).listed, by_pci_id(0x2BB2).architecture
    (False, 'Blackwell')
    """
    listed = all_by_pci_id(device_id)
    if listed:
        return listed[0]
    for row in table("gpu_id_ranges").rows:
        if int(row["first"], 16) <= device_id <= int(row["last"], 16):
            arch = _arch(row["compute_capability"])
            return Product(
                name=f"unlisted {row['architecture']} GPU ({row['chip']}, PCI id {device_id:04X})",
                kind=None,
                architecture=row["architecture"],
                compute_capability=row["compute_capability"],
                pci_ids=(device_id,),
                chip=row["chip"],
                first_driver_branch=arch.first_driver_branch,
                last_driver_branch=arch.last_driver_branch,
                open_modules=arch.open_modules,
                listed=False,
                sources=sources("gpu_id_ranges", row["source"]),
            )
    return None


def fold(name: str) -> str:
    """Fold a product name to what tells products apart: case, brand and punctuation go.

    >>> fold("NVIDIA GeForce RTX 4090") == fold("rtx4090")
    True
    """
    text = name.casefold()
    for brand in ("nvidia", "geforce", "tesla", "quadro", "graphics"):
        text = text.replace(brand, " ")
    text = text.replace("generation", " ")
    return re.sub(r"[^a-z0-9]", "", text)


@cache
def _by_fold() -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for index, row in enumerate(table("gpus").rows):
        key = fold(row["name"])
        found[key] = (*found.get(key, ()), index)
    return found


def by_name(name: str) -> Product | None:
    """Look a product up by the name that the driver prints; case and brand may be left out.

    >>> by_name("NVIDIA H100 80GB HBM3").nvlink_links
    18
    >>> by_name("RTX 4090").compute_capability
    '8.9'
    >>> by_name("T4").name
    'Tesla T4'
    >>> by_name("2080").name
    'NVIDIA GeForce RTX 2080'
    >>> by_name("H100") is None  # several products: see by_family
    True
    """
    wanted = name.strip().partition(" MIG ")[0]
    for index, row in enumerate(table("gpus").rows):
        if row["name"] == wanted:
            return _at(index)
    folded = fold(wanted)
    found = _by_fold().get(folded, ())
    if folded.isdigit():
        found = _by_fold().get(f"rtx{folded}", ()) or _by_fold().get(f"gtx{folded}", ())
    if len(found) != 1:
        return None
    product = _at(found[0])
    if product.kind == "datacenter" and product.unverified and len(by_family(name)) > 1:
        return None
    return product


def by_family(name: str) -> tuple[Product, ...]:
    """Products whose name begins with a short name such as "H100" or "A100".

    >>> sorted({item.compute_capability for item in by_family("A100")})
    ['8.0']
    """
    wanted = _tokens(name)
    if not wanted or not any(char.isdigit() for char in name):
        return ()
    rows = table("gpus").rows
    return tuple(_at(index) for index, row in enumerate(rows) if _tokens(row["name"])[: len(wanted)] == wanted)


def _tokens(name: str) -> list[str]:
    text = name.casefold()
    for brand in ("nvidia", "geforce", "tesla", "quadro"):
        text = text.replace(brand, " ")
    return re.findall(r"[a-z]+\d*|\d+[a-z]*", text)


def parse_id(text: str) -> int | None:
    """Read a PCI device id: "2330", "0x2330" or "10de:2330".

    >>> parse_id("10de:2330") == parse_id("0x2330") == 0x2330
    True
    """
    match = re.fullmatch(_ID, text.strip().lower())
    return int(match[1], 16) if match else None
