"""What a job's logs say of it, in a few lines: who takes part, which way data goes, what was chosen and set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gpudoctor.facts.comms import NcclChoice, NcclConnection, NcclJob, NcclProcess
from gpudoctor.facts.store import FactStore

_LISTED = 6
_CHOICES = {"channels": "channels", "ring": "ring", "tree": "tree from", "nvls": "NVLink SHARP", "tuner": "tuner", "algorithm": "chosen"}  # fmt: skip


def job_lines(store: FactStore) -> list[str]:
    """Return the lines; none where no log of NCCL was read."""
    if not any(isinstance(fact, NcclProcess | NcclConnection) for kind in ("nccl_process", "nccl_connection") for fact in store.of(kind)):  # fmt: skip
        return []
    return [line for line in _lines(store) if line]


def _lines(store: FactStore) -> Iterator[str]:
    jobs = [fact for fact in store.of("nccl_job") if isinstance(fact, NcclJob)]
    for job in jobs[:_LISTED]:
        parts = [
            f"{job.ranks} ranks" if job.ranks else "",
            f"{job.hosts} hosts ({job.host_names})" if job.hosts and job.hosts > 1 else job.host_names or "",
        ]
        yield ", ".join(part for part in parts if part)
    processes = [fact for fact in store.of("nccl_process") if isinstance(fact, NcclProcess)]
    yield _told("NCCL version", (fact.version for fact in processes))
    yield _told("network", (fact.network for fact in processes))
    yield _told("adapters", (f"{fact.nics} ({fact.link_layer})" if fact.nics else None for fact in processes))
    yield _told("bootstrap over", (fact.interface for fact in processes))
    yield _told("ranks reach each other by", (_via(fact) for fact in store.of("nccl_connection")))
    for what, title in _CHOICES.items():
        yield _told(title, (fact.chosen for fact in store.of("nccl_choice") if isinstance(fact, NcclChoice) and fact.what == what))  # fmt: skip
    settings = dict.fromkeys(
        f"{fact.value('name')}={fact.value('setting')}"
        for fact in store.of("env_var")
        if str(fact.value("name")).startswith("NCCL_")
    )
    if settings:
        more = f" and {len(settings) - 2 * _LISTED} more" if len(settings) > 2 * _LISTED else ""
        yield f"set: {', '.join(list(settings)[: 2 * _LISTED])}{more}"


def _via(fact: object) -> str | None:
    if not isinstance(fact, NcclConnection):
        return None
    return f"{fact.via} with GPUDirect" if fact.gdr else fact.via


def _told(what: str, values: Iterator[str | None]) -> str:
    """Most frequent first; what differs between processes is all listed."""
    counted = Counter(value for value in values if value)
    shown = [value for value, _ in counted.most_common(_LISTED)]
    return f"{what}: {', '.join(shown)}" if shown else ""
