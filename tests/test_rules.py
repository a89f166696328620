"""Every rule test of tests/rules, as a pytest case of its own."""

from pathlib import Path

import pytest

from gpudoctor.diagnosis import Doctor
from gpudoctor.ruletests import RuleTest, read_tests, run_test

TESTS = [test for path in sorted(Path(__file__).parent.joinpath("rules").glob("*.yaml")) for test in read_tests(path)]


@pytest.fixture(scope="session")
def doctor() -> Doctor:
    return Doctor()


@pytest.mark.parametrize("test", TESTS, ids=[test.name for test in TESTS])
def test_rule(test: RuleTest, doctor: Doctor) -> None:
    fault = run_test(test, doctor)
    assert fault is None, fault
