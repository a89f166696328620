"""The device files of the driver: as `ls -l` shows them, or says that they are not there."""

from __future__ import annotations

from collections.abc import Iterator

from gpudoctor.facts.base import Fact, Probed
from gpudoctor.facts.driver import DeviceNode
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex

_NODE = LazyRegex(
    r"^(?P<mode>[c-][rwx-]{9})[.+]?\s+\d+\s+(?P<owner>\S+)\s+(?P<group>\S+)\s+\d+,\s*\d+\s+.*?(?P<path>/dev/nvidia[\w/-]*|nvidia[\w-]*)\s*$"
)
_NO_NODE = LazyRegex(
    r"(?:cannot access|cannot stat|stat failed:|open|can't open|Could not open|failed to stat|no such file or directory:)"
    r"[^/]{0,60}(?P<path>/dev/(?:nvidia[\w*-]*|nvidia-caps))[^:]{0,4}:.{0,60}(?:No such file or directory|no such file or directory|Datei oder Verzeichnis nicht gefunden"
    r"|Aucun fichier ou dossier|No existe el)"
)


def _octal(mode: str) -> str:
    digits = ""
    for start in (1, 4, 7):
        bits = mode[start : start + 3]
        digits += str(4 * (bits[0] == "r") + 2 * (bits[1] == "w") + (bits[2] in "xst"))
    return digits


def device_nodes(text: str) -> Iterator[Fact]:
    """`ls -l /dev/nvidia*`; where it lists all of them, what isn't there is absent.

    >>> fact = next(device_nodes("crw-rw---- 1 root video 195, 0 Jan  8 10:00 /dev/nvidia0")); fact.mode, fact.group
    ('660', 'video')
    """
    seen: set[str] = set()
    for number, line in enumerate(text.split("\n")):
        found = _NODE.match(line.strip())
        if not found:
            if number:
                break
            raise NotThisFormat
        path = found["path"] if found["path"].startswith("/dev/") else f"/dev/{found['path']}"
        seen.add(path)
        yield DeviceNode(path=path, mode=_octal(found["mode"]), owner=found["owner"], group=found["group"], at=number)
    if {"/dev/nvidiactl", "/dev/nvidia0"} <= seen:
        yield Probed(what="device_node", at=max(len(seen) - 1, 0))


def device_node_absent(text: str) -> Iterator[DeviceNode]:
    """A message that says that a device node of the driver isn't there.

    >>> fact = next(device_node_absent("ls: cannot access '/dev/nvidia*': No such file or directory")); fact.path, fact.present
    ('/dev/nvidia*', False)
    """
    line = text.partition("\n")[0]
    found = _NO_NODE.search(line)
    if not found:
        raise NotThisFormat
    yield DeviceNode(path=found["path"].rstrip("'\""), present=False)


_LISTED_DEV = LazyRegex(r"\bls\s+(?:-\w+\s+)*/dev/?\s*\|\s*[ef]?grep\s+(?:-\w+\s+)*[\"']?nv(?:idia)?[\"']?\s*$")
_NEXT_PROMPT = LazyRegex(r"^(?:\[?[\w.-]+@\S+.*?[$#%>]|[$#%]|\S+[$#])(?:\s|$)")


def device_nodes_grep(text: str) -> Iterator[DeviceNode]:
    r"""`ls /dev | grep nvidia` in a pasted session that shows nothing before the next prompt.

    >>> fact = next(device_nodes_grep("$ ls /dev | grep -i nvidia\n$ lsmod\n")); fact.path, fact.present
    ('/dev/nvidia*', False)
    """
    asked, _, rest = text.partition("\n")
    if not _LISTED_DEV.search(asked.rstrip()) or not _NEXT_PROMPT.match(rest):
        raise NotThisFormat
    yield DeviceNode(path="/dev/nvidia*", present=False)


FORMATS = (
    Format("/dev/nvidia*", ("/dev/nvidia", " nvidia0", " nvidiactl"), device_nodes, lines=40),
    Format("device node missing", ("/dev/nvidia",), device_node_absent, lines=1),
    Format("ls /dev | grep", ("/dev | grep", "/dev |grep", "/dev/ | grep", "/dev/ |grep"), device_nodes_grep, lines=2),
)
