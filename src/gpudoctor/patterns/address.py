"""PCI addresses have many spellings; gpudoctor uses one."""

from __future__ import annotations


def pci_address(text: str) -> str:
    """Return the one spelling of a PCI address that gpudoctor uses.

    >>> pci_address("PCI:00000000:B1:00"), pci_address("3b:00.0"), pci_address("0008:01:00")
    ('0000:b1:00.0', '0000:3b:00.0', '0008:01:00.0')
    """
    text = text.lower().removeprefix("pci:")
    body, _, function = text.partition(".")
    parts = body.split(":")
    if len(parts) == 2:
        parts.insert(0, "0")
    domain, bus, device = parts
    return f"{int(domain, 16):04x}:{int(bus, 16):02x}:{int(device, 16):02x}.{function or '0'}"
