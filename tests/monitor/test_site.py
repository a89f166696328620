"""The site configuration: where it lies, what it says, what it complains about."""

from __future__ import annotations

import json
from copy import copy
from pathlib import Path

import pytest

from gpudoctor.collect.collected import Collected
from gpudoctor.diagnosis import Doctor
from gpudoctor.facts.base import Probed
from gpudoctor.facts.driver import DriverVersion
from gpudoctor.facts.gpu import Gpu, GpuCount, NvlinkLink
from gpudoctor.facts.host import FileSystem
from gpudoctor.monitor.configfile import ConfigError
from gpudoctor.monitor.site import Loaded, load, unknown
from gpudoctor.sources.base import SourceNotes

BUS = "0000:3b:00.0"


def configure(tmp_path: Path, text: str) -> Loaded:
    path = tmp_path / "gpudoctor.toml"
    path.write_text(text)
    return load(Path("/"), str(path), None, {})


FAULTS = {
    "a misspelt section": ("[expct]\ngpus = 8", ":1: expct: no such key; known are profile, timeout"),
    "a misspelt key": ("[expect]\ngpu_count = 8", ":2: expect.gpu_count: no such key; known are gpus, gpu,"),
    "a wrong type": ('[expect]\ngpus = "eight"', ":2: expect.gpus: input should be a valid integer"),
    "out of range": ("timeout = 1\n", ":1: timeout: input should be greater than or equal to 2"),
    "a wrong profile": ('profile = "fast"', ":1: profile: input should be 'quick', 'standard' or 'deep'"),
    "no such folder": ('rules = ["nowhere"]', "rules: {folder}/nowhere: no such folder"),
    "not TOML": ("profile = quick", "not valid TOML"),
}


@pytest.mark.parametrize("text,words", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_one_line_that_names_the_place(tmp_path, text, words):
    with pytest.raises(ConfigError) as caught:
        configure(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path}/gpudoctor.toml:")
    assert words.format(folder=tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_named_file_that_is_missing(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.toml: no such file or directory"):
        load(Path("/"), str(tmp_path / "none.toml"), None, {})


def test_the_persons_file_overrides_the_sites_key_by_key(tmp_path):
    # Below another root only that machine's own configuration counts.
    (tmp_path / "etc/gpudoctor").mkdir(parents=True)
    (tmp_path / "etc/gpudoctor/gpudoctor.toml").write_text('profile = "quick"\n[expect]\ngpus = 8\ngpu = "H100"\n')
    (tmp_path / "home/gpudoctor").mkdir(parents=True)
    (tmp_path / "home/gpudoctor/gpudoctor.toml").write_text("[expect]\ngpus = 4\n")
    environment = {"XDG_CONFIG_HOME": str(tmp_path / "home")}
    site = load(tmp_path, None, None, environment).site
    assert (site.profile, site.expect.gpus, site.expect.gpu) == ("quick", 8, "H100")
    assert load(Path("/"), None, None, environment).site.expect.gpus == 4


def test_environment_variables_name_the_files_and_an_empty_one_means_none(tmp_path):
    (tmp_path / "etc/gpudoctor").mkdir(parents=True)
    (tmp_path / "etc/gpudoctor/gpudoctor.toml").write_text("[expect]\ngpus = 8\n")
    (tmp_path / "etc/gpudoctor/suppressions.toml").write_text("")
    (tmp_path / "other.toml").write_text("[expect]\ngpus = 2\n")
    assert load(tmp_path, None, None, {"GPUDOCTOR_CONFIG": str(tmp_path / "other.toml")}).site.expect.gpus == 2
    assert load(tmp_path, None, None, {"GPUDOCTOR_CONFIG": ""}).site.expect.gpus is None
    assert load(tmp_path, None, None, {}).suppressions == [tmp_path / "etc/gpudoctor/suppressions.toml"]
    assert load(tmp_path, None, None, {"GPUDOCTOR_SUPPRESSIONS": ""}).suppressions == []
    assert load(tmp_path, None, "/mine.toml", {}).suppressions == [Path("/mine.toml")]


def test_paths_are_relative_to_the_file(tmp_path):
    (tmp_path / "rules").mkdir()
    site = configure(tmp_path, 'rules = ["rules"]\nsuppressions = "mine.toml"').site
    assert site.rules == [str(tmp_path / "rules")]
    assert site.suppressions == str(tmp_path / "mine.toml")


def judged(loaded: Loaded, *facts):
    collected = Collected(facts=[*loaded.facts(), *facts])
    return Doctor().judge(collected, SourceNotes("live", "/"))


H100 = Gpu(gpu=BUS, pci=BUS, name="NVIDIA H100 80GB HBM3", seen_by="nvml", temperature=71.0, remapped_correctable=3)
# what the site expects, what is there, the finding, and words of its sentence
DEPARTURES = {
    "count": ("[expect]\ngpus = 8", GpuCount(seen_by="nvml", number=7), "driver.gpu-missing", ["8 GPUs", "7"]),
    "none at all": ("[expect]\ngpus = 8", Probed(what="pci_device"), "driver.no-gpu", ["8 GPUs should be here"]),
    "type": ('[expect]\ngpu = "A100"', H100, "site.gpu-model", [BUS, "H100", "A100"]),
    "driver": (
        '[expect]\ndriver = "550.54"',
        DriverVersion(version="550.90.07"),
        "site.driver-version",
        ["550.90.07", "550.54"],
    ),
    "links": (
        "[expect]\nnvlinks = 18",
        NvlinkLink(gpu=BUS, link=0, state="active"),
        "site.nvlink-count",
        ["1 active", "18"],
    ),
    "heat": ("[thresholds]\ntemperature = 70", H100, "site.threshold", ["71", "70", BUS]),
    "rows": ("[thresholds]\nremapped_rows = 2", H100, "site.threshold", ["rows 3", "2"]),
    "disk": (
        "[thresholds]\nfile_system_use = 90",
        FileSystem(mount="/var", use_percent=93.0),
        "site.threshold",
        ["93 percent", "90"],
    ),
}


@pytest.mark.parametrize("text,fact,expected,words", DEPARTURES.values(), ids=DEPARTURES)
def test_departures_are_findings(tmp_path, text, fact, expected, words):
    report = judged(configure(tmp_path, text), copy(fact))
    found = {finding.id: finding for finding in report.findings}
    assert expected in found
    assert all(word in found[expected].because for word in words)


MET = {
    "count": ("[expect]\ngpus = 8", GpuCount(seen_by="nvml", number=8)),
    "type": ('[expect]\ngpu = "h100"', H100),
    "driver": ('[expect]\ndriver = "550"', DriverVersion(version="550.90.07")),
    "heat": ("[thresholds]\ntemperature = 71", H100),
    "rows": ("[thresholds]\nremapped_rows = 3", H100),
}


@pytest.mark.parametrize("text,fact", MET.values(), ids=MET)
def test_what_is_as_expected_is_silent(tmp_path, text, fact):
    found = {finding.id for finding in judged(configure(tmp_path, text), copy(fact)).findings}
    assert not {name for name in found if name.startswith("site.") or name in ("driver.gpu-missing", "driver.no-gpu")}


def test_names_that_no_rule_has_are_refused_with_the_nearest():
    assert unknown(["pcie", "pcie.width-degraded"], ["pcie.width-degraded"]) is None
    assert "did you mean pcie.width-degraded?" in str(unknown(["pcie.width-degradet"], ["pcie.width-degraded"]))


# The whole program.


@pytest.fixture
def machine(tmp_path):
    """The root of a machine with a configuration and nothing else."""
    (tmp_path / "etc/gpudoctor").mkdir(parents=True)

    def write(**files: str) -> Path:
        for name, text in files.items():
            (tmp_path / "etc/gpudoctor" / f"{name}.toml").write_text(text)
        return tmp_path

    return write


def test_the_configuration_of_the_examined_machine_holds(gpudoctor, machine):
    root = machine(gpudoctor="[expect]\ngpus = 8\n")
    (root / "sys/bus/pci/devices/0000:00:1f.0").mkdir(parents=True)
    (root / "sys/bus/pci/devices/0000:00:1f.0/vendor").write_text("0x8086\n")
    done = gpudoctor("--json", "--profile", "quick", "--root", str(root))
    assert done.causes() == ["driver.no-gpu"]
    assert done.code == 2
    root = machine(suppressions='[[suppress]]\nid = "driver.no-gpu"\nreason = "spare node"\nexpires = "never"\n')
    done = gpudoctor("--json", "--profile", "quick", "--root", str(root))
    assert (done.causes(), done.code, done.report["status"]) == ([], 0, "ok")
    assert [entry["suppression"]["reason"] for entry in done.report["suppressed"]] == ["spare node"]


@pytest.mark.parametrize(
    "arguments,code",
    [
        (["--json"], 78),
        (["--nagios"], 3),
    ],
)
def test_a_faulty_configuration_is_one_line(gpudoctor, machine, arguments, code):
    root = machine(gpudoctor="[expect]\ngpu_count = 8\n")
    done = gpudoctor(*arguments, "--root", str(root))
    assert done.code == code
    line = done.out if code == 3 else done.err
    assert line.count("\n") == 1
    assert "gpudoctor.toml:2: expect.gpu_count: no such key" in line


def test_own_rules_and_probes(gpudoctor, machine):
    root = machine(gpudoctor='rules = ["rules"]\nprobes = ["probes"]\n[expect]\ngpus = 1\n')
    for name in ("rules", "probes"):
        (root / "etc/gpudoctor" / name).mkdir()
    (root / "etc/gpudoctor/rules/mine.yaml").write_text(
        "- id: acme.fan-tray\n  title: Fan tray is out\n  severity: warning\n"
        '  when: [{out: {log: "ACME fan tray {n:int} removed"}}]\n  because: "Tray {out.n}"\n'
    )
    (root / "etc/gpudoctor/probes/mine.yaml").write_text(
        "acme:\n  summary: the chassis log\n  live: {files: [/var/log/acme.log]}\n  gives: [log]\n"
    )
    (root / "var/log").mkdir(parents=True)
    (root / "var/log/acme.log").write_text("ACME fan tray 3 removed\n")
    done = gpudoctor("--json", "--profile", "quick", "--only", "acme", "--root", str(root))
    assert done.causes() == ["acme.fan-tray"]
    assert done.report["findings"][0]["because"] == "Tray 3"


def test_a_faulty_probe_of_the_site_is_one_line(gpudoctor, machine):
    root = machine(gpudoctor='probes = ["probes"]\n')
    (root / "etc/gpudoctor/probes").mkdir()
    (root / "etc/gpudoctor/probes/mine.yaml").write_text("acme:\n  summary: x\n  live: {}\n")
    done = gpudoctor("--json", "--root", str(root))
    assert done.code == 78
    assert done.err.count("\n") == 1
    assert "mine.yaml:" in done.err


def test_a_bundle_is_not_judged_by_this_machines_configuration(gpudoctor, tmp_path):
    (tmp_path / "gpudoctor").mkdir()
    (tmp_path / "gpudoctor/suppressions.toml").write_text(
        '[[suppress]]\nid = "hardware"\nreason = "this node"\nexpires = "never"\n'
    )
    xid = b"[  812.114] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    given = ["--suppressions", str(tmp_path / "gpudoctor/suppressions.toml")]
    assert gpudoctor("diagnose", "--json", "-", stdin=xid, XDG_CONFIG_HOME=str(tmp_path)).code == 2
    done = gpudoctor("diagnose", "--json", *given, "-", stdin=xid)
    assert (done.code, done.report["status"]) == (0, "ok")
    assert json.loads(done.out)["suppressed"]


def test_an_unknown_area_is_wrong_usage(gpudoctor):
    done = gpudoctor("diagnose", "--json", "--only", "pci", "-", stdin=b"x\n")
    assert done.code == 64
    assert "did you mean pcie?" in done.err
    done = gpudoctor("diagnose", "--nagios", "--only", "pci", "-", stdin=b"x\n")
    assert done.code == 3
    assert done.out.startswith("GPUDOCTOR UNKNOWN - pci: no such area or id")


def test_wrong_usage_of_the_plugin_is_unknown(gpudoctor):
    done = gpudoctor("--nagios", "--bogus")
    assert (done.code, done.err) == (3, "")
    assert done.out.startswith("GPUDOCTOR UNKNOWN - ")
