"""Runs the real program as a person would, with the fake NVML where a scenario is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from nvml.build import COMPILER, build_fake_nvml, scenario_env


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def report(self) -> dict[str, Any]:
        return json.loads(self.out)

    def causes(self) -> list[str]:
        return [finding["id"] for finding in self.report["findings"] if finding["role"] == "cause"]


@pytest.fixture(scope="session")
def lib_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if COMPILER is None:
        pytest.skip("the fake NVML needs a C compiler")
    return build_fake_nvml(tmp_path_factory.mktemp("fake-nvml"))


@pytest.fixture
def gpudoctor(request: pytest.FixtureRequest) -> Callable[..., Done]:
    def run(*arguments: str, scenario: str | None = None, stdin: bytes = b"", timeout: float = 40, **env: str) -> Done:
        variables = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"} | env
        if scenario is not None:
            variables |= scenario_env(scenario, request.getfixturevalue("lib_dir"))
        done = subprocess.run(
            [sys.executable, "-m", "gpudoctor", *arguments],
            input=stdin,
            capture_output=True,
            env=variables,
            timeout=timeout,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
