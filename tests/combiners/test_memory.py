"""Joins about memory: the host's against that of its GPUs."""

from gpudoctor.combiners.memory import explain_memory
from gpudoctor.facts.base import Where
from gpudoctor.facts.gpu import Gpu
from gpudoctor.facts.host import HostMemory
from gpudoctor.facts.memory import HostRatio
from gpudoctor.facts.store import FactStore


def test_host_memory_is_cited_by_the_line_of_its_total() -> None:
    total = Where(source="meminfo", line=1, text="MemTotal: 65536000 kB")
    huge = Where(source="meminfo", line=54, text="DirectMap1G: 1048576 kB")
    facts = FactStore(
        [
            HostMemory(huge_pages=0, where=huge),
            HostMemory(total=64000.0, where=huge, where_fields={"total": total}),
            Gpu(gpu="GPU 0", memory_total=81920.0, seen_by="nvidia-smi"),
        ]
    )
    [ratio] = [fact for fact in explain_memory(facts) if isinstance(fact, HostRatio)]
    assert (ratio.host, ratio.ratio, ratio.where) == (64000.0, 0.781, total)
