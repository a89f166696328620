"""Reads the tables that ship with the product, each once and only when a look-up needs it."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import msgspec

DATA = __file__.removesuffix("tables.py") + "data/"

Row = Mapping[str, Any]


class Table(msgspec.Struct, frozen=True):
    """One table: what it says, where that comes from, and when it was put together."""

    name: str
    source: Mapping[str, str]
    date: str
    rows: tuple[Row, ...]


@cache
def table(name: str) -> Table:
    """Read a table by name.

    >>> table("nccl_results").rows[0]["name"]
    'ncclSuccess'
    """
    with open(f"{DATA}{name}.json", "rb") as file:  # noqa: PTH123  (pathlib costs a tenth of the start-up time)
        raw = json.load(file)
    return Table(name, raw["source"], raw["date"], tuple(raw["rows"]))


def names() -> tuple[str, ...]:
    """Names of all tables that ship.

    >>> "xid" in names()
    True
    """
    from pathlib import Path

    return tuple(sorted(path.stem for path in Path(DATA).glob("*.json")))


def sources(name: str, keys: Iterable[str]) -> tuple[str, ...]:
    """Spell out source keys of a table.

    >>> sources("nccl_results", ["nccl_src"])[0][:12]
    'NVIDIA NCCL '
    """
    known = table(name).source
    return tuple(known[key] for key in keys)


def words(row: Row, key: str) -> tuple[str, ...]:
    """Return a list of texts from a row, empty if the row lacks it."""
    return tuple(str(item) for item in row.get(key, ()))
