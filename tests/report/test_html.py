"""The HTML report: valid, self-contained, deaf to what machines write, and usable by eye, by key and by ear."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from xml.etree.ElementTree import Element

import html5lib
import pytest
from report.reports import HOSTILE, finding, report

from gpudoctor.diagnosis import Doctor
from gpudoctor.facts.base import Where
from gpudoctor.findings.model import Event, Report, SourceInfo, Undecided
from gpudoctor.findings.nodes import joined
from gpudoctor.report.html import render_html
from gpudoctor.report.markdown import render_markdown
from gpudoctor.report.text import render_text
from gpudoctor.sources.memory import TextSource
from gpudoctor.sources.open import open_sources

FIXTURES = Path(__file__).parents[2] / "fixtures"
NAMES = ("dmesg-xid79", "training-oom", "healthy-h100", "nccl-docker-bridge", "bug-report-lost-gpu")
VARIABLE = re.compile(r"(--[a-z]+): (#[0-9a-f]{6})")


@cache
def diagnosed(name: str) -> Report:
    return Doctor().diagnose(open_sources([str(FIXTURES / name)]))


def parsed(made: Report) -> Element:
    """Parse as strictly as the standard reads: any parse error fails the test."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(render_html(made))


def local(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def every(root: Element, *tags: str) -> list[Element]:
    return [element for element in root.iter() if local(element) in tags]


def words(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())


def hostile() -> Report:
    texts = [text for text in HOSTILE if text != "\ud800"]
    made = report(*(finding(text, at) for at, text in enumerate(texts)), suppressed=True)
    made.node = {
        "host": HOSTILE[8],
        "gpus": [{"gpu": text, "name": text, "index": at, "state": text} for at, text in enumerate(texts)],
        "topology": {"devices": texts[:2], "paths": [["X", texts[8]], [texts[8], "X"]]},
        "processes": [{"gpu": texts[0], "pid": 1, "name": texts[8]}],
        "software": {texts[8]: [texts[8]]},
    }
    made.timeline = [
        Event(time=1.8e9 + at, text=text, gpu=text, where=Where(source=text, line=at)) for at, text in enumerate(texts)
    ]
    made.undecided = [Undecided(id="a.b", missing=["x"], ask=text) for text in texts]
    return made


def several() -> Report:
    reports = [("node1", diagnosed("dmesg-xid79")), ("node2", diagnosed("healthy-h100"))]
    return joined(reports, SourceInfo(kind="folder", path="all"))


PAGES = {
    **{name: (lambda name=name: diagnosed(name)) for name in NAMES},
    "hostile": hostile,
    "nothing": lambda: report(status="ok"),
    "several nodes": several,
}


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest) -> Element:
    return parsed(PAGES[request.param]())


def test_nothing_is_loaded_and_nothing_runs(page: Element) -> None:
    assert not every(page, "script", "link", "iframe", "img", "object", "embed", "form", "base", "foreignObject")
    for element in page.iter():
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            if local(element) != "a" and not name.endswith("xmlns") and name != "content":
                assert not re.search(r"(?i)\b(?:https?|javascript|data|file):", value)
            if name in ("href", "{http://www.w3.org/1999/xlink}href"):
                assert value.startswith(("#", "https://", "http://"))
    style = "".join(words(element) for element in every(page, "style"))
    assert "url(" not in style and "@import" not in style
    policy = next(m.get("content") for m in every(page, "meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in (policy or "")


def test_headings_landmarks_and_labels(page: Element) -> None:
    assert page.get("lang") == "en"
    assert 0 < len(words(every(page, "title")[0])) <= 70
    assert [len(every(page, tag)) for tag in ("h1", "main", "header", "footer")] == [1, 1, 1, 1]
    levels = [int(local(heading)[1]) for heading in every(page, "h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1
    assert all(later <= sooner + 1 for sooner, later in pairwise(levels)), levels
    for table in every(page, "table"):
        assert words(every(table, "caption")[0])
        heads = every(table, "th")
        assert heads and {head.get("scope") for head in heads} <= {"col", "row"}
    for drawing in every(page, "svg"):
        if drawing.get("aria-hidden") != "true":
            assert drawing.get("role") == "img"
            assert words(every(drawing, "title")[0]) and words(every(drawing, "desc")[0])
    for fold in every(page, "details"):
        assert local(fold[0]) == "summary" and words(fold[0])
    for scrolling in (element for element in page.iter() if element.get("class") == "scroll"):
        assert scrolling.get("tabindex") == "0" and scrolling.get("aria-label")


def test_ids_and_labels_are_unique_and_links_have_aims(page: Element) -> None:
    ids = [element.get("id") for element in page.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    labels = [element.get("aria-label") for element in page.iter() if element.get("aria-label")]
    assert len(labels) == len(set(labels))
    aims = [link.get("href", "") for link in every(page, "a")]
    assert {aim[1:] for aim in aims if aim.startswith("#")} <= set(ids)


def test_the_answer_stands_first_and_the_fix_follows() -> None:
    page = parsed(diagnosed("dmesg-xid79"))
    assert words(every(page, "h1")[0]) == "✖ CRITICAL: GPU fell off the bus"
    article = every(page, "article")[0]
    said = words(article)
    order = [
        "GPU fell off the bus",
        "critical",
        "certain",
        "The driver lost contact with the GPU",
        "Why",
        "input/dmesg.txt:6",
        "so it explains:",
        "The driver asks for a reset of the GPU",
        "What to do, least disruptive first",
        "read-only",
        "disrupts the node",
        "See that it worked",
    ]
    places = [said.index(part) for part in order]
    assert places == sorted(places)
    folded = every(article, "details")
    assert [words(fold[0]) for fold in folded] == ["✖ The driver asks for a reset of the GPU"]
    assert folded[0].get("open") is None


CHAINS = (
    finding("a", 1, key="a"),
    finding("b", 2, key="b"),
    finding("c", 3, key="c", role="consequence", caused_by=["b", "a"]),
    finding("d", 4, key="d", role="consequence", caused_by=["c"]),
    finding("e", 5, key="e", role="consequence", caused_by=["f"]),
    finding("f", 6, key="f", role="consequence", caused_by=["e"]),
    finding("g", 7, key="g", role="consequence", caused_by=["long gone"]),
)


def test_consequences_stand_once_under_their_first_cause() -> None:
    page = parsed(report(*CHAINS))
    articles = {article.get("id"): article for article in every(page, "article")}
    assert list(articles) == ["finding-1", "finding-2", "finding-6", "finding-7"]
    assert [fold.get("id") for fold in every(articles["finding-2"], "details")] == ["finding-3", "finding-4"]
    assert [link.get("href") for link in every(articles["finding-1"], "a")] == ["#finding-3"]
    assert [fold.get("id") for fold in every(articles["finding-6"], "details")] == ["finding-5"]


@pytest.mark.parametrize("render", [render_text, render_markdown])
def test_nothing_is_lost_in_plain_reports(render: Callable[[Report], str]) -> None:
    lines = [line for line in render(report(*CHAINS)).splitlines() if "Something is wrong with" in line][1:]
    told = [re.search(r"Something is wrong with (\w)", line)[1] for line in lines]  # type: ignore[index]
    assert sorted(told) == ["a", "b", "c", "d", "e", "f", "g"]
    deep = next(line for line in lines if "with d" in line)
    assert len(deep) - len(deep.lstrip()) == 2 + len(lines[told.index("c")]) - len(lines[told.index("c")].lstrip())


def test_what_holds_of_several_gpus_is_said_once() -> None:
    names = ("0000:19:00.0", "0000:3b:00.0", "0000:4c:00.0", "0000:5d:00.0")
    braked = [
        finding(name, key=f"brake@{name}", title="Power brake", evidence=[Where(source="NVML", line=at, text=name)])
        for at, name in enumerate(names, start=1)
    ]
    slow = [
        finding(name, 1, key=f"slow@{name}", title="Slow", role="consequence", caused_by=[f"brake@{name}"])
        for name in names
    ]
    made = report(*braked, *slow)
    made.timeline = [Event(time=1.8e9, text="brake", where=Where(source="log"), finding="brake@0000:5d:00.0")]
    page = parsed(made)
    (article,) = every(page, "article")
    said = words(article)
    assert "GPUs 0000:19:00.0, 0000:3b:00.0, 0000:4c:00.0, 0000:5d:00.0" in said
    assert all(f"NVML:{line}" in said for line in (1, 2, 3, 4))
    assert [words(command) for command in every(article, "span") if command.get("class") == "command"][:4] == [f"echo {name}" for name in names]  # fmt: skip
    assert [words(fold[0]) for fold in every(article, "details")] == ["✖ Slow"]
    assert "#finding-1" in [link.get("href") for link in every(page, "a")]
    lines = render_text(made).splitlines()
    assert sum("Power brake" in line for line in lines) == 2  # the summary, and the finding
    assert sum("Slow" in line for line in lines) == 1


def test_the_node_with_mismatches_and_faults() -> None:
    made = report(finding("0000:3b:00.0"), status="critical")
    made.node = {
        "module": "550.54.15",
        "driver": "535.104.05",
        "libraries": {"libcuda": ["535.104.05"]},
        "software": {"nccl": ["2.18.3", "2.20.5"], "torch": ["2.4.0"]},
        "gpus": [
            {"gpu": "0000:3b:00.0", "index": 0, "name": "NVIDIA H100 PCIe", "memory_total": 81920.0, "memory_used": 40960.0, "temperature": 91.0},
            {"gpu": "0000:86:00.0", "index": 1, "name": "NVIDIA H100 PCIe", "pcie_gen": 5, "pcie_gen_max": 5, "pcie_width": 8, "pcie_width_max": 16},
        ],
        "nvlink": {"0000:86:00.0": {"active": 9, "links": 18, "errors": 3, "down": [0, 1, 2, 9]}},
    }  # fmt: skip
    page = parsed(made)
    tables = {words(every(table, "caption")[0]): table for table in every(page, "table")}
    first, second = [words(row) for row in every(tables["GPUs (2)"], "tr")[1:]]
    assert "Something is wrong with 0000:3b:00.0" in first
    assert "40 of 80 GiB" in first
    assert "✖ 91 °C" in first
    assert "▲ gen 5 x8 of gen 5 x16" in second
    assert "▲ 9 of 18 up, down: 0-2 9, 3 errors" in second
    versions = [words(row) for row in every(tables["Versions"], "tr")[1:]]
    assert versions == [
        "Kernel module550.54.15",
        "Driver535.104.05 ▲ the kernel module is 550.54.15",
        "libcuda535.104.05 ▲ the kernel module is 550.54.15",
        "nccl2.18.3, 2.20.5 ▲ several versions",
        "torch2.4.0",
    ]


def test_the_topology_is_drawn_and_listed() -> None:
    page = parsed(diagnosed("healthy-h100"))
    drawing = next(svg for svg in every(page, "svg") if svg.get("role") == "img")
    assert words(every(drawing, "title")[0]).startswith("Topology: 8 GPUs")
    matrix = next(
        table for table in every(page, "table") if words(every(table, "caption")[0]) == "Paths between devices"
    )
    rows = [[words(cell) for cell in row] for row in every(matrix, "tr")]
    assert rows[0] == ["Device", *(f"GPU{n}" for n in range(8)), "NUMA"]
    assert rows[8] == ["GPU7", *["NV18"] * 7, "X", "1"]


def marks(svg: Element) -> Iterator[tuple[str, float, float]]:
    """Yield (grade, x, y) of each event drawn."""
    for group in every(svg, "g"):
        shape = every(group, "rect", "path", "circle")[0]
        if local(shape) == "path":
            x, y = re.findall(r"[\d.]+", shape.get("d", ""))[:2]
            yield (group.get("class", "").split()[-1], float(x), float(y))
        else:
            prefix = "c" if local(shape) == "circle" else ""
            yield (group.get("class", "").split()[-1], float(shape.get(f"{prefix}x", "")), float(shape.get(f"{prefix}y", "")))  # fmt: skip


def test_the_timeline_has_a_line_for_each_device_and_shortens_silence() -> None:
    lines = [f"2026-03-01T10:00:{second:02}+00:00 n kernel: NVRM: Xid (PCI:0000:5e:00): 13, pid=7, name=p, Graphics Exception" for second in range(30)]  # fmt: skip
    lines += [
        "-- Reboot --",
        "2026-03-09T08:00:00+00:00 n kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=p, GPU has fallen off the bus.",
        "2026-03-09T08:01:00+00:00 n kernel: Out of memory: Killed process 4021 (python3) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:1kB oom_score_adj:0",
    ]
    page = parsed(Doctor().diagnose(TextSource({"journal.txt": "\n".join(lines) + "\n"})))
    (svg,) = [svg for svg in every(page, "svg") if svg.get("class") == "timeline"]
    said = [words(label) for label in every(svg, "text")]
    assert {"Host", "GPU 5e:00.0", "GPU 3b:00.0", "reboot", "x30"} <= set(said)
    drawn = sorted(marks(svg), key=lambda mark: mark[1])
    assert [grade for grade, *_ in drawn] == ["none", "critical", "critical"]
    assert len({y for *_, y in drawn}) >= 2
    gaps = [later[1] - sooner[1] for sooner, later in pairwise(drawn)]
    assert gaps[0] < 5 * gaps[1], "a week of silence must not press a minute into nothing"
    events = next(table for table in every(page, "table") if words(every(table, "caption")[0]) == "Events")
    rows = [words(row) for row in every(events, "tr")[1:]]
    assert len(rows) == 3
    assert "x30 until 2026-03-01 10:00:29 UTC" in rows[0]
    assert "(1 boot ago)" in rows[0]
    assert "journal.txt:32" in rows[1]


def test_several_nodes_are_listed_then_folded() -> None:
    page = parsed(several())
    table = next(table for table in every(page, "table") if words(every(table, "caption")[0]) == "Nodes (2)")
    assert [link.get("href") for link in every(table, "a")] == ["#node-1", "#node-2"]
    folds = [fold for fold in every(page, "details") if fold.get("class") == "node"]
    assert [fold.get("id") for fold in folds] == ["node-1", "node-2"]
    assert "GPU fell off the bus" in words(folds[0][0])
    assert [svg.get("role") for svg in every(folds[1], "svg") if svg.get("role")] == ["img"]


def test_hostile_text_is_text() -> None:
    page = parsed(hostile())
    assert "<script>alert(1)</script>" in words(page)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", "".join(page.itertext()))


def themes() -> dict[str, dict[str, str]]:
    style = files("gpudoctor.report.html").joinpath("page.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    light, dark, paper = (dict(VARIABLE.findall(block)) for block in blocks)
    return {"light": light, "dark": light | dark, "paper": light | paper}


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    bright, dim = sorted((luminance(a), luminance(b)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark", "paper"])
def test_colours_can_be_read(theme: str) -> None:
    """WCAG AA: 4.5 to 1 for text on the page, on quotes, and for badges, whose text has the page's colour."""
    colours = themes()[theme]
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    inks = [name for name in colours if name not in ("--page", "--surface", "--line")]
    assert len(inks) == 8
    poor = [
        (ink, ground, round(contrast(colours[ink], colours[ground]), 2))
        for ink in inks
        for ground in ("--page", "--surface")
        if contrast(colours[ink], colours[ground]) < 4.5
    ]
    assert poor == []


def test_on_paper_nothing_stays_folded() -> None:
    style = files("gpudoctor.report.html").joinpath("page.css").read_text(encoding="utf-8")
    paper = style[style.index("@media print") :]
    assert "details:not(.account)::details-content { content-visibility: visible" in paper
