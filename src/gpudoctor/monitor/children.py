"""Child processes that are kept between cycles, each for one kind of reading; whatever hangs or misbehaves is started anew."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from pathlib import Path

from gpudoctor.collect.children.keep import MARK
from gpudoctor.sources.live import Answer, python_with

MAX_ROUNDS = 2000  # then a new process: what a driver's library leaks stays bounded
_END = f"\n{MARK}\n".encode()
_LIBRARY = "libnvidia-ml"


class KeptChild:
    """One child; `ask` never waits longer than its deadline."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._rounds = 0

    def ask(self, arguments: list[str], deadline: float, max_bytes: int) -> Answer:
        """Run one round."""
        end = time.monotonic() + deadline
        if self._process is not None and (self._process.poll() is not None or self._rounds >= MAX_ROUNDS):
            self.stop()
        try:
            process = self._process or self._start()
            self._rounds += 1
            process.stdin.write(json.dumps(arguments).encode() + b"\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
        except OSError as error:
            self.stop()
            return Answer("failed", reason=f"{self.module}: {error.strerror}")
        answer = self._read(process, end, deadline, max_bytes)
        if answer.status != "ok" or _replaced(process.pid):
            self.stop()
        return answer

    def stop(self) -> None:
        """End the child; one that hangs in the kernel is left to itself."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        try:
            process.wait(0.3)
        except subprocess.TimeoutExpired:
            process.returncode = -9  # reaping would wait for the kernel: let the destructor believe that it is done

    def _start(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [*python_with("from gpudoctor.collect.children import keep; keep.main()"), self.module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
        self._rounds = 0
        self.starts += 1
        return self._process

    def _read(self, process: subprocess.Popen[bytes], end: float, deadline: float, max_bytes: int) -> Answer:
        output = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)  # type: ignore[arg-type]
            while True:
                left = end - time.monotonic()
                if left <= 0:
                    return Answer("timeout", bytes(output), f"no answer in {round(deadline, 1):g} s")
                if not selector.select(left):
                    continue
                part = os.read(process.stdout.fileno(), 1 << 16)  # type: ignore[union-attr]
                if not part:
                    code = process.wait(1.0) if process.poll() is None else process.returncode
                    return Answer("failed", bytes(output), f"the child ended with status {code}", code)
                output += part
                if output.endswith(_END):
                    return Answer("ok", bytes(output[: -len(_END)]) + b"\n", exit_code=0)
                if len(output) > max_bytes:
                    return Answer("failed", bytes(output[:max_bytes]), f"more than {max_bytes} bytes of output")


def _replaced(pid: int) -> bool:
    """Tell whether the driver's library that a process has in memory is no longer the one on disk."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    return any(_LIBRARY in line and line.endswith("(deleted)") for line in lines)
