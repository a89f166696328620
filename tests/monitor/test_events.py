"""What is told, when, and when not."""

from __future__ import annotations

from report.reports import finding, report

from gpudoctor.findings.model import ProbeResult, Suppressed, Suppression
from gpudoctor.monitor.events import Tracker


def seen(*findings, failed: tuple[str, ...] = ()):
    made = report(*findings, status="critical" if findings else "ok")
    made.probes = [ProbeResult(name=name, status="timeout") for name in failed]
    return made


def told(tracker: Tracker, *reports) -> list[list[str]]:
    return [[event.event for event in tracker.observe(made, 1.0) if event.event != "status"] for made in reports]


FAULT, NONE = seen(finding()), seen()


def test_a_finding_appears_and_is_resolved_once():
    assert told(Tracker(1, 3), NONE, FAULT, FAULT, NONE, NONE, NONE, NONE) == [
        [], ["appeared"], [], [], [], ["resolved"], []
    ]  # fmt: skip


def test_nothing_flaps():
    events = told(Tracker(1, 3), *[FAULT, NONE] * 20)
    assert [kind for cycle in events for kind in cycle] == ["appeared"]


def test_a_passing_sign_is_not_announced():
    assert told(Tracker(3, 3), FAULT, FAULT, NONE, FAULT, FAULT, FAULT) == [[], [], [], [], [], ["appeared"]]


def test_a_status_that_flaps_is_told_once():
    tracker = Tracker(1, 3)
    kinds = [event.event for made in [FAULT, NONE] * 10 for event in tracker.observe(made, 1.0)]
    assert kinds == ["appeared", "status"]


def test_what_gets_worse_is_told_at_once_what_gets_better_once_it_stays():
    tracker = Tracker(1, 3)
    milder = seen(finding(severity="warning"))
    assert told(tracker, milder, FAULT, milder, FAULT, milder, milder, milder, milder) == [
        ["appeared"], ["changed"], [], [], [], [], ["changed"], []
    ]  # fmt: skip


def test_a_suppression_does_not_make_it_resolved():
    tracker = Tracker(1, 1)
    told(tracker, FAULT)
    quiet = seen()
    quiet.suppressed = [Suppressed(finding=finding(), suppression=Suppression(id="a", reason="r", expires="never"))]
    assert told(tracker, quiet, quiet, FAULT) == [["suppressed"], [], ["appeared"]]


def test_severity_and_role_change_measured_values_do_not():
    tracker = Tracker(1, 3)
    hotter = seen(finding(because="It is 91 degrees.", count=7))
    milder = seen(finding(severity="warning"))
    assert told(tracker, FAULT, hotter) == [["appeared"], []]
    assert told(tracker, milder, milder) == [[], []]
    event = tracker.observe(milder, 1.0)[0]
    assert (event.event, event.previous) == ("changed", {"severity": "critical"})


def test_a_probe_that_hangs_resolves_nothing():
    hung = seen(failed=("nvml",))
    assert told(Tracker(1, 2), FAULT, hung, hung, hung, hung) == [["appeared"], [], [], [], []]
    assert told(Tracker(1, 2), seen(finding(), failed=("nvml",)), hung, hung) == [["appeared"], [], ["resolved"]]


def test_a_restart_tells_nothing_again():
    before, after = Tracker(1, 2), Tracker(1, 2)
    told(before, FAULT)
    after.restore(before.dump())
    assert told(after, FAULT, NONE, NONE) == [[], [], ["resolved"]]
    assert after.sequence > before.sequence


def test_the_status_is_told_when_it_changes():
    tracker = Tracker(1, 1)
    kinds = [[event.event for event in tracker.observe(made, 1.0)] for made in (NONE, NONE, FAULT, NONE)]
    assert kinds == [["status"], [], ["appeared", "status"], ["resolved", "status"]]
