"""Which versions go together: driver, CUDA of the build, GPU, companions, wheels; and what to change to what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gpudoctor.facts.base import Fact
from gpudoctor.facts.framework import ArchSupport, FrameworkBuild, PythonPackage, RefusedRelease, VersionConflict
from gpudoctor.facts.gpu import GpuProduct
from gpudoctor.facts.store import FactStore
from gpudoctor.knowledge import drivers, frameworks
from gpudoctor.knowledge.frameworks import Build
from gpudoctor.patterns.lazy import LazyRegex

_FRAMEWORKS = {"torch": "torch", "tensorflow": "tensorflow", "tensorflow-gpu": "tensorflow", "jaxlib": "jax"}
_LOCAL = LazyRegex(r"cu(?P<digits>\d{2,3})")
_FOUND_VERSION = LazyRegex(r"found version (?P<number>\d{4,5})\b")


def _numbers(version: str | None) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", (version or "").split("+")[0])[:4])


def _packages(store: FactStore) -> list[PythonPackage]:
    return [fact for fact in store.of("python_package") if isinstance(fact, PythonPackage) and fact.version]


def _only(packages: list[PythonPackage], name: str) -> PythonPackage | None:
    """The package of that name, if one version of it is in evidence (not several environments, or before and after)."""
    found = [package for package in packages if package.name == name]
    return found[0] if found and len({(package.version, package.local) for package in found}) == 1 else None


# ---- the build


def _cuda_of(local: str | None) -> str | None:
    found = _LOCAL.match(local or "")
    return f"{found['digits'][:-1]}.{found['digits'][-1]}" if found else None


def _variant(package: PythonPackage, packages: list[PythonPackage]) -> str | None:
    if package.name == "jaxlib":
        plugin = next((p.name for p in packages if p.name.startswith("jax-cuda") and p.name.endswith("plugin")), None)
        found = re.match(r"jax-(cuda\d+)", plugin or "")
        return found[1] if found else None
    return package.local


def _build(package: PythonPackage, packages: list[PythonPackage]) -> Build | None:
    name, version = _FRAMEWORKS[package.name], package.version or ""
    try:
        return frameworks.build(name, version, _variant(package, packages))
    except ValueError:
        return None


def framework_builds(store: FactStore) -> Iterable[FrameworkBuild]:
    """Complete what a package list says: the CUDA, cuDNN and architectures of the installed build."""
    packages = _packages(store)
    for package in packages:
        if package.name not in _FRAMEWORKS or not package.version:
            continue
        cpu = bool(package.local and package.local.startswith("cpu"))
        build = None if cpu else _build(package, packages)
        cuda = _cuda_of(package.local) or (build.cuda if build else None)
        floor = _floor(cuda)
        yield FrameworkBuild(
            name=_FRAMEWORKS[package.name],
            version=package.version,
            cuda=cuda,
            cuda_major=_numbers(cuda)[0] if cuda else None,
            cudnn=build.cudnn if build else None,
            nccl=build.nccl if build else None,
            cpu_only=True if cpu else None,
            arch_list=" ".join(build.architectures) if build and build.architectures else None,
            min_driver=floor,
            min_driver_branch=_numbers(floor)[0] if floor else None,
            where=package.where,
        )


# ---- driver and CUDA


def _floor(cuda: str | None) -> str | None:
    if not cuda:
        return None
    return drivers.floor_for_cuda(cuda) or drivers.min_driver_for_cuda(cuda)


def _drivers(store: FactStore) -> Iterator[tuple[str, str | None, Fact]]:
    """Yield (driver version, CUDA that it offers, where it was seen), the surest first."""
    for fact in store.of("driver_version"):
        cuda = fact.value("cuda")
        yield str(fact.value("version")), str(cuda) if cuda else None, fact
    for fact in store.of("cuda_error"):
        if found := _FOUND_VERSION.search(str(fact.value("message") or "")):
            number = int(found["number"])
            yield "", f"{number // 1000}.{number % 1000 // 10}", fact
    for fact in store.of("kernel_module"):
        version = fact.value("version")
        if fact.value("name") == "nvidia" and fact.value("loaded") is not False and version:
            yield str(version), None, fact


def _runs(build_cuda: str, driver: str, driver_cuda: str | None) -> bool | None:
    """Tell whether a driver runs builds of a CUDA version; None where the tables don't say."""
    need = _numbers(build_cuda)
    if driver_cuda:
        have = _numbers(driver_cuda)
        return have[0] >= need[0] if need[0] >= 11 else have[:2] >= need[:2]
    floor = _floor(build_cuda)
    return None if floor is None or not driver else _numbers(driver) >= _numbers(floor)


def _without_cuda(store: FactStore) -> set[str]:
    """Frameworks that are CPU builds here, whatever the tables say of their release."""
    return {str(fact.value("name")) for fact in store.of("framework_build") if fact.value("cpu_only")}


def driver_conflicts(store: FactStore) -> Iterable[VersionConflict]:
    """Frameworks whose CUDA is too new for the driver."""
    known = list(_drivers(store))
    if not known:
        return
    driver, offered, seen = known[0]
    without_cuda = _without_cuda(store)
    for build in store.of("framework_build"):
        cuda = build.value("cuda")
        if not isinstance(build, FrameworkBuild) or not isinstance(cuda, str) or build.name in without_cuda:
            continue
        if _runs(cuda, driver, offered) is not False:
            continue
        floor = _floor(cuda) or "a newer one"
        has = f"driver {driver}" if driver else "a driver"
        yield VersionConflict(
            topic="driver",
            part=build.name,
            version=build.version,
            cuda=cuda,
            other="driver",
            found=f"{has} (CUDA {offered})" if offered else has,
            needed=floor,
            advice=f"{_other_build(build, driver, offered)}or install driver {floor} or newer.",
            where=build.where or seen.where,
        )


def _other_build(build: FrameworkBuild, driver: str, offered: str | None) -> str:
    """Name the newest build of the same release that this driver runs."""
    fitting = [
        other
        for other in frameworks.builds(build.name, build.version or "")
        if other.cuda and _runs(other.cuda, driver, offered)
    ]
    if not fitting:
        return f"Take an older {build.name} release, built for a CUDA that the driver runs, "
    best = max(fitting, key=lambda other: _numbers(other.cuda))
    return f"Take the {best.build} build of {build.name} {build.version} (CUDA {best.cuda}), "


# ---- GPU and build


def arch_supports(store: FactStore) -> Iterable[ArchSupport]:
    """Each GPU's compute capability against the architectures that the installed build holds."""
    packages = _packages(store)
    for package in packages:
        if package.name not in ("torch", "jaxlib") or _FRAMEWORKS[package.name] in _without_cuda(store):
            continue
        build = _build(package, packages)
        if build is None or not build.architectures:
            continue
        for product in store.of("gpu_product"):
            if not isinstance(product, GpuProduct) or product.compute_capability is None:
                continue
            capability = f"{product.compute_capability:.1f}"
            runs = any(frameworks.covers(native, capability) for native in build.architectures)
            runs = runs or any(_numbers(ptx) <= _numbers(capability) for ptx in build.ptx)
            yield ArchSupport(
                framework=f"{build.framework} {package.version} ({build.build})",
                capability=capability,
                supported=runs,
                architectures=", ".join(build.architectures),
                gpu=product.gpu,
                where=package.where,
            )


_ARCH_ENTRY = LazyRegex(r"(?P<capability>\d{1,2}\.\d)[af]?(?P<ptx>\+PTX)?")


def arch_lists(store: FactStore) -> Iterable[VersionConflict]:
    """The list of architectures that PyTorch extensions are built for, against the GPUs."""
    for variable in store.of("env_var"):
        if variable.value("name") != "TORCH_CUDA_ARCH_LIST":
            continue
        setting = str(variable.value("setting"))
        entries = [_ARCH_ENTRY.fullmatch(entry) for entry in re.split(r"[\s;,]+", setting.strip()) if entry]
        if not entries or None in entries:
            continue
        for product in store.of("gpu_product"):
            if not isinstance(product, GpuProduct) or product.compute_capability is None:
                continue
            gpu = f"{product.compute_capability:.1f}"
            runs = any(
                frameworks.covers(entry["capability"], gpu)
                or (entry["ptx"] and _numbers(entry["capability"]) <= _numbers(gpu))
                for entry in entries
                if entry
            )
            if not runs:
                yield VersionConflict(
                    topic="arch-list",
                    part="TORCH_CUDA_ARCH_LIST",
                    version=setting,
                    other="GPU",
                    found=f"compute capability {gpu}",
                    needed=gpu,
                    advice=f"Set TORCH_CUDA_ARCH_LIST={gpu} and build again.",
                    where=variable.where,
                )
                break


# ---- packages among themselves


def package_conflicts(store: FactStore) -> Iterable[VersionConflict]:
    """Packages of one environment that don't go together."""
    packages = _packages(store)
    yield from _companions(packages)
    yield from _jax(packages)
    yield from _wheels(packages)


_ALL_RELEASES_KNOWN = ("torch", "tensorflow")  # the tables hold every minor release of these


def _missing_for_all(refused: RefusedRelease) -> bool:
    """Tell whether pip's own list shows that the release is missing for another reason than the Python in use.

    Its plain form is there and only the build after the plus is not (another index has that), releases before and after
    it are there, or there never was such a release.
    """
    offered = [_numbers(item) for item in (refused.offered or "").split(",") if _numbers(item)]
    offered = [numbers for numbers in offered if numbers[:2] != (0, 1)]  # torch 0.1.2 is a source package for all
    wanted = _numbers(refused.version)
    if not wanted or not offered:
        return False
    if wanted in offered or min(offered) < wanted < max(offered):
        return True
    known = [_numbers(item) for item in frameworks.versions(refused.package)]
    return refused.package in _ALL_RELEASES_KNOWN and known[0] < wanted[:2] < known[-1] and wanted[:2] not in known


def python_ranges(store: FactStore) -> Iterable[VersionConflict]:
    """Releases that pip did not find, against the Pythons that they have builds for."""
    pythons = {str(fact.value("version")) for fact in store.of("python")}
    python = next(iter(pythons)) if len({_numbers(version)[:2] for version in pythons}) == 1 else None
    for refused in store.of("refused_release"):
        package, version = str(refused.value("package")), refused.value("version")
        if isinstance(refused, RefusedRelease) and _missing_for_all(refused):
            yield VersionConflict(
                topic="python-fits", part=package, version=refused.version, other="python", where=refused.where
            )
            continue
        if python is None:
            continue
        found = frameworks.builds(package, version) if isinstance(version, str) else ()
        ranges = {(build.python_min, build.python_max) for build in found if build.python_closed}
        if len(ranges) != 1 or None in (limits := next(iter(ranges))):
            continue
        least, most = limits
        fits = _numbers(least) <= _numbers(python)[:2] <= _numbers(most)
        yield VersionConflict(
            topic="python-fits" if fits else "python",
            part=package,
            version=str(version),
            other="python",
            found=python,
            needed=f"{least} to {most}",
            advice="" if fits else f"Make an environment with Python {most}.",
            where=refused.where,
        )


def _companions(packages: list[PythonPackage]) -> Iterator[VersionConflict]:
    torch = _only(packages, "torch")
    if torch is None:
        return
    major, minor = (*_numbers(torch.version), 0, 0)[:2]
    expected = {
        "torchvision": f"0.{minor + 15}" if major == 2 else f"0.{minor + 1}",
        "torchaudio": f"2.{minor}" if major == 2 else f"0.{minor}",
    }
    for name, release in expected.items():
        companion = _only(packages, name)
        if companion is None or not torch.version or not companion.version:
            continue
        numbers = (*_numbers(companion.version), 0, 0)[:2]
        if numbers != _numbers(release):
            wanted = _torch_for(name, numbers)
            yield VersionConflict(
                topic="companion",
                part=name,
                version=companion.version,
                other="torch",
                found=torch.version,
                needed=wanted,
                advice=f"Install {name} {release}, which belongs to torch {major}.{minor}.",
                where=companion.where,
            )
        elif torch.local and companion.local and torch.local != companion.local:
            yield VersionConflict(
                topic="companion",
                part=name,
                version=f"{companion.version}+{companion.local}",
                other="torch",
                found=f"{torch.version}+{torch.local}",
                needed=f"{torch.version}+{companion.local}",
                advice=f"Install both from the {torch.local} index.",
                where=companion.where,
            )


def _torch_for(name: str, numbers: tuple[int, ...]) -> str:
    major, minor = numbers
    if name == "torchvision":
        return f"2.{minor - 15}" if minor >= 15 else f"1.{minor - 1}"
    return f"2.{minor}" if major == 2 else f"1.{minor}"


def _jax(packages: list[PythonPackage]) -> Iterator[VersionConflict]:
    jaxlib, jax = _only(packages, "jaxlib"), _only(packages, "jax")
    plugins = {p.name for p in packages if re.fullmatch(r"jax-cuda\d+-(plugin|pjrt)", p.name)}
    for name in sorted(plugins):
        plugin = _only(packages, name)
        if plugin and jaxlib and _numbers(plugin.version)[:3] != _numbers(jaxlib.version)[:3]:
            yield VersionConflict(
                topic="jax",
                part=name,
                version=plugin.version,
                other="jaxlib",
                found=jaxlib.version,
                needed=plugin.version,
                advice=f"Install {name} {jaxlib.version}, the release of jaxlib.",
                where=plugin.where,
            )
    if jax and jaxlib and _numbers(jaxlib.version)[:3] > _numbers(jax.version)[:3]:
        yield VersionConflict(
            topic="jax",
            part="jaxlib",
            version=jaxlib.version,
            other="jax",
            found=jax.version,
            needed=jaxlib.version,
            advice=f"jaxlib must not be newer than jax: install jax {jaxlib.version}.",
            where=jaxlib.where,
        )


_VARIANT = LazyRegex(r"(?P<base>nvidia-[a-z0-9-]+?|cupy|jax)-(?:cu|cuda)(?P<cuda>\d{2,3})x?(?P<tail>-plugin|-pjrt)?")
_EXCLUSIVE = (("onnxruntime", "onnxruntime-gpu"), ("tensorflow", "tensorflow-cpu"))


def _wheels(packages: list[PythonPackage]) -> Iterator[VersionConflict]:
    variants: dict[str, dict[str, PythonPackage]] = {}
    for package in packages:
        if found := _VARIANT.fullmatch(package.name):
            base = found["base"] + (found["tail"] or "")
            variants.setdefault(base, {})[package.name] = package
        elif package.name == "cupy":
            variants.setdefault("cupy", {})["cupy"] = package
    pairs = [sorted(found.values(), key=lambda p: p.name)[:2] for found in variants.values() if len(found) > 1]
    by_name = {package.name: package for package in packages}
    pairs += [[by_name[one], by_name[two]] for one, two in _EXCLUSIVE if one in by_name and two in by_name]
    for first, second in pairs:
        yield VersionConflict(
            topic="wheels",
            part=first.name,
            version=first.version,
            other=second.name,
            found=second.version,
            advice="Keep the one that your framework pins and remove the other.",
            where=second.where,
        )
