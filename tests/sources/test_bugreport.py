"""Sections of nvidia-bug-report.log: which log they are, in which boot, at which line."""

from __future__ import annotations

from gpudoctor.diagnosis import Doctor
from gpudoctor.sources.base import Document, SourceNotes
from gpudoctor.sources.bugreport import sections
from gpudoctor.sources.memory import TextSource

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
