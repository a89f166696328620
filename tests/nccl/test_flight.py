"""Flight recorder dumps of several ranks: who is behind, who does something else, and healthy ones stay silent."""

import json
import os
import pickle
from pathlib import Path

import pytest

from gpudoctor.diagnosis import Doctor
from gpudoctor.sources.open import open_sources

DOCTOR = Doctor(engine="builtin")


def entry(number: int, state: str, operation: str = "all_reduce", elements: int = 4096) -> dict[str, object]:
    return {
        "record_id": number, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": number, "p2p_seq_id": 0,
        "op_id": number, "profiling_name": f"nccl:{operation}", "input_sizes": [[elements]], "output_sizes": [[elements]],
        "input_dtypes": ["Float"], "state": state, "retired": state == "completed", "is_p2p": False, "timeout_ms": 600000,
        "frames": [{"name": "all_reduce", "filename": "/job/train.py", "line": 121}],
    }  # fmt: skip


def dump(entries: list[dict[str, object]]) -> str:
    done = max(int(str(e["collective_seq_id"])) for e in entries if e["state"] == "completed")
    queued = max(int(str(e["collective_seq_id"])) for e in entries)
    status = {
        "0": {"last_enqueued_collective": queued, "last_started_collective": queued, "last_completed_collective": done}
    }
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}}
    return json.dumps(
        {"entries": entries, "nccl_version": "2.26.2", "pg_config": config, "pg_status": status, "version": "2.7"}
    )


DONE = [entry(number, "completed") for number in range(1, 9)]
WAITING = [*DONE, entry(9, "started")]


def causes(folder: Path, dumps: dict[int, str]) -> list[tuple[str, str]]:
    for rank, text in dumps.items():
        (folder / f"nccl_trace_rank_{rank}").write_text(text)
    report = DOCTOR.diagnose(open_sources([str(folder)]))
    return [(finding.id, finding.because) for finding in report.findings if finding.role == "cause"]


def test_the_rank_that_never_queued_the_operation(tmp_path: Path) -> None:
    ((found, because),) = causes(tmp_path, {0: dump(WAITING), 1: dump(WAITING), 2: dump(DONE), 3: dump(WAITING)})
    assert found == "nccl.straggler"
    assert "Rank 2 is behind" in because and "the others wait in 9" in because


def test_the_rank_that_does_something_else(tmp_path: Path) -> None:
    other = [*DONE, entry(9, "started", "all_gather", 64)]
    ((found, because),) = causes(tmp_path, {0: dump(WAITING), 1: dump(other), 2: dump(WAITING), 3: dump(WAITING)})
    assert found == "nccl.collective-mismatch"
    assert "rank 1: all_gather of 64 elements" in because


@pytest.mark.parametrize("entries", [DONE, WAITING])
def test_ranks_that_are_alike_are_no_fault(tmp_path: Path, entries: list[dict[str, object]]) -> None:
    assert causes(tmp_path, dict.fromkeys(range(4), dump(entries))) == []


def test_a_cut_dump_is_a_problem_and_no_finding(tmp_path: Path) -> None:
    (tmp_path / "nccl_trace_rank_0").write_text(dump(WAITING)[:400])
    report = DOCTOR.diagnose(open_sources([str(tmp_path)]))
    assert report.findings == []
    assert any("breaks off" in problem for problem in report.source.problems)


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_pickled_dumps_are_read(tmp_path: Path, protocol: int) -> None:
    for rank in range(4):
        entries = DONE if rank == 2 else WAITING
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(json.loads(dump(entries)), protocol))
    report = DOCTOR.diagnose(open_sources([str(tmp_path)]))
    assert [(finding.id, finding.because) for finding in report.findings] == [
        ("nccl.straggler", "Rank 2 is behind: it stands at operation 8 of process group 0, the others wait in 9.")
    ]


class Malicious:
    def __init__(self, victim: Path) -> None:
        self.victim = victim

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.victim),)


LAUGHS = (
    b"\x80\x02"
    + b"]q\x00"
    + b"".join(b"](h%bh%beq%b" % (bytes([n]), bytes([n]), bytes([n + 1])) for n in range(60))
    + b"."
)
CYCLE = b"\x80\x02]q\x00h\x00a."


@pytest.mark.parametrize(
    ("pickled", "reason"),
    [
        (LAUGHS, "more than 4000000 values"),
        (CYCLE, "more than 4000000 values"),
        (b"\x80\x02}r\xff\xff\xff\x7f.", "reserves places"),
        (b"\x80\x02]" + b"](" * 500 + b"e" * 500 + b".", "nested"),
        (b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f}.", "can't be read"),
        (b"\x80\x02}(X\x05\x00", "can't be read"),
        (b"\x80\x02(\x82\x01.", "instruction EXT1"),
        (b"\x80\x02(X\x01\x00\x00\x00aQ.", "instruction BINPERSID"),
    ],
)
def test_hostile_pickles_are_not_built(tmp_path: Path, pickled: bytes, reason: str) -> None:
    (tmp_path / "nccl_trace_rank_0").write_bytes(pickled)
    report = DOCTOR.diagnose(open_sources([str(tmp_path)]))
    assert report.findings == []
    (skipped,) = report.source.skipped
    assert skipped.startswith("nccl_trace_rank_0: a Python pickle that is not read") and reason in skipped


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_pickle_that_would_run_something_runs_nothing(tmp_path: Path, protocol: int) -> None:
    victim = tmp_path / "made"
    (tmp_path / "nccl_trace_rank_0").write_bytes(
        pickle.dumps({"entries": [Malicious(victim)], "pg_status": {}, "version": "2.7"}, protocol)
    )
    report = DOCTOR.diagnose(open_sources([str(tmp_path)]))
    assert not victim.exists()
    assert "builds more than plain data" in report.source.skipped[0]


@pytest.mark.parametrize("entries", [5, "x", [1, None], {"a": 1}])
def test_entries_of_the_wrong_type_are_named(tmp_path: Path, entries: object) -> None:
    data = json.dumps({"version": "2.7", "pg_status": {}, "entries": entries})
    (tmp_path / "nccl_trace_rank_0").write_text(data)
    report = DOCTOR.diagnose(open_sources([str(tmp_path)]))
    assert report.status == "unknown"
    [problem] = report.source.problems
    assert problem.startswith("nccl_trace_rank_0:1: PyTorch flight recorder: ")
    assert "entries" in problem


def test_a_dump_that_is_refused_is_named_with_the_reason(tmp_path: Path) -> None:
    """A pickle that would run something; one that is no dump is passed over in silence."""
    held = {"version": "2.7", "pg_config": {}, "entries": [os.system]}
    (tmp_path / "nccl_trace_rank_0").write_bytes(pickle.dumps(held))
    (tmp_path / "model.pkl").write_bytes(pickle.dumps({"weights": os.system}))
    report = DOCTOR.diagnose(open_sources([str(tmp_path)]))
    [problem] = report.source.problems
    assert problem.startswith("nccl_trace_rank_0: a Python pickle that is not read: it holds the instruction")
    assert not report.source.complete
