"""Machines as XML and flight recorder dumps, cut and hostile."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpudoctor.facts.base import Fact
from gpudoctor.parsers.base import Malformed, NotThisFormat
from gpudoctor.parsers.flight import dump
from gpudoctor.parsers.machine_xml import lstopo, nccl_dump

NCCL = (Path(__file__).parents[1] / "nccl" / "data" / "two-gpus.xml").read_text()
LSTOPO = """<topology version="2.0">
<object type="Machine" os_index="0"><object type="Package" os_index="0">
<object type="NUMANode" os_index="0"/>
<object type="Bridge" bridge_type="0-1" bridge_pci="0000:[16-17]">
<object type="Bridge" bridge_type="1-1" pci_busid="0000:16:01.0" pci_type="0604 [8086:352a] [0000:0000] 04">
<object type="PCIDev" pci_busid="0000:17:00.0" pci_type="0302 [10de:20b5] [10de:1533] a1"/>
</object></object></object></object></topology>
"""
FLIGHT = (
    '{"entries": [{"collective_seq_id": 7, "input_sizes": [[4, 64]], "process_group": ["0", "default_pg"], '
    '"profiling_name": "nccl:all_gather", "state": "started"}], "pg_status": {"0": {"last_enqueued_collective": 7}}, "version": "2.7"}'
)


@pytest.mark.parametrize(("parse", "text"), [(nccl_dump, NCCL), (lstopo, LSTOPO), (dump, FLIGHT)])
def test_cut_anywhere_is_said_and_never_a_crash(parse: Callable[[str], Iterator[Fact]], text: str) -> None:
    assert list(parse(text))
    for end in range(0, len(text) - 2, 7):
        try:
            list(parse(text[:end]))
        except (Malformed, NotThisFormat):
            continue


def test_entities_are_refused() -> None:
    hostile = '<!DOCTYPE system [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + NCCL.replace('numaid="0"', 'numaid="&b;"')
    with pytest.raises(Malformed):
        list(nccl_dump(hostile))


def test_names_are_cleaned() -> None:
    hostile = NCCL.replace("mlx5_0", "mlx5&#155;2J_0")
    assert [fact.value("device") for fact in nccl_dump(hostile) if fact.kind == "rdma_port"] == ["mlx52J_0"]
    (record,) = dump(FLIGHT.replace("all_gather", "all\\u001b[31m_gather"))
    assert record.value("operation") == "all_gather"


def test_absurd_shapes_are_not_multiplied() -> None:
    (record,) = dump(FLIGHT.replace("[4, 64]", str([10**300] * 50)))
    assert record.value("elements") is None
