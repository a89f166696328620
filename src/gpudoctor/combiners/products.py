"""What the product tables say of every GPU that is in evidence: by PCI device id, else by the name that was printed."""

from __future__ import annotations

from collections.abc import Iterable

from gpudoctor.facts.base import Fact
from gpudoctor.facts.gpu import GpuProduct
from gpudoctor.facts.store import FactStore
from gpudoctor.knowledge import gpus
from gpudoctor.knowledge.gpus import Product

_NVIDIA = 0x10DE


def gpu_products(store: FactStore) -> Iterable[GpuProduct]:
    """Yield one product per GPU; an id beats a name, and a GPU without a name of its own gets one per product."""
    known: dict[str, GpuProduct] = {}
    for kind in ("pci_device", "gpu_refusal", "gpu"):
        for fact in store.of(kind):
            if kind == "pci_device" and fact.value("vendor_id") not in (None, _NVIDIA):
                continue
            device_id = fact.value("device_id")
            product = gpus.by_pci_id(device_id) if isinstance(device_id, int) else None
            if product is not None:
                known.setdefault(fact.gpu or product.name, _fact(product, fact))
    for kind in ("gpu", "gpu_refusal"):
        for fact in store.of(kind):
            name = fact.value("name")
            if (fact.gpu is None or fact.gpu not in known) and isinstance(name, str) and (found := gpus.by_name(name)):
                known.setdefault(fact.gpu or found.name, _fact(found, fact))
    return list(known.values())


def _fact(product: Product, seen: Fact) -> GpuProduct:
    capability = float(product.compute_capability)
    return GpuProduct(
        name=product.name,
        architecture=product.architecture,
        compute_capability=capability,
        class_=product.kind,
        first_driver_branch=product.first_driver_branch,
        last_driver_branch=product.last_driver_branch,
        open_modules=product.open_modules,
        memory_gib=product.memory_gib,
        nvlink_links=product.nvlink_links,
        p2p=None if product.p2p is None else product.p2p != "none",
        bf16=capability >= 8.0,
        fp8=capability >= 8.9,
        gpu=seen.gpu,
        where=seen.where,
        boot=seen.boot,
    )
