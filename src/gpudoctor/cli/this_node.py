"""The combination that this machine has, for `compat` without arguments."""

from __future__ import annotations

from gpudoctor.knowledge.compat import Framework, Setup

PROBES = ("nvml", "driver_version", "os", "pci", "python_envs")
FRAMEWORKS = (
    "torch",
    "tensorflow",
    "jax",
    "cupy",
    "onnxruntime-gpu",
    "vllm",
    "bitsandbytes",
    "flash-attn",
    "xformers",
    "triton",
)


def read_setup(seconds: float = 12.0) -> Setup | None:
    """Probe this machine for what `compat` judges; None where there is nothing of NVIDIA."""
    import time

    from gpudoctor.collect.collected import Collected
    from gpudoctor.collect.live import run_probes
    from gpudoctor.collect.probe import load_probes
    from gpudoctor.combiners import combine
    from gpudoctor.parsers.formats import FORMATS
    from gpudoctor.parsers.scan import Scanner
    from gpudoctor.sources.live import LiveHost

    collected = Collected()
    probes = [probe for probe in load_probes() if probe.name in PROBES]
    run_probes(LiveHost(), probes, Scanner(FORMATS, ()), collected, time.monotonic() + seconds)
    store = combine(collected.facts, [])

    def first(kind: str, field: str, **wanted: str) -> str | None:
        for fact in store.of(kind):
            if all(fact.value(name) == value for name, value in wanted.items()) and fact.value(field) is not None:
                return str(fact.value(field))
        return None

    driver = first("driver_version", "version") or first("kernel_module", "version", name="nvidia")
    gpu = first("gpu", "name")
    if driver is None and gpu is None:
        return None
    found: dict[str, Framework] = {}
    for fact in store.of("python_package"):
        name, version, build = str(fact.value("name")), fact.value("version"), fact.value("local")
        if name in FRAMEWORKS and version:
            found.setdefault(name, Framework(name, str(version), None if build is None else str(build)))
    system, release = first("os", "id"), first("os", "version")
    return Setup(
        driver=driver,
        gpu=gpu,
        frameworks=tuple(found.values()),
        os=f"{system}-{release}" if system and release else None,
        modules=first("kernel_module", "flavour", name="nvidia"),
    )
