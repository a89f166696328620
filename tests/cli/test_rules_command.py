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


def test_only_leaves_the_rules_whose_id_begins_so(gpudoctor):
    done = gpudoctor("rules", "list", "--only", "pcie.")
    assert done.code == 0
    lines = done.out.splitlines()
    assert any(line.startswith("pcie.width-degraded ") for line in lines)
    assert all(line.startswith("pcie.") for line in lines)
    page = gpudoctor("rules", "page", "--only", "pcie.width-degraded").out
    assert "### pcie.width-degraded" in page
    assert page.count("\n### ") == 1
    none = gpudoctor("rules", "list", "--only", "nothing.such")
    assert (none.code, none.out) == (1, "")
    assert none.err == "gpudoctor rules: --only nothing.such: no rule's id begins so\n"


def test_a_path_without_rules_is_named(gpudoctor, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "torn.yaml").write_text("- id: [a\n")
    said = {
        "missing": (66, "no such file or folder"),
        "empty": (66, "no *.yaml in this folder"),
        "torn.yaml": (1, "not valid YAML"),
    }
    for name, (code, words) in said.items():
        done = gpudoctor("rules", "lint", str(tmp_path / name))
        assert done.code == code
        assert done.err.startswith(f"gpudoctor rules: {tmp_path / name}")
        assert words in done.err
        assert done.err.count("\n") == 1


def test_what_a_terminal_would_obey_is_taken_out_of_own_rules(gpudoctor, tmp_path):
    (tmp_path / "mine.yaml").write_text(
        '- id: site.loud\n  title: "Loud \\e[31mred\\e]0;mine\\a"\n  severity: info\n'
        '  when: [{a: {log: "hello {x}"}}]\n  because: "said \\e[2J{a.x}"\n'
        '  fix: [{title: "do \\e[1m it", commands: ["echo \\e[5mx"]}]\n'
        '- id: "site.bad\\e[31m!"\n  title: x\n'
    )
    outputs = [
        gpudoctor("diagnose", shape, "--rules", str(tmp_path), "-", stdin=b"hello world\n").out
        for shape in ("--text", "--markdown", "--github", "--json", "--html")
    ]
    listed = gpudoctor("rules", "list", "--rules", str(tmp_path), "--only", "site.")
    lint = gpudoctor("rules", "lint", str(tmp_path))
    for said in (*outputs, listed.out, listed.err, lint.err):
        assert "\x1b" not in said
        assert "\\u001b" not in said
    assert "site.loud" in outputs[0]
    assert "Loud red" in listed.out
    assert "site.bad!: id: " in lint.err
