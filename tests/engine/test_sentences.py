"""Sentences that are filled from facts."""

from __future__ import annotations

from gpudoctor.engine.compile import fill
from gpudoctor.facts.gpu import Gpu
from gpudoctor.facts.memory import GpuOom


def test_products_are_spelled_as_their_makers_do():
    assert fill("{oom.framework:name} ran out", {"oom": GpuOom(framework="pytorch")}) == "PyTorch ran out"
    assert fill("{oom.framework:name} ran out", {"oom": GpuOom(framework="else")}) == "else ran out"


def test_a_gpu_that_has_only_a_number_is_named_once():
    text = "The driver lists the GPU {gpu.gpu}."
    assert fill(text, {"gpu": Gpu(gpu="GPU 5")}) == "The driver lists GPU 5."
    assert fill(text, {"gpu": Gpu(gpu="0000:3b:00.0")}) == "The driver lists the GPU 0000:3b:00.0."
