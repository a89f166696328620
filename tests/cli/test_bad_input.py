"""Whatever is fed in: one clear line or a partial report, never a traceback, never a hang."""

from __future__ import annotations

import gzip
import os
import random
import subprocess
import sys
import zlib

import pytest

XID = b"[  812.114] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"


def one_line(text: str) -> bool:
    return text.count("\n") == 1 and "Traceback" not in text


@pytest.fixture
def feed(gpudoctor, tmp_path):
    def run(content: bytes, name: str = "input.log"):
        path = tmp_path / name
        path.write_bytes(content)
        return gpudoctor("diagnose", "--json", str(path))

    return run


def test_random_bytes(feed):
    done = feed(random.Random(1).randbytes(3_000_000))
    assert (done.code, done.report["status"], done.err) == (3, "unknown", "")


def test_an_empty_file(feed):
    done = feed(b"")
    assert (done.code, done.report["status"], done.err) == (3, "unknown", "")


def test_a_missing_file(gpudoctor):
    done = gpudoctor("diagnose", "/no/such/file")
    assert done.code == 66
    assert done.err == "gpudoctor: /no/such/file: no such file or folder\n"


def test_a_device_is_not_read(gpudoctor):
    done = gpudoctor("diagnose", "/dev/zero")
    assert done.code == 66
    assert one_line(done.err)


def test_a_pipe_that_nobody_writes_does_not_hang(gpudoctor, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    done = gpudoctor("diagnose", str(tmp_path / "pipe"), timeout=20)
    assert done.code == 66
    assert one_line(done.err)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_folder_that_may_not_be_read(gpudoctor, tmp_path):
    tmp_path.chmod(0)
    done = gpudoctor("diagnose", str(tmp_path))
    tmp_path.chmod(0o700)
    assert done.code == 66
    assert "permission denied" in done.err


def test_a_ten_gigabyte_sparse_file(gpudoctor, tmp_path):
    path = tmp_path / "sparse.log"
    with path.open("wb") as file:
        file.write(XID)
        file.seek(10 * 2**30)
        file.write(b"\n" + XID)
    done = gpudoctor("diagnose", "--json", str(path), timeout=30)
    assert done.causes() == ["hardware.fell-off-bus"]


def test_a_gzip_bomb_is_cut_and_named(gpudoctor, tmp_path):
    path = tmp_path / "bomb.log.gz"
    compressor = zlib.compressobj(9, wbits=31)
    block = bytes(2**24)
    with path.open("wb") as file:
        for _ in range(64):
            file.write(compressor.compress(block))
        file.write(compressor.flush())
    done = gpudoctor("diagnose", "--json", str(path), timeout=30)
    assert done.code == 3
    assert "suspiciously much" in done.report["source"]["problems"][0]
    assert done.report["source"]["complete"] is False


def test_a_cut_gzip_is_read_as_far_as_it_goes(feed):
    noise = "".join(f"[{n}.0] usb 1-1: new device {random.Random(n).random()}\n" for n in range(20_000)).encode()
    whole = gzip.compress(XID + noise)
    done = feed(whole[: len(whole) // 2], "log.gz")
    assert done.causes() == ["hardware.fell-off-bus"]
    assert "breaks off after" in done.report["source"]["problems"][0]


def test_members_of_gzip_are_read_one_after_the_other(feed):
    done = feed(b"".join(gzip.compress(part) for part in (b"one\n", b"two\n", XID, b"three\n")), "log.gz")
    assert done.report["findings"][0]["evidence"][0]["line"] == 3


def test_nul_bytes_and_invalid_utf8(feed):
    done = feed(b"\0\0\xff\xfe\x80 \xc3\x28\n" + XID.replace(b"fallen", b"fal\xfflen") + b"\0\n")
    assert done.causes() == ["hardware.fell-off-bus"]


def test_utf16_from_a_windows_editor(feed):
    done = feed(XID.decode().encode("utf-16"))
    assert done.causes() == ["hardware.fell-off-bus"]


def test_escape_sequences_never_reach_the_terminal(gpudoctor, tmp_path):
    path = tmp_path / "evil.log"
    path.write_bytes(b"\x1b]0;owned\x07\x1b[2J" + XID[:-1] + b"\x1b[31m\x9b31m\x08\x08\xe2\x80\xae evil\n")
    done = gpudoctor("diagnose", "--text", str(path))
    assert "hardware.fell-off-bus" in done.out
    assert not [char for char in done.out if (ord(char) < 32 and char != "\n") or 0x7F <= ord(char) < 0xA0]
    assert "\u202e" not in done.out
    assert "owned" not in done.out


def test_a_line_of_ten_megabytes(feed):
    done = feed(b"x" * 10_000_000 + b"\n" + XID)
    assert done.causes() == ["hardware.fell-off-bus"]


def test_standard_input(gpudoctor):
    done = gpudoctor("diagnose", "--json", "-", stdin=b"noise\n" + XID)
    assert done.report["findings"][0]["id"] == "hardware.fell-off-bus"
    assert done.report["findings"][0]["evidence"][0] == {"source": "stdin", "line": 2, "text": XID.decode().strip()}
    assert done.code == 2


def test_links_in_a_folder_are_not_followed(gpudoctor, tmp_path):
    (tmp_path / "outside.log").write_bytes(XID)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link.log").symlink_to(tmp_path / "outside.log")
    done = gpudoctor("diagnose", "--json", str(tmp_path / "folder"))
    assert done.report["findings"] == []


RULES = {
    "not yaml": ("- id: a.b\n  title: [oops\n", ":3: not valid YAML"),
    "unknown key": (
        "- id: a.b\n  title: t\n  severity: info\n  when: [{m: {fact: gpu}}]\n  becuase: x\n",
        ":5: a.b: becuase",
    ),
    "unknown fact": (
        "- id: a.b\n  title: t\n  severity: info\n  when: [{m: {fact: gpus}}]\n  because: x\n",
        "unknown fact 'gpus'; similar are gpu",
    ),
    "unknown field": (
        "- id: a.b\n  title: t\n  severity: info\n  when: [{m: {fact: gpu, temprature: 3}}]\n  because: x\n",
        "gpu has no field 'temprature'",
    ),
    "bad severity": (
        "- id: a.b\n  title: t\n  severity: fatal\n  when: [{m: {fact: gpu}}]\n  because: x\n",
        ":3: a.b: severity",
    ),
    "bad id": (
        "- id: PCIe.Slow link\n  title: t\n  severity: info\n  when: [{m: {fact: gpu}}]\n  because: x\n",
        ":1: PCIe.Slow link: id: an id is area.name",
    ),
    "bad template": (
        '- id: a.b\n  title: t\n  severity: info\n  when: [{m: {log: "{x} {y}"}}]\n  because: x\n',
        "no fixed text",
    ),
    "wrong alias": (
        "- id: a.b\n  title: t\n  severity: info\n  when: [{m: {fact: gpu}}]\n  because: '{n.name}'\n",
        "no condition is named n",
    ),
}


@pytest.mark.parametrize("text,words", RULES.values(), ids=RULES)
def test_a_faulty_rule_is_named_and_costs_nothing_else(gpudoctor, tmp_path, text, words):
    (tmp_path / "mine.yaml").write_text(text)
    done = gpudoctor("diagnose", "--json", "--rules", str(tmp_path), "-", stdin=XID)
    assert done.causes() == ["hardware.fell-off-bus"]
    problems = done.report["source"]["problems"]
    assert [problem for problem in problems if words in problem and ("mine.yaml" in problem or "a.b" in problem)]


@pytest.mark.parametrize("text,words", RULES.values(), ids=RULES)
def test_lint_names_the_fault(gpudoctor, tmp_path, text, words):
    (tmp_path / "mine.yaml").write_text(text)
    done = gpudoctor("rules", "lint", str(tmp_path))
    assert done.code == 1
    assert one_line(done.err)
    assert words in done.err


USAGE = {
    "unknown command": (["diagnoze"], "did you mean diagnose?"),
    "unknown option": (["--jsn"], "unrecognized arguments: --jsn"),
    "no source": (["diagnose"], "required: source"),
    "bad time-out": (["--timeout", "never"], "--timeout"),
    "two shapes": (["--json", "--text"], "not allowed with"),
}


@pytest.mark.parametrize("arguments,words", USAGE.values(), ids=USAGE)
def test_wrong_usage_is_one_line_and_64(gpudoctor, arguments, words):
    done = gpudoctor(*arguments)
    assert done.code == 64
    assert one_line(done.err)
    assert words in done.err


def test_a_file_given_as_command_is_explained(gpudoctor, tmp_path):
    path = tmp_path / "dmesg.txt"
    path.write_bytes(XID)
    done = gpudoctor(str(path))
    assert done.code == 64
    assert f"gpudoctor diagnose {path}" in done.err


EXITS = {(): 2, ("--exit-zero",): 0, ("--fail-on", "critical"): 2}


@pytest.mark.parametrize("options,code", EXITS.items())
def test_exit_status(gpudoctor, options, code):
    assert gpudoctor("diagnose", "--json", *options, "-", stdin=XID).code == code


def test_file_names_that_are_no_text_neither_cost_the_report_nor_reach_the_terminal(gpudoctor, tmp_path):
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / os.fsdecode(b"kern\xff\x1b[2J\n.log")).write_bytes(XID)
    (folder / os.fsdecode(b"cut\x1b]0;owned\x07.gz")).write_bytes(gzip.compress(XID * 100)[:40])
    done = gpudoctor("diagnose", "--json", str(folder))
    assert done.code == 2
    assert done.report["findings"][0]["evidence"][0]["source"] == "kern??[2J?.log"
    for shape in ("--text", "--markdown", "--github", "--html"):
        done = gpudoctor("diagnose", shape, str(folder))
        assert (done.code, done.err) == (2, "")
        assert "\x1b" not in done.out
        assert "kern??[2J?.log" in done.out


def test_an_output_that_knows_few_letters_gets_a_report(gpudoctor):
    log = XID + "RuntimeError: CUDA error: out of memory … größer\n".encode()
    done = gpudoctor("diagnose", "--text", "-", stdin=log, PYTHONIOENCODING="ascii:strict")
    assert (done.code, done.err) == (2, "")
    assert done.out.startswith("CRITICAL: GPU fell off the bus")


def test_a_folder_that_can_not_be_entered_holds_no_configuration(gpudoctor, tmp_path):
    away = str(tmp_path / ("x" * 300))  # refused like another user's home, also where root asks
    done = gpudoctor("--json", "--profile", "quick", XDG_CONFIG_HOME=away, LD_LIBRARY_PATH=away)
    assert done.code <= 3
    assert done.err == ""
    assert done.report["source"]["kind"] == "live"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
@pytest.mark.parametrize("arguments", [("collect", "-o"), ("rules", "lint"), ("rules", "test")])
def test_a_path_behind_a_closed_folder_is_one_line(gpudoctor, tmp_path, arguments):
    (tmp_path / "closed").mkdir(mode=0)
    done = gpudoctor(*arguments, str(tmp_path / "closed/file.tar.gz"))
    folder = gpudoctor("rules", "lint", str(tmp_path / "closed"))
    own = gpudoctor("diagnose", "--json", "--rules", str(tmp_path / "closed"), "-", stdin=XID)
    (tmp_path / "closed").chmod(0o700)
    assert folder.code == 66
    assert one_line(folder.err) and "permission denied" in folder.err
    assert [problem for problem in own.report["source"]["problems"] if "closed" in problem]
    assert done.code == 66
    assert one_line(done.err) and "permission denied" in done.err


def test_a_closed_standard_input_is_an_empty_one(tmp_path):
    command = f"{sys.executable} -m gpudoctor diagnose --text - <&-"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, "")


@pytest.mark.parametrize(
    ("where", "code", "words"),
    [(">&-", 2, ""), (">/dev/full", 70, "gpudoctor: the output can't be written: No space left on device\n")],
)
def test_an_output_that_takes_nothing(tmp_path, where, code, words):
    (tmp_path / "input.log").write_bytes(XID)
    command = f"{sys.executable} -m gpudoctor diagnose --text input.log {where}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, words)


def test_a_plugin_whose_line_nobody_takes_still_says_unknown(tmp_path):
    command = f"{sys.executable} -m gpudoctor --nagios --root {tmp_path} > /dev/full"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, "")


NO_VALUES = {
    "seconds": (["--json", "--timeout", "abc"], "argument --timeout: 'abc' is no number of seconds between 2 and 600"),
    "cycles": (["watch", "--cycles", "0"], "argument --cycles: '0' is no whole number from 1"),
    "endless rules": (["rules", "lint", "/dev/zero"], "/dev/zero:1: not a regular file"),
    "endless log": (["collect", "--with", "/dev/zero", "-o", "never.tar.gz"], "/dev/zero: not a regular file"),
}


@pytest.mark.parametrize("arguments,words", NO_VALUES.values(), ids=NO_VALUES)
def test_what_is_no_value_is_one_line(gpudoctor, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    done = gpudoctor(*arguments)
    assert done.code in (1, 64, 66)
    assert words in done.err
    assert done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_number_of_a_million_digits_costs_nothing_else(gpudoctor, tmp_path):
    (tmp_path / "dmesg").write_text(f"NVRM: Xid (PCI:0000:3b:00): 79, pid={'7' * 1_000_000}, name=x\n")
    done = gpudoctor("diagnose", "--json", str(tmp_path))
    assert done.causes() == ["hardware.fell-off-bus"]
    assert done.report["source"]["problems"] == []
