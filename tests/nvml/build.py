"""Build a machine for pynvml to look at: the fake libnvidia-ml.so.1, and a scenario that it answers from.

    lib_dir = build_fake_nvml(tmp_path)
    subprocess.run([...], env=os.environ | scenario_env("gpu-lost", lib_dir))

The library must be found when the process starts, so it is always a child that sees the scenario. By hand:

    eval "$(python tests/nvml/build.py gpu-lost /tmp/fake-nvml)"

A scenario is a YAML file of keys that fake_nvml.c looks up, nested or dotted as it reads best:

    base: h100x8                          # start from that scenario
    gpu.3.temperature.gpu: 91             # GPU 3 only
    gpu.*.persistence_mode: 0             # every GPU whose number the base does not give with this key
    gpu.4-7.nvlink.0-8.state: 0           # a range of numbers
    gpu.3.fan.count: null                 # not supported after all
    gpu.3.memory.used: 40 GiB             # KiB, MiB, GiB in bytes, W in milliwatts
    gpu.3.processes.compute: [{pid: 7}]   # a list
    gpu.3.hang: [nvmlDeviceGetName]       # "hang" and "missing" list calls
    return.nvmlInit: NVML_ERROR_UNKNOWN   # any name of nvml_abi.h, or several with "|"
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import yaml

HERE = Path(__file__).parent
SCENARIOS = HERE / "scenarios"
SOURCES = [HERE / "fake_nvml.c", HERE / "nvml_abi.h"]
LIBRARY = "libnvidia-ml.so.1"
COMPILER = shutil.which("gcc") or shutil.which("cc")

# The pure Python loader takes longer than a child that asks pynvml one question.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "W": 1000}

Leaf = int | str | list | None


def build_fake_nvml(out_dir: Path) -> Path:
    """Compile the library into out_dir unless it is there and up to date; returns out_dir, for scenario_env."""
    library = out_dir / LIBRARY
    if not library.exists() or library.stat().st_mtime < max(source.stat().st_mtime for source in SOURCES):
        if COMPILER is None:
            raise FileNotFoundError("no C compiler (gcc or cc) on PATH")
        out_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out_dir) as scratch:  # another test process may be building, too
            built = Path(scratch) / LIBRARY
            flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-fPIC", "-shared", f"-Wl,-soname,{LIBRARY}"]
            subprocess.run([COMPILER, *flags, "-o", built, SOURCES[0]], check=True)
            built.replace(library)
    return out_dir


def scenario_env(scenario: str, lib_dir: Path) -> dict[str, str]:
    """Environment variables that make a child process see a scenario: a name in scenarios/, or a YAML file's path."""
    lines = "".join(f"{key}={value}\n" for key, value in compile_scenario(scenario))
    compiled = lib_dir / f"{Path(scenario).stem}-{hashlib.sha256(lines.encode()).hexdigest()[:12]}.scenario"
    if not compiled.exists():
        with tempfile.NamedTemporaryFile("w", dir=lib_dir, delete=False) as scratch:
            scratch.write(lines)
        Path(scratch.name).replace(compiled)
    folders = [str(lib_dir), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    return {"LD_LIBRARY_PATH": os.pathsep.join(folders), "FAKE_NVML_SCENARIO": str(compiled)}


def scenario_names() -> list[str]:
    """All scenarios that come with the tests."""
    return sorted(path.stem for path in SCENARIOS.glob("*.yaml"))


def compile_scenario(scenario: str) -> Iterator[tuple[str, str]]:
    """The lines that the library reads, as pairs of key and value."""
    for key, leaf in _load(scenario).items():
        if not isinstance(leaf, list):
            yield key, _spell(key, leaf)
        elif key.rpartition(".")[2] in ("hang", "missing"):
            yield from ((f"{key}.{call}", "1") for call in leaf)
        else:
            yield f"{key}.count", str(len(leaf))
            for position, item in enumerate(leaf):
                yield from ((name, _spell(name, value)) for name, value in _flatten(item, f"{key}.{position}"))


def _load(scenario: str) -> dict[str, Leaf]:
    path = Path(scenario) if scenario.endswith(".yaml") else SCENARIOS / f"{scenario}.yaml"
    tree = yaml.load(path.read_text(), LOADER)
    base = tree.pop("base", None)
    return (_load(base) if base else {}) | dict(_flatten(tree))


def _flatten(node: dict | Leaf, prefix: str = "") -> Iterator[tuple[str, Leaf]]:
    if not isinstance(node, dict):
        yield prefix, node
        return
    for key, value in node.items():
        for spelled in itertools.product(*map(_numbers, str(key).split("."))):
            yield from _flatten(value, ".".join(filter(None, [prefix, *spelled])))


def _numbers(part: str) -> list[str]:
    span = re.fullmatch(r"(\d+)-(\d+)", part)
    return [str(number) for number in range(int(span[1]), int(span[2]) + 1)] if span else [part]


def _spell(key: str, leaf: Leaf) -> str:
    if leaf is None:
        return "N/A"
    if isinstance(leaf, int):
        return str(int(leaf))
    if not isinstance(leaf, str):
        raise TypeError(f"{key}: {leaf!r} is not a number or a text; does it need quotes?")
    amount = re.fullmatch(rf"(\d+) ({'|'.join(UNITS)})", leaf)
    if amount:
        return str(int(amount[1]) * UNITS[amount[2]])
    names = [name.strip() for name in leaf.split("|")]
    if all(re.fullmatch(r"(NVML_|nvmlClocks)\w+", name) for name in names):
        mask = 0
        for name in names:
            mask |= constants()[name]
        return str(mask)
    return leaf


@cache
def constants() -> dict[str, int]:
    """The numbers of nvml_abi.h by name."""
    defined = re.findall(r"^#define (\w+) +(0x[0-9a-f]+|\d+)$", SOURCES[1].read_text(), re.MULTILINE)
    return {name: int(number, 0) for name, number in defined}


if __name__ == "__main__":
    for variable, setting in scenario_env(sys.argv[1], build_fake_nvml(Path(sys.argv[2]))).items():
        print(f"export {variable}={setting}")
