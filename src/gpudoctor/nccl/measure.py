"""One run of an nccl-tests program: in a process group of its own, under a deadline, its lines passed on as they come."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Literal

_MOST = 4 << 20  # bytes of output that are kept
_GRACE = 2.0  # seconds between SIGTERM and SIGKILL


@dataclass
class Measured:
    """How a run ended. hung: the deadline passed; crashed: it ended with an error; denied: it could not be started."""

    status: Literal["ended", "hung", "crashed", "denied"]
    output: str
    seconds: float
    reason: str = ""


def measure(
    command: Sequence[str],
    more_environment: Mapping[str, str],
    deadline: float,
    on_line: Callable[[str], None] = lambda line: None,
    stop: Event | None = None,
) -> Measured:
    """Run a command; whatever happens, nothing of it is left running that can be ended. stop: end it before its time."""
    began = time.monotonic()
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **more_environment},
            bufsize=0,
        )
    except OSError as error:
        return Measured("denied", "", 0.0, f"{command[0]}: {error.strerror or error}")
    output = bytearray()
    try:
        hung = _follow(process, output, began + deadline, on_line, stop or Event())
    except BaseException:
        _end(process)
        raise
    text = output.decode("utf-8", "replace")
    seconds = time.monotonic() - began
    if hung:
        _end(process)
        return Measured("hung", text, seconds, f"did not end in {deadline:g} s")
    code = process.wait()
    if code == 0:
        return Measured("ended", text, seconds)
    with contextlib.suppress(ValueError):
        if code < 0:
            return Measured("crashed", text, seconds, f"ended by {signal.Signals(-code).name}")
    return Measured("crashed", text, seconds, f"exit status {code}")


def _follow(
    process: subprocess.Popen[bytes], output: bytearray, end: float, on_line: Callable[[str], None], stop: Event
) -> bool:
    """Read until the program ends; True where the deadline came first."""
    begun = 0  # where the line that isn't whole yet begins
    with selectors.DefaultSelector() as selector, process.stdout as pipe:  # type: ignore[union-attr]
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            left = end - time.monotonic()
            if left <= 0 or stop.is_set():
                return True
            if not selector.select(min(left, 0.5)):
                continue
            part = os.read(pipe.fileno(), 1 << 16)
            if not part:
                break
            if len(output) < _MOST:
                output += part
            while (line_end := output.find(b"\n", begun)) >= 0:
                on_line(output[begun:line_end].decode("utf-8", "replace"))
                begun = line_end + 1
    try:
        process.wait(max(0.1, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        return True
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, sign)
        try:
            process.wait(_GRACE)
            break
        except subprocess.TimeoutExpired:
            continue
    else:
        process.returncode = -9  # it hangs in the kernel: reaping it would wait for the driver
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # what ignored SIGTERM when its leader ended
