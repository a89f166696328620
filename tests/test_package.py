"""The wheel holds the declarations and works where there is no checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
XID = b"NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(command, check=True)
    return next(folder.glob("gpudoctor-*.whl"))


def test_the_wheel_holds_rules_probes_tables_and_schema(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    rules = {f"gpudoctor/rules/{path.name}" for path in (ROOT / "rules").glob("*.yaml")}
    probes = {f"gpudoctor/probes/{path.name}" for path in (ROOT / "probes").glob("*.yaml")}
    assert len(rules) > 10
    others = {"declarations.json", "report/report.schema.json", "report/html/page.css"}
    assert rules | probes | {f"gpudoctor/{name}" for name in others} <= names
    assert {name for name in names if name.startswith("gpudoctor/knowledge/data/")}
    assert not {name for name in names if name.startswith(("tests/", "fixtures/"))}


def test_it_diagnoses_from_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    env = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    code = "import gpudoctor, sys; assert gpudoctor.__file__.startswith(sys.argv.pop(1)); from gpudoctor.__main__ import main; main()"
    command = [sys.executable, "-c", code, str(tmp_path), "diagnose", "--text", "-"]
    done = subprocess.run(command, input=XID, capture_output=True, env=env, cwd=tmp_path)
    assert done.stdout.decode().startswith("CRITICAL: GPU fell off the bus")
    assert done.returncode == 2


def test_both_names_run() -> None:
    for command in ([sys.executable, "-m", "gpudoctor"], [str(Path(sys.executable).with_name("gpudoctor"))]):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True)
        assert done.stdout.startswith("gpudoctor ")
        assert done.returncode == 0


def test_importing_it_is_light() -> None:
    code = "import sys, gpudoctor; print([m for m in ('pydantic', 'textual', 'yaml', 'hyperscan', 'pynvml') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_textual_is_loaded_for_the_screens_only() -> None:
    code = "import sys; sys.argv[1:] = ['diagnose', '--json', '-']; from gpudoctor.cli.main import main; main(); sys.stderr.write(str('textual' in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], input=XID, capture_output=True)
    assert done.stderr == b"False"
