"""`gpudoctor rules`: what it says to those who call it wrongly."""

from __future__ import annotations

DRIVER_TESTS = "tests/rules/driver.yaml"


def test_only_the_action_is_asked_for(gpudoctor):
    done = gpudoctor("rules")
    assert done.code == 64
    assert done.err == "gpudoctor rules: the following arguments are required: action (see gpudoctor rules --help)\n"


def test_an_id_that_no_test_has_is_named(gpudoctor):
    done = gpudoctor("rules", "test", DRIVER_TESTS, "--only", "driver.nothing-such")
    assert (done.code, done.out) == (1, "0 passed, 0 failed\n")
    assert (
        done.err == f"gpudoctor rules test: {DRIVER_TESTS}: no test of rules whose id begins with driver.nothing-such\n"
    )
