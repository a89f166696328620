"""The NVLinks of each GPU, counted, and whether links are down that this node shows to be wired."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpudoctor.facts.base import Fact
from gpudoctor.facts.gpu import NvlinkLink, NvlinkState, TopologyPath
from gpudoctor.facts.store import FactStore
from gpudoctor.patterns.lazy import LazyRegex

_MODULE = LazyRegex(r"SXM|HGX|HBM3|\b[HB](?:100|200|300|800|20)\b(?!.*(?:PCI|NVL))|GB200|GB300", re.IGNORECASE)
_SLOWER = 0.9  # of the fastest link of the GPU
_FULL_MESH = 4  # as many GPUs as are wired each to each without a switch
_SWITCHED = 12  # from this many links on, a pair is joined by NVSwitches and all pairs have the same number


def nvlink_states(store: FactStore) -> Iterable[Fact]:
    """Yield one state per GPU whose links were read, and one per GPU that the topology matrix shows cut off."""
    links: dict[str | None, list[NvlinkLink]] = {}
    for fact in store.of("nvlink_link"):
        if isinstance(fact, NvlinkLink):
            links.setdefault(fact.gpu, []).append(fact)
    names = {fact.gpu: str(fact.value("name")) for fact in store.of("gpu") if fact.gpu and fact.value("name")}
    total = len({fact.gpu for fact in store.of("gpu") if fact.gpu})
    active = {gpu for gpu, its in links.items() if any(link.state == "active" for link in its)}
    states: list[NvlinkState] = []
    for gpu, its in links.items():
        state = _state(gpu, its)
        state.gpus = total
        state.others_active = bool(active - {gpu})
        state.module = bool(_MODULE.search(names[gpu])) if gpu in names else None
        state.missing = bool(
            state.inactive
            and (
                state.active or state.others_active or (state.module and total > 1 and "GH200" not in names[gpu or ""])
            )
        )
        states.append(state)
    states += _from_matrix([fact for fact in store.of("topology_path") if isinstance(fact, TopologyPath)], store)
    return states


def _state(gpu: str | None, links: list[NvlinkLink]) -> NvlinkState:
    worst = max(links, key=lambda link: (link.state == "inactive", link.errors or 0))
    down = next((link for link in links if link.state == "inactive"), worst)
    speeds = [link for link in links if link.state == "active" and link.speed]
    slow = min(speeds, key=lambda link: link.speed or 0.0, default=None)
    usual = max((link.speed or 0.0 for link in speeds), default=0.0)
    if slow is not None and (slow.speed or 0.0) > _SLOWER * usual:
        slow = None
    return NvlinkState(
        gpu=gpu,
        slow_link=slow.link if slow else None,
        slow_speed=slow.speed if slow else None,
        usual_speed=usual if slow else None,
        active=len({link.link for link in links if link.state == "active"}),
        inactive=len({link.link for link in links if link.state == "inactive"}),
        errors=_largest(links, "errors"),
        replays=_largest(links, "replay_errors"),
        recoveries=_largest(links, "recovery_errors"),
        crc=_largest(links, "crc_errors"),
        where=down.where_fields.get("state") or down.where,
        where_fields={
            field: max(known, key=lambda link: link.value(name) or 0).where_fields[name]
            for field, name in (("replays", "replay_errors"), ("recoveries", "recovery_errors"), ("crc", "crc_errors"))
            if (known := [link for link in links if name in link.where_fields])
        },
        node=down.node,
    )


def _largest(links: list[NvlinkLink], field: str) -> int | None:
    values = [value for link in links if isinstance(value := link.value(field), int)]
    return max(values, default=None)


def _from_matrix(paths: list[TopologyPath], store: FactStore) -> list[NvlinkState]:
    """A GPU without NVLink to any other, or with fewer links than all others have, in a matrix that shows NVLinks."""
    pairs = [path for path in paths if path.a_kind == path.b_kind == "gpu"]
    counts = {path.links for path in pairs if path.links}
    gpus = {name for path in pairs for name in (path.a, path.b)}
    if not counts or len(gpus) < 3:
        return []
    widest = max(counts)
    unlinked = [path for path in pairs if not path.links]
    one_short = (
        unlinked if len(gpus) == _FULL_MESH and len({frozenset((path.a, path.b)) for path in unlinked}) == 1 else []
    )
    states = []
    for gpu in sorted(gpus):
        its = [path for path in pairs if gpu in (path.a, path.b)]
        linked = [path for path in its if path.links]
        cut_off = not linked
        short = next((path for path in its if path in one_short), None)
        fewer = widest >= _SWITCHED and its and all((path.links or 0) < widest for path in its)
        if cut_off or fewer or short:
            have = max((path.links or 0 for path in its), default=0)
            name = next(
                (fact.gpu for fact in store.of("gpu") if fact.value("index") == int(gpu[3:]) and fact.gpu), None
            )
            where = (short or its[0]).where
            states.append(NvlinkState(gpu=name, active=have, inactive=widest if short else widest - have, others_active=True, missing=True, gpus=len(gpus), where=where))  # fmt: skip
    return states
