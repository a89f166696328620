"""What is there beside what the site expects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from gpudoctor.facts.base import Fact
from gpudoctor.facts.site import SiteDeparture, SiteExpectation
from gpudoctor.facts.store import FactStore

_LIMITED = {
    "temperature": ("temperature", "GPU temperature (C)"),
    "memory_temperature": ("memory_temperature", "memory temperature (C)"),
    "ecc_correctable": ("ecc_correctable_volatile", "corrected memory errors"),
    "pcie_replays": ("pcie_replays", "PCIe replays"),
}


def site_departures(store: FactStore) -> Iterable[Fact]:
    """Yield one fact per departure; of several sources for one GPU the first that differs speaks."""
    seen: set[tuple[str, str | None]] = set()
    for expectation in store.of("site_expectation"):
        if not isinstance(expectation, SiteExpectation):
            continue
        compare = _COMPARE.get(expectation.what, _limit)
        for departure in compare(expectation, store):
            key = (departure.what, departure.gpu or departure.subject)
            if key not in seen:
                seen.add(key)
                yield departure


def _model(expectation: SiteExpectation, store: FactStore) -> Iterator[SiteDeparture]:
    wanted = (expectation.text or "").lower()
    for fact in store.of("gpu"):
        name = fact.value("name")
        if isinstance(name, str) and fact.gpu and wanted not in name.lower():
            yield _departure(fact, "gpu", name, expectation.text or "")


def _driver(expectation: SiteExpectation, store: FactStore) -> Iterator[SiteDeparture]:
    wanted = expectation.text or ""
    for kind in ("driver_version", "kernel_module"):
        for fact in store.of(kind):
            version = fact.value("version")
            if (
                (kind == "driver_version" or fact.value("name") == "nvidia")
                and isinstance(version, str)
                and not f"{version}.".startswith(f"{wanted}.")
            ):
                yield _departure(fact, "driver", version, wanted)


def _nvlinks(expectation: SiteExpectation, store: FactStore) -> Iterator[SiteDeparture]:
    wanted = int(expectation.number or 0)
    counted = set()
    for fact in store.of("nvlink_state"):
        active = fact.value("active")
        if isinstance(active, int) and fact.gpu:
            counted.add(fact.gpu)
            if active < wanted:
                yield _departure(fact, "nvlinks", str(active), str(wanted))
    if wanted and store.of("nvlink_link"):
        for fact in store.of("gpu"):
            if fact.gpu and fact.gpu not in counted and fact.value("seen_by") == "nvml":
                yield _departure(fact, "nvlinks", "none", str(wanted))


def _limit(expectation: SiteExpectation, store: FactStore) -> Iterator[SiteDeparture]:
    field, words = _LIMITED[expectation.what]
    limit = expectation.number or 0.0
    for fact in store.of("gpu"):
        value = fact.value(field)
        if isinstance(value, (int, float)) and fact.gpu and value > limit:
            yield _departure(fact, words, f"{value:g}", f"{limit:g}")


def _remapped(expectation: SiteExpectation, store: FactStore) -> Iterator[SiteDeparture]:
    limit = expectation.number or 0.0
    for fact in store.of("gpu"):
        rows = [fact.value(f"remapped_{kind}") for kind in ("correctable", "uncorrectable")]
        total = sum(row for row in rows if isinstance(row, int))
        if fact.gpu and total > limit:
            yield _departure(fact, "remapped memory rows", str(total), f"{limit:g}")


def _file_systems(expectation: SiteExpectation, store: FactStore) -> Iterator[SiteDeparture]:
    limit = expectation.number or 100.0
    for fact in store.of("file_system"):
        used = fact.value("use_percent")
        if isinstance(used, (int, float)) and used > limit:
            departure = _departure(fact, "percent of the file system in use", f"{used:g}", f"{limit:g}")
            departure.subject = str(fact.value("mount"))
            yield departure


def _departure(fact: Fact, what: str, found: str, wanted: str) -> SiteDeparture:
    return SiteDeparture(what=what, found=found, wanted=wanted, gpu=fact.gpu, node=fact.node, where=fact.where)


_COMPARE: dict[str, Callable[[SiteExpectation, FactStore], Iterator[SiteDeparture]]] = {
    "gpu": _model,
    "driver": _driver,
    "nvlinks": _nvlinks,
    "remapped_rows": _remapped,
    "file_system_use": _file_systems,
}
