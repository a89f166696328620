"""What the pages say, without a terminal."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from tui import scene
from tui.scene import report, texts

from gpudoctor.facts.base import Where
from gpudoctor.findings.model import Event, ProbeResult
from gpudoctor.tui.rows import Copy, Fold, Goto, OpenLog, chop, fit, plain, wrap
from gpudoctor.tui.widgets.detail import detail_rows, undecided_rows
from gpudoctor.tui.widgets.findings import UNDECIDED, finding_rows
from gpudoctor.tui.widgets.node import node_line, node_rows
from gpudoctor.tui.widgets.probes import ProbeBook, probe_rows
from gpudoctor.tui.widgets.timeline import timeline_rows
from gpudoctor.tui.widgets.topology import topology_rows


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
    assert "GPU 0000:3b:00.0" in first.text
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


WIDE = replace(
    scene.BUS,
    key="wide",
    title="显卡掉线了" * 20,
    because="GPU 从总线上掉线 " * 30,
    subjects=[scene.Subject(kind="port", name="mlx5_bond_0/" + "端口" * 20)],
    evidence=[Where(source="日志/" * 12 + "kern.log", line=7, text="内核: 显卡 " * 20 + "x" * 200)],
    fixes=[scene.Fix(title="重启节点" * 15, commands=["sudo " + "节点" * 80], needs=["根权限" * 20])],
)


@pytest.mark.parametrize("width", [38, 76, 116, 196])
@pytest.mark.parametrize("findings", [(scene.BUS, scene.HOT, scene.MISSING, scene.NCCL, scene.OLD), (WIDE,)])
def test_no_row_is_wider_than_its_room(width, findings):
    event = Event(text="显卡 " * 60, where=WIDE.evidence[0], gpu="0000:3b:00.0", time=1_700_000_000.0)
    long = {"gpus": [{**scene.GPUS[0], "name": "显卡" * 30}], "host": "节点" * 50, "driver": "550.54.15"}
    given = report(findings, timeline=[event], **({"node": long} if findings == (WIDE,) else {}))
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
    assert "█████░░░░░ 40 of 80 GiB" in shown
    assert "91 °C" in shown
    assert "95 of 700 W" in shown
    assert "PCIe gen 5 x8 of gen 5 x16" in shown
    assert "ECC ok" in shown
    assert "slowed: heat (hardware)" in shown
    assert "550.54.15  ▲" in shown
    assert "cut.log: breaks off" in shown
    assert "temperature" not in shown
    assert "temperature" in "\n".join(texts(node_rows(given, 196, {"gpu:0000:af:00.0"})))
    line = node_line(given)
    assert all(word in line for word in ("node-a", "2x H100 80GB HBM3", "550.54.15", "12.4"))
    assert line.endswith(" · bundle · incomplete")


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


def event(text, line=1, **values):
    return Event(text=text, where=Where(source="kern.log", line=line, text=text), **values)


START = 1_700_000_000.0
LOST = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def of_two_boots():
    channels = [
        event(f"NVRM: Xid (PCI:0000:af:00): 45, pid=41{n}, name=python3, Ch 0000000{n}", 10 + n, gpu="0000:af:00.0", time=START + 86_400 + n)
        for n in range(5)
    ]  # fmt: skip
    return [
        event("NVRM: Xid (PCI:0000:3b:00): 31, MMU Fault", 2, gpu="0000:3b:00.0", boot=-1, time=START, last_time=START + 39, count=40),
        event("pcieport 0000:3a:02.0: AER: Corrected error received", 7, time=START + 86_300),
        event(LOST, 9, gpu="0000:3b:00.0", time=START + 86_399, finding="bus", severity="critical"),
        *channels,
        event("NVRM: Xid (PCI:0000:af:00): 94, Contained", 30, gpu="0000:af:00.0", time=START + 90_000, finding="hot", severity="warning"),
    ]  # fmt: skip


@pytest.mark.parametrize("width", [76, 116, 196])
def test_timeline_has_one_axis_for_host_and_gpus_across_boots(width):
    rows = list(timeline_rows(report(timeline=of_two_boots()), width))
    shown = texts(rows)
    assert all(cell_len(line) <= width for line in shown)
    host, first, second = shown[1:4]
    assert [line.split()[0] for line in (host, first)] == ["host", "0"]
    assert second.startswith("1 af:00.0 ")
    mark = {line: [n for n, letter in enumerate(line) if letter in "▪✖▲"] for line in (host, first, second)}
    fault, lost = mark[first]
    assert fault < host.index("┃") <= mark[host][0] < lost < mark[second][0] < mark[second][1] == width - 1
    assert first[lost] == "✖"
    assert second[-1] == "▲"
    assert shown[4].split()[:2] == ["2023-11-14", "22:13:20"]


def test_timeline_lists_events_by_boot_with_bursts_folded():
    rows = list(timeline_rows(report(timeline=of_two_boots()), 116))
    shown = texts(rows)
    earlier = shown.index(next(line for line in shown if line.startswith("What happened 1 boot before (UTC)")))
    last = shown.index(next(line for line in shown if line.startswith("What happened in the last boot (UTC)")))
    assert "Xid 31, MMU Fault (40 times in 39 s)" in shown[earlier + 1]
    assert "Xid 79, GPU has fallen off the bus." in shown[last + 2]
    assert "Xid 45, pid=410, name=python3, Ch 00000000 (5 times in 4.0 s)" in shown[last + 3]
    assert shown[last + 4].split()[:2] == ["23:13:20", "▲"]
    assert rows[last + 2].action == OpenLog("kern.log", 9, LOST)
    # what no event belongs to
    assert [row.key for row in rows if row.key.startswith("time:") and "kern.log" not in row.key] == ["time:missing", "time:nccl"]  # fmt: skip


def test_timeline_of_a_kernel_buffer_is_by_the_time_since_boot():
    shown = texts(timeline_rows(report([], timeline=[event("one", uptime=12.0), event("two", 2, uptime=8121.4)]), 76))
    assert "What happened in the last boot (by the time since boot)" in "\n".join(shown)
    assert "+12 s ▪ host  one" in "\n".join(shown)
    assert "+2 h 15 min ▪ host  two" in "\n".join(shown)


def test_findings_without_events_stand_below_in_order_of_time():
    early = scene.finding("a.b", "Early", key="early", first_seen=START)
    late = scene.finding("a.c", "Late", key="late", first_seen=START + 3_600.0, count=7)
    rows = list(timeline_rows(report([late, early, scene.HOT, scene.OLD]), 116))
    assert [row.key for row in rows if row.key] == ["time:early", "time:late", "time:hot"]
    shown = texts(rows)
    assert "2023-11-14 22:13:20 ✖ Early" in shown[1]
    assert "Late (7 times)" in shown[2]
    assert rows[1].action == OpenLog("dmesg.txt", 3, scene.XID_LINE)


def test_timeline_without_any_time():
    assert texts(timeline_rows(report([scene.OLD]), 76)) == ["No log gave a time to anything."]


def test_topology_matrix_is_split_where_it_is_too_wide():
    devices = [f"GPU{n}" for n in range(8)] + ["NIC0", "NIC1"]
    paths = [["X" if a == b else "NV18" if a[0] == b[0] == "G" else "SYS" for b in devices] for a in devices]
    node = {"topology": {"devices": devices, "paths": paths, "numa": {"GPU0": 0, "NIC1": 1}}}
    wide = texts(topology_rows(node, 116))
    assert wide[1].split() == devices
    assert wide[2].split() == ["GPU0", "NUMA", "0", "X"] + ["NV18"] * 7 + ["SYS"] * 2
    assert wide[3].split()[:2] == ["GPU1", "NV18"]
    assert "SYS          the link between processors: slow" in wide
    rows = list(topology_rows(node, 38))
    assert max(cell_len(row.text) for row in rows) <= 38
    heads = [row.text.split()[0] for row in rows if row.text.startswith("      ") and "link" not in row.text]
    assert heads == ["GPU0", "GPU4", "NIC0"]
    styles = {text.strip(): style for row in rows for text, style in row.parts}
    assert (styles["NV18"], styles["SYS"]) == ("ok", "critical")
    assert styles["NUMA 0"] != styles["NUMA 1"]
    assert list(topology_rows({}, 80)) == []


def test_node_page_shows_links_processes_memory_and_software():
    node = {
        "gpus": scene.GPUS,
        "nvlink": {"0000:af:00.0": {"active": 16, "links": 18, "errors": 3, "down": [4, 5]}},
        "processes": [
            {"gpu": "0000:af:00.0", "pid": 4711, "name": "python3", "memory": 2048.0},
            {"gpu": "0000:af:00.0", "pid": 4712, "alive": False},
            *({"gpu": "0000:af:00.0", "pid": pid, "name": "small", "memory": 10.0} for pid in (1, 2, 3)),
            {"gpu": "MIG-1", "pid": 5, "name": "elsewhere"},
        ],
        "memory": {"total": 1048576.0, "available": 524288.0, "pressure_memory": 42.5},
        "software": {"torch": ["2.4.0"], "nccl": ["2.18.3", "2.20.5"]},
    }
    shown = "\n".join(texts(node_rows(report(node=node), 116, set())))
    assert "NVLink 16 of 18" in shown
    assert "■■■■✖✖■■■■■■■■■■■■ 4, 5 down" in shown
    assert "   2.0 GiB  pid 4711      python3" in shown
    assert "a process without a name" not in shown
    assert "and 2 more processes" in shown
    assert "On MIG-1, of which nothing else is known" in shown
    assert "1024 GiB, 512 GiB available" in shown
    assert "42.5 % of the time  ▲ tasks wait for it" in shown
    assert "2.18.3, 2.20.5  ▲ several versions" in shown
    unfolded = "\n".join(texts(node_rows(report(node=node), 116, {"gpu:0000:af:00.0"})))
    assert "a process without a name  gone" in unfolded


def test_a_version_that_a_finding_names_is_a_way_to_it():
    told = scene.finding(
        "driver.mismatch", "Module and libraries differ", key="mix", because="550.54.14 is not 550.54.15."
    )
    rows = list(node_rows(report([told]), 116, set()))
    links = [number for number, row in enumerate(rows) if row.action == Goto("mix")]
    assert [rows[number - 1].text.split()[0] for number in links] == ["Kernel", "Driver"]
