"""nvidia-smi's forms that a docstring's sample doesn't show."""

from __future__ import annotations

import pytest

from gpudoctor.facts.base import Fact
from gpudoctor.facts.gpu import Gpu
from gpudoctor.parsers.base import Malformed, NotThisFormat
from gpudoctor.parsers.smi import listing, table
from gpudoctor.parsers.smi_csv import csv
from gpudoctor.parsers.smi_query import query, query_xml
from gpudoctor.parsers.topology import matrix, nvlink

NEW_TABLE = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 595.45.04              KMD Version: 595.45.04     CUDA UMD Version: 13.2     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:1A:00.0 Off |                    0 |
| N/A   34C    P0            695W /  700W |   71000MiB /  81559MiB |    100%   E. Process |
|                                         |                        |             Enabled* |
+-----------------------------------------+------------------------+----------------------+
|   1  ERR!                          ERR! |   00000000:1B:00.0 ERR!|                 ERR! |
|ERR!  ERR! ERR!              ERR! / ERR! |         0MiB /  81559MiB |   ERR!          ERR! |
|                                         |                        |                 ERR! |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0   N/A  N/A           12345      C   /opt/a b/bin/python                  70900MiB |
+-----------------------------------------------------------------------------------------+
"""


def of(kind: str, facts: list[Fact]) -> list[Fact]:
    return [fact for fact in facts if fact.kind == kind]


def test_new_table_with_a_dead_gpu() -> None:
    facts = list(table(NEW_TABLE))
    version = of("driver_version", facts)[0]
    assert (version.value("version"), version.value("cuda")) == ("595.45.04", "13.2")
    sound, dead = of("gpu", facts)
    assert isinstance(sound, Gpu)
    assert isinstance(dead, Gpu)
    assert (sound.utilization, sound.compute_mode, sound.mig, sound.mig_pending) == (
        100,
        "exclusive_process",
        True,
        False,
    )
    assert (sound.power, sound.power_limit, sound.memory_used) == (695, 700, 71000)
    assert (dead.state, dead.name, dead.pci) == ("error", None, "0000:1b:00.0")
    process = of("gpu_process", facts)[0]
    assert (process.gpu, process.value("pid"), process.value("name")) == ("GPU 0", 12345, "/opt/a b/bin/python")
    assert of("gpu_count", facts)[0].value("number") == 2


@pytest.mark.parametrize("cut", range(0, len(NEW_TABLE), 37))
def test_a_table_that_breaks_off_is_read_as_far_as_it_goes(cut: int) -> None:
    try:
        facts = list(table(NEW_TABLE[:cut]))
    except NotThisFormat:
        return
    assert all(fact.at < 24 for fact in facts)


def test_listing_counts_only_a_whole_list() -> None:
    assert not of("gpu_count", list(listing("GPU 3: NVIDIA H800 (UUID: GPU-6ec45129-20da-4a34-b813-7d3a51060903)")))


def test_query_of_an_old_driver() -> None:
    text = """\
==============NVSMI LOG==============

Driver Version                      : 352.39
Attached GPUs                       : 1
GPU 0000:04:00.0
    Product Name                    : Tesla K80
    Ecc Mode
        Current                     : Enabled
        Pending                     : Disabled
    Retired Pages
        Single Bit ECC              : 1
        Double Bit ECC              : 2
        Pending                     : Yes
    Processes
        Process ID                  : 77
            Type                    : C
            Name                    : sim
            Used GPU Memory         : 55 MiB
user@host:~$ date
"""
    facts = list(query(text))
    gpu = of("gpu", facts)[0]
    assert (gpu.value("pci"), gpu.value("ecc_pending")) == ("0000:04:00.0", True)
    assert (gpu.value("retired_double_bit"), gpu.value("retired_pending")) == (2, True)
    assert gpu.at_fields["retired_pending"] == 12
    assert of("gpu_process", facts)[0].value("memory") == 55


def test_xml_counters_and_entities() -> None:
    text = """<?xml version="1.0" ?>
<nvidia_smi_log>
<attached_gpus>1</attached_gpus>
<gpu id="00000000:3B:00.0">
<pci><pci_gpu_link_info><link_widths><max_link_width>16x</max_link_width><current_link_width>8x</current_link_width>
</link_widths></pci_gpu_link_info></pci>
<clocks_event_reasons_counters><clocks_event_reasons_counters_hw_power_brake>5000000 us</clocks_event_reasons_counters_hw_power_brake>
</clocks_event_reasons_counters>
<processes><process_info><pid>9</pid><type>C</type><process_name>py</process_name><used_memory>8 MiB</used_memory></process_info></processes>
</gpu></nvidia_smi_log>"""
    facts = list(query_xml(text))
    gpu = of("gpu", facts)[0]
    assert (gpu.value("pcie_width"), gpu.value("pcie_width_max"), gpu.value("throttled_power_brake")) == (8, 16, 5.0)
    assert of("gpu_process", facts)[0].value("pid") == 9
    with pytest.raises(Malformed):
        list(query_xml("<nvidia_smi_log><gpu id='x'>"))
    with pytest.raises(Malformed):
        list(query_xml("<nvidia_smi_log>&bomb;</nvidia_smi_log>"))


def test_a_whole_query_tells_the_index_by_its_order() -> None:
    both = "GPU 00000000:04:00.0\n    Product Name : x\nGPU 00000000:41:00.0\n    Product Name : x\n"
    for attached, wanted in ((2, [0, 1]), (8, [None, None])):
        facts = query(f"==============NVSMI LOG==============\nAttached GPUs : {attached}\n{both}")
        assert [fact.index for fact in facts if isinstance(fact, Gpu)] == wanted


def test_csv_of_processes_and_prose() -> None:
    text = "pid, process_name, used_gpu_memory [MiB]\n4242, python3, 1024 MiB\nnot, a, row\n"
    process = of("gpu_process", list(csv(text)))
    assert [(fact.value("pid"), fact.value("memory")) for fact in process] == [(4242, 1024.0)]
    with pytest.raises(NotThisFormat):
        list(csv("the index, name and uuid of each GPU are shown"))


def test_matrix_with_named_adapters() -> None:
    text = """\
\tGPU0\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tPXB\t0-63\t1\t\tN/A
NIC0\tPXB\t X \t\t\t\t

Legend:

NIC Legend:

  NIC0: mlx5_4
"""
    facts = list(matrix(text))
    assert [(fact.value("a"), fact.value("b")) for fact in of("topology_path", facts)] == [("GPU0", "mlx5_4")]
    assert of("gpu", facts)[0].value("numa_node") == 1


def test_nvlink_stops_where_other_text_begins() -> None:
    text = "GPU 0: NVIDIA A2 (UUID: GPU-1)\n\t Link 0: 25 GB/s\n$ ls\n\t Link 1: <inactive>\n"
    assert len(of("nvlink_link", list(nvlink(text)))) == 1
