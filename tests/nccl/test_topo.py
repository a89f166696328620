"""The graph of a machine from each of its sources, and how it is drawn."""

import json
from pathlib import Path

import pytest
from defusedxml.ElementTree import fromstring

from gpudoctor.cli.main import main
from gpudoctor.nccl.graph import Graph, Node
from gpudoctor.nccl.svg import topology_svg

DATA = Path(__file__).parent / "data"

MATRIX = """\
        GPU0    GPU1    GPU2    GPU3    mlx5_0  mlx5_1  CPU Affinity    NUMA Affinity
GPU0     X      NV12    NV12    SYS     PXB     SYS     0-31            0
GPU1    NV12     X      NV12    SYS     PXB     SYS     0-31            0
GPU2    NV12    NV12     X      SYS     SYS     PXB     32-63           1
GPU3    SYS     SYS     SYS      X      SYS     PXB     32-63           1
mlx5_0  PXB     PXB     SYS     SYS      X      SYS
mlx5_1  SYS     SYS     PXB     PXB     SYS      X
"""

LSPCI = """\
16:01.0 PCI bridge [0604]: Broadcom / LSI PEX890xx PCIe Gen 5 Switch [1000:c030] (rev b0) (prog-if 00 [Normal decode])
	Bus: primary=16, secondary=17, subordinate=17, sec-latency=0
	Capabilities: [100 v1] Access Control Services
		ACSCap:	SrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
		ACSCtl:	SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-

17:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 80GB] [10de:20b5] (rev a1)
	NUMA node: 0
		LnkCap:	Port #0, Speed 16GT/s, Width x16, ASPM not supported
		LnkSta:	Speed 16GT/s, Width x8 (downgraded)
"""


def drawn(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = main(["topo", *words])
    return status, capsys.readouterr().out


def test_nccl_dump_gives_paths_tree_and_what_is_below_par(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = drawn(capsys, str(DATA / "two-gpus.xml"))
    assert status == 1
    assert "GPU0    -     NV17  PIX" in text
    assert "   ├─ GPU0  0000:1b:00.0  18 NVLinks  nearest adapter mlx5_0" in text
    assert "GPU1: 17 NVLinks, other GPUs of this machine have 18" in text
    assert "GPU1: a PCIe link of at most 8 lanes, other GPUs have 16" in text
    assert "GPUDirect RDMA: possible" in text


def test_matrix_marks_the_gpu_outside_the_nvswitch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "topo.txt").write_text(MATRIX)
    status, text = drawn(capsys, str(tmp_path))
    assert status == 1
    assert "GPU0    -     NV12  NV12  SYS!  PXB     SYS" in text
    assert "GPU0 - GPU3: SYS where the other pairs have NV12" in text
    assert "nearest adapter mlx5_1" in text


def test_registers_show_acs_and_a_narrow_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lspci.txt").write_text(LSPCI)
    status, text = drawn(capsys, "--json", str(tmp_path / "lspci.txt"))
    data = json.loads(text)
    assert status == 1
    assert data["below_par"] == [
        "GPU0: PCIe x8 where x16 is possible",
        "0000:16:01.0: ACS sends peer-to-peer traffic up to the CPU",
    ]
    assert data["pci_parents"] == {"0000:17:00.0": "0000:16:01.0"}
    assert "PCIe 4.0 x8 (of 4.0 x16)  ! PCIe x8 where x16 is possible" in drawn(capsys, str(tmp_path))[1]


def test_broken_xml_is_no_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = (DATA / "two-gpus.xml").read_text()
    (tmp_path / "cut.xml").write_text(whole[: len(whole) // 2])
    status, text = drawn(capsys, str(tmp_path / "cut.xml"))
    assert (status, text) == (3, "No GPU found.\n")


def test_a_missing_file_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", "/nonexistent/topo.txt"]) == 66
    assert capsys.readouterr().err.count("\n") == 1


def words_of(svg: str) -> str:
    return " ".join(fromstring(svg).itertext())


def test_svg_shows_switches_levels_and_the_gpu_that_is_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "topo.txt").write_text(MATRIX)
    status, svg = drawn(capsys, "--svg", str(tmp_path))
    assert status == 1
    said = words_of(svg)
    assert said.startswith("Topology: 4 GPUs, 2 network adapters GPUs: 3 pairs by NV12, 3 pairs by SYS.")
    assert "! GPU0 - GPU3: SYS where the other pairs have NV12" in said
    assert said.count("12 links") == 3
    assert "PCIe bridges" in said and "between the CPU sockets" in said


def test_svg_draws_nvlinks_without_switches_as_arcs(capsys: pytest.CaptureFixture[str]) -> None:
    _, svg = drawn(capsys, "--svg", str(DATA / "two-gpus.xml"))
    assert svg.count("<path") == 1
    assert "PCIe switch 0000:15:00.0" in words_of(svg)


def test_svg_of_hostile_names_stays_well_formed() -> None:
    name = 'A100 <script>alert("x")</script>\x1b[31m\x00'
    svg = topology_svg(Graph(gpus=[Node(name="GPU0", kind="gpu", label=name, marks=["<b>"])]))
    assert "<script" not in svg and "<b>" not in svg
    assert fromstring(svg).get("role") == "img"
    assert "style=" not in svg  # pages may forbid inline styles
    assert topology_svg(Graph()) == ""


def graph_log(host: str, first_bus: int, ranks: int = 2) -> str:
    """The lines that each rank prints with NCCL_DEBUG_SUBSYS=GRAPH, as in public logs of H200 machines; ranks mixed."""
    tree = [
        "=== System : maxBw 48.0 totalBw 370.8 ===",
        "CPU/0-0 (1/2/-1)",
        f"+ PCI[48.0] - PCI/0-{first_bus:x}000 (104c823200000000)",
        f"              + PCI[48.0] - NIC/0-{first_bus + 2:x}000",
        "                            + NET[50.0] - NET/0-0 (0/d4f9fc0003ae6d94/1/50.000000)",
        f"              + PCI[48.0] - GPU/0-{first_bus + 3:x}000 (0)",
        "                            + NVL[370.8] - NVS/0-0",
        "+ SYS[16.0] - CPU/0-1",
        "CPU/0-1 (1/2/-1)",
        f"+ PCI[48.0] - PCI/0-{first_bus + 8:x}000 (104c823200000000)",
        f"              + PCI[48.0] - GPU/0-{first_bus + 11:x}000 (1)",
        "                            + NVL[350.2] - NVS/0-0",
        "==========================================",
        f"GPU/0-{first_bus + 3:x}000 :GPU/0-{first_bus + 3:x}000 (0/5000.0/LOC) GPU/0-{first_bus + 11:x}000 (2/350.2/NVL)",
    ]
    return "".join(f"{host}:70{rank}:71{rank} [{rank}] NCCL INFO {line}\n" for line in tree for rank in range(ranks))


def test_graph_lines_of_many_ranks_are_one_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "job.log").write_text(graph_log("gpu-a", 0x65) + graph_log("gpu-b", 0x15))
    status, text = drawn(capsys, str(tmp_path / "job.log"))
    assert status == 1
    assert "GPU0   -     NV17  PIX" in text
    assert "NUMA node 1\n└─ 0000:6d:00.0" in text
    assert "GPU0  0000:68:00.0  18 NVLinks  nearest adapter NET/0" in text
    assert "NET/0  0000:67:00.0  400 Gb/s" in text
    assert "GPU1: 17 NVLinks, other GPUs of this machine have 18" in text
    assert "0000:15" not in text


def test_far_ends_of_nvlinks_join_gpus_and_switches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = "GPU {0}: NVIDIA A100-SXM4-80GB (UUID: GPU-{0}ec45129-20da-4a34-b813-7d3a51060903)\n"
    buses = ("07", "0F", "47")
    (tmp_path / "list.txt").write_text(
        "index, name, pci.bus_id, uuid\n"
        + "".join(
            f"{at}, NVIDIA A100-SXM4-80GB, 00000000:{bus}:00.0, GPU-{at}ec45129-20da-4a34-b813-7d3a51060903\n"
            for at, bus in enumerate(buses)
        )
    )
    links = {0: ["0F", "0F", "C4"], 1: ["07", "07", "C4"], 2: ["C4"]}
    (tmp_path / "status.txt").write_text(
        "".join(head.format(gpu) + "".join(f"\t Link {at}: 25 GB/s\n" for at in range(len(far))) for gpu, far in links.items())
    )  # fmt: skip
    (tmp_path / "remote.txt").write_text(
        "".join(
            head.format(gpu) + "".join(f"\t Link {at}: Remote Device 00000000:{bus}:00.0: Link {at}\n" for at, bus in enumerate(far))
            for gpu, far in links.items()
        )
    )  # fmt: skip
    _, text = drawn(capsys, "--json", str(tmp_path))
    paths = {frozenset((path["a"], path["b"])): path["path"] for path in json.loads(text)["paths"]}
    assert paths[frozenset(("GPU0", "GPU1"))] == "NV2"
    assert paths[frozenset(("GPU0", "GPU2"))] == "NV1"


LOST = """\
[ 8123.55] NVRM: GPU at PCI:0000:b1:00: GPU-7c20a5e1-3b44-8d9f-1e66-90d2f41c8b57
[ 8123.55] NVRM: Xid (PCI:0000:b1:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
"""


def test_a_gpu_that_only_the_kernel_log_knows_to_be_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dmesg.txt").write_text(LOST)
    (tmp_path / "lspci.txt").write_text("07:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 SXM4 80GB] [10de:20b2] (rev a1)\n")  # fmt: skip
    status, text = drawn(capsys, str(tmp_path))
    assert status == 1
    assert "GPU1  0000:b1:00.0  ! fell off the bus (Xid 79)" in text
    assert "GPU0: " not in text


def test_a_gpu_that_the_driver_calls_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dmesg.txt").write_text(LOST)
    (tmp_path / "smi.txt").write_text(
        "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-0ec45129-20da-4a34-b813-7d3a51060903)\n"
        "Unable to determine the device handle for GPU1: 0000:B1:00.0: GPU is lost.  Reboot the system to recover this GPU\n"
    )
    _, text = drawn(capsys, "--json", str(tmp_path))
    (said,) = json.loads(text)["below_par"]
    assert said.startswith("GPU1: ")
    assert "lost" in said


def test_peer_to_peer_matrix_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p2p.txt").write_text(
        "$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\n GPU0\tX\tCNS\n GPU1\tCNS\tX\n\nLegend:\n\n  X    = Self\n"
    )
    status, text = drawn(capsys, str(tmp_path))
    assert status == 1
    assert "GPU0 - GPU1: no peer-to-peer (chipset not supported)" in text


def test_a_machine_without_any_tool_is_drawn_from_sysfs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sys = tmp_path / "sys"
    group = sys / "kernel/iommu_groups/7"
    group.mkdir(parents=True)
    (group / "type").write_text("DMA-FQ\n")
    (sys / "bus/pci/devices").mkdir(parents=True)
    port = sys / "class/infiniband/mlx5_0/ports/1"
    port.mkdir(parents=True)
    port.joinpath("state").write_text("4: ACTIVE\n")
    port.joinpath("rate").write_text("400 Gb/sec (4X NDR)\n")
    bridge = sys / "devices/pci0000:3a/0000:3a:00.0"
    for place, vendor, kind in (
        (bridge, "0x8086", "0x060400"),
        (bridge / "0000:3b:00.0", "0x10de", "0x030200"),
        (bridge / "0000:3c:00.0", "0x15b3", "0x020700"),
    ):
        place.mkdir(parents=True)
        place.joinpath("vendor").write_text(f"{vendor}\n")
        place.joinpath("class").write_text(f"{kind}\n")
        place.joinpath("numa_node").write_text("1\n")
        place.joinpath("iommu_group").symlink_to(group)
        (sys / "bus/pci/devices" / place.name).symlink_to(f"../../../{place.relative_to(sys)}")
    (sys / "class/infiniband/mlx5_0/device").symlink_to("../../../0000:3c:00.0")
    status, text = drawn(capsys, "--root", str(tmp_path))
    assert status == 0
    assert "GPU0    -     PIX" in text
    assert "└─ 0000:3a:00.0  PCIe bridge\n   ├─ GPU0  0000:3b:00.0  nearest adapter mlx5_0\n" in text
    assert "IOMMU: on, translating" in text
