"""Will this combination of driver, CUDA, framework, GPU, Python and operating system work?

The answer has three values. "works" is said only where a table says so; where the tables are silent it is "unknown".
"""

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice

import msgspec
from msgspec.structs import replace

from gpudoctor.knowledge import architectures, drivers, frameworks, gpus, systems
from gpudoctor.knowledge.drivers import Support, parse_version
from gpudoctor.knowledge.frameworks import Build
from gpudoctor.knowledge.gpus import Product
from gpudoctor.knowledge.systems import System
from gpudoctor.knowledge.tables import sources, table

PYTHONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
_RANK: dict[Support, int] = {"works": 0, "unknown": 1, "doesn't": 2}
_NAME_LIMIT = 8
_RECENT = 30  # toolkit releases whose exact driver is offered as an alternative
_TRIES = 500  # combinations that are tried in search of a pair of changes


class Framework(msgspec.Struct, frozen=True):
    """A framework that is asked about; build is the CUDA variant such as "cu121"."""

    name: str
    version: str
    build: str | None = None

    def __str__(self) -> str:
        return f"{self.name} {self.version}" + (f" ({self.build})" if self.build else "")


class Setup(msgspec.Struct, frozen=True):
    """A combination to judge; everything may be left out."""

    driver: str | None = None
    cuda: str | None = None
    frameworks: tuple[Framework, ...] = ()
    gpu: str | None = None
    python: str | None = None
    os: str | None = None
    modules: str | None = None
    forward_compat: bool = False

    def parts(self) -> tuple[tuple[str, str], ...]:
        """What was given, as labels and values."""
        found: list[tuple[str, str | None]] = [("GPU", self.gpu), ("driver", self.driver), ("CUDA", self.cuda)]
        found += [("framework", str(item)) for item in self.frameworks]
        found += [("Python", self.python), ("OS", self.os), ("kernel modules", self.modules)]
        return tuple((label, value) for label, value in found if value)


class Reason(msgspec.Struct, frozen=True):
    """One judgement about two parts of a combination."""

    answer: Support
    about: str
    text: str
    sources: tuple[str, ...] = ()


class Nearest(msgspec.Struct, frozen=True):
    """A change that makes the combination work."""

    change: str
    setup: Setup


class Verdict(msgspec.Struct, frozen=True):
    """The answer, why, what to bear in mind, and what would work instead."""

    answer: Support
    setup: Setup
    reasons: tuple[Reason, ...]
    caveats: tuple[str, ...]
    nearest: tuple[Nearest, ...]


def check(setup: Setup, *, nearest: bool = True) -> Verdict:
    """Judge a combination.

    >>> check(Setup(driver="535.104.05", cuda="12.2")).answer
    'works'
    >>> check(Setup(gpu="Tesla V100-SXM2-16GB", cuda="13.0")).answer
    "doesn't"
    >>> check(Setup(gpu="GeForce RTX 5090", frameworks=(Framework("torch", "2.6.0"),))).answer
    "doesn't"
    """
    reasons, caveats = _judge(setup)
    answer = _combine(reasons)
    found = tuple(_nearest(setup)) if nearest and answer != "works" else ()
    return Verdict(answer, setup, tuple(reasons), tuple(dict.fromkeys(caveats)), found)


def _combine(reasons: Iterable[Reason]) -> Support:
    answers = {reason.answer for reason in reasons}
    if "doesn't" in answers:
        return "doesn't"
    if "unknown" in answers or not answers:
        return "unknown"
    return "works"


def _judge(setup: Setup) -> tuple[list[Reason], list[str]]:
    reasons: list[Reason] = []
    caveats: list[str] = []
    products = products_for(setup.gpu) if setup.gpu else ()
    system = systems.parse(setup.os) if setup.os else None
    if setup.gpu and not products:
        reasons.append(Reason("unknown", "GPU", f"{setup.gpu} is not in the tables"))
    if setup.os and system is None:
        reasons.append(Reason("unknown", "OS", f"{setup.os} is not in the tables"))
    if system and system.end_of_support:
        caveats.append(f"Standard support of {system.name} ends or ended in {system.end_of_support}.")
    if setup.driver:
        caveats += _branch_caveats(setup.driver)
    if setup.driver and setup.cuda:
        reasons.append(_driver_cuda(setup.driver, setup.cuda, products, caveats, forward=setup.forward_compat))
    if products and setup.driver:
        driver = setup.driver
        reasons.append(_each(products, "GPU and driver", lambda gpu: _gpu_driver(gpu, driver)))
    if products and setup.modules:
        flavour = setup.modules
        reasons.append(_each(products, "GPU and kernel modules", lambda gpu: _gpu_modules(gpu, flavour)))
    if setup.driver and setup.modules:
        reasons.append(_driver_modules(setup.driver, setup.modules))
    if products and setup.cuda and not setup.frameworks:
        cuda = setup.cuda
        reasons.append(_each(products, "GPU and CUDA", lambda gpu: _gpu_cuda(gpu, cuda)))
    if system and setup.cuda and not setup.frameworks:
        reasons.append(_cuda_system(setup.cuda, system))
    if system and setup.driver and not setup.cuda:
        reasons.append(_driver_system(setup.driver, system))
    for item in setup.frameworks:
        more, notes = _framework(item, setup, products, system)
        reasons += more
        caveats += notes
    reasons += _companions(setup.frameworks)
    if not reasons:
        reasons.append(_alone(setup, products))
    return reasons, caveats


# GPUs ----------------------------------------------------------------------------------------------------------------


def products_for(text: str) -> tuple[Product, ...]:
    """Products that a name, a PCI id, a compute capability or an architecture stands for.

    >>> products_for("10de:2330")[0].name
    'NVIDIA H100 80GB HBM3'
    >>> {item.architecture for item in products_for("H100")}
    {'Hopper'}
    >>> products_for("sm_75")[0].compute_capability
    '7.5'
    """
    number = gpus.parse_id(text)
    if number is not None and (listed := gpus.all_by_pci_id(number)):
        return listed
    if exact := gpus.by_name(text):
        return (exact,)
    if number is not None and (unlisted := gpus.by_pci_id(number)):
        return (unlisted,)
    family = gpus.by_family(text)
    if family:
        return family
    arches = architectures.by_name(text)
    if not arches and (arch := architectures.by_capability(text)):
        arches = (arch,)
    return tuple(
        Product(
            name=f"{arch.name} GPU ({arch.compute_capability})",
            kind=None,
            architecture=arch.name,
            compute_capability=arch.compute_capability,
            first_driver_branch=arch.first_driver_branch,
            known_driver=str(arch.first_driver_branch) if arch.first_driver_branch else None,
            last_driver_branch=arch.last_driver_branch,
            open_modules=arch.open_modules,
            listed=False,
            sources=arch.sources,
        )
        for arch in arches
        if not arch.embedded or len(arches) == 1
    )


def similar_gpus(text: str) -> tuple[str, ...]:
    """Names that resemble a name which was not found.

    >>> similar_gpus("RTX 4091")[0]
    'NVIDIA GeForce RTX 4090'
    """
    folded = {gpus.fold(item.name): item.name for item in gpus.every()}
    close = difflib.get_close_matches(gpus.fold(text), folded, n=3, cutoff=0.6)
    return tuple(folded[item] for item in close)


def _each(products: Sequence[Product], about: str, judge: Callable[[Product], Reason]) -> Reason:
    found = [judge(product) for product in products]
    if len({reason.answer for reason in found}) == 1:
        return found[0]
    worst = [reason for reason in found if reason.answer != "works"]
    names = ", ".join(item.name for item in products[:_NAME_LIMIT])
    return Reason("unknown", about, f"it depends on the exact product ({names}): {worst[0].text}", worst[0].sources)


def _gpu_driver(gpu: Product, driver: str) -> Reason:
    answer, text = drivers.supports(driver, gpu)
    return Reason(answer, "GPU and driver", text, gpu.sources)


def _gpu_modules(gpu: Product, flavour: str) -> Reason:
    about = "GPU and kernel modules"
    if flavour == "open" and gpu.open_modules == "impossible":
        text = f"{gpu.name} ({gpu.architecture}) has no system processor (GSP), which the open kernel modules need"
        return Reason("doesn't", about, text, gpu.sources)
    if flavour == "proprietary" and gpu.open_modules == "required":
        return Reason("doesn't", about, f"{gpu.name} works only with the open kernel modules", gpu.sources)
    return Reason("works", about, f"{gpu.name} may use the {flavour} kernel modules", gpu.sources)


def _driver_modules(driver: str, flavour: str) -> Reason:
    about = "driver and kernel modules"
    branch = drivers.branch(driver)
    if branch is None:
        return Reason("unknown", about, f"driver branch {driver.split('.', maxsplit=1)[0]} is not in the tables")
    if flavour == "open" and branch.open_modules == "none":
        text = f"open kernel modules exist from branch 515 on; {driver} is older"
        return Reason("doesn't", about, text, branch.sources)
    return Reason("works", about, f"branch {branch.number} comes with {flavour} kernel modules", branch.sources)


def _gpu_cuda(gpu: Product, cuda: str) -> Reason:
    about = "GPU and CUDA"
    arch = architectures.by_capability(gpu.compute_capability)
    tool = drivers.toolkit(cuda)
    wanted = parse_version(cuda)[:2]
    if arch is None:
        return Reason("unknown", about, f"compute capability {gpu.compute_capability} is not in the tables")
    where = f"{gpu.name} (compute capability {gpu.compute_capability})"
    if arch.last_cuda and wanted > parse_version(arch.last_cuda):
        return Reason("doesn't", about, f"CUDA {arch.last_cuda} is the last toolkit for {where}", arch.sources)
    if tool is None:
        return Reason("unknown", about, f"CUDA {cuda} is not in the tables", arch.sources)
    if wanted < parse_version(arch.first_cuda):
        older = [
            item
            for item in architectures.every()
            if item is not arch
            and frameworks.covers(item.compute_capability, arch.compute_capability)
            and parse_version(item.first_cuda) <= wanted
            and not item.embedded
        ]
        if any(item.name == arch.name for item in older):
            text = (
                f"the compiler of CUDA {cuda} has no target for {where}; only programs with code for "
                f"{older[-1].compute_capability} run on it"
            )
            return Reason("unknown", about, text, arch.sources)
        if older:
            text = (
                f"{where} needs CUDA {arch.first_cuda} or newer; of programs built with {cuda} at most those with code "
                f"for {older[-1].compute_capability} run on it"
            )
            return Reason("doesn't", about, text, arch.sources)
        text = f"{where} needs CUDA {arch.first_cuda} or newer; {cuda} cannot make code for it"
        return Reason("doesn't", about, text, arch.sources)
    return Reason("works", about, f"CUDA {cuda} supports {where}", arch.sources)


# drivers and CUDA ----------------------------------------------------------------------------------------------------


def _branch_caveats(driver: str) -> list[str]:
    branch = drivers.branch(driver)
    if branch and branch.end_of_life:
        return [f"Support of driver branch {branch.number} ends or ended in {branch.end_of_life}."]
    if branch and branch.ended:
        return [f"Driver branch {branch.number} is no longer maintained."]
    return []


def _driver_cuda(
    driver: str, cuda: str, products: Sequence[Product], caveats: list[str], *, forward: bool = False
) -> Reason:
    about = "driver and CUDA"
    have = parse_version(driver)
    tool = drivers.toolkit(cuda)
    floor = drivers.floor_for_cuda(cuda)
    if tool is None:
        return Reason("unknown", about, f"CUDA {cuda} is not in the tables")
    lowest = floor or tool.linux_min
    if tool.linux_min and parse_version(tool.linux_min) <= have:
        if drivers.branch(driver) is None:
            return Reason("unknown", about, f"driver branch {have[0]} is not in the tables", tool.sources)
        text = f"CUDA {tool.version} needs driver {tool.linux_min}; {driver} is not older"
        return Reason("works", about, text, tool.sources)
    if floor and parse_version(floor) <= have:
        if drivers.branch(driver) is None:
            return Reason("unknown", about, f"driver branch {have[0]} is not in the tables", tool.sources)
        major = parse_version(cuda)[0]
        text = f"by minor-version compatibility every driver from {floor} on runs CUDA {major}.x programs"
        own = f" (it was released with {tool.linux_min})" if tool.linux_min else ""
        caveats.append(
            f"Driver {driver} is older than CUDA {cuda}{own}: programs that need PTX compiled at run time, or features "
            "of the newer driver, fail (CUDA errors 222 and 36)."
        )
        return Reason("works", about, text, tool.sources)
    if lowest is None or (drivers.branch(driver) is None and parse_version(lowest) <= have):
        return Reason("unknown", about, f"the tables do not say which driver CUDA {cuda} needs", tool.sources)
    geforce = bool(products) and all(item.kind == "geforce" for item in products)
    package = f"cuda-compat-{'-'.join(cuda.split('.')[:2])}"
    if forward and not geforce:
        text = f"whether {package} may bridge driver {driver} and CUDA {cuda} is not in the tables"
        return Reason("unknown", about, text, tool.sources)
    if forward:
        text = f"{package} is not allowed on GeForce GPUs (CUDA error 804)"
        return Reason("doesn't", about, text, tool.sources)
    if not geforce:
        caveats.append(f"On data-center GPUs the package {package} can sometimes bridge an older driver.")
    return Reason("doesn't", about, f"CUDA {cuda} needs driver {lowest} or newer; {driver} is older", tool.sources)


def _cuda_system(cuda: str, system: System) -> Reason:
    about = "CUDA and OS"
    wanted = parse_version(cuda)[:2]
    for row in table("cuda_systems").rows:
        low, high = parse_version(row["cuda_from"]), parse_version(row["cuda_to"])
        if system.name in row["systems"] and low <= wanted <= high:
            listed = sources("cuda_systems", row["source"])
            return Reason("works", about, f"the installation guide of CUDA {cuda} lists {system.name}", listed)
    return Reason("unknown", about, f"the tables do not say whether CUDA {cuda} is packaged for {system.name}")


def _driver_system(driver: str, system: System) -> Reason:
    branch = drivers.branch(driver)
    if branch and branch.ships_cuda and _cuda_system(branch.ships_cuda, system).answer == "works":
        text = f"the driver ships with CUDA {branch.ships_cuda}, whose installation guide lists {system.name}"
        return Reason("works", "driver and OS", text, branch.sources)
    text = f"the tables do not say whether driver {driver} is packaged for {system.name}"
    return Reason("unknown", "driver and OS", text)


# frameworks ----------------------------------------------------------------------------------------------------------


def _framework(
    item: Framework, setup: Setup, products: Sequence[Product], system: System | None
) -> tuple[list[Reason], list[str]]:
    name = frameworks.canonical(item.name)
    found = frameworks.builds(name, item.version)
    if not found:
        known = frameworks.versions(name)
        close = f"; known: {', '.join(known[-5:])}" if known else ""
        return [Reason("unknown", name, f"{name} {item.version} is not in the tables{close}")], []
    gone = [build for build in found if build.removed]
    if gone:
        return [Reason("doesn't", name, gone[0].removed or "", gone[0].sources)], []
    complete = all(build.python_closed for build in found)
    wanted = item.build or item.version.partition("+")[2] or None
    offered = ", ".join(build.build for build in found)
    if wanted:
        chosen = [build for build in found if build.build == wanted]
        if not chosen:
            text = f"{name} {item.version} has no official build {wanted} (there are {offered})"
            return [Reason("doesn't" if complete else "unknown", f"{name} and build", text, found[0].sources)], []
        found = tuple(chosen)
    judged = [(build, *_build(build, setup, products, system)) for build in found]
    build, reasons, notes = min(
        judged, key=lambda entry: (_RANK[_combine(entry[1])] if entry[1] else 0, not entry[0].default)
    )
    default = next((entry for entry in judged if entry[0].default), None)
    if default and default[0] is not build and reasons and _combine(reasons) != "doesn't":
        notes.append(
            f"Plain pip takes the build {default[0].build}, for which the answer is {_combine(default[1])!r}; "
            f"choose {build.build}."
        )
    if wanted and not reasons:
        reasons.append(Reason("works", f"{name} and build", f"{build.name} is an official build", build.sources))
    return reasons, notes


def _build(
    build: Build, setup: Setup, products: Sequence[Product], system: System | None
) -> tuple[list[Reason], list[str]]:
    reasons: list[Reason] = []
    notes: list[str] = []
    if setup.cuda:
        reasons.append(_build_cuda(build, setup.cuda))
        if build.framework == "torch":
            notes.append("PyTorch wheels bring their own CUDA; a toolkit on the machine matters only for building.")
    if setup.python:
        reasons.append(_build_python(build, setup.python))
    if products:
        reasons.append(_each(products, f"{build.framework} and GPU", lambda gpu: _build_gpu(build, gpu, setup, notes)))
    if setup.driver:
        reasons.append(_build_driver(build, setup.driver, products, notes, forward=setup.forward_compat))
    if system:
        reasons.append(_build_system(build, system))
    return reasons, notes


def _build_cuda(build: Build, cuda: str) -> Reason:
    about = f"{build.framework} and CUDA"
    if build.cuda is None:
        return Reason("unknown", about, f"the tables do not say which CUDA {build.name} uses", build.sources)
    have, want = parse_version(build.cuda)[:2], parse_version(cuda)[:2]
    if build.cuda_range:
        inside = _in_range(want, build.cuda_range)
        text = f"{build.name} takes CUDA {build.cuda_range}"
        return Reason("works" if inside else "doesn't", about, text, build.sources)
    if have == want or (build.any_minor and have[0] == want[0] and have <= want):
        return Reason("works", about, f"{build.name} uses CUDA {build.cuda}", build.sources)
    if have[0] == want[0] and not build.build.startswith("cu1"):
        text = f"{build.name} was tested with CUDA {build.cuda}; the tables say nothing about {cuda}"
        return Reason("unknown", about, text, build.sources)
    return Reason("doesn't", about, f"{build.name} uses CUDA {build.cuda}, not {cuda}", build.sources)


def _in_range(version: tuple[int, ...], text: str) -> bool:
    for part in text.split(","):
        sign = part[:2] if part[1] == "=" else part[:1]
        bound = parse_version(part[len(sign) :])[:2]
        if not {">=": version >= bound, "<=": version <= bound, "<": version < bound, ">": version > bound}[sign]:
            return False
    return True


def _build_python(build: Build, python: str) -> Reason:
    about = f"{build.framework} and Python"
    want = parse_version(python)[:2]
    short = ".".join(python.split(".")[:2])
    span = f"{build.python_min or '?'} to {build.python_max or '?'}"
    if len(want) == 1:
        return Reason("unknown", about, f"name the minor version of Python, for example {python}.12", build.sources)
    if build.python_min and want < parse_version(build.python_min):
        return Reason("doesn't", about, f"{build.name} needs Python {build.python_min} or newer", build.sources)
    if short in build.python_experimental:
        text = f"{build.name} offers Python {short} only as an experiment"
        return Reason("unknown", about, text, build.sources)
    if build.python_min and build.python_max and want <= parse_version(build.python_max):
        return Reason("works", about, f"{build.name} supports Python {span}", build.sources)
    if build.python_max and build.python_closed:
        return Reason("doesn't", about, f"{build.name} has no build for Python {short} ({span})", build.sources)
    return Reason("unknown", about, f"the tables do not say whether {build.name} supports {short}", build.sources)


def _build_gpu(build: Build, gpu: Product, setup: Setup, notes: list[str]) -> Reason:
    about = f"{build.framework} and GPU"
    capability = gpu.compute_capability
    where = f"{gpu.name} (compute capability {capability})"
    if build.min_capability and parse_version(capability) < parse_version(build.min_capability):
        text = f"{build.name} needs compute capability {build.min_capability} or newer; {where} is older"
        return Reason("doesn't", about, text, build.sources)
    if build.architectures:
        native = [item for item in build.architectures if frameworks.covers(item, capability)]
        if native:
            return Reason(
                "works", about, f"{build.name} holds code for {native[-1]}, which runs on {where}", build.sources
            )
        listed = ", ".join(build.architectures)
        if any(frameworks.covers(item, capability) for item in build.ptx):
            return _by_ptx(build, where, setup, notes)
        if build.ptx and parse_version(build.ptx[0]) < parse_version(capability):
            text = f"{build.name} has no code for {where}, only PTX for {build.ptx[0]} that the driver may compile"
            return Reason("unknown", about, text, build.sources)
        text = f"{build.name} holds code for {listed} and none that runs on {where}"
        return Reason("doesn't", about, text, build.sources)
    if build.jit and build.cuda:
        return _jit(build, gpu, setup)
    arch = architectures.by_capability(capability)
    if arch and build.cuda and arch.last_cuda and parse_version(build.cuda)[:2] > parse_version(arch.last_cuda):
        text = f"{build.name} uses CUDA {build.cuda}; CUDA {arch.last_cuda} is the last for {where}"
        return Reason("doesn't", about, text, build.sources)
    if build.stated_capability and parse_version(capability) <= parse_version(build.stated_capability):
        least = build.min_capability or build.stated_capability
        text = f"{build.name} supports compute capability {least} and newer, {where} among them"
        return Reason("works", about, text, build.sources)
    return Reason("unknown", about, f"the tables do not say for which GPUs {build.name} was built", build.sources)


def _by_ptx(build: Build, where: str, setup: Setup, notes: list[str]) -> Reason:
    about = f"{build.framework} and GPU"
    text = f"{build.name} holds PTX for {where}, which the driver compiles at the first start"
    compiler = build.built_with_cuda or build.cuda
    own = drivers.toolkit(compiler) if compiler else None
    if setup.driver and (
        own is None or own.linux_min is None or parse_version(setup.driver) < parse_version(own.linux_min)
    ):
        return Reason("unknown", about, f"{text}; driver {setup.driver} may be too old to compile it", build.sources)
    notes.append(f"The first start on {where} takes longer, because its code is compiled then.")
    return Reason("works", about, text, build.sources)


def _jit(build: Build, gpu: Product, setup: Setup) -> Reason:
    about = f"{build.framework} and GPU"
    arch = architectures.by_capability(gpu.compute_capability)
    base = build.cuda or ""
    if arch and arch.last_cuda and parse_version(base)[:2] > parse_version(arch.last_cuda):
        text = f"{build.name} needs CUDA {base} or newer; CUDA {arch.last_cuda} is the last for {gpu.name}"
        return Reason("doesn't", about, text, build.sources)
    if arch is None:
        return Reason("unknown", about, f"compute capability {gpu.compute_capability} is not in the tables")
    used = setup.cuda or base
    judged = _gpu_cuda(gpu, used)
    if judged.answer == "works":
        text = f"{build.name} compiles its code for {gpu.name} at run time with CUDA {used}"
        return Reason("works", about, text, build.sources)
    if not setup.cuda and parse_version(arch.first_cuda)[0] == parse_version(base)[0]:
        text = f"{build.name} compiles at run time; for {gpu.name} it needs CUDA {arch.first_cuda} or newer installed"
        return Reason("unknown", about, text, build.sources)
    return replace(judged, about=about)


def _build_driver(build: Build, driver: str, products: Sequence[Product], notes: list[str], *, forward: bool) -> Reason:
    about = f"{build.framework} and driver"
    have = parse_version(driver)
    if build.driver_min:
        if have[0] < build.driver_min:
            text = f"{build.name} needs driver branch {build.driver_min} or newer; {driver} is older"
            return Reason("doesn't", about, text, build.sources)
        if drivers.branch(driver) is None:
            return Reason("unknown", about, f"driver branch {have[0]} is not in the tables", build.sources)
        text = f"{build.name} needs driver branch {build.driver_min} or newer"
        return Reason("works", about, text, build.sources)
    if build.cuda is None:
        return Reason("unknown", about, f"the tables do not say which CUDA {build.name} uses", build.sources)
    judged = _driver_cuda(driver, build.cuda, products, notes, forward=forward)
    return replace(judged, about=about, text=f"{build.name}: {judged.text}")


def _build_system(build: Build, system: System) -> Reason:
    about = f"{build.framework} and OS"
    if build.glibc_min and system.glibc:
        if parse_version(system.glibc) < parse_version(build.glibc_min):
            text = f"the wheels of {build.name} need glibc {build.glibc_min}; {system.name} has {system.glibc}"
            return Reason("doesn't", about, text, build.sources)
        text = f"{system.name} has glibc {system.glibc}; the wheels of {build.name} need {build.glibc_min}"
        return Reason("works", about, text, build.sources)
    return Reason("unknown", about, f"the tables do not say whether {build.name} runs on {system.name}", build.sources)


def _companions(items: Sequence[Framework]) -> Iterator[Reason]:
    torch = next((item for item in items if frameworks.canonical(item.name) == "torch"), None)
    if torch is None:
        return
    have = frameworks.sortable(torch.version.split("+")[0])
    for item in items:
        found = frameworks.builds(item.name, item.version)
        if item is torch or not found:
            continue
        build = found[0]
        about = f"{build.framework} and torch"
        if build.requires_torch:
            fits = any(
                have[: len(w)] == w or w[: len(have)] == have for w in map(frameworks.sortable, build.requires_torch)
            )
            text = f"{build.name} is built for torch {' or '.join(build.requires_torch)}"
            yield Reason("works" if fits else "doesn't", about, text, build.sources)
        elif build.min_torch:
            fits = have >= frameworks.sortable(build.min_torch)
            text = f"{build.name} needs torch {build.min_torch} or newer"
            yield Reason("works" if fits else "doesn't", about, text, build.sources)
        elif build.framework not in ("tensorflow", "tensorflow-gpu", "jax", "cupy", "onnxruntime-gpu"):
            yield Reason("unknown", about, f"the tables do not say which torch {build.name} needs", build.sources)


def _alone(setup: Setup, products: Sequence[Product]) -> Reason:
    if products:
        arch = architectures.by_capability(products[0].compute_capability)
        if arch:
            last = f" to {arch.last_cuda}" if arch.last_cuda else " or newer"
            branch = f", driver branch {arch.first_driver_branch or '?'}"
            upto = f" to {arch.last_driver_branch}" if arch.last_driver_branch else " or newer"
            text = f"{products[0].name} goes with CUDA {arch.first_cuda}{last}{branch}{upto}; name a second part"
            return Reason("unknown", "GPU", text, arch.sources)
    if setup.driver:
        newest = drivers.max_cuda_for_driver(setup.driver)
        text = f"driver {setup.driver} fully supports CUDA up to {newest or '?'}; name a second part"
        return Reason("unknown", "driver", text)
    if setup.cuda:
        tool = drivers.toolkit(setup.cuda)
        need = (tool.linux_min if tool else None) or "?"
        text = f"CUDA {setup.cuda} was released with driver {need}; name a second part"
        return Reason("unknown", "CUDA", text, tool.sources if tool else ())
    for item in setup.frameworks:
        offered = ", ".join(build.build for build in frameworks.builds(item.name, item.version))
        return Reason("unknown", item.name, f"{item} has the builds {offered}; name a second part")
    return Reason("unknown", "nothing", "give at least two parts of a combination")


# what would work instead ---------------------------------------------------------------------------------------------


@cache
def _driver_candidates() -> tuple[str, ...]:
    first: dict[int, str] = {}
    for item in drivers.toolkits():
        if item.linux_min and item.branch:
            first[item.branch] = item.linux_min
    found = {*first.values(), *(item.linux_min for item in drivers.toolkits()[:_RECENT] if item.linux_min)}
    found |= {row["linux_min"] for row in table("cuda_minor_compat").rows}
    found |= {row["last_known"] for row in table("driver_branches").rows if "last_known" in row}
    return tuple(sorted(found, key=parse_version))


def _around(options: Sequence[str], current: str) -> Iterator[str]:
    """Options nearest to the present one, newer ones first."""
    now = frameworks.sortable(current)
    yield from (item for item in options if frameworks.sortable(item) > now)
    yield from (item for item in reversed(options) if frameworks.sortable(item) < now)


def _changes(setup: Setup) -> Iterator[tuple[str, Iterator[Setup]]]:
    for index, item in enumerate(setup.frameworks):
        builds = [build.build for build in frameworks.builds(item.name, item.version) if build.build != item.build]
        if item.build:
            yield "build", (_with(setup, index, replace(item, build=name)) for name in builds)
    if setup.driver:
        yield "driver", (replace(setup, driver=v) for v in _around(_driver_candidates(), setup.driver))
    if setup.cuda:
        known = tuple(sorted({item.cuda for item in drivers.toolkits()}, key=parse_version))
        yield "CUDA", (replace(setup, cuda=v) for v in _around(known, setup.cuda))
    for index, item in enumerate(setup.frameworks):
        options = _around(frameworks.versions(item.name), item.version.split("+")[0])
        yield "framework", (_with(setup, index, replace(item, version=v, build=None)) for v in options)
    if setup.python:
        yield "Python", (replace(setup, python=v) for v in _around(PYTHONS, setup.python))
    if setup.modules:
        other = "proprietary" if setup.modules == "open" else "open"
        yield "kernel modules", iter((replace(setup, modules=other),))


def _with(setup: Setup, index: int, item: Framework) -> Setup:
    changed = (*setup.frameworks[:index], item, *setup.frameworks[index + 1 :])
    return replace(setup, frameworks=changed)


def _works(setup: Setup) -> bool:
    reasons, _ = _judge(setup)
    return _combine(reasons) == "works"


def _failures(setup: Setup) -> int:
    return sum(reason.answer != "works" for reason in _judge(setup)[0])


def _nearest(setup: Setup) -> Iterator[Nearest]:
    """Single changes that make the combination work, else pairs of changes."""
    count = 0
    for label, candidates in _changes(setup):
        for found in _both_ways(setup, label, candidates):
            count += 1
            yield Nearest(_describe(setup, found), found)
    if count == 0:
        yield from _pairs(setup)


def _both_ways(setup: Setup, label: str, candidates: Iterator[Setup]) -> Iterator[Setup]:
    seen: set[bool] = set()
    for candidate in candidates:
        newer = _newer(setup, candidate, label)
        if newer not in seen and _works(candidate):
            seen.add(newer)
            yield candidate


def _newer(old: Setup, new: Setup, label: str) -> bool:
    pairs = {
        "driver": (old.driver, new.driver),
        "CUDA": (old.cuda, new.cuda),
        "Python": (old.python, new.python),
    }
    before, after = pairs.get(label, (None, None))
    if label == "framework":
        changed = next((a, b) for a, b in zip(old.frameworks, new.frameworks, strict=True) if a != b)
        before, after = changed[0].version.split("+")[0], changed[1].version
    return frameworks.sortable(after or "0") > frameworks.sortable(before or "0")


def _pairs(setup: Setup) -> Iterator[Nearest]:
    before = _failures(setup)
    tries = (
        changed
        for first, candidates in _changes(setup)
        for candidate in candidates
        if _failures(candidate) < before
        for second, others in _changes(candidate)
        if second != first
        for changed in others
    )
    found = next((item for item in islice(tries, _TRIES) if _works(item)), None)
    if found is not None:
        yield Nearest(_describe(setup, found), found)


def _describe(old: Setup, new: Setup) -> str:
    changes = []
    before = old.parts()
    for index, (label, value) in enumerate(new.parts()):
        if before[index] != (label, value):
            changes.append(f"{label} {value}")
    return ", ".join(changes)
