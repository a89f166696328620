"""Commands on the live host."""

from __future__ import annotations

from gpudoctor.sources.live import run_command


def test_a_deadline_is_said_as_people_say_it():
    answer = run_command(["sleep", "5"], 0.1234567, 1000)
    assert (answer.status, answer.reason) == ("timeout", "no answer in 0.1 s")
