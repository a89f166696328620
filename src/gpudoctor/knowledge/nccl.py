"""NCCL: what its variables do and which of them hurt when they are forgotten."""

from functools import cache

import msgspec

from gpudoctor.knowledge.tables import sources, table, words


class Variable(msgspec.Struct, frozen=True):
    """One environment variable; harm says what it does when it is left set by mistake."""

    name: str
    text: str
    default: str | None
    since: str | None
    values: tuple[str, ...]
    harm: str | None
    findings: tuple[str, ...]
    documented: bool
    sources: tuple[str, ...]


@cache
def every() -> tuple[Variable, ...]:
    """All variables that the guide or the sources name."""
    return tuple(
        Variable(
            name=row["name"],
            text=row["text"],
            default=row.get("default"),
            since=row.get("since"),
            values=words(row, "values"),
            harm=row.get("harm"),
            findings=words(row, "findings"),
            documented=row["documented"],
            sources=sources("nccl_variables", row["source"]),
        )
        for row in table("nccl_variables").rows
    )


@cache
def _by_name() -> dict[str, Variable]:
    found = {item.name: item for item in every()}
    for row in table("nccl_variables").rows:
        if "formerly" in row:
            found.setdefault(row["formerly"], found[row["name"]])
    return found


def variable(name: str) -> Variable | None:
    """Look a variable up.

    >>> variable("NCCL_P2P_DISABLE").default
    '0'
    """
    return _by_name().get(name.strip().upper())
