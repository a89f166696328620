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


def nccl_bus(bus: str) -> str | None:
    """Return the PCI address that NCCL writes as one hexadecimal number.

    >>> nccl_bus("1b000"), nccl_bus("100000"), nccl_bus("40")
    ('0000:1b:00.0', '0001:00:00.0', '0000:00:04.0')
    """
    number = int(bus, 16)
    if number >= 1 << 36:
        return None
    return f"{number >> 20:04x}:{number >> 12 & 0xFF:02x}:{number >> 4 & 0xFF:02x}.{number & 0xF:x}"
