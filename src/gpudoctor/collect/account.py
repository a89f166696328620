"""What an offline bundle answers of what a live machine would be asked, and what it can't know."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence

from gpudoctor.collect.probe import Probe
from gpudoctor.findings.model import ProbeResult

_CALLED = {"nvidia-bug-report": "bug report"}


def account(kind: str, places: Iterable[str], probes: Sequence[Probe]) -> list[ProbeResult]:
    """Return a result per probe: read from this bundle, missing in it, or never part of such a bundle.

    places: paths inside the bundle, or the headings of its sections. Kinds of bundles that no probe names give nothing.
    """
    if not any(kind in probe.bundles for probe in probes):
        return []
    held = list(places)
    called = _CALLED.get(kind, kind)
    results = []
    for probe in probes:
        patterns = probe.bundles.get(kind)
        if not patterns:
            results.append(ProbeResult(name=probe.name, status="skipped", reason=f"no part of a {called}"))
        elif any(fnmatch.filter(held, pattern) for pattern in patterns):
            results.append(ProbeResult(name=probe.name, status="ok"))
        else:
            results.append(ProbeResult(name=probe.name, status="absent", reason=f"not in this {called}"))
    return results
