"""Judges the machine: GPUs and driver, framework build, cores, memory, shared memory, storage, container."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from gpudoctor.facts.store import FactStore
from gpudoctor.findings.model import Report
from gpudoctor.knowledge import compat, gpus
from gpudoctor.knowledge.compat import Framework, Setup
from gpudoctor.preflight.age import check_system
from gpudoctor.preflight.environment import Environment
from gpudoctor.preflight.model import Remark
from gpudoctor.preflight.script import Surroundings

# framework -> packages that hold it, in the order in which they count
PACKAGES = {
    "tensorflow": ("tensorflow", "tf-nightly", "tensorflow-cpu"),
    "pytorch": ("torch",),
    "jax": ("jax", "jaxlib"),
}
_CORES = 4  # per GPU, for reading and decoding data
_INSTALL = {
    "tensorflow": "pip install 'tensorflow[and-cuda]'",
    "pytorch": "pip install torch",
    "jax": "pip install 'jax[cuda12]'",
}


def gpu_names(store: FactStore) -> list[str]:
    """Return the GPUs' product names, one per GPU."""
    found: dict[str, str] = {}
    for fact in store.of("gpu"):
        if fact.gpu and fact.value("state") != "lost":
            found[fact.gpu] = str(fact.value("name") or found.get(fact.gpu, "GPU"))
    return list(found.values())


def surroundings(store: FactStore, environment: Environment | None) -> dict[str, object]:
    """Return what a program's checks want to know of the machine, as arguments of Surroundings."""
    names = gpu_names(store)
    cores = [fact.value("logical") for fact in store.of("cpu") if isinstance(fact.value("logical"), int)]
    lightning = environment.version("lightning", "pytorch-lightning") if environment else None
    return {
        "gpus": len(names) or None,
        "capability": _capability(names),
        "cpus": cores[0] if cores else None,
        "lightning": tuple(int(part) for part in lightning.split(".")[:2] if part.isdigit()) if lightning else None,
    }


def _capability(names: list[str]) -> float | None:
    found = [product for name in names if (product := gpus.by_name(name))]
    return min((float(product.compute_capability) for product in found if product.compute_capability), default=None)


def check_machine(store: FactStore, report: Report, today: date) -> Iterator[Remark]:
    """What was found on the machine: its faults are what the rules say, the rest is said here."""
    names = gpu_names(store)
    driver = next((str(fact.value("version")) for fact in store.of("driver_version")), None)
    causes = [finding for finding in report.findings if finding.role == "cause"]
    for finding in causes:
        if finding.severity == "critical":
            yield Remark(
                "no",
                "machine",
                f"{finding.title} ({finding.id}): {finding.because}",
                fixes=tuple(finding.fixes[0].commands[:3]) if finding.fixes else (),
            )
        elif finding.severity == "warning":
            yield Remark("advice", "machine", f"{finding.title} ({finding.id}): {finding.because}")
    for finding in report.findings:
        if finding.role == "advice":
            yield Remark("advice", "machine", f"{finding.title} ({finding.id}): {finding.because}")
    if names:
        counts = ", ".join(f"{names.count(name)}x {name}" for name in dict.fromkeys(names))
        yield Remark("yes", "gpu", f"{counts}, driver {driver or 'of unknown version'}")
    elif store.of("pci_device") or store.probed("pci_device") or report.status != "unknown":
        seen = any(fact.value("vendor_id") == 0x10DE for fact in store.of("pci_device"))
        text = (
            "An NVIDIA device is there and no working driver shows it."
            if seen
            else "No NVIDIA GPU was found on this machine."
        )
        if not any(finding.severity == "critical" for finding in causes):
            yield Remark("no" if store.probed("pci_device") else "unknown", "gpu", text)
    else:
        yield Remark("unknown", "gpu", "Nothing that was read tells which GPU this machine has.", fixes=("nvidia-smi",))
    yield from _host(store, len(names))
    if not any(finding.id == "host.os-unsupported" for finding in report.findings):
        for fact in store.of("os")[:1]:
            yield from check_system(str(fact.value("id")), str(fact.value("version")), today)


def _host(store: FactStore, number: int) -> Iterator[Remark]:
    cores = next((fact.value("logical") for fact in store.of("cpu") if fact.value("logical")), None)
    if isinstance(cores, int) and number and cores < _CORES * number:
        yield Remark(
            "advice",
            "machine",
            f"{cores} CPU cores for {number} GPU(s): reading and decoding data may be too slow; 4 to 8 per GPU are usual.",
        )
    for fact in store.of("file_system"):
        mount, size, free = fact.value("mount"), fact.value("size"), fact.value("available")
        if mount == "/dev/shm" and isinstance(size, (int, float)) and size <= 64:  # noqa: S108  # a name to compare with
            yield Remark(
                "advice",
                "container",
                f"{mount} has {size:.0f} MiB, a container's default: data loader workers and NCCL need more.",
                fixes=("docker run --shm-size=16g ...",),
            )
        elif mount == "/" and isinstance(free, (int, float)) and free < 10 * 1024:
            yield Remark(
                "advice",
                "machine",
                f"Only {free / 1024:.1f} GiB are free on /; checkpoints and caches go there by default.",
            )
    for fact in store.of("k8s_pod"):
        if fact.value("gpus") == 0:
            yield Remark(
                "no",
                "container",
                f"Pod {fact.value('name')} asks for no GPU.",
                fixes=("# resources: {limits: {nvidia.com/gpu: 1}}",),
            )


def check_framework(store: FactStore, environment: Environment, framework: str | None) -> Iterator[Remark]:
    """Compare the installed framework with driver, GPU and Python, by the tables; without importing it."""
    if environment.problem:
        yield Remark(
            "unknown", "framework", f"{environment.interpreter} can't be asked for its packages: {environment.problem}."
        )
        return
    if not environment.packages:
        yield Remark(
            "unknown",
            "framework",
            f"{environment.interpreter} does not show which packages are installed.",
            fixes=("pip list > pip-list.txt   # in the environment that will train",),
        )
        return
    wanted = (
        [framework] if framework else [name for name, packages in PACKAGES.items() if environment.version(*packages)]
    )
    if not wanted:
        yield Remark(
            "unknown",
            "framework",
            f"{environment} has neither TensorFlow nor PyTorch nor JAX.",
            fixes=("gpudoctor preflight --python /path/to/env/bin/python",),
        )
    if framework != "tensorflow" and "tensorflow-gpu" in environment.packages:
        wanted.append("tensorflow")
    for name in wanted:
        yield from _one_framework(store, environment, name)


def _one_framework(store: FactStore, environment: Environment, name: str) -> Iterator[Remark]:
    version = environment.version(*PACKAGES[name])
    if version is None:
        yield Remark(
            "no",
            "framework",
            f"{name} is not installed for {environment}.",
            fixes=(_INSTALL[name],),
        )
        return
    text = f"{name} {version}{f' on Python {environment.python}' if environment.python else ''}"
    if name == "pytorch" and version.endswith("+cpu"):
        yield Remark(
            "no", "framework", f"{text} is a build without CUDA.", fixes=("pip install --force-reinstall torch",)
        )
        return
    if name == "tensorflow" and "tensorflow-cpu" in environment.packages:
        # Both packages own the same folder: the CPU one has to go first.
        fixes = ("pip uninstall -y tensorflow-cpu", _INSTALL[name])
        yield Remark("no", "framework", f"{text} comes from tensorflow-cpu, which has no GPU support.", fixes=fixes)
        return
    if name == "jax" and not any(package.startswith("jax-cuda") for package in environment.packages):
        yield Remark("no", "framework", f"{text} has no CUDA plugin: it is the CPU build.", fixes=(_INSTALL[name],))
        return
    names = gpu_names(store)
    driver = next((str(fact.value("version")) for fact in store.of("driver_version")), None)
    package = "torch" if name == "pytorch" else name
    build = version.partition("+")[2] or None
    setup = Setup(
        driver=driver,
        frameworks=(Framework(package, version.partition("+")[0], build),),
        gpu=names[0] if names else None,
        python=environment.python,
    )
    verdict = compat.check(setup)
    judged = [reason for reason in verdict.reasons if reason.answer == "doesn't"]
    if judged:
        for reason in judged:
            yield Remark(
                "no", "framework", reason.text, fixes=tuple(f"# {item.change}" for item in verdict.nearest[:3])
            )
    elif verdict.answer == "works":
        yield Remark("yes", "framework", f"{text} fits this driver and GPU")
    else:
        unclear = next((reason.text for reason in verdict.reasons if reason.answer != "works"), "the tables don't tell")
        yield Remark(
            "unknown" if driver else "advice",
            "framework",
            f"{text}: {unclear}",
            fixes=("gpudoctor preflight --run   # tries it",),
        )
    if (
        name == "tensorflow"
        and not any(package.startswith("nvidia-cudnn-cu") for package in environment.packages)
        and not store.of("shared_library")
    ):
        yield Remark(
            "advice",
            "framework",
            "TensorFlow's CUDA libraries are not in this environment; without fitting ones on the machine it runs on the CPU.",
            fixes=(_INSTALL[name],),
        )


def around(store: FactStore, environment: Environment | None) -> Surroundings:
    """Return the surroundings without the framework's own parts."""
    return Surroundings(**surroundings(store, environment))  # type: ignore[arg-type]
