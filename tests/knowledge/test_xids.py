"""The Xid catalogue, NVLink decoding and reading whole kernel lines."""

import pytest

from gpudoctor.knowledge import xids
from gpudoctor.knowledge.explain import explain

HEAD = "[ 8123.44] NVRM: Xid (PCI:0018:01:00): "


@pytest.mark.parametrize("number", range(1, 177))
def test_every_xid_has_a_useful_explanation(number):
    found = explain(f"xid {number}")
    assert found.subject == f"xid {number}"
    assert len(found.meaning) > 25
    assert found.severity in ("info", "warning", "critical")
    assert found.causes
    assert found.check
    assert found.fix
    assert dict(found.facts)["class"] in (
        "application", "driver", "hardware", "memory", "fabric", "thermal-power", "firmware",
    )  # fmt: skip


def test_titles_tell_the_numbers_apart():
    titles = [xids.xid(number).title for number in range(13, 177)]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("text", ["xid 79", "Xid:79", "XID79", "xid-79", "Xid #79", "xid error 79", "Xid = 79"])
def test_spellings_of_a_number(text):
    assert explain(text).subject == "xid 79"


@pytest.mark.parametrize(
    ("number", "category", "severity", "bucket"),
    [
        (13, "application", "warning", "RESTART_APP"),
        (31, "application", "warning", "RESTART_APP"),
        (43, "application", "warning", "IGNORE"),
        (48, "memory", "critical", "WORKFLOW_XID_48"),
        (62, "firmware", "critical", "RESET_GPU"),
        (63, "memory", "info", "IGNORE"),
        (64, "memory", "critical", "RESET_GPU"),
        (74, "fabric", "critical", "WORKFLOW_NVLINK_ERR"),
        (78, "driver", "critical", "UPDATE_SWFW"),
        (79, "hardware", "critical", "RESTART_BM"),
        (92, "memory", "warning", "IGNORE"),
        (94, "memory", "critical", "RESTART_APP"),
        (95, "memory", "critical", "RESET_GPU"),
        (119, "firmware", "critical", "RESET_GPU"),
        (136, "fabric", "critical", "RESET_GPU"),
        (151, "driver", "critical", "RESTART_VM"),
    ],
)
def test_class_severity_and_resolution(number, category, severity, bucket):
    found = xids.xid(number)
    assert (found.category, found.severity, found.immediate.name) == (category, severity, bucket)


@pytest.mark.parametrize(
    ("number", "finding"),
    [
        (13, "cuda.illegal-access"),
        (54, "hardware.power-cable"),
        (63, "hardware.row-remap-pending"),
        (64, "hardware.row-remap-failed"),
        (74, "nvlink.errors"),
        (79, "hardware.fell-off-bus"),
        (92, "hardware.ecc-correctable-rate"),
        (94, "hardware.ecc-contained"),
        (109, "hardware.gpu-hang"),
        (120, "hardware.gsp-timeout"),
        (140, "hardware.ecc-uncorrectable"),
        (149, "nvlink.link-inactive"),
        (154, "hardware.reset-required"),
    ],
)
def test_xid_leads_to_its_finding(number, finding):
    assert finding in xids.xid(number).findings


def test_the_companion_of_other_errors_is_not_called_a_cause():
    found = explain("xid 45")
    assert "not a cause" in found.meaning
    assert found.fix[0].title == "Follow the Xid that came first"


def test_memory_errors_name_their_companions():
    assert {63, 64, 94, 95, 171, 172} <= set(xids.xid(48).related)


def test_same_program_on_many_gpus_against_many_programs_on_one():
    for number in (13, 31):
        text = " ".join(explain(f"xid {number}").check)
        assert "several GPUs" in text or "many GPUs" in text


@pytest.mark.parametrize("number", [0, 177, 250, 999])
def test_an_unknown_number_is_shown_with_neighbours(number):
    found = explain(f"xid {number}")
    assert "not in the catalogue" in found.title
    assert found.related
    assert not xids.xid(number).known
    assert str(xids.neighbours(number)[0]) in found.meaning


def test_renumbered_xids_tell_both_meanings():
    assert "ROBUST_CHANNEL_FAST_PATH_ERROR" in dict(explain("xid 139").facts)["other meanings of the number"]
    assert "key rotation" in explain("xid 144").meaning


@pytest.mark.parametrize(
    ("detail", "unit", "locality", "severity", "do", "investigate"),
    [
        (
            "144, SAW_MVB Fatal XC0 i0 Link 04 (0x00000021 0x00000010 0x0 0x0 0x0 0x0)",
            "SAW_MVB", "local", "fatal", "RESET_GPU", "CONTACT_SUPPORT",
        ),
        (
            "145, RLW_SRC_TRACK Nonfatal XC0 i0 Link 01 (0x000000e2 0x00000004 0x0 0x0 0x0 0x0)",
            "RLW_SRC_TRACK", "local", "non-fatal", "XID_154_EVAL", "IGNORE",
        ),
        (
            "145, pid=77, name=train, RLW_REMAP Nonfatal XC1 i0 Link 17 (0x00000004 0x00000001 0x0 0x0)",
            "RLW_REMAP", "local", "non-fatal", "XID_154_EVAL", "CONTACT_SUPPORT",
        ),
        (
            "146, TLW_RX Fatal XC0 i0 Link 02 (0x0000000a 0x00000004 0x0 0x0)",
            "TLW_RX", "local", "fatal", "RESET_GPU", "CONTACT_SUPPORT",
        ),
        (
            "147, TREX Nonfatal XC0 i0 Link 00 (0x0000000e 0x00000001 0x0 0x0 0x0 0x0)",
            "TREX", "local", "non-fatal", "IGNORE", "CONTACT_SUPPORT",
        ),
        (
            "148, NVLPW_CTRL Nonfatal XC0 i0 Link -1 (0x0000000f 0x80000000 0x0 0x0)",
            "NVLPW_CTRL", "local", "non-fatal", "IGNORE", "CONTACT_SUPPORT",
        ),
        (
            "149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x00000000 0x0 0x0 0x0 0x0)",
            "NETIR_LINK_EVT", "remote", "fatal", "RESET_GPU", "INVESTIGATE_PEER_DEVICE",
        ),
        (
            "149, NETIR_LINK_DOWN Fatal XC0 i0 Link 09 (0x00f00011 0x00000000 0x0 0x0)",
            "NETIR_LINK_DOWN", "local", "fatal", "RESET_GPU", "INVESTIGATE_SW_USER",
        ),
        (
            "149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 05 (0x00000226 0x00000002 0x0 0x0)",
            "NETIR_BER_EVENT", "local", "non-fatal", "IGNORE", "INVESTIGATE_LINK_SI_AND_CABLES",
        ),
        (
            "150, MSE_WATCHDOG Fatal XC0 i0 Link -1 (0x00000000 0x00000000 0x0 0x0)",
            "MSE_WATCHDOG", "local", "fatal", "RESET_GPU", "CONTACT_SUPPORT",
        ),
    ],
)  # fmt: skip
def test_pasted_nvlink5_lines_decode(detail, unit, locality, severity, do, investigate):
    found = explain(HEAD + detail)
    facts = dict(found.facts)
    assert (facts["unit"], facts["locality"], facts["severity"]) == (unit, locality, severity)
    assert facts["do now"].startswith(f"{do}: ")
    assert facts["investigate"].startswith(f"{investigate}: ")
    assert "decoding" not in facts
    assert found.severity == ("critical" if severity == "fatal" else "warning")


def test_a_link_taken_down_by_the_far_end_says_so():
    line = HEAD + "149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x00000000 0x0 0x0 0x0 0x0)"
    found = explain(line)
    assert dict(found.facts)["reason"] == "the far end was reset"
    assert found.fix[0].title == "Look at the device at the far end of the link"


def test_one_bit_of_the_first_word_promotes_an_error():
    for layout, clear, promoted in (("old", 194, 706), ("new", 6, 6 | 0x80)):
        calm = xids.decode_nvlink5(145, clear, 2, "RLW_RXPIPE")
        grave = xids.decode_nvlink5(145, promoted, 2, "RLW_RXPIPE")
        assert (calm.immediate.name, grave.immediate.name) == ("IGNORE", "RESET_GPU"), layout
        assert grave.severity == "fatal"


def test_several_status_bits_take_the_gravest():
    event = xids.decode_nvlink5(144, 33, 0x11, "SAW_MVB")
    assert event.immediate.name == "RESET_GPU"
    assert not event.exact


def test_an_undocumented_reason_is_not_guessed():
    event = xids.decode_nvlink5(149, 6 << 20 | 454, 0, "NETIR_LINK_EVT")
    assert event.reason == "clock lock lost"
    assert event.immediate is None
    assert not event.exact


def test_an_undocumented_unit_is_shown_as_it_is():
    found = explain(HEAD + "145, RLW_NEW_PART Fatal XC0 i0 Link 03 (0x0000007f 0x00000001 0x0 0x0)")
    facts = dict(found.facts)
    assert facts["unit"] == "RLW_NEW_PART"
    assert facts["locality"] == "unknown"
    assert facts["severity"] == "fatal"


def test_an_injected_event_is_marked():
    found = explain(HEAD + "144, SAW_MVB Fatal XC0 i1 Link 04 (0x00000021 0x00000010 0x0 0x0)")
    assert dict(found.facts)["injected"] == "yes, by a test tool"


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (
            "NVRM: Xid (PCI:0000:86:00): 31, pid=10917, name=python, Ch 00000010, intr 00000000. MMU Fault: ENGINE "
            "GRAPHICS GPCCLIENT_T1_2 faulted @ 0x7f6e_49e5d000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
            {"process": "10917 (python)", "engine": "GRAPHICS", "address": "0x7f6e_49e5d000", "access": "VIRT_READ"},
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 94, pid=12, name=vllm, Contained: SM (0x1). RST: No, D-RST: No",
            {"MIG instance": "5", "containment": "Contained", "unit": "SM", "reset needed": "No"},
        ),
        (
            "NVRM: Xid (0000:3b:00): 13, Graphics SM Warp Exception on (GPC 2, TPC 1, SM 0): Out Of Range Address",
            {"GPU": "0000:3b:00", "GPC": "2", "TPC": "1", "error": "Out Of Range Address"},
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00): 119, pid=1, name=x, Timeout after 6s of waiting for RPC response from GPU4 "
            "GSP! Expected function 103 (GSP_RM_ALLOC) (0x2081 0x4).",
            {"seconds": "6", "function name": "GSP_RM_ALLOC"},
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00): 140, An uncorrectable ECC error detected (possible firmware handling failure) "
            "DRAM:0, LTC:1, MMU:0, PCIE:0",
            {"DRAM": "0", "LTC": "1"},
        ),
    ],
)
def test_details_of_a_line_are_labelled(text, facts):
    assert facts.items() <= dict(explain(text).facts).items()


def test_unknown_processes_are_not_invented():
    parsed = xids.parse_line("NVRM: Xid (PCI:0000:3b:00): 13, pid='<unknown>', name=<unknown>, Graphics Exception")
    assert (parsed.pid, parsed.process, parsed.detail) == (None, None, "Graphics Exception")


@pytest.mark.parametrize(
    ("change", "severity", "first"),
    [
        ("from 0x0 (None) to 0x1 (GPU Reset Required)", "critical", "Reset the GPU"),
        ("from 0x0 (None) to 0x2 (Node Reboot Required)", "critical", "Reboot the node"),
        (
            "from 0x0 (None) to 0x3 (Drain P2P)",
            "warning",
            "Stop every job that uses peer-to-peer or NVLink on this node",
        ),
        ("from 0x0 (None) to 0x4 (Drain and Reset)", "warning", "Drain the GPU, then reset it"),
        ("from 0x4 (Drain and Reset) to 0x0 (None)", "info", "Leave it"),
    ],
)
def test_the_drivers_own_verdict_decides_the_fix(change, severity, first):
    found = explain(f"NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed {change}")
    assert found.severity == severity
    assert found.fix[0].title == first
    assert "does not name the cause" in found.meaning


def test_words_of_nvlink4_errors_are_explained():
    found = explain(
        "NVRM: Xid (PCI:0000:3b:00): 74, NVLink: fatal error detected on link 6(0x10, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)"
    )
    facts = dict(found.facts)
    assert facts["link"] == "6"
    assert "word 1 bit 4" in facts["bit"]


def test_an_sxid_line_is_not_read_as_an_xid():
    found = explain("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up")
    assert found.subject == "sxid 20034"
    assert dict(found.facts)["link"] == "30"
    assert found.severity == "critical"
