"""Dumps of PyTorch's flight recorder as JSON (a pickled one is made JSON by its source): the last collectives of one rank, and how far each process group came."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from gpudoctor.facts.base import Fact
from gpudoctor.facts.comms import FlightRecord
from gpudoctor.parsers.base import Format, Malformed, NotThisFormat, json_object
from gpudoctor.patterns.text import clean

_DIMENSIONS, _TENSORS = 8, 4096  # of one operation that are counted


def dump(text: str) -> Iterator[Fact]:
    """One record per process group: what it queued and ended last, and the first operation that never ended.

    >>> sample = '''{"entries": [{"collective_seq_id": 6, "input_sizes": [[64]], "process_group": ["0", "default_pg"],
    ... "profiling_name": "nccl:all_reduce", "state": "completed"}, {"collective_seq_id": 7, "input_sizes": [[4, 64]],
    ... "process_group": ["0", "default_pg"], "profiling_name": "nccl:all_gather", "state": "started"}],
    ... "pg_status": {"0": {"last_completed_collective": 6, "last_enqueued_collective": 7, "last_started_collective": 7}},
    ... "version": "2.7"}'''
    >>> fact = next(dump(sample))
    >>> fact.group, fact.last_enqueued, fact.last_completed, fact.operation, fact.elements
    ('0', 7, 6, 'all_gather', 256)
    """
    start = text.find("{")
    if text[: max(start, 0)].strip():
        raise NotThisFormat
    data = json_object(text, start, "the flight recorder's dump", ('"pg_status"', '"collective_seq_id"'))
    if "version" not in data or "entries" not in data:
        raise NotThisFormat
    if not isinstance(data["entries"], (list, dict)):
        raise Malformed("the flight recorder's dump holds no list of entries")
    groups = {name: _record(name, status) for name, status in _named(data.get("pg_status"))}
    for entry in _entries(data["entries"]):
        name = entry.get("process_group")
        group = clean(str(name[0] if isinstance(name, list) and name else entry.get("pg_id", "0")))[:60]
        record = groups.setdefault(group, FlightRecord(group=group))
        _take(record, entry)
    if not groups and data["entries"]:
        raise Malformed("none of the entries of the flight recorder's dump is one")
    yield from groups.values()


def _named(value: Any) -> list[tuple[str, dict[str, Any]]]:
    return (
        [(clean(str(name))[:60], status) for name, status in value.items() if isinstance(status, dict)]
        if isinstance(value, dict)
        else []
    )


def _record(name: str, status: dict[str, Any]) -> FlightRecord:
    return FlightRecord(
        group=name,
        last_enqueued=_integer(status.get("last_enqueued_collective")),
        last_completed=_integer(status.get("last_completed_collective")),
    )


def _entries(value: Any) -> list[dict[str, Any]]:
    entries = value if isinstance(value, list) else list(value.values())
    return [entry for entry in entries if isinstance(entry, dict) and not entry.get("is_p2p")]


def _take(record: FlightRecord, entry: dict[str, Any]) -> None:
    number = _integer(entry.get("collective_seq_id"))
    if number is None:
        return
    if entry.get("state") == "completed":
        record.last_completed = max(number, record.last_completed or 0)
    elif record.sequence is None or number < record.sequence:
        record.sequence = number
        record.operation = clean(str(entry.get("profiling_name", ""))).rpartition(":")[2][:60] or None
        record.elements = _elements(entry.get("input_sizes"))
    record.last_enqueued = max(number, record.last_enqueued or 0)


def _elements(sizes: Any) -> int | None:
    if not isinstance(sizes, list) or not sizes:
        return None
    total = 0
    for shape in sizes[:_TENSORS]:
        if not isinstance(shape, list) or not all(isinstance(size, int) and size < 1 << 48 for size in shape):
            return None
        total += math.prod(shape[:_DIMENSIONS])
    return total if 0 <= total < 1 << 62 else None


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


FORMATS = (Format("PyTorch flight recorder", ('"pg_status"', '"collective_seq_id"'), dump, lines=20_000, back=60),)
