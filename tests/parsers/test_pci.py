"""lspci's forms that a docstring's sample doesn't show."""

from __future__ import annotations

import pytest

from gpudoctor.parsers.base import NotThisFormat
from gpudoctor.parsers.kernel_gpu import passed_on, pcie_error, sxid, xid
from gpudoctor.parsers.pci import listing

DETAIL = """\
0000:3a:00.0 PCI bridge [0604]: Example Corporation Root Port [8086:2030] (rev 07) (prog-if 00 [Normal decode])
	Bus: primary=3a, secondary=3b, subordinate=3b, sec-latency=0
	Capabilities: [148 v1] Access Control Services
		ACSCtl:	SrcValid+ TransBlk- ReqRedir- CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-

0000:3b:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 80GB] [10de:20b5] (rev a1)
	NUMA node: 1
	Region 1: Memory at <unassigned> (64-bit, prefetchable)
		LnkSta:	Speed 2.5GT/s (downgraded), Width x16 (ok)
	Kernel modules: nvidia_drm, nvidia
0000:3c:00.0 Bridge [0680]: NVIDIA Corporation GA100 [A100 NVSwitch] [10de:1af1] (rev a1)
root@host:~#
"""


def test_details_of_bridge_gpu_and_switch() -> None:
    bridge, gpu, switch = (fact for fact in listing(DETAIL) if fact.kind == "pci_device")
    assert (bridge.value("type"), bridge.value("acs_redirect"), bridge.value("secondary_bus")) == (
        "bridge",
        True,
        "0000:3b",
    )
    assert (gpu.value("bar_unassigned"), gpu.value("link_speed_downgraded"), gpu.value("link_width")) == (
        True,
        True,
        16,
    )
    assert (gpu.value("device_id"), gpu.value("numa_node"), gpu.value("driver")) == (0x20B5, 1, None)
    assert switch.value("type") == "nvswitch"


@pytest.mark.parametrize("cut", range(0, len(DETAIL), 41))
def test_cut_text_never_breaks_it(cut: int) -> None:
    try:
        list(listing(DETAIL[:cut]))
    except NotThisFormat:
        return


def test_numbers_only() -> None:
    gpu = next(fact for fact in listing("01:00.0 0302: 10de:2330 (rev a1)") if fact.kind == "pci_device")
    assert (gpu.value("type"), gpu.value("device_id")) == ("gpu", 0x2330)


def test_xid_of_a_mig_instance_and_repetitions() -> None:
    fact = next(xid("message repeated 3 times: [ NVRM: Xid (PCI:0000:01:00 GPU-I:05): 43, pid=1, name=a, Ch 00000008]"))
    assert (fact.value("code"), fact.gpu, fact.count) == (43, "0000:01:00.0", 3)


def test_a_switch_error_is_no_xid() -> None:
    line = "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 3 egress non-posted PRIV error"
    with pytest.raises(NotThisFormat):
        next(xid(line))
    assert next(sxid(line)).value("link") == 3


def test_monitors_that_pass_an_xid_on() -> None:
    line = 'DCGM_FI_DEV_XID_ERRORS{gpu="3",UUID="GPU-6ec45129-20da-4a34-b813-7d3a51060903",modelName="A2"} 79'
    assert next(passed_on(line)).value("code") == 79
    with pytest.raises(NotThisFormat):
        next(passed_on(line.replace("} 79", "} 0")))


def test_bus_errors_of_other_wordings() -> None:
    assert (
        next(pcie_error("pcieport 0000:3a:00.0: AER: Multiple Corrected error received: id=3a00:00.0")).value(
            "severity"
        )
        == "corrected"
    )
    assert (
        next(pcie_error("pcieport 0000:3a:00.0: DPC: containment event, status:0x1f01 source:0x3b00")).value("source")
        == "dpc"
    )
