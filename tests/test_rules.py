"""Every rule test of tests/rules, as a pytest case of its own."""

from pathlib import Path

import pytest

from gpudoctor.diagnosis import Doctor
from gpudoctor.engine import available_engines
from gpudoctor.ruletests import RuleTest, read_tests, run_test

TESTS = [test for path in sorted(Path(__file__).parent.joinpath("rules").glob("*.yaml")) for test in read_tests(path)]


@pytest.fixture(scope="session")
def doctors() -> list[Doctor]:
    return [Doctor(engine=engine) for engine in available_engines()]


@pytest.mark.parametrize("test", TESTS, ids=[test.name for test in TESTS])
def test_rule(test: RuleTest, doctors: list[Doctor]) -> None:
    faults = {doctor.engine: run_test(test, doctor) for doctor in doctors}
    assert set(faults.values()) == {None}, faults
