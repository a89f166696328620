"""As much of torch as the measurement by torch.distributed uses; sums take the time that an HGX H200 board took for them.

RECORDED_FAULT=wrong: rank 1 gets a wrong sum. RECORDED_FAULT=init: the process group can't be set up.
"""

import os
from types import SimpleNamespace

from . import clock

__version__ = "2.9.1"


class Tensor:
    def __init__(self, count, value):
        self.count, self.value = count, value

    def __ne__(self, other):
        return Tensor(self.count, int(self.value != other))

    def sum(self):
        return Tensor(1, self.value * self.count)

    def item(self):
        return self.value

    def zero_(self):
        self.value = 0.0


class Event:
    def __init__(self, enable_timing):
        self.at = None

    def record(self):
        self.at = clock.milliseconds

    def elapsed_time(self, end):
        return end.at - self.at


def full(shape, value, device):
    assert device == "cuda"
    return Tensor(shape[0], value)


cuda = SimpleNamespace(
    device_count=lambda: len(os.environ["CUDA_VISIBLE_DEVICES"].split(",")),
    set_device=lambda device: None,
    synchronize=lambda: None,
    get_device_properties=lambda device: SimpleNamespace(name="NVIDIA H200", pci_bus_id=16 + device),
    nccl=SimpleNamespace(version=lambda: (2, 27, 3)),
    Event=Event,
)
