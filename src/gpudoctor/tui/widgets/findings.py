"""The findings by rank: causes, what they explain folded under them, advice, what is suppressed, what wasn't decided."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from textual.binding import Binding
from textual.message import Message

from gpudoctor.report.overview import short_address, subject_words
from gpudoctor.tui.rows import Fold, Part, Row, column, fit, plain, row
from gpudoctor.tui.symbols import SYMBOLS, grade
from gpudoctor.tui.widgets.rows import RowList

if TYPE_CHECKING:
    from gpudoctor.findings.model import Finding, Report, Subject, Suppressed, Undecided

UNDECIDED, SUPPRESSED = "undecided", "suppressed"  # keys of the rows that gather them
_NODE = "the node"
_WIDE = 64  # from here on subject and confidence have columns of their own


def undecided_key(undecided: Undecided) -> str:
    """Name the row of an undecided rule."""
    return f"{UNDECIDED}:{undecided.id}"


def suppressed_key(suppressed: Suppressed) -> str:
    """Name the row of a suppressed finding."""
    return f"{SUPPRESSED}:{suppressed.finding.key}"


def about(subjects: list[Subject]) -> str:
    """Say what a finding is about, short; a node is worth naming only where nothing nearer is."""
    near = [subject for subject in subjects if subject.kind != "node"] or subjects
    return plain(subject_words(near[0])) + (f" +{len(near) - 1}" if len(near) > 1 else "") if near else _NODE


def finding_rows(report: Report, width: int, *, folded: set[str], unfolded: set[str], filter: str = "") -> list[Row]:
    """Return the list. What lies under another row is folded unless in `unfolded`; a filter unfolds what it finds."""
    children, roots = _tree(report.findings)
    kept = _kept(report, filter)
    rows: list[Row] = []

    def add(finding: Finding, depth: int, seen: frozenset[str]) -> None:
        below = [child for child in children.get(finding.key, []) if child.key not in seen]
        below = [child for child in below if kept is None or _reaches(child, children, kept, seen)]
        if kept is not None and finding.key not in kept and not below:
            return
        is_open = (kept is not None or finding.key in unfolded) and finding.key not in folded
        rows.append(_finding_row(finding, width, depth, len(below), is_open))
        if is_open:
            for child in below:
                add(child, depth + 1, seen | {finding.key})

    for finding in roots:
        add(finding, 0, frozenset())
    for key, title, entries in _gathered(report):
        shown = [(name, text) for name, text in entries if kept is None or name in kept]
        if shown:
            is_open = (bool(filter) or key in unfolded) and key not in folded
            mark = SYMBOLS["open" if is_open else "closed"]
            label = f"{mark} {SYMBOLS[key]} {title} ({len(shown)})"
            rows.append(row((fit(label, width), key), key=key, action=Fold(key)))
            if is_open:
                rows += [row("    ", (fit(text, width - 4), "dim"), key=name) for name, text in shown]
    return rows


def _gathered(report: Report) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Yield what is gathered below the findings: key and title of the row, then key and text of what lies under it."""
    suppressed = []
    for known in report.suppressed:
        until = "for good" if known.suppression.expires == "never" else f"until {known.suppression.expires}"
        suppressed.append((suppressed_key(known), f"{plain(known.finding.title)} ({until})"))
    for over in report.expired_suppressions:
        text = f"{plain(over.id)}: its suppression ended {plain(over.expires)}, it counts again ({plain(over.reason)})"
        suppressed.append((f"{SUPPRESSED}:{over.id}:{over.subject}", text))
    yield SUPPRESSED, "Suppressed", suppressed
    undecided = []
    for entry in report.undecided:
        text = f"{plain(entry.id)}: {plain(entry.ask) or 'needs ' + ', '.join(map(plain, entry.missing))}"
        undecided.append((undecided_key(entry), text))
    yield UNDECIDED, "Could not be decided", undecided


def _tree(findings: list[Finding]) -> tuple[dict[str, list[Finding]], list[Finding]]:
    """Hang every consequence under its first cause that is there; what hangs nowhere is a root."""
    keys = {finding.key for finding in findings}
    children: dict[str, list[Finding]] = {}
    roots: list[Finding] = []
    for finding in findings:
        parent = next((key for key in finding.caused_by if key in keys and key != finding.key), None)
        if finding.role == "consequence" and parent is not None:
            children.setdefault(parent, []).append(finding)
        else:
            roots.append(finding)
    reached: set[str] = set()
    stack = [root.key for root in roots]
    while stack:
        key = stack.pop()
        if key not in reached:
            reached.add(key)
            stack += [child.key for child in children.get(key, [])]
    # Findings that explain each other in a circle would otherwise be seen nowhere.
    roots += [finding for finding in findings if finding.key not in reached]
    return children, roots


def _reaches(finding: Finding, children: dict[str, list[Finding]], kept: set[str], seen: frozenset[str]) -> bool:
    if finding.key in kept:
        return True
    return any(
        _reaches(child, children, kept, seen | {finding.key})
        for child in children.get(finding.key, [])
        if child.key not in seen
    )


def _kept(report: Report, filter: str) -> set[str] | None:
    """Return the keys that a filter keeps; None without one.

    Every word must be found; `severity:`, `area:` and `gpu:` look at that alone.
    """
    words = filter.lower().split()
    if not words:
        return None
    kept = {finding.key for finding in report.findings if all(_fits(finding, word) for word in words)}
    for entry in report.undecided:
        text = f"{entry.id} {entry.ask} {' '.join(entry.missing)} undecided".lower()
        if all(word in text or (word.startswith("area:") and entry.id.startswith(word[5:])) for word in words):
            kept.add(undecided_key(entry))
    for known in report.suppressed:
        if all(word == SUPPRESSED or _fits(known.finding, word) for word in words):
            kept.add(suppressed_key(known))
    return kept


def _fits(finding: Finding, word: str) -> bool:
    name, colon, value = word.partition(":")
    subjects = [f"{subject.kind} {subject.name}".lower() for subject in finding.subjects]
    match name if colon else "":
        case "severity" | "sev":
            return grade(finding).startswith(value)
        case "area":
            return finding.id.startswith(value)
        case "gpu":
            return any(subject.startswith("gpu ") and value in subject for subject in subjects)
    return (
        word in " ".join([finding.id, finding.title, finding.because, finding.role, grade(finding), *subjects]).lower()
    )


def _finding_row(finding: Finding, width: int, depth: int, below: int, is_open: bool) -> Row:
    style = grade(finding)
    fold = SYMBOLS["open" if is_open else "closed"] if below else " "
    lead = f"{'   ' * depth}{fold} "
    parts: list[Part] = [(lead, "dim"), (f"{SYMBOLS[style]} ", style)]
    room = width - len(lead) - 2
    title = plain(finding.title)
    if below and not is_open:
        title += f" (explains {below})"
    if finding.history and finding.severity == "info":
        title += " (earlier boot)"
    title_style = "dim" if finding.role == "consequence" else style if style == "critical" else ""
    subject = about(finding.subjects)
    if width >= _WIDE:
        parts.append((column(title, room - 31), title_style))
        parts.append((" " + column(subject, 21) + " " + column(finding.confidence, 8), "dim"))
    else:  # a GPU is told by the end of its address
        title += "" if finding.confidence == "certain" else f" ({finding.confidence})"
        parts.append((column(title, room - 12), title_style))
        short = "" if subject == _NODE else subject.removeprefix("node ")
        short = short_address(short.removeprefix("GPU ")) if ":" in short else short
        parts.append((" " + column(short, 11), "dim"))
    return Row(tuple(parts), key=finding.key, action=Fold(finding.key) if below else None)


class FindingList(RowList):
    """The list with its folds and its filter."""

    BINDINGS = [
        Binding("right,l", "fold(False)", "Unfold", show=False),
        Binding("left,h", "fold(True)", "Fold", show=False),
        Binding("space", "turn", "Fold"),
    ]

    class Filtered(Message):
        """The filter changed."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.report: Report | None = None
        self.filter = ""
        self._folded: set[str] = set()
        self._unfolded: set[str] = set()

    def show_report(self, report: Report, *, follow: bool = True) -> None:
        """Show the findings of a report; the cursor stays on its finding (follow), else in its place."""
        self.report = report
        self.show_rows(follow=follow)

    def show_rows(self, *, follow: bool = True) -> None:
        """Draw anew what changed."""
        self.set_rows(list(self._rows()), follow=follow)

    def set_filter(self, text: str) -> None:
        """Show only what every word of the text fits."""
        if text != self.filter:
            self.filter = text
            self._folded.clear()
            self.show_rows()
            self.post_message(self.Filtered())

    def reveal(self, key: str) -> bool:
        """Go to a finding, unfolding what it lies under."""
        if self.select(key):
            return True
        self.set_filter("")
        by_key = {finding.key: finding for finding in self.report.findings} if self.report else {}
        finding = by_key.get(key)
        while finding is not None and finding.caused_by and finding.caused_by[0] not in self._unfolded:
            parent = finding.caused_by[0]
            self._unfolded.add(parent)
            self._folded.discard(parent)
            finding = by_key.get(parent)
        self.show_rows()
        return self.select(key)

    def on_resize(self) -> None:
        """Columns depend on the width."""
        super().on_resize()
        self.show_rows()

    def action_fold(self, close: bool) -> None:
        """Fold or unfold what lies under the cursor; folding inside goes to the row above."""
        here = self.current
        if here is None:
            return
        is_open = isinstance(here.action, Fold) and self._is_open(here.key)
        if isinstance(here.action, Fold) and is_open == close:
            self._set_fold(here.key, close)
        elif close:
            self._go_to_parent(here.key)

    def action_turn(self) -> None:
        """Fold what is open, unfold what is closed."""
        if (here := self.current) is not None and isinstance(here.action, Fold):
            self._set_fold(here.key, self._is_open(here.key))

    def action_choose(self) -> None:
        """Enter on a row that only gathers others folds; on anything else it is for the screen."""
        if (here := self.current) is not None and here.key in (UNDECIDED, SUPPRESSED):
            self.action_turn()
        else:
            super().action_choose()

    def _is_open(self, key: str) -> bool:
        return (bool(self.filter) or key in self._unfolded) and key not in self._folded

    def _set_fold(self, key: str, close: bool) -> None:
        (self._folded if close else self._unfolded).add(key)
        (self._unfolded if close else self._folded).discard(key)
        self.show_rows()

    def _go_to_parent(self, key: str) -> None:
        gathering, colon, _ = key.partition(":")
        if colon and gathering in (UNDECIDED, SUPPRESSED):
            self.select(gathering)
            return
        finding = next((f for f in self.report.findings if f.key == key), None) if self.report else None
        for parent in finding.caused_by if finding else []:
            if self.select(parent):
                return

    def _rows(self) -> Iterator[Row]:
        if self.report is None:
            return
        rows = finding_rows(self.report, self.room, folded=self._folded, unfolded=self._unfolded, filter=self.filter)
        if rows:
            yield from rows
        elif self.filter:
            yield row(("No finding fits the filter.", "dim"))
        else:
            yield row((f"{SYMBOLS[self.report.status]} ", self.report.status), plain(self.report.summary) + ".")
