"""Reads everything that an offline source holds, and sorts it by node where it holds several."""

from __future__ import annotations

import re
from collections import Counter

import msgspec

from gpudoctor.collect.account import account
from gpudoctor.collect.booking import Answered, book
from gpudoctor.collect.collected import Collected
from gpudoctor.collect.live import first_line
from gpudoctor.collect.probe import load_probes
from gpudoctor.facts.base import LogLine
from gpudoctor.parsers.scan import Scanner
from gpudoctor.sources.base import Document, Source, SourceNotes
from gpudoctor.sources.snapshot import Manifest

_HEADING = " § "
_KERNEL_SPEAKS = re.compile(r" kernel: |: kern: ")  # journals and syslog; Talos
_CONTAINER = re.compile(r"[0-9a-f]{12}")  # the name that docker gives to a host that is none
_DRIVER_POD = re.compile(r"nvidia-.*daemonset")
_NODE_IN_NAME = re.compile(r"(?:^|/)nvidia-bug-report_(?P<node>[\w.-]+?)\.log(?:\.\w+)*$")


class Part(msgspec.Struct):
    """What belongs to one node: its bundles, and the loose files beside them. `name` is its host, or "" where unknown."""

    name: str
    kind: str
    collected: Collected = msgspec.field(default_factory=Collected)


def collect_offline(source: Source, scanner: Scanner) -> Collected:
    """Read everything as one node."""
    whole = Collected()
    for part in collect_parts(source, scanner, apart=False):
        whole.join(part.collected)
    return whole


def collect_parts(source: Source, scanner: Scanner, *, apart: bool = True) -> list[Part]:
    """Read everything; one part per node that has a bundle of its own, then one for what belongs to none of them."""
    notes = source.notes
    bundles: dict[str, Collected] = {}
    loose: dict[str, Collected] = {}  # by folder
    places: dict[str, list[str]] = {}
    firsts: dict[str, str] = {}  # file of a snapshot -> its first line
    read: list[tuple[str, Collected]] = []
    for document in source.documents():
        read.append((document.name, _scanned(document, scanner, notes, firsts)))
    for name, collected in read:  # now all roots are known
        root = _bundle_of(name, notes)
        if root is None:
            loose.setdefault(name.partition(_HEADING)[0].rpartition("/")[0], Collected()).join(collected)
        else:
            bundles.setdefault(root, Collected()).join(collected)
            places.setdefault(root, []).append(_place(name, root))
    for root, collected in bundles.items():
        if root in notes.snapshots:
            _replay(root, notes.snapshots[root], firsts, collected)
            held = set(places[root])
            for file in notes.snapshots[root].files:
                if file not in held and not file.startswith("with/"):
                    notes.incomplete(f"{root}{file}: named by the snapshot's manifest and not in it")
        else:
            collected.probes += account(notes.roots[root], places[root], load_probes())
    return _by_node(bundles, loose, notes, apart)


def _scanned(document: Document, scanner: Scanner, notes: SourceNotes, firsts: dict[str, str]) -> Collected:
    collected = Collected()
    if document.skipped is not None:
        collected.skipped.append(f"{document.name}: {document.skipped}")
    elif _from_probe(document.name, notes):
        import hashlib  # loads a library of ciphers

        output = b"".join(document.chunks())
        if _checksum(document.name, notes) != hashlib.sha256(output).hexdigest():
            notes.problems.append(f"{document.name}: was changed after the snapshot was made (its checksum differs)")
        firsts[document.name] = first_line(output)
        collected.add(document, scanner.scan(document.name, (output,)))
    else:
        scanned = scanner.scan(document.name, document.chunks(), document.first_line, document.boot, document.reached)
        collected.add(document, scanned)
    return collected


def _from_probe(name: str, notes: SourceNotes) -> bool:
    """Tell whether a probe of a snapshot gave this file; extra logs in a snapshot are ordinary files."""
    return any(
        name.startswith(folder) and name[len(folder) :] in manifest.files and not name.startswith(f"{folder}with/")
        for folder, manifest in notes.snapshots.items()
    )


def _checksum(name: str, notes: SourceNotes) -> str:
    for folder, manifest in notes.snapshots.items():
        if name.startswith(folder) and name[len(folder) :] in manifest.files:
            return manifest.files[name[len(folder) :]].sha256
    return ""


def _replay(root: str, manifest: Manifest, firsts: dict[str, str], collected: Collected) -> None:
    """Book the probes as they were booked on the machine."""
    for asked in manifest.probes:
        parts = [
            Answered(
                f"{root}{part.file}" if part.file else part.name,
                part.status,
                part.reason,
                firsts.get(f"{root}{part.file}", ""),
            )
            for part in asked.parts
        ]
        if parts:
            book(asked.name, asked.command, asked.answers, asked.seconds, parts, collected, root=manifest.root)


def _bundle_of(name: str, notes: SourceNotes) -> str | None:
    """Return the root of the bundle that a document is part of."""
    path = name.partition(_HEADING)[0]
    best = None
    for root in notes.roots:
        inside = path.startswith(root) if root.endswith("/") or not root else path == root
        if inside and (best is None or len(root) > len(best)):
            best = root
    return best


def _place(name: str, root: str) -> str:
    path, _, heading = name.partition(_HEADING)
    return heading or path[len(root) :]


def _by_node(bundles: dict[str, Collected], loose: dict[str, Collected], notes: SourceNotes, apart: bool) -> list[Part]:
    """Join what belongs to one node. Where only one is known by name, everything is about it."""
    hosts = {root: _host(root, collected) for root, collected in bundles.items()}
    if apart:
        hosts |= {
            f"{folder}/": host for folder, collected in loose.items() if folder and (host := _own_host(collected))
        }
    several = apart and len({host for host in hosts.values() if host}) > 1
    parts: dict[str, Part] = {}
    for root, collected in bundles.items():
        host, kind = (hosts[root], notes.roots[root]) if several else ("", notes.kind)
        parts.setdefault(host, Part(host, kind)).collected.join(collected)
    for folder, collected in loose.items():
        host = (hosts.get(f"{folder}/") or _beside(folder, hosts)) if several else ""
        parts.setdefault(host, Part(host, notes.kind)).collected.join(collected)
    return sorted(parts.values(), key=lambda part: (not part.name, part.name)) or [Part("", notes.kind)]


def _beside(folder: str, hosts: dict[str, str]) -> str:
    """Return the node whose bundles alone lie below the nearest folder that holds any; "" where there are several."""
    while True:
        inside = {host for root, host in hosts.items() if not folder or root.startswith(f"{folder}/")}
        if inside:
            return inside.pop() if len(inside) == 1 else ""
        folder = folder.rpartition("/")[0]


def _own_host(collected: Collected) -> str:
    """Return the one machine whose kernel speaks in the loose files of a folder; "" where none does, or several do."""
    named = {fact.node for fact in collected.facts if fact.kind == "kernel" and fact.node}
    if not named:
        named = {
            fact.node for fact in collected.facts if fact.node and fact.where and _KERNEL_SPEAKS.search(fact.where.text)
        }
    host = named.pop() if len(named) == 1 else ""
    return "" if _CONTAINER.fullmatch(host) else host


def _host(root: str, collected: Collected) -> str:
    """Return the name of the machine that a bundle is about, as it calls itself.

    In a driver pod a bug report knows the pod's name only; the GPU operator's must-gather puts the node's into the file's name.
    """
    host = next((fact.node for fact in collected.facts if fact.kind == "kernel" and fact.node), None)
    if host is None:
        seen = Counter(fact.node for fact in collected.facts if isinstance(fact, LogLine) and fact.node)
        host = str(seen.most_common(1)[0][0]) if seen else ""
    named = _NODE_IN_NAME.search(root)
    return named["node"] if named and _DRIVER_POD.match(host) else host
