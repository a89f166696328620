"""The node as the report describes it."""

from __future__ import annotations

from gpudoctor.facts.driver import DriverLibrary
from gpudoctor.facts.framework import PythonPackage, SharedLibrary
from gpudoctor.facts.gpu import Gpu, GpuProcess, NvlinkLink, TopologyPath
from gpudoctor.facts.host import HostMemory, Pressure
from gpudoctor.facts.store import FactStore
from gpudoctor.node import describe_node, graph_of

A, B = "0000:1a:00.0", "0000:1b:00.0"


def test_everything_that_is_known_and_nothing_else():
    store = FactStore(
        [
            Gpu(gpu=A, index=0, name="NVIDIA H100", temperature=40.0),
            Gpu(gpu=A, name="H100", power=90.0),
            TopologyPath(a="GPU0", b="NIC0", path="PXB"),
            NvlinkLink(gpu=A, link=0, state="active", errors=2),
            NvlinkLink(gpu=A, link=1, state="inactive"),
            NvlinkLink(gpu=A, link=1, errors=1),
            NvlinkLink(gpu=B, link=0, state="not_supported"),
            GpuProcess(gpu=A, pid=7, name="python3"),
            GpuProcess(gpu=A, pid=7, memory=12.0),
            HostMemory(total=1000.0, available=10.0),
            Pressure(resource="memory", scope="some", avg10=3.0),
            Pressure(resource="memory", scope="full", avg10=1.0),
            PythonPackage(name="torch", version="2.4.0"),
            PythonPackage(name="requests", version="2.0"),
            SharedLibrary(name="nccl", version="2.18.3"),
            SharedLibrary(name="nccl", version="2.20.5"),
            SharedLibrary(name="nccl", version="2.18.3"),
            DriverLibrary(name="libcuda", version="550.54.15"),
            DriverLibrary(name="libcuda", version="535.104.05"),
            DriverLibrary(name="libnvcuvid"),
            DriverLibrary(name="nvidia-smi", version="535.261.03"),
        ]
    )
    assert describe_node(store, graph_of(store)) == {
        "gpus": [{"gpu": A, "index": 0, "name": "NVIDIA H100", "temperature": 40.0, "power": 90.0}],
        "topology": {"devices": ["GPU0", "NIC0"], "paths": [["X", "PXB"], ["PXB", "X"]]},
        "nvlink": {A: {"active": 1, "links": 2, "errors": 3, "down": [1]}},
        "processes": [{"gpu": A, "pid": 7, "name": "python3", "memory": 12.0}],
        "memory": {"total": 1000.0, "available": 10.0, "pressure_memory": 3.0},
        "libraries": {"libcuda": ["550.54.15", "535.104.05"]},
        "software": {"nccl": ["2.18.3", "2.20.5"], "torch": ["2.4.0"]},
    }


def test_of_nothing_there_is_nothing_to_say():
    assert describe_node(FactStore([])) == {"gpus": []}
