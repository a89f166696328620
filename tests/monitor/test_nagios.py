"""The Nagios and Icinga objects under the real daemons, which run the check that the objects' file names."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from recorded_node import record

CONTRIB = Path(__file__).resolve().parents[2] / "contrib"

NAGIOS = """
log_file={folder}/nagios.log
cfg_file={folder}/site.cfg
cfg_file={objects}
resource_file={folder}/resource.cfg
object_cache_file={folder}/objects.cache
status_file={folder}/status.dat
temp_file={folder}/nagios.tmp
temp_path={folder}
command_file={folder}/nagios.cmd
lock_file={folder}/nagios.pid
check_result_path={folder}
query_socket={folder}/nagios.qh
nagios_user=root
nagios_group=root
check_external_commands=0
status_update_interval=1
service_inter_check_delay_method=n
host_inter_check_delay_method=n
execute_service_checks=1
interval_length=1
illegal_macro_output_chars=`~$&|'"<>
"""
# What a site has: a template, the machines, and (in place of NRPE's own program, which asks over the network) check_nrpe.
SITE = """
define timeperiod {
    timeperiod_name always
    alias always
    sunday 00:00-24:00
    monday 00:00-24:00
    tuesday 00:00-24:00
    wednesday 00:00-24:00
    thursday 00:00-24:00
    friday 00:00-24:00
    saturday 00:00-24:00
}
define command {
    command_name up
    command_line /bin/true
}
define contact {
    contact_name on-call
    host_notification_period always
    service_notification_period always
    host_notification_commands up
    service_notification_commands up
}
define host {
    host_name gpu-1
    address 192.0.2.1
    max_check_attempts 1
    check_command up
    check_period always
    contacts on-call
}
define hostgroup {
    hostgroup_name gpu-machines
    members gpu-1
}
define service {
    name generic-service
    register 0
    check_period always
    contacts on-call
    notification_interval 0
    notification_period always
}
"""

ICINGA = """
include <itl>
object Endpoint "master" {{ }}
object Zone "site" {{ endpoints = [ "master" ] }}
object Endpoint "gpu-1" {{ }}
object Zone "gpu-1" {{
  endpoints = [ "gpu-1" ]
  parent = "site"
}}
include_zones "etc", "{zones}"
"""


def daemon(name: str, package: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if found is None:
        pytest.skip(f"needs {name} (Debian: {package})")
    return found


@pytest.mark.parametrize(
    "scenario,state,said",
    [("h100x8", "0", "GPUDOCTOR OK - Nothing wrong found on 8 GPUs"), ("gpu-lost", "2", "GPUDOCTOR CRITICAL - ")],
)
def test_nagios_runs_the_check(tmp_path, lib_dir, scenario, state, said):
    nagios = daemon("nagios4", "nagios4-core")
    objects = CONTRIB / "nagios/gpudoctor.cfg"
    # The command that the file gives NRPE, on a recorded node.
    command = re.search(r"command\[check_gpudoctor\]=/usr/bin/sudo /usr/local/bin/gpudoctor (.*)", objects.read_text())[
        1
    ]
    words = [word.replace("/run/", f"{tmp_path}/") for word in shlex.split(command)]
    node = record(tmp_path / "node", scenario, lib_dir)
    plugin = tmp_path / "check_nrpe"
    plugin.write_text(
        f'#!/bin/sh\n[ "$6" = check_gpudoctor ] && exec {shlex.join([sys.executable, "-m", "gpudoctor", *words, *node])}\n'
    )
    plugin.chmod(0o755)
    (tmp_path / "site.cfg").write_text(SITE)
    (tmp_path / "resource.cfg").write_text(f"$USER1$={tmp_path}\n")
    config = tmp_path / "nagios.cfg"
    config.write_text(NAGIOS.format(folder=tmp_path, objects=objects))
    checked = subprocess.run([nagios, "-v", config], capture_output=True, text=True)
    assert "Total Warnings: 0\nTotal Errors:   0" in checked.stdout
    server = subprocess.Popen([nagios, config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        service = answered(tmp_path / "status.dat")
    finally:
        server.terminate()
        server.wait(20)
    assert service["current_state"] == state
    assert service["plugin_output"].startswith(said)
    assert re.search(r"\bcritical=\d+", service["performance_data"])


def test_root_is_lent_for_one_command_only():
    """Options such as --config and --rules name files whose probes then run as root."""
    nagios = (CONTRIB / "nagios/gpudoctor.cfg").read_text()
    [lent] = re.findall(r"NOPASSWD: (.+)", nagios)
    assert f"/usr/bin/sudo {lent}\n" in nagios
    icinga = (CONTRIB / "icinga2/gpudoctor.conf").read_text()
    [lent] = re.findall(r"NOPASSWD: (.+)", icinga)
    values = dict(re.findall(r'vars\.gpudoctor_(\w+) = "?([^"\n]+)', icinga))
    ordered = sorted(re.findall(r'"--([\w-]+)" = .*order = (\d)', icinga), key=lambda option: option[1])
    called = [f"--{name} {values[name]}" for name, _ in ordered if name in values]
    assert lent == " ".join(["/usr/local/bin/gpudoctor --nagios", *called])


def answered(status: Path) -> dict[str, str]:
    """Return the service's status once its check has run."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        text = status.read_text() if status.exists() else ""
        for block in re.findall(r"servicestatus \{(.*?)\n\t\}", text, re.DOTALL):
            values = dict(line.strip().split("=", 1) for line in block.strip().splitlines())
            if values["has_been_checked"] == "1":
                return values
        time.sleep(0.2)
    raise AssertionError(f"not checked within a minute: {text[-2000:]}")


def test_icinga_takes_the_objects(tmp_path):
    icinga = daemon("icinga2", "icinga2-bin")
    zone = tmp_path / "zones.d" / "site"
    zone.mkdir(parents=True)
    shutil.copy(CONTRIB / "icinga2/gpudoctor.conf", zone)
    (zone / "hosts.conf").write_text('object Host "gpu-1" {\n  check_command = "dummy"\n  vars.gpus = true\n}\n')
    config = tmp_path / "icinga.conf"
    config.write_text(ICINGA.format(zones=zone.parent))
    done = subprocess.run(
        [
            icinga,
            "daemon",
            "-C",
            "-c",
            config,
            "-DDataDir=" + str(tmp_path),
            "-DRunAsUser=root",
            "-DRunAsGroup=root",
            "-DNodeName=master",
            "-DZoneName=site",
        ],
        capture_output=True,
        text=True,
        env=os.environ | {"LC_ALL": "C"},
    )
    assert done.returncode == 0, done.stdout
    assert "Instantiated 1 Service." in done.stdout
    assert "critical/" not in done.stdout
    assert "warning/" not in done.stdout
