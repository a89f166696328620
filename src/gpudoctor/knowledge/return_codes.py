"""Return codes of nvidia-smi, NVML, NCCL, cuBLAS and cuDNN, and completion states of RDMA verbs."""

from functools import cache

import msgspec

from gpudoctor.knowledge.fixes import Step, ladder
from gpudoctor.knowledge.tables import sources, table, words

TABLES = {
    "nvidia-smi": "nvidia_smi_exit",
    "nvml": "nvml_return",
    "nccl": "nccl_results",
    "ib": "ib_completion",
    "cublas": "cublas_status",
    "cudnn": "cudnn_status",
}
_PREFIXES = {"nvml": "nvml_", "nccl": "nccl", "ib": "ibv_wc_", "cublas": "cublas_", "cudnn": "cudnn_"}


class Code(msgspec.Struct, frozen=True):
    """One return code of one family."""

    family: str
    number: int
    name: str
    text: str | None
    meaning: str
    causes: tuple[str, ...]
    check: tuple[str, ...]
    fix: tuple[Step, ...]
    findings: tuple[str, ...]
    sources: tuple[str, ...]


@cache
def _at(family: str, index: int) -> Code:
    name = TABLES[family]
    row = table(name).rows[index]
    return Code(
        family=family,
        number=row["code"],
        name=row["name"],
        text=row.get("text"),
        meaning=row["meaning"],
        causes=words(row, "causes"),
        check=words(row, "check"),
        fix=ladder(words(row, "fix")),
        findings=words(row, "findings"),
        sources=sources(name, row["source"]),
    )


def every(family: str) -> tuple[Code, ...]:
    """All codes of a family: "nvidia-smi", "nvml", "nccl", "ib", "cublas" or "cudnn"."""
    return tuple(_at(family, index) for index in range(len(table(TABLES[family]).rows)))


def code(family: str, number: int) -> Code | None:
    """Look a code up by family and number.

    >>> code("nvml", 18).name
    'NVML_ERROR_LIB_RM_VERSION_MISMATCH'
    >>> code("nvidia-smi", 15).name
    'GPU fell off the bus'
    """
    for index, row in enumerate(table(TABLES[family]).rows):
        if row["code"] == number:
            return _at(family, index)
    return None


def by_name(name: str) -> Code | None:
    """Look a code up by its name; where a name has two numbers, as in cuDNN, the newer one counts.

    >>> by_name("ncclInvalidUsage").number, by_name("CUBLAS_STATUS_ALLOC_FAILED").number
    (5, 3)
    """
    wanted = name.casefold()
    for family, prefix in _PREFIXES.items():
        if not wanted.startswith(prefix):
            continue
        matches = [i for i, row in enumerate(table(TABLES[family]).rows) if row["name"].casefold() == wanted]
        if matches:
            return _at(family, matches[-1])
    return None


def nv_status(number: int) -> tuple[str, str] | None:
    """Name and meaning of a status code of the kernel driver.

    >>> nv_status(0x65)
    ('NV_ERR_TIMEOUT', 'timed out')
    """
    for row in table("nv_status").rows:
        if row["code"] == number:
            return row["name"], row["text"]
    return None
