"""What the pages say, without a terminal."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from tui import scene
from tui.scene import report, texts

from gpudoctor.findings.model import ProbeResult
from gpudoctor.tui.rows import Copy, Fold, Goto, OpenLog, chop, fit, plain, wrap
from gpudoctor.tui.widgets.detail import detail_rows, undecided_rows
from gpudoctor.tui.widgets.findings import UNDECIDED, finding_rows
from gpudoctor.tui.widgets.node import node_line, node_rows, topology_rows
from gpudoctor.tui.widgets.probes import ProbeBook, probe_rows
from gpudoctor.tui.widgets.timeline import timeline_rows


def keys(filter: str = "", unfolded: set[str] | None = None, findings=None) -> list[str]:
    given = report() if findings is None else report(findings)
    rows = finding_rows(given, 80, folded=set(), unfolded=unfolded or set(), filter=filter)
    return [row.key for row in rows]


def test_consequences_are_folded_under_their_cause():
    assert keys() == ["bus", "hot", "old", UNDECIDED]
    assert keys(unfolded={"bus"}) == ["bus", "missing", "hot", "old", UNDECIDED]
    assert keys(unfolded={"bus", "missing"}) == ["bus", "missing", "nccl", "hot", "old", UNDECIDED]
    assert keys(unfolded={UNDECIDED})[-1] == "undecided:pcie.link-degraded"


def test_a_folded_cause_says_how_much_it_explains():
    first, *_ = finding_rows(report(), 80, folded=set(), unfolded=set())
    assert first.action == Fold("bus")
    assert "GPU fell off the bus (explains 1)" in first.text
    assert "gpu 0000:3b:00.0" in first.text
    assert first.text.endswith("certain")


def test_an_orphaned_consequence_and_a_circle_of_causes_are_still_shown():
    orphan = scene.finding("a.b", "Orphan", key="orphan", role="consequence", caused_by=["nobody"])
    one = scene.finding("a.c", "One", key="one", role="consequence", caused_by=["two"])
    two = scene.finding("a.d", "Two", key="two", role="consequence", caused_by=["one"])
    shown = keys(unfolded={"one", "two"}, findings=[orphan, one, two])
    assert set(shown) == {"orphan", "one", "two", UNDECIDED}


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("bus fell", ["bus"]),
        ("severity:warning", ["hot"]),
        ("sev:crit", ["bus", "missing", "nccl"]),
        ("area:thermal", ["hot"]),
        ("gpu:af", ["bus", "missing", "nccl", "hot"]),  # what explains a hit stays, to hang it under
        ("peer", ["bus", "missing", "nccl"]),
        ("lspci", [UNDECIDED, "undecided:pcie.link-degraded"]),
        ("area:pcie", [UNDECIDED, "undecided:pcie.link-degraded"]),
        ("severity:advice", ["old"]),
        ("no such word", []),
    ],
)
def test_filter(words, kept):
    assert keys(words) == kept


@pytest.mark.parametrize("width", [38, 76, 116, 196])
def test_no_row_is_wider_than_its_room(width):
    given = report()
    pages = [
        finding_rows(given, width, folded=set(), unfolded={"bus", "missing", UNDECIDED}),
        [row for finding in given.findings for row in detail_rows(finding, given, width)],
        list(node_rows(given, width, {"gpu:0000:af:00.0"})),
        list(undecided_rows(given.undecided[0], width)),
        list(timeline_rows(given, width)),
    ]
    for rows in pages:
        assert rows
        assert max(cell_len(row.text) for row in rows) <= width


def test_detail_has_answer_evidence_ladder_and_what_follows():
    rows = list(detail_rows(scene.BUS, report(), 76))
    shown = "\n".join(texts(rows))
    assert "The driver lost contact with the GPU at 0000:3b:00.0 (Xid 79)." in shown
    assert "Seen 3 times, first 2023-11-14 22:13:20 UTC, last 2023-11-14 22:14:20 UTC." in shown
    assert "disrupts-node" in shown
    assert "needs root, reboot" in shown
    assert "it asks kernel_log, nvidia_smi again" in shown
    actions = [row.action for row in rows if row.action]
    assert OpenLog("dmesg.txt", 2, scene.XID_LINE) in actions
    assert Copy("sudo poweroff", "command") in actions
    assert Copy("https://docs.nvidia.com/deploy/xid-errors/", "reference") in actions
    assert Goto("missing") in actions


def test_detail_of_a_consequence_names_the_chain_from_the_top():
    rows = list(detail_rows(scene.NCCL, report(), 76))
    gotos = [row.action.key for row in rows if isinstance(row.action, Goto)]
    assert gotos == ["bus", "missing"]


def test_log_text_is_neither_markup_nor_control():
    shown = "\n".join(texts(detail_rows(scene.BUS, report(), 76)))
    assert "[red]not markup[/red] nor colour or order" in shown
    assert all(character.isprintable() or character == "\n" for character in shown)


def test_a_long_command_is_broken_but_not_changed():
    command = "sudo " + "x" * 200
    fix = scene.Fix(title="Long", commands=[command])
    rows = list(detail_rows(scene.finding("a.b", "Long", fixes=[fix]), report(), 40))
    parts = [row.parts[-1][0] for row in rows if row.action == Copy(command, "command")]
    assert len(parts) > 3
    assert "".join(parts) == command


def test_node_page():
    given = report()
    shown = "\n".join(texts(node_rows(given, 196, set())))
    assert "0 H100 80GB HBM3" in shown
    assert "GPU fell off the bus" in shown
    assert "█████░░░░░ 40/80 GiB" in shown
    assert "91 C" in shown
    assert "95/700 W" in shown
    assert "PCIe 5 x8 of 5 x16" in shown
    assert "ECC ok" in shown
    assert "slowed: heat (hardware)" in shown
    assert "driver and kernel module differ" in shown
    assert "cut.log: breaks off" in shown
    assert "temperature" not in shown
    assert "temperature" in "\n".join(texts(node_rows(given, 196, {"gpu:0000:af:00.0"})))
    assert node_line(given) == "node-a · 2x H100 80GB HBM3 · driver 550.54.15 · CUDA 12.4 · bundle · incomplete"


def test_node_page_of_an_empty_report():
    assert texts(node_rows(report([], node={"gpus": []}), 76, set()))[1] == "No GPU was seen in what could be read."


def test_probes_running_first_then_trouble_then_the_rest():
    book = ProbeBook()
    book.note("os", ProbeResult(name="os", status="ok", seconds=0.1))
    book.note("smi", ProbeResult(name="smi", status="timeout", seconds=10.0, reason="no answer in 10 s"))
    book.note("nvml", None)
    rows = texts(probe_rows(book, 76))
    assert [line.split()[1] for line in rows] == ["nvml", "smi", "os"]
    assert "running" in rows[0]
    assert "10.0 s" in rows[1]
    assert "no answer in 10 s" in rows[1]
    name, seconds = book.slowest()
    assert name == "nvml"
    assert 0 <= seconds < 5
    book.settle([])
    assert book.slowest() is None


def test_wide_characters_count_twice():
    assert fit("显卡掉线了", 5) == "显卡…"
    assert chop("显卡掉线了", 4) == ["显卡", "掉线", "了"]
    assert wrap("显卡 掉线", 4) == ["显卡", "掉线"]
    assert plain("a\tb\r\n\x9bc") == "a    b c"


def test_timeline_in_order_of_time_with_bars():
    early = scene.finding("a.b", "Early", key="early", first_seen=1_700_000_000.0)
    late = scene.finding("a.c", "Late", key="late", first_seen=1_700_003_600.0, last_seen=1_700_007_200.0, count=7)
    vague = scene.finding("a.d", "Vague", key="vague", first_seen=5_000.0)
    rows = list(timeline_rows(report([late, vague, early, scene.HOT]), 150))
    shown = texts(rows)
    dated = [row.key for row in rows if row.key]
    assert dated == ["time:early", "time:late", "time:vague", "time:hot"]
    assert "2023-11-14 22:13:20" in shown[1]
    assert "Late (7 times)" in shown[2]
    assert "23:13:20" in shown[2]
    assert "2023-11-14" not in shown[2]
    assert shown[1].endswith("·" * 20)
    assert shown[2].endswith("█" * 20)
    assert rows[1].action == OpenLog("dmesg.txt", 3, scene.XID_LINE)
    assert "01-01 01:23:20" in "\n".join(shown)


def test_timeline_without_any_time():
    assert texts(timeline_rows(report([scene.HOT]), 76)) == ["Of no finding the time is known."]


def test_topology_matrix_is_split_where_it_is_too_wide():
    devices = [f"GPU{n}" for n in range(8)] + ["NIC0", "NIC1"]
    paths = [["X" if a == b else "NV18" if a[0] == b[0] == "G" else "SYS" for b in devices] for a in devices]
    topology = {"devices": devices, "paths": paths}
    wide = texts(topology_rows(topology, 116))
    assert wide[1].split() == devices
    assert wide[2].split() == ["GPU0", "X"] + ["NV18"] * 7 + ["SYS"] * 2
    assert "SYS   the link between processors: slow" in wide
    rows = list(topology_rows(topology, 38))
    assert max(cell_len(row.text) for row in rows) <= 38
    assert [row.text.split()[0] for row in rows[1:23] if row.text.startswith(" ")] == ["GPU0", "GPU5"]
    styles = {text.strip(): style for row in rows for text, style in row.parts}
    assert (styles["NV18"], styles["SYS"]) == ("ok", "critical")
    assert list(topology_rows({}, 80)) == []


def test_node_page_shows_links_processes_memory_and_software():
    node = {
        "gpus": scene.GPUS,
        "nvlink": {"0000:af:00.0": {"active": 9, "links": 18, "errors": 3}},
        "processes": [
            {"gpu": "0000:af:00.0", "pid": 4711, "name": "python3", "memory": 2048.0},
            {"gpu": "0000:af:00.0", "pid": 4712, "alive": False},
        ],
        "memory": {"total": 1048576.0, "available": 524288.0, "pressure_memory": 42.5},
        "software": {"torch": ["2.4.0"], "nccl": ["2.18.3", "2.20.5"]},
    }
    shown = "\n".join(texts(node_rows(report(node=node), 116, set())))
    assert "NVLink 9/18 3 errors" in shown
    assert "4711     2.0 GiB  python3" in shown
    assert "a process without a name  gone" in shown
    assert "1024 GiB, 512 GiB available" in shown
    assert "memory 42.5%" in shown
    assert "2.18.3, 2.20.5  ▲ several" in shown
