"""Xids and SXids that NCCL's own diagnostics (2.31 and newer) found in the kernel logs of a job's hosts.

The other lines of that report are read by rules.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpudoctor.facts.base import Fact
from gpudoctor.facts.gpu import Sxid, Xid
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex

_EVENT = LazyRegex(
    r"NCCL DIAG \[\w+\]\s+(?P<kind>S?Xid) (?P<code>\d{1,6}) detected (?:at least )?(?P<count>\d{1,9}) times? "
    r"(?:\(NVSwitch driver reported (?P<class>[\w -]{1,40}), link\(s\) \{(?P<link>\d{1,3})?[\d,]*\}?\) )?on host (?P<host>[\w.-]{1,64})"
)
_FATAL = {"Fatal": True, "Non-fatal": False}


def event(text: str) -> Iterator[Fact]:
    """One kind of Xid or SXid on one host; which GPU it was isn't told.

    >>> line = "gpu-a:24563 NCCL DIAG [INFO] Xid 79 detected 1 time on host gpu-b. Restart the affected application."
    >>> fact = next(event(line)); fact.code, fact.node, fact.gpu, fact.count
    (79, 'gpu-b', None, 1)
    >>> line = "NCCL DIAG [INFO] SXid 20034 detected 2 times (NVSwitch driver reported Fatal, link(s) {3,7}) on host gpu-b. See"
    >>> fact = next(event(line)); fact.code, fact.fatal, fact.link, fact.count
    (20034, True, 3, 2)
    """
    line = text.partition("\n")[0][:2000]
    found = _EVENT.search(line)
    if not found:
        raise NotThisFormat
    code, count, host = int(found["code"]), max(1, int(found["count"])), found["host"].rstrip(".")
    said = f"seen by NCCL on {host}"
    if found["kind"] == "Xid":
        yield Xid(code=code, detail=said, seen_by="monitor", node=host, count=count)
    else:
        link = int(found["link"]) if found["link"] else None
        yield Sxid(code=code, fatal=_FATAL.get(found["class"]), link=link, detail=said, node=host, count=count)


FORMATS = (Format("Xid in NCCL's diagnostics", ("NCCL DIAG [",), event, lines=1, fold=True, apart=("code",)),)
