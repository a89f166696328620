"""`gpudoctor topo [SOURCE...]`: how GPUs and network adapters reach each other, with what is below par marked."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpudoctor.collect.collected import Collected
    from gpudoctor.facts.store import FactStore

UNREADABLE = 66
_PROBES = (
    "nvml",
    "topology",
    "pci",
    "pci_detail",
    "nvidia_smi_query",
    "rdma",
    "modules",
    "driver_version",
    "cmdline",
    "kernel_log",
    "host",
    "processes",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "source",
        nargs="*",
        help="a bundle, folder or files (topo -m, lspci, lstopo or NCCL XML, dmesg) instead of this machine",
    )
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print JSON")
    shape.add_argument("--svg", action="store_true", help="print the drawing as an SVG image")
    parser.add_argument("--root", default="/", metavar="DIR", help="examine the machine whose files lie below DIR")
    parser.add_argument(
        "--commands", metavar="DIR", help="take command outputs from this recording instead of running them"
    )


def run(args: argparse.Namespace) -> int:
    """Draw the machine: 0, or 1 where something is below par; 3 where there is no GPU; 66 where a source can't be read."""
    from gpudoctor.nccl.draw import as_data, as_text
    from gpudoctor.nccl.graph import machine_graph
    from gpudoctor.sources.base import SourceUnreadable

    try:
        store = read_sources(args.source) if args.source else read_machine(args.root, args.commands)
    except SourceUnreadable as error:
        sys.stderr.write(f"gpudoctor topo: {error}\n")
        return UNREADABLE
    graph = machine_graph(store)
    if args.json:
        import json

        sys.stdout.write(json.dumps(as_data(graph), ensure_ascii=False, indent=1) + "\n")
    elif args.svg:
        from gpudoctor.nccl.svg import topology_svg

        sys.stdout.write(topology_svg(graph))
    else:
        sys.stdout.write(as_text(graph))
    if not graph.gpus:
        return 3
    return 1 if graph.below_par else 0


def read_sources(paths: list[str]) -> FactStore:
    """Read files for their facts alone; raises SourceUnreadable."""
    from gpudoctor.collect.offline import collect_offline
    from gpudoctor.combiners import combine
    from gpudoctor.parsers.formats import FORMATS
    from gpudoctor.parsers.scan import Scanner
    from gpudoctor.sources.open import open_sources

    return combine(collect_offline(open_sources(paths), Scanner(FORMATS, ())).facts, [])


def read_machine(root: str = "/", commands: str | None = None) -> FactStore:
    """Probe this machine (or its recording) for its topology."""
    from gpudoctor.combiners import combine

    return combine(probe_machine(root, commands).facts, [])


def probe_machine(root: str = "/", commands: str | None = None, seconds: float = 20.0) -> Collected:
    """Run the probes that tell how a machine's GPUs are joined, and whether they are in use."""
    import time

    from gpudoctor.collect.collected import Collected
    from gpudoctor.collect.live import run_probes
    from gpudoctor.collect.probe import load_probes
    from gpudoctor.parsers.formats import FORMATS
    from gpudoctor.parsers.scan import Scanner
    from gpudoctor.sources.live import LiveHost

    collected = Collected()
    probes = [probe for probe in load_probes() if probe.name in _PROBES]
    run_probes(LiveHost(root, commands), probes, Scanner(FORMATS, ()), collected, time.monotonic() + seconds)
    return collected
