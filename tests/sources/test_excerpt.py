"""`--at` shows evidence in its surroundings, by the very words in which a report names it."""

from __future__ import annotations

import gzip

from .test_archives import XID, tar  # isort: skip
from .test_bundles import bug_report  # isort: skip


def test_every_evidence_line_can_be_shown(gpudoctor, tmp_path):
    path = tmp_path / "nvidia-bug-report.log.gz"
    path.write_bytes(gzip.compress(bug_report("n", XID)))
    where = gpudoctor("diagnose", "--json", str(path)).report["findings"][0]["evidence"][0]
    for name in (where["source"], where["source"].partition(" § ")[2]):
        done = gpudoctor("diagnose", str(path), "--at", f"{name}:{where['line']}")
        assert done.code == 0
        marked = [line for line in done.out.split("\n") if line.startswith(">")]
        assert len(marked) == 1
        assert where["text"] in marked[0]


def test_a_file_in_an_archive(gpudoctor, tmp_path):
    path = tmp_path / "b.tar.gz"
    log = b"".join(b"line %d\x1b[31m\n" % number for number in range(1, 200_000))
    path.write_bytes(gzip.compress(tar({"node/var/log/kern.log": log})))
    done = gpudoctor("diagnose", str(path), "--at", "log/kern.log:123456")
    assert done.out.split("\n")[0] == "node/var/log/kern.log"
    assert "\n>  123456  line 123456\n" in done.out
    assert done.out.count("\n") == 22
    assert gpudoctor("diagnose", str(path), "--at", "kern.log").out.split("\n")[1] == "        1  line 1"


def test_a_place_that_is_not_there(gpudoctor, tmp_path):
    (tmp_path / "kern.log").write_bytes(XID)
    done = gpudoctor("diagnose", str(tmp_path), "--at", "kernel.log:7")
    assert (done.code, done.err) == (66, f"gpudoctor: kernel.log is not in {tmp_path}; did you mean kern.log?\n")
    done = gpudoctor("diagnose", str(tmp_path), "--at", "kern.log:7")
    assert (done.code, done.err) == (66, "gpudoctor: kern.log has no line 7\n")
