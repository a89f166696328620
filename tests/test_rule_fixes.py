"""What every shipped rule must offer: how to verify, where to read on, and commands for each family of distributions."""

import re

import pytest

from gpudoctor.collect.probe import load_probes
from gpudoctor.diagnosis import Doctor
from gpudoctor.engine.rule import FixRung, Rule

RULES = [rule for rule in Doctor().rules.rules if rule.area != "site"]  # a site's limits are its own
_DEBIAN = re.compile(r"\b(?:apt|apt-get|dpkg|update-grub|update-initramfs)\b")
_RPM = re.compile(r"\b(?:dnf|yum|rpm|zypper|grubby|dracut)\b")


@pytest.mark.parametrize("rule", RULES, ids=[rule.id for rule in RULES])
def test_rule_says_what_to_do_and_how_to_see_that_it_helped(rule: Rule) -> None:
    assert rule.fix and rule.references, "a ladder and a reference"
    assert all(reference.startswith("https://") for reference in rule.references)
    assert rule.verify and set(rule.verify) <= {probe.name for probe in load_probes()}


def _commands(rung: FixRung) -> dict[str, list[str]]:
    return rung.commands if isinstance(rung.commands, dict) else {"default": rung.commands}


@pytest.mark.parametrize("rule", RULES, ids=[rule.id for rule in RULES])
def test_package_commands_are_given_for_both_families(rule: Rule) -> None:
    for rung in rule.fix:
        given = _commands(rung)
        lines = [line for commands in given.values() for line in commands]
        if any(_DEBIAN.search(line) or _RPM.search(line) for line in lines):
            assert "apt" in given or any(_DEBIAN.search(line) for line in lines), rung.title
            assert given.keys() & {"dnf", "zypper"} or any(_RPM.search(line) for line in lines), rung.title
