"""The pages of a walk-through: confirm, one rung each, verify."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpudoctor.tui.rows import Copy, Goto, OpenLog, Part, Row, fit, heading, paragraph, plain, quoted, row
from gpudoctor.tui.symbols import SYMBOLS, grade
from gpudoctor.tui.walk import Verdict, Walk
from gpudoctor.tui.widgets.detail import fix_rows

if TYPE_CHECKING:
    from gpudoctor.findings.model import Finding, Fix

_DONE = {"done": ("ok", "ok"), "no help": ("failed", "warning"), "skipped": ("skipped", "dim")}
_SHOWN = 6
_LEADS = {
    "read-only": "This only looks; it changes nothing.",
    "safe": "This disturbs nobody.",
    "restarts-app": "Programs on the GPU have to be stopped for it.",
    "disrupts-node": "The whole machine is out for a while: drain it first.",
    "data-loss": "Data can be lost: save what matters first.",
    "vendor": "This is a case for the vendor or whoever serves the machine.",
}


def steps_row(walk: Walk, width: int) -> Row:
    """Return the trail of steps: what was done, where one is."""
    names = ["Confirm", *[str(number + 1) for number in range(len(walk.rungs))], "Verify"]
    parts: list[Part] = []
    for number, name in enumerate(names):
        mark, style = _DONE.get(walk.outcomes.get(number - 1, ""), ("", ""))
        label = f" {name}{' ' + SYMBOLS[mark] if mark else ''} "
        parts += [
            (label, "tab-on" if number == walk.position else style),
            ("─" if number < len(names) - 1 else "", "rule"),
        ]
    return row(*parts)


def walk_rows(
    walk: Walk, finding: Finding, verdict: Verdict | None, width: int, *, live: bool, running: str
) -> Iterator[Row]:
    """Yield the page of the step that one is at."""
    if walk.position == 0:
        yield from _confirm(walk, finding, width)
    elif (rung := walk.rung) is not None:
        yield from _rung(walk, finding.fixes[rung], rung, width)
    else:
        yield from _verify(walk, finding, verdict, width, live, running)


def _confirm(walk: Walk, finding: Finding, width: int) -> Iterator[Row]:
    style = grade(finding)
    yield heading("Is it this?", width)
    yield from paragraph(finding.title, width, style, indent="  ", first=f"{SYMBOLS[style]} ")
    yield from paragraph(finding.because, width)
    yield row("")
    yield from paragraph("Look at what it rests on (Enter opens the log there):", width, "dim")
    for where in finding.evidence[:_SHOWN]:
        action = OpenLog(where.source, where.line, where.text)
        yield row((fit(f"{plain(where.source)}:{where.line}", width), "link"), action=action)
        if where.text:
            yield from quoted(where.text, width, "quote", indent="  ", action=action)
    if finding.verify.probes:
        yield row("")
        yield from paragraph(
            f"What confirms it: {', '.join(finding.verify.probes)}. Press v to ask again now.", width, "dim"
        )
    yield row("")
    if walk.rungs:
        count = len(walk.rungs)
        words = f"{count} step{'s' if count > 1 else ''}, least disruptive first. gpudoctor runs none of them: you do."
        yield from paragraph(f"Then press right to go on: {words}", width)
    else:
        yield from paragraph("No fix is known for it. Press right to see whether it is still there.", width)


def _rung(walk: Walk, fix: Fix, rung: int, width: int) -> Iterator[Row]:
    yield heading(f"Step {rung + 1} of {len(walk.rungs)}", width)
    yield from fix_rows(fix, "", width)
    yield row("")
    yield from paragraph(_LEADS[fix.risk], width, f"badge-{fix.risk}" if fix.risk == "data-loss" else "dim")
    if fix.commands:
        yield from paragraph(
            "Enter copies the command under the cursor, c copies all, p shows them plainly to select by mouse.",
            width,
            "dim",
        )
    if "reboot" in fix.needs:
        yield from paragraph(
            "After the reboot start gpudoctor again: it knows where you were and offers to verify.", width, "dim"
        )
    if outcome := walk.outcomes.get(rung):
        mark, style = _DONE[outcome]
        yield row("")
        yield row((f"{SYMBOLS[mark]} You said: {outcome}.", style))
    yield row("")
    yield row(
        ("d", "key"), " done   ", ("x", "key"), " didn't help   ", ("s", "key"), " skip   ", ("left", "key"), " back"
    )


def _verify(
    walk: Walk, finding: Finding, verdict: Verdict | None, width: int, live: bool, running: str
) -> Iterator[Row]:
    yield heading("Is it gone?", width)
    if running:
        yield from paragraph(f"{SYMBOLS['running']} {running}", width)
        return
    if verdict is None:
        if live:
            asked = f" ({', '.join(finding.verify.probes)} among it)" if finding.verify.probes else ""
            yield from paragraph(f"Press v to examine the machine again{asked}.", width)
        else:
            yield from paragraph(
                "A bundle shows the machine as it was. Make a new one after the fix and diagnose that; v reads this one again.",
                width,
            )
        return
    yield from _verdict(walk, finding, verdict, width)


def _verdict(walk: Walk, finding: Finding, verdict: Verdict, width: int) -> Iterator[Row]:
    untried = [number for number in range(len(walk.rungs)) if number not in walk.outcomes]
    match verdict.state:
        case "resolved":
            yield from paragraph(
                f"Resolved: {finding.title} is not found any more.", width, "ok", indent="  ", first=f"{SYMBOLS['ok']} "
            )
            last = [walk.rungs[rung] for rung, outcome in walk.outcomes.items() if outcome == "done"]
            if last:
                yield from paragraph(f"What was done last: {last[-1]}", width, "dim", indent="  ")
        case "quiet":
            yield from paragraph(
                "No new sign of it. The old lines are still in the log, as logs are not cleared: good so far, watch it under load.",
                width, "info", indent="  ", first=f"{SYMBOLS['info']} ",
            )  # fmt: skip
        case "still there":
            yield from paragraph(
                f"Still there: {finding.title}", width, "critical", indent="  ", first=f"{SYMBOLS['critical']} "
            )
    yield row("")
    if verdict.new:
        yield heading("New since you started", width)
        for other in verdict.new:
            style = grade(other)
            yield row(
                (f"{SYMBOLS[style]} ", style), (fit(plain(other.title), width - 2), "link"), action=Goto(other.key)
            )
        yield row("")
    if verdict.state == "resolved":
        yield from paragraph("Press Escape to go back to what else was found.", width)
    elif untried:
        yield from paragraph(f"Press right for the next step: {untried[0] + 1}. {walk.rungs[untried[0]]}", width)
    else:
        yield from paragraph(
            "Every step was tried. Make a bug report and take it to the vendor, together with the saved report (s on the main screen):",
            width,
        )
        command = "sudo nvidia-bug-report.sh"
        yield row(("$ ", "dim"), (command, "command"), action=Copy(command, "command"))
