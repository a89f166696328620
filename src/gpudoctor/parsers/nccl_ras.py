"""Answers of NCCL's RAS (reliability, availability, serviceability), as text and as JSON: one moment of a running job each."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from gpudoctor.facts.base import Fact, Probed
from gpudoctor.facts.comms import RasAnswer, RasGroup, RasProcess, RasRank
from gpudoctor.parsers.base import Format, Malformed, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex
from gpudoctor.patterns.text import clean

_HEAD = LazyRegex(r"^\s*#\d+-\d+ \((?P<comm>[0-9a-fA-F]+)\) (?P<status>\w+)")
_KIND = LazyRegex(r"^\s*Communicator ranks have different (?P<kind>\w+) operation counts")
_COUNT = LazyRegex(
    r"^\s*(?:(?P<number>\d+) ranks?|Rank (?P<alone>\d+)) (?:have|has) (?:launched up to (?:operation|collective) (?P<count>\d+)|not launched any)"
)
_RANK = LazyRegex(r"^\s*Rank (?P<rank>\d+) .{0,80}?-- GPU .{1,60}? on node (?P<host>\S+)")


def mismatch(text: str) -> Iterator[Fact]:
    """The part that says that ranks of a communicator stand at different operations.

    >>> sample = '''#0-0 (27a079b828ff1a75) MISMATCH
    ...   Communicator ranks have different collective operation counts
    ...   26 ranks have launched up to operation 6650
    ...   6 ranks have launched up to operation 6649
    ...   Rank 4 -- GPU 4 managed by process 483076 on node 192.0.2.10'''
    >>> fact = next(mismatch(sample))
    >>> fact.lag, fact.ranks_behind, fact.first_rank
    (1, 6, 4)
    >>> sample = '''#0-0 (78db921d1c117b4a) MISMATCH
    ...   Communicator ranks have different AllReduce operation counts
    ...   7 ranks have launched up to operation 64
    ...   Rank 7 has launched up to operation 60 -- GPU 3 managed by process 1650386 on node node1'''
    >>> fact = next(mismatch(sample))
    >>> fact.operation, fact.lag, fact.ranks_behind, fact.first_rank, fact.host
    ('AllReduce', 4, 1, 7, 'node1')
    """
    lines = text.split("\n")
    head = _HEAD.match(lines[0])
    if not head:
        raise NotThisFormat
    kind: str | None = None
    counts: list[tuple[int, int]] = []
    listed: dict[int, tuple[int, str]] = {}  # count -> the first rank named below it
    last = 0
    given = False
    for number, line in enumerate([*lines[1:], "#0-0 (0) END"], start=1):
        ends, other = _HEAD.match(line), _KIND.match(line)
        if (ends or other) and len(counts) > 1:
            given = True
            yield _group(head["comm"], kind, counts, listed.get(min(counts)[0]), last)
        if ends:
            break
        if other:
            kind, counts, listed = other["kind"], [], {}
        elif found := _COUNT.match(line):
            counts.append((int(found["count"] or 0), int(found["number"] or 1)))
            last = number
        if counts and (found := _RANK.match(line)):
            listed.setdefault(counts[-1][0], (int(found["rank"]), found["host"]))
            last = number
    if not given:
        raise NotThisFormat


_SUMMARY = LazyRegex(r"^\s*Nodes +Processes +GPUs +Processes +GPUs\s*$")


def summary(text: str) -> Iterator[Fact]:
    """The head of an answer as text.

    >>> [fact.kind for fact in summary("Job summary\\n===========\\n\\n  Nodes  Processes         GPUs  Processes     GPUs")]
    ['ras_answer']
    """
    if not any(_SUMMARY.match(line) for line in text.split("\n")[1:6]):
        raise NotThisFormat
    yield RasAnswer()


def _group(
    communicator: str, kind: str | None, counts: list[tuple[int, int]], first: tuple[int, str] | None, at: int
) -> RasGroup:
    ahead, behind = max(counts)[0], min(counts)[0]
    return RasGroup(
        at=at,
        communicator=communicator,
        operation=None if kind in (None, "collective") else kind,
        ahead=ahead,
        behind=behind,
        lag=ahead - behind,
        ranks_behind=sum(number for count, number in counts if count < ahead),
        first_rank=first[0] if first else None,
        host=first[1] if first else None,
    )


_STATUS = LazyRegex(
    r"^\s*(?:(?P<number>\d+) ranks have|Rank (?P<alone>\d+) has) status (?P<status>[A-Z]{4,10})(?: -- GPU .{1,60}? on node (?P<host>\S+))?"
)


def status(text: str) -> Iterator[Fact]:
    """Ranks of a communicator of which the others are further, or already gone.

    >>> sample = '''#0-0 (78db921d1c117b4a) MISMATCH
    ...   Communicator ranks have different status
    ...   7 ranks have status RUNNING
    ...   Rank 7 has status INIT -- GPU 3 managed by process 1650386 on node node1'''
    >>> [(fact.rank, fact.host, fact.state, fact.usual) for fact in status(sample)]
    [(7, 'node1', 'init', 'running')]
    """
    lines = text.split("\n")
    head = _HEAD.match(lines[0])
    if not head or len(lines) < 2 or "ranks have different status" not in lines[1]:
        raise NotThisFormat
    usual = state = None
    for at, line in enumerate(lines[2:], start=2):
        if found := _STATUS.match(line):
            state = found["status"].lower()
            usual = usual or state  # the most frequent comes first
            if found["alone"] and state != usual:
                yield RasRank(at=at, communicator=head["comm"], rank=int(found["alone"]), host=found["host"], state=state, usual=usual)  # fmt: skip
        elif (found := _RANK.match(line)) and state:
            if state != usual:
                yield RasRank(at=at, communicator=head["comm"], rank=int(found["rank"]), host=found["host"], state=state, usual=usual)  # fmt: skip
        else:
            break


_REPORTED = LazyRegex(
    r"^\s*(?:(?P<number>\d+) ranks|Rank (?P<alone>\d+)) reported (?P<error>[A-Z][\w ]{3,40}?)(?: -- GPU .{1,60}? on node (?P<host>\S+))?\s*$"
)


def errors(text: str) -> Iterator[Fact]:
    """Ranks that reported an error.

    >>> sample = '''#0-0 (78db921d1c117b4a) ERROR
    ...   Asynchronous errors on 8 ranks
    ...   7 ranks reported Remote process error
    ...   Rank 3 reported Unhandled CUDA error -- GPU 3 managed by process 1650386 on node node1'''
    >>> [(fact.rank, fact.host, fact.error) for fact in errors(sample)]
    [(3, 'node1', 'Unhandled CUDA error')]
    """
    lines = text.split("\n")
    head = _HEAD.match(lines[0])
    if not head:
        raise NotThisFormat
    error: str | None = None
    given = False
    for at, line in enumerate(lines[1:], start=1):
        if found := _REPORTED.match(line):
            error, number, host = found["error"], found["alone"], found["host"]
        elif (found := _RANK.match(line)) and error:
            number, host = found["rank"], found["host"]
        elif " error" in line and " rank" in line:
            continue
        else:
            break
        if number:
            given = True
            yield RasRank(at=at, communicator=head["comm"], rank=int(number), host=host, state="error", error=error)
    if not given:
        raise NotThisFormat


_STATES = {"INCOMPLETE": "silent", "DEAD": "dead"}
_MISSING = LazyRegex(r"^\s*Process (?P<pid>\d+) on node (?P<host>\S+) managing GPUs? (?P<gpus>[\d,() ]+)")


def missing(text: str) -> Iterator[Fact]:
    """Processes that gave no answer (INCOMPLETE), or were given up (DEAD).

    >>> sample = '''  DEAD
    ...     1 job process is considered dead (unreachable via the RAS network)
    ...     Process 3487984 on node 192.0.2.13 managing GPU 5'''
    >>> [(fact.pid, fact.host, fact.gpus, fact.state) for fact in missing(sample)]
    [(3487984, '192.0.2.13', '5', 'dead')]
    """
    lines = text.split("\n")
    headed = next(((at, _STATES[line.strip()]) for at, line in enumerate(lines[:2]) if line.strip() in _STATES), None)
    if headed is None:
        raise NotThisFormat
    start, state = headed
    given = False
    for at, line in enumerate(lines[start + 1 :], start=start + 1):
        if found := _MISSING.match(line):
            given = True
            yield RasProcess(at=at, pid=int(found["pid"]), host=found["host"], gpus=found["gpus"].strip(), state=state)
        elif given or _HEAD.match(line):
            break
    if not given:
        raise NotThisFormat


def answer(text: str) -> Iterator[Fact]:
    """What `ncclras -f json` prints (from NCCL 2.28.7 on).

    >>> def rank(number, count):
    ...     return {"rank": number, "host": "192.0.2.1", "pid": 70 + number, "cuda_dev": number, "collective_counts": {"AllReduce": count}}
    >>> lost = {"rank": 3, "host": "192.0.2.2", "pid": 90, "cuda_dev": 0, "status": {"unresponsive": True, "considered_dead": False}}
    >>> text = json.dumps({"nccl_version": "2.29.1", "communicators_count": 1, "communicators": [{"hash": "0xae94423cfbb2ef4a",
    ...     "size": 4, "ranks": [rank(0, 101), rank(1, 100), rank(2, 101)], "missing_ranks": [lost]}]})
    >>> _, group, process, _ = answer(text)
    >>> group.operation, group.ahead, group.behind, group.first_rank, process.pid, process.state
    ('AllReduce', 101, 100, 1, 90, 'silent')
    """
    anchor = text.find('"communicators_count"')
    heading = text.rfind('"nccl_version"', 0, max(anchor, 0))
    start = text.rfind("{", 0, heading if heading >= 0 else anchor)
    if anchor < 0 or start < 0:
        raise NotThisFormat
    try:
        data, end = json.JSONDecoder().raw_decode(text, start)
    except ValueError as error:
        raise Malformed(f"the answer of NCCL's RAS breaks off ({error})") from None
    if not isinstance(data, dict) or not isinstance(data.get("communicators"), list):
        raise NotThisFormat
    yield RasAnswer(at=text.count("\n", 0, start))
    told: set[tuple[str, int]] = set()
    for entry in _entries(data["communicators"]):
        name = clean(str(entry.get("hash", "")))[:40]
        at = text.count("\n", 0, max(start, text.find(f'"{name}"', start, end)))
        yield from _stand(name, _entries(entry.get("ranks")), at)
        yield from _ranks(name, _entries(entry.get("ranks")), at)
        for lost in _entries(entry.get("missing_ranks")):
            key = (clean(str(lost.get("host", "")))[:80], _whole(lost.get("pid")))
            status = lost.get("status")
            if key in told or not isinstance(status, dict):
                continue
            told.add(key)
            if status.get("considered_dead") or status.get("unresponsive"):
                state = "dead" if status.get("considered_dead") else "silent"
                yield RasProcess(at=at, host=key[0], pid=key[1], gpus=str(_whole(lost.get("cuda_dev"))), state=state)
    yield Probed(what="ras_group", at=text.count("\n", 0, end))


def _stand(name: str, ranks: list[dict[str, Any]], at: int) -> Iterator[RasGroup]:
    """How far the ranks of a communicator came, for each kind of operation."""
    stands: dict[str, dict[int, int]] = defaultdict(dict)
    for place, rank in enumerate(ranks):
        counts = rank.get("collective_counts")
        for kind, count in counts.items() if isinstance(counts, dict) else ():
            stands[clean(str(kind))[:40]][place] = _whole(count)
    for kind, counted in stands.items():
        tally = Counter(counted.values())
        if len(tally) < 2:
            continue
        behind = min(tally)
        rank = ranks[next(place for place, count in counted.items() if count == behind)]
        yield _group(name, kind, list(tally.items()), (_whole(rank.get("rank")), clean(str(rank.get("host", "?")))[:80]), at)  # fmt: skip


# ncclResult_t
_ERRORS = {1: "Unhandled CUDA error", 2: "System error", 3: "Internal error", 4: "Invalid argument", 5: "Invalid usage", 6: "Remote process error"}  # fmt: skip


def _ranks(name: str, ranks: list[dict[str, Any]], at: int) -> Iterator[RasRank]:
    """Ranks that reported an error, or whose state is not that of most."""
    states: list[tuple[str, dict[str, Any]]] = []
    for rank in ranks:
        told = rank.get("status")
        if not isinstance(told, dict):
            continue
        number, host = _whole(rank.get("rank")), clean(str(rank.get("host", "?")))[:80]
        for kind in ("init_state", "async_error"):
            if error := _ERRORS.get(_whole(told.get(kind))):
                yield RasRank(at=at, communicator=name, rank=number, host=host, state="error", error=error)
        state = (
            "abort" if told.get("abort_flag")
            else "finalize" if told.get("finalize_called") or told.get("destroy_flag")
            else "init" if told.get("init_state")
            else "running"
        )  # fmt: skip
        states.append((state, rank))
    usual = Counter(state for state, _ in states).most_common(1)
    for state, rank in states:
        if state != usual[0][0]:
            host = clean(str(rank.get("host", "?")))[:80]
            yield RasRank(at=at, communicator=name, rank=_whole(rank.get("rank")), host=host, state=state, usual=usual[0][0])  # fmt: skip


def _entries(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


FORMATS = (
    Format("NCCL RAS, summary", ("Job summary",), summary, lines=6),
    Format("NCCL RAS", (") MISMATCH",), mismatch, lines=200),
    Format("NCCL RAS, status", (") MISMATCH",), status, lines=200),
    Format("NCCL RAS, errors", (") ERROR",), errors, lines=200),
    Format("NCCL RAS, processes", ("INCOMPLETE", "considered dead"), missing, lines=40, back=1),
    Format("NCCL RAS as JSON", ('"communicators_count"',), answer, lines=400_000, back=8),
)
