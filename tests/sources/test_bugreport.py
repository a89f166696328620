"""Sections of nvidia-bug-report.log: which log they are, in which boot, at which line."""

from __future__ import annotations

import gzip
from datetime import datetime, timezone

import pytest

from gpudoctor.diagnosis import Doctor
from gpudoctor.sources.base import Document, SourceNotes
from gpudoctor.sources.bugreport import sections, wall_clock
from gpudoctor.sources.memory import TextSource
from gpudoctor.sources.open import open_sources

_RULE = "____________________________________________\n\n"
_HEAD = (
    "\nStart of NVIDIA bug report log file.  Please include this file, along\n\nnvidia-bug-report.sh Version: 35299073\n\n"
    "Date: Mon Jul  7 06:43:57 PM EDT 2025\nuname: Linux node01 6.11.0-29-generic #29-Ubuntu SMP x86_64 GNU/Linux\n\n"
)
_XID = "NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def _report(*parts: str, end: bool = True) -> str:
    tail = [_RULE + "End of NVIDIA bug report log file.\n"] if end else []
    return "".join([_RULE + _HEAD, *(_RULE + part + "\n" for part in parts), *tail])


def _documents(text: str, notes: SourceNotes | None = None) -> dict[str, list[Document]]:
    found: dict[str, list[Document]] = {}
    for document in sections("r.log", (text.encode(),), notes or SourceNotes("log", "r.log")):
        found.setdefault(document.name.partition("§ ")[2], []).append(document)
    return found


_SCAN = (
    "Scanning kernel log files for NVIDIA kernel messages:\n\n"
    "  /var/log/kern.log:\n"
    f"2025-07-06T21:45:45.304276-04:00 node01 kernel: {_XID}\n"
    f"2025-07-07T18:36:09.000000-04:00 node01 kernel: {_XID}\n"
    "2025-07-07T18:36:49.000000-04:00 node01 kernel: nvidia-uvm: Loaded the UVM driver\n"
    "\n  journalctl -b -0:\n"
    "Jul 07 18:36:49 node01 kernel: nvidia-uvm: Loaded the UVM driver\n"
    "\n  journalctl -b -1:\n"
    "Jul 07 17:48:48 node01 kernel: nvidia-uvm: Loaded the UVM driver\n"
    f"Jul 07 18:36:09 node01 kernel: {_XID}\n"
)


def test_a_log_that_spans_boots_is_cut_where_the_journal_says_that_they_began() -> None:
    documents = _documents(_report(_SCAN))
    assert [document.boot for document in documents["/var/log/kern.log"]] == [-2, -1, 0]
    assert [document.boot for document in documents["journalctl -b -1"]] == [-1]


def test_lines_are_counted_from_the_start_of_the_report() -> None:
    text = _report(_SCAN)
    lines = text.split("\n")
    for documents in _documents(text).values():
        for document in documents:
            if body := b"".join(document.chunks()).decode():
                assert lines[document.first_line - 1] == body.split("\n")[0]


def test_the_head_says_when_it_was_taken() -> None:
    notes = SourceNotes("log", "r.log", collected_at=1.0)
    _documents(_report(), notes)
    assert notes.collected_at == 1_751_913_837.0  # 18:43:57 by the machine's clock


def test_an_old_installer_log_and_other_kernels_builds_are_history() -> None:
    documents = _documents(
        _report(
            "*** /var/log/nvidia-installer.log\n*** ls: -rw-r--r-- 1 root root 9 2023-06-09 17:59:07.5 +0200 /var/log/x\nERROR: x",
            "*** /var/lib/dkms/nvidia/550.90.07/6.8.0-31-generic/x86_64/log/make.log\nerror: x",
            "*** /var/lib/dkms/nvidia/550.90.07/6.11.0-29-generic/x86_64/log/make.log\nerror: x",
        )
    )
    boots = {name: document[0].boot for name, document in documents.items()}
    assert boots["/var/log/nvidia-installer.log"] == -1
    assert boots["/var/lib/dkms/nvidia/550.90.07/6.8.0-31-generic/x86_64/log/make.log"] == -1
    assert boots["/var/lib/dkms/nvidia/550.90.07/6.11.0-29-generic/x86_64/log/make.log"] == 0


def test_logs_of_a_host_whose_root_is_mounted_elsewhere() -> None:
    documents = _documents(_report(_SCAN.replace("/var/log/kern.log", "/host/var/log/kern.log")))
    assert [document.boot for document in documents["/host/var/log/kern.log"]] == [-2, -1, 0]


def test_a_date_that_is_none_costs_nothing() -> None:
    part = "*** /var/log/nvidia-installer.log\n*** ls: -rw-r--r-- 1 root root 9 2025-02-00 00:00:00.5 +0200 /var/log/x\nERROR: x"
    [document] = _documents(_report(part))["/var/log/nvidia-installer.log"]
    assert document.boot == 0


def test_a_report_without_its_end_is_incomplete() -> None:
    notes = SourceNotes("log", "r.log")
    _documents(_report(_SCAN, end=False), notes)
    assert not notes.complete


def test_trouble_of_earlier_boots_alone_is_told_as_such() -> None:
    report = Doctor().diagnose(TextSource({"nvidia-bug-report.log": _report(_SCAN)}))
    lost = next(finding for finding in report.findings if finding.id == "hardware.fell-off-bus")
    assert lost.history
    assert lost.severity == "warning"  # it came back over several boots


def test_a_hung_task_of_an_earlier_boot_is_history() -> None:
    scan = (
        "Scanning kernel log files for NVIDIA kernel messages:\n\n  journalctl -b -0:\n"
        "Jul 07 18:36:49 node01 kernel: nvidia-uvm: Loaded the UVM driver\n\n  journalctl -b -1:\n"
        "Jul 01 10:00:00 node01 kernel: INFO: task nvidia-smi:99 blocked for more than 120 seconds.\n"
        "Jul 01 10:00:00 node01 kernel:  os_acquire_mutex+0x3f/0x50 [nvidia]\n"
    )
    report = Doctor().diagnose(TextSource({"nvidia-bug-report.log": _report(scan)}))
    hang = next(finding for finding in report.findings if finding.id == "driver.nvidia-smi-hangs")
    assert hang.history
    assert hang.severity == "info"


def _dmesg(*lines: str) -> str:
    return _report("/usr/bin/dmesg:\n\n" + "\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("date", "stamp"),
    [
        ("Di 11. Mär 09:05:12 CET 2025", "Mär 11 06:58:02"),
        ("mar. 11 mars 2025 09:05:12 CET", "mars 11 06:58:02"),
        ("Вт 11 мар 2025 09:05:12 MSK", "мар 11 06:58:02"),
        ("Sal 11 Mar 2025 09:05:12 +03", "Mar 11 06:58:02"),
        ("di 11 mrt 2025 09:05:12 CET", "mrt 11 06:58:02"),
        ("2025年 03月 11日 星期二 09:05:12 CST", "3月 11 06:58:02"),
        ("Tue Mar 11 09:05:12 UTC 2025", "2025-03-11T06:58:02.000001+00:00"),
    ],
    ids=["German", "French", "Russian", "Turkish", "Dutch", "Chinese", "rsyslog"],
)
def test_dates_in_the_languages_of_real_reports(date, stamp):
    head = _HEAD.replace("Mon Jul  7 06:43:57 PM EDT 2025", date)
    text = _report(f"journalctl -b -0:\n\n{stamp} node01 kernel: {_XID}\n").replace(_HEAD, head)
    report = Doctor().diagnose(TextSource({"nvidia-bug-report.log": text}))
    lost = next(finding for finding in report.findings if finding.id == "hardware.fell-off-bus")
    when = datetime(2025, 3, 11, 6, 58, 2, tzinfo=timezone.utc).timestamp()
    assert lost.first_seen == pytest.approx(when, abs=1)
    assert report.source.collected_at is not None
    assert report.source.collected_at.startswith("2025-03-11T09:05:12")


@pytest.mark.parametrize(
    "date",
    [
        "mar. 09 sept. 2025 10:12:13 CEST", "mardi 9 septembre 2025, 10:12:13 (UTC+0200)", "mar  9 sep 2025 10:12:13 CEST",
        "Dienstag, 9. September 2025, 10:12:13 Uhr CEST", "вторник, 9 сентября 2025 10:12:13 (MSK)", "Вт сен  9 10:12:13 MSK 2025",
        "09 Eyl 2025 Sal 10:12:13 +03", "di sep  9 10:12:13 CEST 2025", "二  9月  9 10:12:13 CST 2025",
        "2025年9月9日 星期二 10时12分13秒", "2025年  9月  9日 火曜日 10:12:13 JST", "mar 09 set 2025, 10:12:13, CEST",
        "ter 09 set 2025 10:12:13 -03", "wto, 9 wrz 2025, 10:12:13 CEST",
        "Tue 09 Sep 2025 10:12:13 AM CST",
    ],
)  # fmt: skip
def test_what_date_prints_elsewhere(date):
    assert wall_clock(date) == datetime(2025, 9, 9, 10, 12, 13)


def test_an_event_that_stands_in_every_log_is_one_finding():
    line = f"Jul 07 18:36:50 node01 kernel: {_XID}\n"
    scan = (
        "Scanning kernel log files for NVIDIA kernel messages:\n\n"
        f"  /var/log/kern.log:\n{line}\n  /var/log/syslog:\n{line}\n  journalctl -b -0:\n{line}"
    )
    text = _report(scan, f"/usr/bin/dmesg:\n\n[  812.114] {_XID}\n")
    report = Doctor().diagnose(TextSource({"nvidia-bug-report.log": text}))
    lost = [finding for finding in report.findings if finding.id == "hardware.fell-off-bus"]
    assert len(lost) == 1
    places = [where.source.partition("§ ")[2] for where in lost[0].evidence]
    assert places == ["/var/log/kern.log", "/var/log/syslog", "journalctl -b -0", "/usr/bin/dmesg"]


def test_repeated_messages_are_counted():
    line = "Jul 07 18:36:50 node01 kernel: message repeated 41 times: [ NVRM: Xid (PCI:0000:01:00): 31, pid=7, name=python3, Ch 00000008]"
    report = Doctor().diagnose(TextSource({"nvidia-bug-report.log": _report("*** /var/log/kern.log\n" + line + "\n")}))
    assert [finding.count for finding in report.findings if finding.id == "cuda.illegal-access"] == [41]


def test_lines_without_a_stamp_go_on_with_the_line_before():
    report = Doctor().diagnose(
        TextSource(
            {
                "nvidia-bug-report.log": _dmesg(
                    "[   14.1] NVRM: API mismatch: the client has the version 550.107.02, but",
                    "              NVRM: this kernel module has the version 550.90.07.  Please",
                    "              NVRM: make sure that this kernel module and all NVIDIA driver",
                    "              NVRM: components have the same version.",
                )
            }
        )
    )
    assert report.findings[0].id == "driver.library-mismatch"
    assert "550.107.02" in report.findings[0].because
    assert "550.90.07" in report.findings[0].because


def test_long_lines_and_bytes_that_are_no_text():
    text = _dmesg("x" * 8192, f"[ 812.1] {_XID} " + "y" * 8192, "[ 813.0] \udcff\udcfe caf\udce9").encode(
        "utf-8", "surrogateescape"
    )
    notes = SourceNotes("log", "r.log")
    documents = list(sections("r.log", (text,), notes))
    scanned = [
        fact for each in documents for fact in Doctor().scanner.scan(each.name, each.chunks(), each.first_line).facts
    ]
    xid = next(fact for fact in scanned if fact.kind == "xid")
    assert xid.where.text.startswith("[ 812.1] NVRM: Xid (PCI:0000:01:00): 79")
    assert len(xid.where.text) == 500
    assert text.split(b"\n")[xid.where.line - 1].startswith(b"[ 812.1]")


def test_missing_and_skipped_parts_are_no_trouble():
    report = Doctor().diagnose(
        TextSource(
            {
                "nvidia-bug-report.log": _report(
                    "*** /var/log/Xorg.0.log does not exist\n",
                    "*** /var/log/messages is not readable\n",
                    "Skipping vulkaninfo output (vulkaninfo not found)\n",
                    "Skipping: /usr/bin/nvidia-smi (running in safe mode)\n",
                    "report_skip: nvidia-debugdump\n",
                )
            }
        )
    )
    assert (report.status, report.findings, report.source.complete) == ("ok", [], True)


def test_a_report_that_a_hang_cut_names_the_section_and_says_so():
    notes = SourceNotes("log", "r.log")
    text = _report(_SCAN, "/usr/bin/nvidia-smi --query\n\n", end=False)
    _documents(text, notes)
    assert not notes.complete
    assert "breaks off in or right behind section '/usr/bin/nvidia-smi --query'" in notes.problems[0]
    assert "a symptom" in notes.problems[0]


def test_a_broken_member_costs_its_own_section_only(tmp_path):
    parts = [
        gzip.compress(f"{_RULE}{part}\n".encode())
        for part in ("*** /etc/issue\nUbuntu 24.04.1 LTS \\n \\l\n" * 9, f"dmesg\n[  1.0] {_XID}\n")
    ]
    spoilt = bytearray(parts[0])
    spoilt[len(spoilt) // 2] ^= 0xFF
    end = gzip.compress(f"{_RULE}End of NVIDIA bug report log file.\n".encode())
    path = tmp_path / "nvidia-bug-report.log.gz"
    path.write_bytes(gzip.compress(f"{_RULE}{_HEAD}".encode()) + spoilt + parts[1] + end)
    report = Doctor().diagnose(open_sources([str(path)]))
    assert [finding.id for finding in report.findings] == ["hardware.fell-off-bus"]
    assert not report.source.complete
    assert len(report.source.problems) == 1 and "is broken after" in report.source.problems[0]


def test_base64_is_named_and_not_read_and_what_surrounds_it_is():
    coded = "\n".join(("XidNVRMError" * 7)[:76] for _ in range(9)) + "\nZm9v\n"
    said = "/usr/bin/nvidia-debugdump -D\n\nERROR: internal_dumpGpuComponent() failed, return code: 0x3e7\n"
    dump = "/usr/bin/acpidump -o\n\n"
    documents = _documents(_report(said + coded + f"\n[  812.114] {_XID}\n", dump + coded))
    before, skipped, behind = documents["/usr/bin/nvidia-debugdump -D"]
    assert b"internal_dumpGpuComponent" in b"".join(before.chunks())
    assert (before.skipped, skipped.skipped, behind.skipped) == (None, "base64", None)
    assert b"Xid (PCI:0000:01:00): 79" in b"".join(behind.chunks())
    assert [each.skipped for each in documents["/usr/bin/acpidump -o"]] == ["base64"]
    lines = _report(said + coded + f"\n[  812.114] {_XID}\n", dump + coded).split("\n")
    assert lines[behind.first_line - 1] == b"".join(behind.chunks()).decode().split("\n")[0]
