"""Package lists and module tools in the shapes that a single sample doesn't show."""

from __future__ import annotations

import pytest

from gpudoctor.facts.base import Fact
from gpudoctor.facts.driver import ModuleLoadError
from gpudoctor.parsers.base import NotThisFormat
from gpudoctor.parsers.packages import dpkg_list, library_file, module_load_error, package, rpm_list


@pytest.mark.parametrize(
    ("line", "name", "reason"),
    [
        ("modprobe: FATAL: Module nvidia-uvm not found in directory /lib/modules/5.15.0-91-generic", "nvidia_uvm", "not_found"),
        ("modprobe: ERROR: could not insert 'nvidia': No such device", "nvidia", "no_such_device"),
        ("modprobe: ERROR: could not insert 'nvidia_drm': Key was rejected by service", "nvidia_drm", "key_rejected"),
        ("insmod: ERROR: could not insert module /tmp/x/nvidia.ko: Required key not available", "nvidia", "key_rejected"),
        ("systemd-modules-load[1]: Failed to insert module 'nvidia': Invalid module format", "nvidia", "bad_format"),
        ("modprobe: ERROR: could not insert 'nvidia': Unknown symbol in module, or unknown parameter (see dmesg)", "nvidia", "unknown_symbol"),
    ],
)  # fmt: skip
def test_refusals_of_a_module(line: str, name: str, reason: str) -> None:
    fact = next(module_load_error(line))
    assert isinstance(fact, ModuleLoadError)
    assert (fact.name, fact.reason) == (name, reason)


def test_another_module_is_not_the_drivers() -> None:
    with pytest.raises(NotThisFormat):
        next(module_load_error("modprobe: FATAL: Module gdrdrv not found in directory /lib/modules/5.15.0-91-generic"))


@pytest.mark.parametrize(
    ("name", "version", "branch"),
    [
        ("nvidia-driver-535", "535.183.01-0ubuntu1", 535),
        ("cuda-drivers", "384.81-1", 384),
        ("nvidia-driver", "3:550.54.15-1.el8", 550),
        ("nvidia-container-toolkit", "1.15.0-1", None),
        ("cuda-toolkit-12-4", "12.4.1-1", None),
    ],
)
def test_the_branch_comes_from_the_name_or_the_version(name: str, version: str, branch: int | None) -> None:
    assert package(name, version, "apt").branch == branch


def test_leftovers_of_configuration_are_not_installed() -> None:
    facts: list[Fact] = list(dpkg_list("rc  nvidia-driver-470  470.199.02-0ubuntu1  amd64  NVIDIA driver"))
    assert facts[0].value("installed") is False


def test_rpm_names_keep_their_dashes() -> None:
    fact = next(rpm_list("kmod-nvidia-open-dkms-560.35.03-1.el9.x86_64"))
    assert (fact.name, fact.version) == ("kmod-nvidia-open-dkms", "560.35.03-1.el9")


@pytest.mark.parametrize(
    "line",
    [
        "/var/lib/docker/overlay2/0a1b/merged/usr/lib/x86_64-linux-gnu/libcuda.so.470.82.01",
        "/usr/local/cuda/compat/libcuda.so.535.54.03",
        "libcuda.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libcuda.so.1",
    ],
)
def test_libraries_of_containers_and_links_are_not_the_hosts_driver(line: str) -> None:
    with pytest.raises(NotThisFormat):
        next(library_file(line))
