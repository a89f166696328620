"""The main screen: verdict, findings with their detail, node, probes."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, cast

from rich.text import Text
from textual import on
from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.screen import Screen

from gpudoctor.tui.rows import Copy, Fold, Goto, OpenLog, OpenNode, Row, fit, paragraph, plain, row
from gpudoctor.tui.symbols import SYMBOLS
from gpudoctor.tui.widgets.banner import Banner
from gpudoctor.tui.widgets.detail import detail_rows, suppressed_rows, undecided_rows
from gpudoctor.tui.widgets.findings import SUPPRESSED, UNDECIDED, FindingList, suppressed_key, undecided_key
from gpudoctor.tui.widgets.keybar import KeyBar
from gpudoctor.tui.widgets.node import node_line, node_rows
from gpudoctor.tui.widgets.probes import ProbeBook, probe_rows
from gpudoctor.tui.widgets.rows import RowList
from gpudoctor.tui.widgets.styles import PARTS
from gpudoctor.tui.widgets.timeline import timeline_rows

if TYPE_CHECKING:
    from textual.widgets import Input

    from gpudoctor.findings.model import Finding, Report, Suppressed, Undecided
    from gpudoctor.tui.app import GpuDoctorApp

VIEWS = ("Findings", "Node", "Timeline", "Probes")
_PAGES = ("findings", "node", "timeline", "probes")
_WIDE = 120  # columns from which list and detail stand side by side
_HELP = (
    "The first line says what is wrong. Findings stand by rank: the causes first, what they explain folded under them."
    " Enter opens a finding; in it, Enter on a place opens the log there, Enter on a command copies it. Right and"
    " left unfold and fold. The digits change to the other views, [ and ] to the finding before and after."
)


_GATHERED = {
    UNDECIDED: "These may or may not be so: what would tell was not read, for lack of permission, time or because it is not"
    " in the bundle. Unfold the row (right) to see each one and what would decide it.",
    SUPPRESSED: "These are true and count neither in the verdict nor in the exit status, as somebody decided to live with"
    " them for a while. Unfold the row (right) to see why and until when.",
}


def part_of(whole: Report, shown: Report | None) -> Report:
    """Return the node of a report that was shown of the one before; else the whole."""
    path = shown.source.path if shown is not None else ""
    return next((node for node in whole.nodes if node.source.path == path), whole)


class MainScreen(Screen[None]):
    """What one sees first."""

    COMPONENT_CLASSES = PARTS
    BINDINGS = [
        Binding("w", "walk", "Walk-through", tooltip="be led through the fix of this finding"),
        Binding(
            "slash",
            "filter",
            "Filter",
            priority=True,  # at once: what is typed after it belongs to the filter
            tooltip="show only some findings: words, severity:critical, area:driver, gpu:3b",
        ),
        Binding("escape", "back", "Back", tooltip="while probing: stop and show what is known; else: back"),
        Binding("1", "view(0)", "Findings", show=False),
        Binding("2", "view(1)", "Node", show=False),
        Binding("3", "view(2)", "Timeline", show=False),
        Binding("4", "view(3)", "Probes", show=False),
        Binding("left_square_bracket", "next(-1)", "Finding before", show=False),
        Binding("right_square_bracket", "next(1)", "Next finding", show=False),
        Binding("y", "copy", "Copy", tooltip="copy the command, reference or line under the cursor"),
        Binding("m", "markdown", "Markdown", show=False, tooltip="copy the finding as Markdown, for a ticket"),
        Binding("s", "save", "Save", tooltip="save the report as a file"),
        Binding("x", "suppress", "Suppress", tooltip="live with this finding until a day: it counts no more"),
        Binding("r", "again", "Again", tooltip="examine again"),
        Binding("z", "zoom", "Zoom", show=False, tooltip="the detail alone, and back"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.report: Report | None = None  # what is shown: the whole, or one node of several
        self.whole: Report | None = None
        self.book = ProbeBook()
        self._view = 0
        self._began = time.monotonic()
        self._examining = True
        self._stopped = False
        self._picked = False  # a person chose a finding while probes ran: the detail takes the probes' place
        self._gpus_open: set[str] = set()
        self._shown: str | None = None

    @property
    def doctor(self) -> GpuDoctorApp:
        """The app, by its own type."""
        return cast("GpuDoctorApp", self.app)

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        yield Banner(id="banner")
        with Horizontal(id="findings-view"):
            with Vertical(id="list-pane", classes="pane"):
                yield FindingList(id="findings")
            with Vertical(id="detail-pane", classes="pane"):
                yield RowList(id="detail")
                yield RowList(id="progress")
        with Vertical(id="node-view", classes="pane view"):
            yield RowList(id="node")
        with Vertical(id="timeline-view", classes="pane view"):
            yield RowList(id="timeline")
        with Vertical(id="probes-view", classes="pane view"):
            yield RowList(id="probes")
        yield KeyBar(id="keys")

    def on_mount(self) -> None:
        """Show the first state and start the clock."""
        self.query_one("#list-pane").border_title = "Findings"
        self.query_one("#node-view").border_title = "Node"
        self.query_one("#timeline-view").border_title = "Timeline"
        self.query_one("#probes-view").border_title = "Probes"
        self.query_one("#findings").focus()
        self._lay_out()
        self._clock = self.set_interval(0.5, self._tick)

    def on_resize(self) -> None:
        """Side by side where there is room, else one above the other."""
        self.set_class(self.size.width >= _WIDE, "wide")

    # ---- what the examination tells ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """An examination starts."""
        self._began, self._examining, self._stopped, self._picked = time.monotonic(), True, False, False
        self.book = ProbeBook()
        self._clock.resume()
        self._lay_out()
        self._redraw()

    def probe_news(self) -> None:
        """A probe began or ended; many do at once, so draw when they are through."""
        self.call_after_refresh(self._draw_progress)

    def show_report(self, report: Report, *, final: bool) -> None:
        """Take over what is known."""
        first = self.whole is None or not self.whole.nodes
        self.whole = report
        self.report = part_of(report, self.report)
        if final and first and report.nodes:
            self.action_view(1)
        if final:
            self._examining = False
            self.book.settle(report.probes)
            self._clock.pause()
        self._lay_out()
        findings = self.query_one(FindingList)
        findings.show_report(self.report, follow=findings.cursor > 0)  # at the top, stay at the top
        self._shown = None
        self._redraw()
        self.refresh_bindings()

    def show_part(self, report: Report) -> None:
        """Show one node of several, or all of them again."""
        self.report = report
        self._shown = None
        self.query_one(FindingList).show_report(report, follow=False)
        self.query_one(FindingList).cursor = 0
        self.action_view(0 if report is not self.whole else 1)

    def stop_waiting(self) -> None:
        """What is known has to do."""
        self._stopped = True
        if self.report is not None:
            self._examining = False
            self._clock.pause()
        self._lay_out()
        self._redraw()
        self.refresh_bindings()

    # ---- drawing -----------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        if self._examining:
            self._draw_banner()
            self._draw_progress()

    def _redraw(self) -> None:
        if not self.is_mounted:
            return
        self._draw_banner()
        self._draw_detail()
        self._draw_progress()
        self._draw_view()

    def _lay_out(self) -> None:
        """Show the view, and in it the probes or the detail."""
        for number, name in enumerate(f"{page}-view" for page in _PAGES):
            self.query_one(f"#{name}").display = number == self._view
        probing = self._examining and not self._picked
        self.query_one("#detail").display = not probing
        self.query_one("#progress").display = probing
        self.query_one("#detail-pane").border_title = "Probes" if probing else "Detail"

    def _draw_banner(self) -> None:
        report = self.report
        status, verdict = (report.status, report.summary) if report else ("examining", self.doctor.examination.title)
        if report and self._examining and status in ("ok", "unknown"):
            status, verdict = "examining", "nothing wrong found so far"
        tabs = list(VIEWS)
        if report is not None:
            tabs[0] += f" {len(report.findings)}"
            gpus = len(report.node.get("gpus", []))
            tabs[1] = f"Nodes {len(report.nodes)}" if report.nodes else f"Node {gpus} GPU{'' if gpus == 1 else 's'}"
        trouble = sum(result.status in ("failed", "timeout") for result in self.book.done.values())
        if report is not None and (times := len(report.timeline)):
            tabs[2] += f" {times}"
        tabs[3] += f" {len(self.book.done)}" + (f", {trouble} failed" if trouble else "")
        self.query_one(Banner).display_state(status, verdict, self._second_line(), tabs, self._view)

    def _second_line(self) -> str:
        if self._examining:
            seconds = time.monotonic() - self._began
            slow = self.book.slowest()
            waiting = f", waiting for {slow[0]} ({slow[1]:.0f} s)" if slow and slow[1] >= 2 else ""
            if not self.book.done and not self.book.running:
                return f"{'getting ready' if self.doctor.examination.live else 'reading'}, {seconds:.0f} s"
            return f"probing, {seconds:.0f} s: {len(self.book.done)} done, {len(self.book.running)} running{waiting}"
        line = node_line(self.report) if self.report else ""
        return f"stopped early · {line}" if self._stopped else line

    def _draw_progress(self) -> None:
        if self._view == 0 and self._examining:
            page = self.query_one("#progress", RowList)
            page.set_rows(list(probe_rows(self.book, page.room)), follow=page.has_focus)
        elif self._view == 3:
            page = self.query_one("#probes", RowList)
            rows = list(probe_rows(self.book, page.room))
            page.set_rows(rows or [row(("Nothing is probed in a bundle: everything comes from its texts.", "dim"))])
        if self._examining:
            self._draw_banner()

    def _draw_detail(self) -> None:
        page = self.query_one("#detail", RowList)
        subject = self.chosen()
        here = self.query_one(FindingList).current
        key = f"{page.room}:{here.key if here else ''}"
        if subject is None or self.report is None or not page.display:
            self._shown = None
            page.set_rows(self._nothing(page.room))
        elif key != self._shown:
            from gpudoctor.findings.model import Finding, Suppressed

            new = self._shown is None or key.partition(":")[2] != self._shown.partition(":")[2]
            self._shown = key
            if isinstance(subject, Finding):
                rows = list(detail_rows(subject, self.report, page.room))
            elif isinstance(subject, Suppressed):
                rows = list(suppressed_rows(subject, self.report, page.room))
            else:
                rows = list(undecided_rows(subject, page.room))
            page.set_rows(rows, top=new)

    def _nothing(self, width: int) -> list[Row]:
        if self.report is None:
            return []
        here = self.query_one(FindingList).current
        if here is not None and here.key in _GATHERED:
            return list(paragraph(_GATHERED[here.key], width))
        if self.report.findings:
            return []
        mark = f"{SYMBOLS[self.report.status]} "
        return list(paragraph(self.report.summary + ".", width, self.report.status, indent="  ", first=mark))

    def _draw_view(self) -> None:
        if self.report is None or self._view not in (1, 2):
            return
        page = self.query_one("#node" if self._view == 1 else "#timeline", RowList)
        empty = not page.rows
        if self._view == 1:
            page.set_rows(list(node_rows(self.report, page.room, self._gpus_open)))
        else:
            page.set_rows(list(timeline_rows(self.report, page.room)))
        if empty:  # begin where Enter does something
            page.cursor = next((number for number, each in enumerate(page.rows) if each.action), 0)

    def chosen(self) -> Finding | Suppressed | Undecided | None:
        """Return what the cursor of the list is on."""
        here = self.query_one(FindingList).current
        if here is None or self.report is None:
            return None
        for finding in self.report.findings:
            if finding.key == here.key:
                return finding
        for known in self.report.suppressed:
            if suppressed_key(known) == here.key:
                return known
        return next((entry for entry in self.report.undecided if undecided_key(entry) == here.key), None)

    def reveal(self, key: str) -> None:
        """Go to a finding."""
        self.action_view(0)
        self.query_one(FindingList).reveal(key)

    # ---- keys --------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what does something now."""
        if action == "walk":
            return self._view == 0 and self._finding() is not None
        if action == "suppress":
            return self._view == 0 and not self._examining and self._finding() is not None
        if action == "again":
            return not self._examining
        if action == "save":
            return self.report is not None
        if action == "filter":
            return self._view == 0 and not (self.focused is not None and self.focused.id == "filter")
        if action == "back":
            return self._can_go_back() or self._can_stop()
        return True

    def key_words(self, action: str) -> str | None:
        """Name an action by what it does now; empty where it does nothing, None where its own name will do."""
        if action == "back" and not self._can_go_back() and self._can_stop():
            return "Stop probing"
        if action == "suppress" and not self.doctor.can_suppress:
            return ""  # the key says why
        if action == "choose":
            here = self.focused.current if isinstance(self.focused, RowList) else None
            if here is not None and self.focused is self.query_one(FindingList):
                return "Open" if self.chosen() is not None else ""
            match here and here.action:
                case Copy():
                    return "Copy"
                case OpenLog():
                    return "Open log"
                case Goto():
                    return "Go there"
                case Fold():
                    return "More"
                case OpenNode():
                    return "Open node"
            return ""
        return None

    def _can_stop(self) -> bool:
        return self.doctor.examination.live and self._examining and not self._stopped

    def _can_go_back(self) -> bool:
        findings = self.query_one(FindingList)
        return (
            self._view != 0
            or not findings.has_focus
            or self.has_class("zoomed")
            or bool(findings.filter)
            or self.report is not self.whole
        )

    def _finding(self) -> Finding | None:
        if self.report is None:
            return None
        from gpudoctor.findings.model import Finding

        subject = self.chosen()
        return subject if isinstance(subject, Finding) else None

    def action_back(self) -> None:
        """Leave the detail, the filter or the view; with nothing to leave, stop waiting for probes."""
        findings = self.query_one(FindingList)
        if self._view != 0:
            self.action_view(0)
        elif self.has_class("zoomed") or not findings.has_focus:
            self._zoom(False)
            findings.focus()
        elif findings.filter:
            findings.set_filter("")
        elif self.report is not self.whole and self.whole is not None:
            self.show_part(self.whole)
        elif self._can_stop():
            self.doctor.stop_examining()
        self.refresh_bindings()

    def action_view(self, number: int) -> None:
        """Change to another view."""
        self._view = number
        self._lay_out()
        self.query_one(f"#{_PAGES[number]}").focus()
        self.call_after_refresh(self._redraw)
        self.refresh_bindings()

    def action_next(self, step: int) -> None:
        """Show another finding without leaving the detail."""
        self.query_one(FindingList).action_move(step)

    def action_zoom(self) -> None:
        """Give the detail the whole body, or give it back."""
        self._zoom(not self.has_class("zoomed"))
        self.query_one("#detail" if self.has_class("zoomed") else "#findings").focus()

    def _zoom(self, on: bool) -> None:
        self.set_class(on, "zoomed")
        self._pick()
        self.call_after_refresh(self._redraw)

    def _pick(self) -> None:
        if not self._picked:
            self._picked = True
            self._lay_out()
            self.call_after_refresh(self._redraw)

    async def action_filter(self) -> None:
        """Ask for the words that findings must hold."""
        from textual.widgets import Input

        if not self.query("#filter"):
            words = "words, severity:critical, area:driver, gpu:3b"
            text = self.query_one(FindingList).filter
            await self.query_one("#list-pane").mount(
                Input(value=text, placeholder=words, id="filter", compact=True), before=0
            )
        self.set_focus(self.query_one("#filter"))

    def action_copy(self) -> None:
        """Copy what is under the cursor."""
        page = self.focused
        here = page.current if isinstance(page, RowList) else None
        if page is self.query_one(FindingList):
            self.action_markdown()
            return
        if here is None:
            return
        if isinstance(here.action, Copy):
            self.doctor.copy(here.action.text, here.action.what)
        elif isinstance(here.action, OpenLog):
            self.doctor.copy(f"{here.action.source}:{here.action.line}: {here.action.text}", "evidence")
        elif here.text:
            self.doctor.copy(here.text.strip(), "line")

    def action_markdown(self) -> None:
        """Copy the finding for a ticket."""
        if (finding := self._finding()) is not None:
            from gpudoctor.report.markdown import finding_markdown

            self.doctor.copy(finding_markdown(finding), "finding as Markdown")

    def action_again(self) -> None:
        """Examine once more."""
        self.doctor.examine()

    def action_walk(self) -> None:
        """Open the walk-through of the finding."""
        if (finding := self._finding()) is not None:
            self.doctor.open_walk(finding)

    def action_save(self) -> None:
        """Open the dialog that saves the report."""
        if self.report is not None:
            self.doctor.open_save(self.report)

    def action_suppress(self) -> None:
        """Ask why and until when the finding need not count."""
        if (finding := self._finding()) is not None:
            self.doctor.open_suppress(finding)

    def help_words(self) -> str:
        """Say what this screen is for."""
        return _HELP

    def commands(self) -> Iterable[SystemCommand]:
        """Offer in the palette what this screen can do now."""
        for number, name in enumerate(VIEWS):
            yield SystemCommand(name, f"Show the view: {name.lower()}", partial(self.action_view, number))
        if self._finding() is not None:
            yield SystemCommand("Walk-through", "Be led through the fix of this finding", self.action_walk)
            yield SystemCommand("Copy as Markdown", "This finding, for a ticket", self.action_markdown)
            if self.doctor.can_suppress and not self._examining:
                yield SystemCommand("Suppress", "Live with this finding until a day", self.action_suppress)
        if self.report is not None:
            yield SystemCommand("Save report", "As text, Markdown, HTML or JSON", self.action_save)
            for finding in self.report.findings:
                # the palette reads markup; a site's own titles may hold anything
                title = plain(finding.title).replace("[", "(").replace("]", ")")
                yield SystemCommand(f"Go to: {title}", plain(finding.id), partial(self.reveal, finding.key))
        if not self._examining:
            yield SystemCommand("Examine again", "And compare", self.action_again)

    # ---- events ------------------------------------------------------------------------------------------------------

    @on(Banner.Picked)
    def _tab_clicked(self, event: Banner.Picked) -> None:
        self.action_view(event.number)

    @on(RowList.Resized)
    def _room_changed(self) -> None:
        self._redraw()

    @on(RowList.Moved, "#detail")
    @on(RowList.Moved, "#node")
    @on(RowList.Moved, "#timeline")
    def _keys_changed(self) -> None:
        self.refresh_bindings()

    @on(RowList.Moved, "#findings")
    def _finding_moved(self) -> None:
        if self._examining and self.query_one(FindingList).cursor:
            self._pick()
        self._draw_detail()
        self.refresh_bindings()

    @on(RowList.Chosen, "#findings")
    def _finding_chosen(self) -> None:
        if self.chosen() is None:
            return
        self._pick()
        if not self.has_class("wide"):
            self._zoom(True)
        self.query_one("#detail").focus()

    @on(RowList.Chosen, "#detail")
    def _detail_chosen(self, event: RowList.Chosen) -> None:
        match event.row.action:
            case Goto(key):
                self.query_one(FindingList).reveal(key)
            case Copy(text, what):
                self.doctor.copy(text, what)
            case OpenLog() as place:
                self.doctor.open_log(place)

    @on(RowList.Chosen, "#timeline")
    def _time_chosen(self, event: RowList.Chosen) -> None:
        if isinstance(event.row.action, OpenLog):
            self.doctor.open_log(event.row.action)

    @on(RowList.Chosen, "#node")
    def _node_chosen(self, event: RowList.Chosen) -> None:
        match event.row.action:
            case Fold(key):
                self._gpus_open ^= {key}
                self._draw_view()
            case Goto(key):
                self.reveal(key)
            case OpenNode(number) if self.whole is not None:
                self.show_part(self.whole.nodes[number])

    @on(FindingList.Filtered)
    def _filtered(self) -> None:
        words = self.query_one(FindingList).filter
        self.query_one("#list-pane").border_title = Text(f"Findings: {fit(words, 40)}" if words else "Findings")
        if not words:
            self.query("#filter").remove()
        self._draw_detail()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while it is typed."""
        self.query_one(FindingList).set_filter(event.value)

    def on_input_submitted(self) -> None:
        """Keep the filter and go on with the list."""
        self.query("#filter").remove()
        self.query_one(FindingList).focus()

    def on_descendant_focus(self) -> None:
        """The keys depend on the focus."""
        self.refresh_bindings()
