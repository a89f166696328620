"""What this machine and its people are called: the names that a redactor must know beforehand."""

from __future__ import annotations

import contextlib
import os
import pwd
import socket

import psutil

_FIRST_PERSON = 1000  # user ids below belong to services
_NOBODY = 65534


def host_names() -> list[str]:
    """Return this machine's names."""
    names = [os.uname().nodename, socket.gethostname(), os.environ.get("HOSTNAME", "")]
    with contextlib.suppress(OSError), open("/etc/hosts", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        for line in file:
            if line.startswith(("127.0.1.1", "127.0.0.2")):
                names += line.split()[1:]
    return [name for name in dict.fromkeys(names) if name]


def user_names() -> list[str]:
    """Return the people of this machine."""
    names = [os.environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER")]
    with contextlib.suppress(OSError, KeyError):
        names += [entry.pw_name for entry in pwd.getpwall() if _FIRST_PERSON <= entry.pw_uid < _NOBODY]
    return [name for name in dict.fromkeys(names) if name]


def addresses() -> list[str]:
    """Return this machine's network addresses."""
    found = []
    with contextlib.suppress(OSError, psutil.Error):
        for entries in psutil.net_if_addrs().values():
            found += [entry.address.partition("%")[0] for entry in entries if entry.address]
    return found
