"""What a job's ranks print most must cost nothing: a rule or parser with too general an anchor looks at every such line."""

import pytest

from gpudoctor.diagnosis import Doctor

DOCTOR = Doctor(engine="builtin")
HEAD = "node-001:21488:21600 [0] NCCL INFO "
LINES = [
    "Channel 07/0 : 0[0] -> 1[1] via P2P/CUMEM/read",
    "Channel 07/0 : 0[0] -> 8[0] [send] via NET/IB/7/GDRDMA",
    "Channel 07/1 : 0[0] -> 16[0] [send] via NET/IB/7/GDRDMA/Shared",
    "Channel 07/16 :    0   7   6   5   4   3   2   1   8  15  14  13  12  11  10   9",
    "Channel 12 : 3[51000] -> 4[cb000] [receive] via NET/IB/1/GDRDMA",
    "AllReduce: opCount 1a sendbuff 0x7f5c80000000 recvbuff 0x7f5c80000000 count 8388608 datatype 9 op 0 root 0 comm 0x55d0a1f0 [nranks=1024] stream 0x55cf8b0",
    "ReduceScatter: opCount 1b sendbuff 0x7f5c80000000 recvbuff 0x7f5c90000000 count 64 datatype 7 op 0 root 0 comm 0x55d0a1f0 [nranks=8] stream 0x55cf8b0",
    "Trees [0] 1/-1/-1->0->8 [1] 1/-1/-1->0->8 [2] 1/-1/-1->0->-1",
    "Connected all rings",
    "Connected all trees",
    "P2P Chunksize set to 131072",
    "threadThresholds 8/8/64 | 8192/8/64 | 512 | 512",
]


@pytest.mark.parametrize("line", LINES)
def test_lines_that_every_rank_prints_hit_no_anchor(line: str) -> None:
    scanner = DOCTOR.scanner
    hits = scanner._database.scan(f"{HEAD}{line}\n".encode())  # what costs is the hit, found or not
    assert [scanner._database.anchors[number] for _, number in hits] == []
