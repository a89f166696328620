"""Runs probes against a live host: in parallel, each under its deadline, all under one.

Every probe has a thread of its own that only waits for a child process or reads small files; what lies in the driver's
hands (`driver: true`) is read by a child, because a thread that hangs in the kernel would keep this process from ending.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from gpudoctor.collect.booking import Answered, book, is_root
from gpudoctor.collect.collected import Collected
from gpudoctor.collect.probe import Probe
from gpudoctor.findings.model import ProbeResult
from gpudoctor.parsers.scan import Scanner
from gpudoctor.sources.base import Document
from gpudoctor.sources.live import Answer, LiveHost, run_command

Progress = Callable[[str, ProbeResult | None], None]  # name, and the result once there is one
Parts = Sequence[tuple[str, Answer]]  # name of the text, answer
Keep = Callable[[Probe, float, Parts], None]
PARALLEL = 6
_NO_ANSWER = "no answer by the overall deadline"
_LATE = 16 * 1024  # of a text that comes when the time is over: what a command says of its trouble
_PATIENCE = 0.25  # seconds without an answer after which the caller is asked whether to go on
_RETRIES = 2  # times that the NVML child is started anew behind a call that hung


def run_probes(
    host: LiveHost,
    probes: Sequence[Probe],
    scanner: Scanner,
    collected: Collected,
    end: float,
    progress: Progress = lambda name, result: None,
    keep: Keep = lambda probe, seconds, parts: None,
    meanwhile: Callable[[], bool] = lambda: True,
) -> None:
    """Run probes until all have answered or the clock (time.monotonic) reaches `end`; add what came to `collected`.

    keep gets the answers as they came. meanwhile is asked again and again while nothing comes; False ends the waiting.
    """
    waiting: queue.SimpleQueue[Probe] = queue.SimpleQueue()
    answers: queue.SimpleQueue[tuple[Probe, float, list[tuple[str, Answer]]]] = queue.SimpleQueue()
    for probe in probes:
        waiting.put(probe)

    def work() -> None:
        while True:
            try:
                probe = waiting.get_nowait()
            except queue.Empty:
                return
            left = end - time.monotonic()
            began = time.monotonic()
            progress(probe.name, None)
            if left <= 0.05:
                answers.put((probe, 0.0, [("", Answer("skipped", reason="the overall deadline had passed"))]))
                continue
            try:
                parts = _ask(host, probe, min(probe.deadline, left))
            except Exception as error:  # one broken probe must not take the report with it
                parts = [("", Answer("failed", reason=f"{type(error).__name__}: {error}"))]
            answers.put((probe, time.monotonic() - began, parts))

    for _ in range(min(PARALLEL, len(probes))):
        threading.Thread(target=work, daemon=True).start()
    pending = {probe.name: probe for probe in probes}
    unanswered = Answer("timeout", reason=_NO_ANSWER)
    while pending:
        left = end - time.monotonic() + 0.5
        try:
            probe, seconds, parts = answers.get(timeout=max(0.01, min(left, _PATIENCE)))
        except queue.Empty:
            if left <= _PATIENCE:
                break
            if not meanwhile():
                unanswered = Answer("skipped", reason="stopped before it answered")
                break
            continue
        del pending[probe.name]
        keep(probe, seconds, parts)
        result = _take(probe, seconds, parts, scanner, collected, end)
        progress(probe.name, result)
    for probe in pending.values():
        keep(probe, 0.0, [(probe.name, unanswered)])
        late = Answered(probe.name, unanswered.status, unanswered.reason)
        progress(probe.name, book(probe.name, [], [], 0.0, [late], collected, root=is_root()))


def _ask(host: LiveHost, probe: Probe, deadline: float) -> list[tuple[str, Answer]]:
    """Return (name of the text, answer) for everything the probe reads."""
    live = probe.live
    if live.command:
        answer = host.run(live.command, deadline, probe.max_bytes)
        if answer.status == "failed" and answer.exit_code in live.exits:
            answer = replace(answer, status="ok")
        return [(f"$ {probe.what}", answer)]
    if live.child == "nvml":
        return _ask_nvml(host, probe, deadline)
    if live.child:
        return [(live.child, host.run_child(live.child, deadline, probe.max_bytes))]
    if live.tree:
        return [(live.tree[0].partition("*")[0].rstrip("/"), host.tree(live.tree, probe.max_bytes))]
    if probe.driver and host.is_this_machine:
        present = [str(path) for pattern in live.files for path in host.paths(pattern)]
        if not present:
            return [("", Answer("absent", reason="no such file"))]
        return [(path, run_command(["/bin/cat", "--", path], deadline, probe.max_bytes)) for path in present]
    parts = []
    for pattern in live.files:
        for path in host.paths(pattern):
            if path.is_file():
                parts.append((host.shown(path), host.read(path, probe.max_bytes, tail=live.tail)))
    return parts or [("", Answer("absent", reason="no such file"))]


def _ask_nvml(host: LiveHost, probe: Probe, deadline: float) -> list[tuple[str, Answer]]:
    """Run the NVML child; where a call hangs, start it again and leave that GPU's rest out."""
    end = time.monotonic() + deadline
    parts: list[tuple[str, Answer]] = []
    skip: list[str] = []
    for attempt in range(_RETRIES + 1):
        left = end - time.monotonic()
        share = left / (_RETRIES + 1 - attempt)
        answer = host.run_child("nvml", max(0.5, share), probe.max_bytes, tuple(skip))
        parts.append(("NVML", answer))
        hung = hanging_call(answer.output) if answer.status == "timeout" else None
        if hung is None or end - time.monotonic() < 0.5:
            break
        skip += ["--skip", hung]
    return parts


def hanging_call(output: bytes) -> str | None:
    """Return the call that began last and never ended, as `function` or `function:gpu index`."""
    last = output.decode("utf-8", "replace").rstrip("\n").rpartition("\n")[2]
    return last.removeprefix("begin ").strip() or None if last.startswith("begin ") else None


def _take(
    probe: Probe, seconds: float, parts: Parts, scanner: Scanner, collected: Collected, end: float
) -> ProbeResult:
    """Scan what a probe gave, while there is time, and book its result."""
    for name, answer in parts:
        if answer.output:
            late = time.monotonic() >= end
            output = answer.output[:_LATE] if late else answer.output
            document = Document(name, lambda output=output: (output,), probe=probe.name)  # type: ignore[misc]
            with contextlib.suppress(MemoryError):
                collected.add(document, scanner.scan(name, (output,), until=None if late else end))
            if len(output) < len(answer.output):
                collected.problems.append(f"{name}: came too late; only its first {_LATE >> 10} KiB were judged")
    booked = [Answered(name, answer.status, why(answer), first_line(answer.output)) for name, answer in parts]
    return book(probe.name, probe.live.command, probe.answers, seconds, booked, collected, root=is_root())


def why(answer: Answer) -> str:
    """Say why there is no answer; of the NVML child also which call hangs, and on which GPU."""
    hung = hanging_call(answer.output) if answer.status == "timeout" else None
    if hung is None:
        return answer.reason
    function, _, gpu = hung.partition(":")
    return f"{function}{f' on GPU {gpu}' if gpu else ''}: {answer.reason}"


def first_line(output: bytes) -> str:
    """Return the line that says what a program's trouble is."""
    return output[:300].decode("utf-8", "replace").partition("\n")[0].strip()
