"""explain: everything that a person may paste, near misses, and the commands around it."""

import argparse
import json

import pytest

from gpudoctor.cli import compat as compat_command
from gpudoctor.cli import explain as explain_command
from gpudoctor.knowledge import cuda_errors, drivers, gpus, links, nccl, systems
from gpudoctor.knowledge.explain import Explanation, explain, explain_lines, suggest


def cuda_names():
    return [name for item in cuda_errors.every() for name in item.names]


@pytest.mark.parametrize("name", cuda_names())
def test_every_cuda_error_name_has_a_useful_explanation(name):
    found = explain(name)
    number = dict(found.facts)["number"]
    assert name in found.title
    assert found.subject == f"cuda {number}"
    assert len(found.meaning) > 5
    assert number == "0" or (found.causes and found.fix)
    assert found.references


def test_both_interfaces_and_the_number_lead_to_the_same_error():
    assert explain("CUDA_ERROR_SYSTEM_NOT_READY") == explain("cudaErrorSystemNotReady") == explain("cuda 802")
    assert "Fabric Manager" in explain("cuda 802").meaning


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("cudaErrorNoDevice", "cuda 100"),
        ("CUDA error 35", "cuda 35"),
        ("cuda error: 700", "cuda 700"),
        ("RuntimeError: CUDA error: device-side assert triggered", "cuda 710"),
        ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "cuda 209"),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "cuda 2"),
        ("nvml 18", "nvml 18"),
        ("NVML_ERROR_GPU_IS_LOST", "nvml 15"),
        ("nvidia-smi 15", "nvidia-smi 15"),
        ("nvidia-smi exit code 9", "nvidia-smi 9"),
        ("nccl 5", "nccl 5"),
        ("ncclSystemError", "nccl 2"),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", "cudnn 1001"),
        ("CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)", "cublas 3"),
        ("IBV_WC_RETRY_EXC_ERR", "ib 12"),
        ("NET/IB : Got completion from peer 10.0.0.1<3> with status=12 opcode=0 len=0 vendor err 129", "ib 12"),
        ("NCCL WARN Cuda failure 'out of memory'", "cuda 2"),
        ("NCCL_P2P_DISABLE", "NCCL_P2P_DISABLE"),
        ("NCCL INFO NCCL_IB_DISABLE set by environment to 1.", "NCCL_IB_DISABLE"),
        ("GSP_RPC_TIMEOUT", "xid 119"),
        ("NV_ERR_GPU_IS_LOST", "nv-status 0xf"),
        ("sxid 20034", "sxid 20034"),
        ("RTX 4090", "NVIDIA GeForce RTX 4090"),
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3"),
        ("10de:2330", "NVIDIA H100 80GB HBM3"),
        ("0x20b5", "NVIDIA A100 80GB PCIe"),
        ("2080", "NVIDIA GeForce RTX 2080"),
        ("2330", "NVIDIA H100 80GB HBM3"),
        ("01:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100] [10de:2330] (rev a1)", "NVIDIA H100 80GB HBM3"),
        ("GPU 0: Tesla T4 (UUID: GPU-5c3a)", "Tesla T4"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA A100-SXM4-40GB"),
        ("sm_90", "sm_90"),
        ("driver 550.54.15", "driver 550.54.15"),
        ("cuda 12.4", "cuda 12.4"),
        ("torch 2.4.1", "torch 2.4.1"),
        ("ubuntu 22.04", "ubuntu 22.04"),
    ],
)
def test_what_people_type(text, subject):
    assert explain(text).subject == subject


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch", "driver.library-mismatch"),
        ("NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x26:0x56:1474)", "driver.init-failed"),
        ("NVRM: API mismatch: the client 'nvidia-smi' (pid 9) has the version 535.1", "driver.library-mismatch"),
        ("NVRM: GPU at PCI:0000:3b:00: GPU has fallen off the bus.", "hardware.fell-off-bus"),
        ("NCCL WARN Error: failed to extend /dev/shm/nccl-abc to 33030532 bytes", "memory.shm-too-small"),
        ("Out of memory: Killed process 4242 (python)", "memory.host-oom-killed"),
    ],
)
def test_log_messages_lead_to_findings(text, finding):
    found = explain(text)
    assert finding in found.related
    assert found.fix


def test_status_of_a_failed_start_is_spelled_out():
    facts = dict(explain("NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x26:0x65:1474)").facts)
    assert facts["status"] == "65 NV_ERR_TIMEOUT (timed out)"


def test_findings_come_from_the_caller():
    own = Explanation("driver.library-mismatch", "finding", "title", "meaning")
    assert explain("driver.library-mismatch", {"driver.library-mismatch": own}.get) is own
    assert explain("driver.library-mismatch") is None


def test_a_harmful_variable_that_is_set_is_a_warning():
    assert explain("NCCL_P2P_DISABLE").severity == "info"
    found = explain("NCCL_P2P_DISABLE=1")
    assert found.severity == "warning"
    assert dict(found.facts)["value"] == "1"
    assert nccl.variable("NCCL_IB_GDR_LEVEL").name == "NCCL_NET_GDR_LEVEL"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cudaErrorNoDevce", "cudaErrorNoDevice"),
        ("NCCL_P2P_DISABLED", "NCCL_P2P_DISABLE"),
        ("RTX 4091", "NVIDIA GeForce RTX 4090"),
        ("driver.libary-mismatch", "driver.library-mismatch"),
        ("nvml 77", "nvml 30"),
        ("79", "xid 79"),
        ("NVML_ERROR_GPU_LOST", "NVML_ERROR_GPU_IS_LOST"),
    ],
)
def test_near_misses_are_suggested(text, expected):
    found = suggest(text, ["driver.library-mismatch", "driver.not-installed"])
    assert expected in found


def test_nonsense_is_not_explained():
    for text in ("", "   ", "hello world", "a" * 5000, "\x1b[31m", "0", "🙂", "xid -1", "sxid: -5", "cuda error -2"):
        assert explain(text) is None


@pytest.mark.parametrize("text", ["cuda" + " " * 50000 + "x", "a" + " -" * 30000, "x" * 200000, "NCCL_" * 20000])
def test_long_nonsense_is_refused_at_once(text):
    import time

    start = time.perf_counter()
    assert explain(text) is None
    assert suggest(text) == ()
    assert time.perf_counter() - start < 1


def test_lines_are_explained_one_by_one():
    text = "NVRM: Xid (PCI:0000:3b:00): 48, DBE\nnoise\nNVRM: Xid (PCI:0000:3b:00): 63, Row Remapper: New row"
    assert [found.subject if found else None for _, found in explain_lines(text)] == ["xid 48", None, "xid 63"]


def test_gpu_figures_that_a_person_would_check():
    h100 = gpus.by_pci_id(0x2330)
    assert (h100.memory_gib, h100.power_w, h100.pcie_gen, h100.nvlink_links, h100.mig_max) == (80, 700, 5, 18, 7)
    assert gpus.by_name("NVIDIA A100-SXM4-80GB").ecc == "always"
    assert gpus.by_name("Tesla V100-SXM2-16GB").last_driver_branch == 580
    assert gpus.by_name("NVIDIA GeForce RTX 4090").p2p == "none"
    assert gpus.by_pci_id(0x2BB2).listed is False
    assert gpus.by_pci_id(0x0001) is None
    assert {item.name for item in gpus.all_by_pci_id(0x1E30)} == {"Quadro RTX 6000", "Quadro RTX 8000"}


def test_link_speeds_that_a_person_would_check():
    assert links.pcie_gb_s(3, 16) == 15.75
    assert links.pcie_gb_s(4, 8) == links.pcie_gb_s(3, 16)
    assert links.nvlink_gb_s(4) == 450
    assert links.find("infiniband", "HDR").gb_s == 25
    assert links.pcie_gb_s(9, 16) is None


def test_drivers_and_systems_that_a_person_would_check():
    assert drivers.max_cuda_for_driver("535.104.05") == "12.2"
    assert drivers.max_cuda_for_driver("700.1") is None
    assert drivers.branch("470.239.06").kind == "long-term"
    assert systems.package(systems.parse("ubuntu-22.04"), "fabric_manager", 550) == "nvidia-fabricmanager-550"
    assert systems.parse("rhel 9.4").package_manager == "dnf"


def parsed(command, *words):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)


def test_explain_command_prints_text(capsys):
    assert explain_command.run(parsed(explain_command, "xid", "79")) == 0
    out = capsys.readouterr().out
    assert out.startswith("GPU fell off the bus")
    assert "sudo reboot" in out
    assert "https://docs.nvidia.com" in out


def test_explain_command_prints_json(capsys):
    assert explain_command.run(parsed(explain_command, "--json", "cuda", "802")) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["subject"] == "cuda 802"
    assert {"title", "why", "commands", "risk", "needs"} == set(data["fixes"][0])


def test_explain_command_names_near_misses_on_standard_error(capsys):
    assert explain_command.run(parsed(explain_command, "cudaErrorNoDevce")) == 64
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "cudaErrorNoDevice" in captured.err
    assert explain_command.run(parsed(explain_command)) == 64


def test_explain_command_keeps_control_characters_from_the_terminal(capsys):
    line = "NVRM: Xid (PCI:0000:3b:00): 43, pid=1, name=a\x1b[31mb, Ch 00000008 \x07"
    assert explain_command.run(parsed(explain_command, line)) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out


def test_explain_command_reads_standard_input(capsys, monkeypatch):
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("NVRM: Xid (PCI:0000:3b:00): 79, x\nnvml 18\n"))
    assert explain_command.run(parsed(explain_command, "-", "--json")) == 0
    assert [item["subject"] for item in json.loads(capsys.readouterr().out)] == ["xid 79", "nvml 18"]


def test_explain_command_knows_the_findings_of_the_rules(capsys):
    assert explain_command.run(parsed(explain_command, "driver.library-mismatch")) == 0
    out = capsys.readouterr().out
    assert out.startswith("driver.library-mismatch: Kernel module and driver libraries have different versions")
    assert "What to do, least disruptive first" in out
    assert "{" not in out.partition("What to do")[0]
    assert explain_command.run(parsed(explain_command, "driver.library-mismach")) == 64
    assert "did you mean driver.library-mismatch" in capsys.readouterr().err


def test_compat_command(capsys):
    words = ("--gpu", "RTX 5090", "--driver", "550.54.15", "--framework", "torch==2.7.0+cu128", "--python", "3.12")
    assert compat_command.run(parsed(compat_command, *words)) == 0
    out = capsys.readouterr().out
    assert out.startswith("doesn't: ")
    assert "This would work" in out
    assert compat_command.run(parsed(compat_command, *words, "--json")) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["answer"] == "doesn't"
    assert data["setup"]["frameworks"] == [{"name": "torch", "version": "2.7.0", "build": "cu128"}]
    assert data["nearest"][0]["setup"]["driver"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "give at least one of"),
        (("--driver", "abc"), "--driver takes a version"),
        (("--gpu", "RTX 4091"), "RTX 4090"),
        (("--framework", "torhc==2.4"), "torch"),
        (("--framework", "torch"), "name a version"),
        (("--os", "ubuntu-99"), "ubuntu 22.04"),
        (("--build", "cu121"), "--build goes with"),
    ],
)
def test_compat_command_refuses_with_one_clear_line(words, text, capsys):
    assert compat_command.run(parsed(compat_command, *words)) == 64
    captured = capsys.readouterr()
    assert text in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_compat_command_takes_the_live_node_when_nothing_is_given(capsys):
    from gpudoctor.knowledge.compat import Setup

    live = Setup(gpu="Tesla T4", driver="550.54.15", cuda="12.4")
    assert compat_command.run(parsed(compat_command), live=lambda: live) == 0
    assert capsys.readouterr().out.startswith("works: GPU Tesla T4")
    assert compat_command.run(parsed(compat_command), live=lambda: None) == 64


def test_addresses_stay_whole_in_the_text():
    found = explain("xid 79")
    addresses = [word.strip("()") for line in found.references for word in line.split() if "://" in word]
    assert addresses
    words = [word.strip("()") for word in explain_command.as_text(found).split()]
    assert not [address for address in addresses if address not in words]
