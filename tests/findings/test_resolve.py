"""Causes, consequences, history and rank, on findings made by hand."""

from __future__ import annotations

from typing import Any

from gpudoctor.findings.model import Finding, Subject
from gpudoctor.findings.resolve import Inferred, resolve

NODE = [Subject(kind="node", name="node")]


def gpu(name: str) -> list[Subject]:
    return [Subject(kind="gpu", name=name)]


def finding(name: str, *, subjects: list[Subject] = NODE, boots: tuple[int, ...] = (), **fields: Any) -> Inferred:
    made = Finding(
        **{
            "id": name,
            "title": name,
            "severity": "critical",
            "confidence": "likely",
            "key": f"{name}@{subjects[0].name}",
            "subjects": subjects,
            "because": "",
            "evidence": [],
            **fields,
        }
    )
    return Inferred(made, boots=boots)


def roles(*findings: Inferred, collected: float | None = None) -> dict[str, str]:
    return {found.key: found.role for found in resolve(findings, collected)}


def test_a_chain_has_one_cause() -> None:
    found = resolve([finding("c.c"), finding("b.b", explains=["c.c"]), finding("a.a", explains=["b.b"])])
    assert [(f.id, f.role, f.caused_by) for f in found] == [
        ("a.a", "cause", []),
        ("b.b", "consequence", ["a.a@node"]),
        ("c.c", "consequence", ["b.b@node"]),
    ]


def test_a_fault_of_one_gpu_does_not_explain_another_gpu() -> None:
    assert roles(
        finding("h.lost", subjects=gpu("A"), explains=["h.xid"]),
        finding("h.xid", subjects=gpu("A")),
        finding("h.xid", subjects=gpu("B")),
    ) == {"h.lost@A": "cause", "h.xid@A": "consequence", "h.xid@B": "cause"}


def test_a_fault_of_one_gpu_explains_trouble_of_the_node() -> None:
    assert (
        roles(finding("h.lost", subjects=gpu("A"), explains=["n.*"]), finding("n.timeout"))["n.timeout@node"]
        == "consequence"
    )


def test_what_came_later_is_not_the_cause() -> None:
    late = finding("a.a", explains=["b.b"], first_seen=1.7e9 + 7200)
    assert roles(late, finding("b.b", first_seen=1.7e9)) == {"a.a@node": "cause", "b.b@node": "cause"}


def test_two_that_explain_each_other_leave_the_stronger_one() -> None:
    strong = finding("a.a", explains=["b.b"], confidence="certain")
    assert roles(strong, finding("b.b", explains=["a.a"])) == {"a.a@node": "cause", "b.b@node": "consequence"}


def test_a_guess_does_not_explain_a_certainty() -> None:
    guess = finding("a.a", explains=["b.b"], confidence="possible")
    assert roles(guess, finding("b.b", confidence="certain"))["b.b@node"] == "cause"


def test_trouble_of_an_earlier_boot_is_history() -> None:
    old = finding("a.a", history=True, boots=(-2,), last_seen=1.7e9)
    (found,) = resolve([old], collected=1.7e9 + 10 * 86400)
    assert (found.severity, found.role) == ("info", "cause")
    assert "earlier boot" in found.because


def test_trouble_that_recurs_or_is_fresh_is_a_warning() -> None:
    (recurs,) = resolve([finding("a.a", history=True, boots=(-2, -1))])
    (fresh,) = resolve([finding("a.a", history=True, boots=(-1,), last_seen=1.7e9)], collected=1.7e9 + 3600)
    assert (recurs.severity, fresh.severity) == ("warning", "warning")
    assert "several boots" in recurs.because
    assert "day before" in fresh.because


def test_the_node_as_a_whole_gives_way_to_the_gpu() -> None:
    assert roles(finding("h.lost", subjects=gpu("A")), finding("h.lost")) == {"h.lost@A": "cause"}


def test_rank_is_severity_then_confidence() -> None:
    found = resolve(
        [
            finding("a.warning", severity="warning", confidence="certain"),
            finding("b.possible", confidence="possible"),
            finding("c.certain", confidence="certain"),
            finding("d.advice", role="advice"),
        ]
    )
    assert [f.id for f in found] == ["c.certain", "b.possible", "a.warning", "d.advice"]


def test_history_of_programs_is_no_cause_beside_one_that_is_at_work() -> None:
    program = finding("cuda.old", subjects=gpu("A"), history=True, boots=(-1,))
    device = finding("hardware.old", subjects=gpu("A"), history=True, boots=(-1,))
    now = finding("hardware.now", subjects=gpu("B"))
    assert roles(program, device, now) == {"cuda.old@A": "advice", "hardware.old@A": "cause", "hardware.now@B": "cause"}
    assert roles(program) == {"cuda.old@A": "cause"}
