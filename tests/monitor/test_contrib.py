"""What sites take from contrib/, under the programs that will read it."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import textwrap
import time
import urllib.request
from pathlib import Path

import pytest
import yaml
from report.reports import HOSTILE, finding, report

from gpudoctor.report.prometheus import render_prometheus

CONTRIB = Path(__file__).resolve().parents[2] / "contrib"


def program(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"needs {name} (Debian: {package})")
    return found


def run(*words: object, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in words], check=False, capture_output=True, text=True, timeout=60, **more
    )


def test_alert_rules_pass_promtool_and_their_own_tests():
    promtool = program("promtool", "prometheus")
    checked = run(promtool, "check", "rules", CONTRIB / "prometheus/gpudoctor.rules.yaml")
    assert checked.returncode == 0, checked.stderr
    tested = run(promtool, "test", "rules", CONTRIB / "prometheus/gpudoctor.test.yaml")
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_the_documented_scrape_configuration_is_one(tmp_path):
    promtool = program("promtool", "prometheus")
    text = (CONTRIB.parent / "docs/monitoring.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    (tmp_path / "prometheus.yml").write_text(textwrap.dedent("   " + shown.lstrip()))
    shutil.copy(CONTRIB / "prometheus/gpudoctor.rules.yaml", tmp_path)
    checked = run(promtool, "check", "config", tmp_path / "prometheus.yml")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "rules found" in checked.stdout
    jobs = {job["job_name"] for job in yaml.safe_load((tmp_path / "prometheus.yml").read_text())["scrape_configs"]}
    assert {f'up{{job="{job}"}} == 0' for job in jobs} <= set(expressions())


def expressions() -> list[str]:
    dashboard = json.loads((CONTRIB / "grafana/gpudoctor.json").read_text())
    rules = yaml.safe_load((CONTRIB / "prometheus/gpudoctor.rules.yaml").read_text())
    found = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return found + [rule["expr"] for group in rules["groups"] for rule in group["rules"]]


def test_dashboard_and_alerts_ask_for_metrics_that_there_are():
    text = render_prometheus(report(finding(), suppressed=True), 0.0)
    there = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    asked = {name for expression in expressions() for name in re.findall(r"\bgpudoctor_\w+", expression)}
    assert asked
    assert asked <= there


def test_dashboard_queries_are_promql(tmp_path):
    promtool = program("promtool", "prometheus")
    rules = [
        {"record": f"q:{number}", "expr": expression.replace("$instance", ".*")}
        for number, expression in enumerate(expressions())
    ]
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    checked = run(promtool, "check", "rules", path)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_dashboard_panels_do_not_overlap():
    panels = json.loads((CONTRIB / "grafana/gpudoctor.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not taken & cells
        assert at["x"] + at["w"] <= 24
        taken |= cells


def test_node_exporter_serves_the_text_file(tmp_path):
    exporter = program("prometheus-node-exporter", "prometheus-node-exporter")
    names = [name for name in HOSTILE if name != "\ud800"]
    found = report(*(finding(name, at) for at, name in enumerate(names)))
    (tmp_path / "gpudoctor.prom").write_text(render_prometheus(found, 1_796_000_000.0))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    collectors = ["--collector.disable-defaults", "--collector.textfile", f"--collector.textfile.directory={tmp_path}"]
    process = subprocess.Popen(
        [exporter, f"--web.listen-address=127.0.0.1:{port}", *collectors], stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(100):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                    served = answer.read().decode()
                break
            except OSError:
                time.sleep(0.1)
    finally:
        process.terminate()
        process.wait(10)
    assert "node_textfile_scrape_error 0\n" in served
    assert served.count("\ngpudoctor_finding{") == len(names)
    assert 'gpudoctor_status{status="critical"} 1\n' in served


UNITS = ("gpudoctor-watch.service", "gpudoctor.service", "gpudoctor.timer")


@pytest.fixture
def units(tmp_path):
    program("systemd-analyze", "systemd")
    stand_in = tmp_path / "gpudoctor"  # the units name the installed program
    stand_in.write_text("#!/bin/sh\n")
    stand_in.chmod(0o755)
    for name in UNITS:
        text = (CONTRIB / "systemd" / name).read_text()
        (tmp_path / name).write_text(text.replace("/usr/local/bin/gpudoctor", str(stand_in)))
    return [tmp_path / name for name in UNITS]


def test_units_verify(units):
    done = run("systemd-analyze", "verify", *units)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_units_are_hardened(units):
    for unit in units[:2]:
        done = run("systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=40", unit)
        assert done.returncode == 0, done.stdout[-300:] + done.stderr


def test_units_name_options_that_there_are():
    from gpudoctor.cli.main import parse

    for name in UNITS[:2]:
        start = re.search(r"^ExecStart=\S+ (.*)$", (CONTRIB / "systemd" / name).read_text(), re.MULTILINE)
        assert parse(start[1].split())[0] == "watch"


def test_daemonset_fits_the_schemas_of_kubernetes():
    validate = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate")
    manifest = yaml.safe_load((CONTRIB / "kubernetes/daemonset.yaml").read_text())
    for version in ("1.28", "1.32"):
        validate.validate(manifest, version, strict=True)


def test_daemonset_takes_the_least():
    manifest = yaml.safe_load((CONTRIB / "kubernetes/daemonset.yaml").read_text())
    pod = manifest["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    context = container["securityContext"]
    assert "privileged" not in context
    assert context["capabilities"]["drop"] == ["ALL"]
    assert pod["automountServiceAccountToken"] is False
    assert all(mount.get("readOnly") for mount in container["volumeMounts"] if mount["name"] != "state")


@pytest.fixture
def stand_in(tmp_path):
    """A gpudoctor that answers as it is told."""

    def make(status: int, line: str) -> dict[str, str]:
        path = tmp_path / "gpudoctor"
        path.write_text(f"#!/bin/sh\ncat <<'E'\n{line}\nE\nexit {status}\n")
        path.chmod(0o755)
        return os.environ | {"GPUDOCTOR": str(path)}

    return make


@pytest.mark.parametrize("status,code", [(0, 0), (1, 2), (2, 1), (3, 2)])
def test_node_problem_detector_plugin(stand_in, status, code):
    config = json.loads((CONTRIB / "node-problem-detector/gpudoctor.json").read_text())
    script = CONTRIB / "node-problem-detector" / Path(config["rules"][0]["path"]).name
    done = run(
        script, env=stand_in(status, "GPUDOCTOR CRITICAL - GPU fell off the bus on 0000:3b:00.0 | critical=1;;0;0")
    )
    assert (done.returncode, done.stdout) == (code, "GPUDOCTOR CRITICAL - GPU fell off the bus on 0000:3b:00.0\n")
    assert config["conditions"][0]["type"] == config["rules"][0]["condition"]


@pytest.fixture
def scontrol(tmp_path):
    """A scontrol that knows one node and writes down what it is told to change."""

    def make(node: str) -> Path:
        path = tmp_path / "scontrol"
        told = tmp_path / "told"
        told.touch()
        path.write_text(f"#!/bin/sh\n[ $1 = update ] && echo \"$*\" >> {told} || echo '{node}'\n")
        path.chmod(0o755)
        return told

    make.path = str(tmp_path / "scontrol")
    return make


CRITICAL = (2, 'GPUDOCTOR CRITICAL - GPU "x" fell off | critical=1;;0;0')
OK = (0, "GPUDOCTOR OK - Nothing wrong found | critical=0;;0;0")
UNKNOWN = (3, "GPUDOCTOR UNKNOWN - an earlier run has not ended")
IDLE, OURS, THEIRS = (
    "NodeName=n7 State=IDLE",
    "NodeName=n7 State=IDLE+DRAIN Reason=gpudoctor: GPU x fell off [root@now]",
    "NodeName=n7 State=IDLE+DRAIN Reason=new power supply [root@now]",
)


@pytest.mark.parametrize(
    "answer,node,resume,told",
    [
        (CRITICAL, IDLE, "0", "update nodename=n7 state=drain reason=gpudoctor: GPU x fell off\n"),
        (CRITICAL, THEIRS, "1", ""),
        (OK, OURS, "0", ""),
        (OK, OURS, "1", "update nodename=n7 state=resume\n"),
        (OK, THEIRS, "1", ""),
        (UNKNOWN, IDLE, "1", ""),
        (UNKNOWN, OURS, "1", ""),
    ],
)
def test_slurm_health_check(stand_in, scontrol, answer, node, resume, told):
    written = scontrol(node)
    env = stand_in(*answer) | {"SCONTROL": scontrol.path, "SLURMD_NODENAME": "n7", "GPUDOCTOR_RESUME": resume}
    assert run(CONTRIB / "slurm/healthcheck.sh", env=env).returncode == 0
    assert written.read_text() == told


@pytest.mark.parametrize(
    "script,answer,status",
    [("prolog", CRITICAL, 1), ("prolog", OK, 0), ("prolog", UNKNOWN, 0), ("epilog", CRITICAL, 0), ("epilog", OK, 0)],
)
def test_slurm_prolog_and_epilog(stand_in, scontrol, script, answer, status):
    written = scontrol(IDLE)
    env = stand_in(*answer) | {"SCONTROL": scontrol.path, "SLURMD_NODENAME": "n7"}
    assert run(CONTRIB / f"slurm/{script}.sh", env=env).returncode == status
    assert bool(written.read_text()) == (answer is CRITICAL)


@pytest.mark.parametrize("script", sorted(CONTRIB.rglob("*.sh")), ids=lambda path: path.name)
def test_scripts_are_plain_shell(script):
    shell = shutil.which("dash") or "/bin/sh"
    assert run(shell, "-n", script).returncode == 0
