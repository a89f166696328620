"""Errors of the CUDA runtime and the CUDA driver: names, numbers and what lies behind them."""

from functools import cache

import msgspec

from gpudoctor.knowledge.fixes import Step, ladder
from gpudoctor.knowledge.tables import sources, table, words


class CudaError(msgspec.Struct, frozen=True):
    """One number with its name in either interface; since CUDA 10.1 both use the same numbers."""

    number: int
    runtime: str | None
    driver: str | None
    text: str | None
    meaning: str
    causes: tuple[str, ...]
    check: tuple[str, ...]
    fix: tuple[Step, ...]
    findings: tuple[str, ...]
    sources: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names in the runtime and the driver interface."""
        return tuple(name for name in (self.runtime, self.driver) if name)


@cache
def _at(index: int) -> CudaError:
    row = table("cuda_errors").rows[index]
    return CudaError(
        number=row["code"],
        runtime=row.get("runtime"),
        driver=row.get("driver"),
        text=row.get("text"),
        meaning=row["meaning"],
        causes=words(row, "causes"),
        check=words(row, "check"),
        fix=ladder(words(row, "fix")),
        findings=words(row, "findings"),
        sources=sources("cuda_errors", row["source"]),
    )


def every() -> tuple[CudaError, ...]:
    """All errors that the headers name."""
    return tuple(_at(index) for index in range(len(table("cuda_errors").rows)))


def by_number(number: int) -> CudaError | None:
    """Look an error up by number.

    >>> by_number(802).driver
    'CUDA_ERROR_SYSTEM_NOT_READY'
    """
    for index, row in enumerate(table("cuda_errors").rows):
        if row["code"] == number:
            return _at(index)
    return None


def by_name(name: str) -> CudaError | None:
    """Look an error up by its name in either interface.

    >>> by_name("cudaErrorNoDevice").number
    100
    """
    wanted = name.casefold()
    for index, row in enumerate(table("cuda_errors").rows):
        if wanted in (row.get("runtime", "").casefold(), row.get("driver", "").casefold()):
            return _at(index)
    return None


def by_text(text: str) -> CudaError | None:
    """Find the error whose message stands in a text; the longest message wins.

    >>> by_text("RuntimeError: CUDA error: device-side assert triggered").number
    710
    """
    folded = text.casefold()
    rows = table("cuda_errors").rows
    found = [i for i, row in enumerate(rows) if len(row.get("text", "")) > 12 and row["text"].casefold() in folded]
    return _at(max(found, key=lambda index: len(rows[index]["text"]))) if found else None
