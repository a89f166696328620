"""Host formats in the shapes that a single sample doesn't show."""

from __future__ import annotations

import pytest

from gpudoctor.facts.host import KernelTrace
from gpudoctor.parsers.device_nodes import device_nodes
from gpudoctor.parsers.kernel_trace import kernel_trace
from gpudoctor.parsers.resources import df, free, meminfo, ulimit_one
from gpudoctor.parsers.services import systemctl_status
from gpudoctor.parsers.system import hypervisor, os_name


@pytest.mark.parametrize(
    ("line", "os_id", "version"),
    [
        ("Ubuntu 20.04.2 LTS \\n \\l", "ubuntu", "20.04"),
        ("Description:    Ubuntu 22.04.4 LTS", "ubuntu", "22.04"),
        ("Red Hat Enterprise Linux release 8.9 (Ootpa)", "rhel", "8.9"),
        ("Operating System: Debian GNU/Linux 12 (bookworm)", "debian", "12"),
        ("Amazon Linux 2", "amzn", "2"),
    ],
)
def test_names_of_systems(line: str, os_id: str, version: str) -> None:
    fact = next(os_name(line))
    assert (fact.id, fact.version) == (os_id, version)


def test_free_in_kibibytes_and_in_gibibytes_agree() -> None:
    kib = next(free("              total        used        free\nMem:       65536000    30000000    20000000"))
    gib = next(free("              total        used        free\nMem:             62          28          19"))
    assert kib.total == 64000.0
    assert gib.total == 62 * 1024


def test_df_with_types_and_with_inodes() -> None:
    typed = next(
        df("Filesystem     Type  Size  Used Avail Use% Mounted on\n/dev/sda1      ext4  100G   40G   60G  40% /")
    )
    inodes = next(
        df("Filesystem      Inodes  IUsed   IFree IUse% Mounted on\n/dev/sda1      6553600 6553600    0  100% /")
    )
    assert (typed.type, typed.use_percent) == ("ext4", 40.0)
    assert inodes.inode_percent == 100.0


def test_a_listing_of_all_nodes_answers_for_those_that_are_absent() -> None:
    text = "crw-rw-rw- 1 root root 195,   0 Jan 10 09:00 /dev/nvidia0\ncrw-rw-rw- 1 root root 195, 255 Jan 10 09:00 /dev/nvidiactl"
    assert [fact.kind for fact in device_nodes(text)] == ["device_node", "device_node", "probed"]
    assert [fact.kind for fact in device_nodes(text.partition("\n")[0])] == ["device_node"]


def test_a_unit_that_is_not_there() -> None:
    text = "● nvidia-fabricmanager.service - x\n     Loaded: not-found (Reason: Unit not found.)\n     Active: inactive (dead)"
    assert next(systemctl_status(text)).state == "not_found"


def test_hard_and_soft_limits_are_told_apart() -> None:
    assert next(ulimit_one("$ ulimit -Hn\n1048576\n")).name == "nofile_hard"


@pytest.mark.parametrize(
    "line",
    [
        "[ 0.0] DMI: VMware, Inc. VMware Virtual Platform/440BX",
        "Hypervisor vendor:     KVM",
        "00:02.0 VGA: Red Hat, Inc. QEMU",
    ],
)
def test_virtual_machines(line: str) -> None:
    assert next(hypervisor(line)).virtual


def test_modules_that_are_only_listed_don_t_make_an_oops_nvidias() -> None:
    trace = next(
        kernel_trace(
            "[ 1.0] BUG: kernel NULL pointer dereference, address: 0000000000000020\n"
            "[ 1.0] Modules linked in: nvidia_uvm(POE) nvidia(POE)\n[ 1.0] RIP: 0010:zio_wait+0x1b3/0x760 [zfs]"
        )
    )
    assert isinstance(trace, KernelTrace)
    assert not trace.nvidia


def test_the_next_hung_task_is_another_trace() -> None:
    trace = next(
        kernel_trace(
            "[ 1.0] INFO: task jbd2/sda1-8:512 blocked for more than 120 seconds.\n[ 1.0] Call Trace:\n"
            "[ 1.0]  io_schedule+0x46/0x70\n[ 1.0] INFO: task nvidia-smi:99 blocked for more than 120 seconds.\n"
            "[ 1.0]  os_acquire_mutex+0x3f/0x50 [nvidia]"
        )
    )
    assert (trace.task, trace.nvidia) == ("jbd2/sda1-8", False)


def test_memory_points_to_the_line_of_each_value():
    text = "MemTotal:  24684096 kB\nMemFree:  1000 kB\nMemAvailable:  20000000 kB\nDirectMap1G:  25165824 kB\n"
    (fact,) = meminfo(text)
    assert (fact.at, fact.at_fields) == (0, {"total": 0, "free": 1, "available": 2})
