"""What the tests of the fake NVML share."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nvml.build import COMPILER, build_fake_nvml, scenario_env

PREAMBLE = """
import ctypes, json, sys
import pynvml as nvml

def tried(call, *arguments):
    try:
        return call(*arguments)
    except (nvml.NVMLError, nvml.NVMLLibraryMismatchError) as error:
        return type(error).__name__

def gpu(index):
    return nvml.nvmlDeviceGetHandleByIndex(index)

def field(device, field_id, scope=0):
    value, = nvml.nvmlDeviceGetFieldValues(device, [(field_id, scope)])
    if value.nvmlReturn:
        return type(nvml.NVMLError(value.nvmlReturn)).__name__
    names = {nvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal", nvml.NVML_VALUE_TYPE_SIGNED_INT: "siVal"}
    return getattr(value.value, names.get(value.valueType, "uiVal"))

def fields_of(structure):
    return {name: getattr(structure, name) for name, *_ in structure._fields_}

def filled(call, device, structure):
    call(device, ctypes.byref(structure))
    return fields_of(structure)
"""


@pytest.fixture(scope="session")
def lib_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if COMPILER is None or not sys.platform.startswith("linux"):
        pytest.skip("the fake NVML needs Linux and a C compiler")
    return build_fake_nvml(tmp_path_factory.mktemp("fake-nvml"))


@pytest.fixture
def ask(lib_dir: Path) -> Callable[..., Any]:
    """Run pynvml in a child that sees a scenario; gives back what the last statement, an expression, comes to."""

    def run(scenario: str, code: str, *, init: bool = True, timeout: float = 30) -> Any:
        lines = textwrap.dedent(code).strip().splitlines()
        last = ast.parse("\n".join(lines)).body[-1].lineno - 1
        answer = "\n".join(lines[last:])
        program = "\n".join(
            [PREAMBLE, "nvml.nvmlInit()" if init else "", *lines[:last], f"print(json.dumps({answer}))"]
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | scenario_env(scenario, lib_dir),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
