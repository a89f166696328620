"""A job of a thousand ranks whose logs were joined: who is late is found among all that the others say."""

from __future__ import annotations

from gpudoctor.diagnosis import Doctor
from gpudoctor.report.text import render_text
from gpudoctor.sources.memory import TextSource

RANKS, LATE = 1024, 613


def joined_log() -> str:
    """As ranks of NCCL 2.19 and PyTorch 2.4 print it: three communicators are set up, then a collective runs out of time."""
    lines = []
    for unique in (0x5A1, 0x5A2, 0x5A3):
        for rank in range(RANKS):
            head = f"node-{rank // 8:03}:{20_000 + rank}:{40_000 + rank} [{rank % 8}] NCCL INFO "
            comm = f"comm 0x55{unique * 4096 + rank:08x} rank {rank} nranks {RANKS} cudaDev {rank % 8} nvmlDev {rank % 8} busId {0x1B000 + rank % 8 * 0x17000:x} commId 0x{unique:x}"
            lines += [f"{head}{comm} - Init START", f"{head}{comm} - Init COMPLETE"]
    for rank in range(RANKS):
        number = 477 - (rank == LATE)
        lines.append(
            f"[rank{rank}]:[E ProcessGroupNCCL.cpp:563] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={number}, "
            f"OpType=ALLREDUCE, NumelIn=33554432, NumelOut=33554432, Timeout(ms)=600000) ran for {600_000 + rank % 90} milliseconds before timing out."
        )
    return "\n".join(lines) + "\n"


def test_the_late_rank_is_named_first_with_its_line():
    log = joined_log()
    report = Doctor().diagnose(TextSource({"job.log": log}))
    first = report.findings[0]
    assert first.id == "nccl.straggler"
    assert "Rank 613 is behind: it stands at ALLREDUCE 476, the others 477." in first.because
    assert [subject.name for subject in first.subjects] == ["node-076, rank 613"]
    assert "One rank comes late to the collectives [node node-076, rank 613]" in render_text(report)
    assert log.splitlines()[first.evidence[0].line - 1].startswith("[rank613]")
