"""Operating systems: how long they are supported, their package manager and the names of driver packages."""

from collections.abc import Mapping
from functools import cache

import msgspec

from gpudoctor.knowledge.tables import sources, table

ALIASES = {
    "redhat": "rhel",
    "red hat": "rhel",
    "oracle": "ol",
    "oraclelinux": "ol",
    "amazon": "amzn",
    "amazonlinux": "amzn",
    "alma": "almalinux",
    "rockylinux": "rocky",
    "suse": "sles",
    "opensuse": "opensuse-leap",
    "mariner": "azurelinux",
}


class System(msgspec.Struct, frozen=True):
    """One release of a Linux distribution; packages may hold {branch} for the driver branch."""

    id: str
    version: str
    end_of_support: str | None
    package_manager: str
    glibc: str | None
    packages: Mapping[str, str]
    sources: tuple[str, ...]

    @property
    def name(self) -> str:
        """Id and version in one."""
        return f"{self.id} {self.version}"


@cache
def every() -> tuple[System, ...]:
    """All known releases."""
    return tuple(
        System(
            id=row["id"],
            version=row["version"],
            end_of_support=row.get("end_of_support"),
            package_manager=row["package_manager"],
            glibc=row.get("glibc"),
            packages=row["packages"],
            sources=sources("operating_systems", row["source"]),
        )
        for row in table("operating_systems").rows
    )


def os(name: str, version: str) -> System | None:
    """Look a release up by the ID and VERSION_ID of /etc/os-release; point releases count as their major.

    >>> os("ubuntu", "18.04").end_of_support
    '2023-05'
    >>> os("rhel", "9.4").glibc
    '2.34'
    """
    wanted = ALIASES.get(name.strip().lower(), name.strip().lower())
    version = version.strip().lower()
    for system in every():
        if system.id == wanted and version in (system.version, f"{system.version}.0"):
            return system
    major = version.split(".")[0]
    if wanted == "ubuntu":
        return next((s for s in every() if s.id == wanted and ".".join(version.split(".")[:2]) == s.version), None)
    return next((s for s in every() if s.id == wanted and s.version == major), None)


def parse(text: str) -> System | None:
    """Look a release up by free text.

    >>> parse("Ubuntu-22.04").name, parse("rhel9").name, parse("ubuntu2404").name
    ('ubuntu 22.04', 'rhel 9', 'ubuntu 24.04')
    """
    folded = text.strip().lower()
    at = next((index for index, char in enumerate(folded) if char.isdigit()), len(folded))
    name, version = folded[:at].strip(" -_:/="), folded[at:].strip()
    if name == "ubuntu" and len(version) == 4 and version.isdigit():
        version = f"{version[:2]}.{version[2:]}"
    return os(name, version) if version else None


def package(system: System, role: str, branch: int | None = None) -> str | None:
    """Name of a package: role is "proprietary", "open", "headers", "fabric_manager" or "repository".

    >>> package(os("ubuntu", "22.04"), "open", 570)
    'nvidia-driver-570-server-open'
    """
    text = system.packages.get(role)
    if text is None or ("{branch}" in text and branch is None):
        return None
    return text.replace("{branch}", str(branch))
