"""Process groups that never talk: every rank knows what the sum must be."""

import os

from . import clock

# Machine Learning Engineering, network chapter: H200 SXM 8x, all_reduce by size (MiB -> GB/s)
CURVE = {8: 155.53, 16: 219.89, 32: 275.84, 64: 346.51, 128: 401.93, 256: 436.15, 512: 450.29, 1024: 463.58}

group = {}


def init_process_group(backend, init_method, rank, world_size):
    assert (backend, init_method[:7]) == ("nccl", "file://")
    if os.environ.get("RECORDED_FAULT") == "init":
        raise RuntimeError("NCCL error in: ProcessGroupNCCL.cpp:268, unhandled system error, NCCL version 2.27.3")
    group.update(rank=rank, ranks=world_size)


def all_reduce(data):
    ranks = group["ranks"]
    if data.count == 1:
        return
    data.value *= ranks * (ranks + 1) / 2 / (group["rank"] + 1)
    if os.environ.get("RECORDED_FAULT") == "wrong":
        data.value += 1
    busbw = CURVE[data.count * 4 >> 20] * 1e9
    clock.milliseconds += data.count * 4 * 2 * (ranks - 1) / ranks / busbw * 1000


def barrier():
    pass


def destroy_process_group():
    group.clear()
