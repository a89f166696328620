"""sosreport: a copy of the machine's files below one folder, and what commands printed below sos_commands/.

Read packed and unpacked, of all versions: what a file is, is told by its content, so the many places that a command's output has
had over the years don't matter. Only three things are read from paths: which folder is a sosreport, which files are sos's
record of its own work, and of which boot a log is.
"""

from __future__ import annotations

import re

_ROOT = re.compile(r"^(?P<root>(?:.*?/)?)(?:sos_commands|sos_logs|sos_reports|sos_strings)/")
_TOP = re.compile(r"^(?P<root>(?:.*/)?sosreport-[^/]+/)")
_RECORDS = re.compile(r"^(?:sos_logs/|sos_reports/|version\.txt$|checksums?\.md5$)")
_BOOT = re.compile(r"journalctl\S*_(?:--boot|-b)_?(?P<boot>-\d+)")
_OLDER = re.compile(
    r"(?:^|/)(?:dmesg|kern\.log|boot\.log|nvidia-installer\.log)\.(?:0|1|old)(?:\.\w+)?$|previous_boot|last_boot"
)


def root_of(path: str) -> str | None:
    """Return the folder of the sosreport that a path lies in, with its slash; "" where it is the source itself.

    >>> root_of("sosreport-node1-2024-01-02-abc/etc/os-release"), root_of("sos_commands/pci/lspci"), root_of("a/b.log")
    ('sosreport-node1-2024-01-02-abc/', '', None)
    """
    found = _TOP.match(path) or _ROOT.match(path)
    return found["root"] if found else None


def is_record_of_sos(path: str) -> bool:
    """Tell by a path inside the sosreport whether sos wrote the file about itself."""
    return _RECORDS.match(path) is not None


def boot_of(path: str) -> int:
    """Return the boot in which a log ends, where its path says so.

    >>> boot_of("x/sos_commands/logs/journalctl_--no-pager_--boot_-1"), boot_of("var/log/dmesg.0")
    (-1, -1)
    """
    if found := _BOOT.search(path):
        return int(found["boot"])
    return -1 if _OLDER.search(path) else 0
