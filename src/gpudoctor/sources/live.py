"""A live host: its files below a root folder, and its commands, run under limits or taken from a recording.

A command runs without a shell, in a session of its own, with a deadline and a cap on its output. When the deadline has
passed its process group is killed; what can't be killed (a process that hangs inside the driver) is left behind, not
waited for.
"""

from __future__ import annotations

import glob
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal

import msgspec

_ENV = {"LC_ALL": "C", "LANG": "C", "PAGER": "cat", "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0"}
_GRACE = 0.3  # seconds between SIGTERM and giving up
_SMALL, _GATHER = 4096, 0.004  # bytes; seconds


class Answer(msgspec.Struct, frozen=True):
    """What a command or file gave. status: ok, absent, failed, timeout, denied; partial output is kept."""

    status: Literal["ok", "absent", "failed", "timeout", "denied", "skipped"]
    output: bytes = b""
    reason: str = ""
    exit_code: int | None = None


class LiveHost:
    """The machine below `root`; with `recorded`, commands are looked up there and never run."""

    def __init__(self, root: str = "/", recorded: str | None = None) -> None:
        self.root = Path(root)
        self.recorded = Path(recorded) if recorded else None
        self.is_this_machine = self.root == Path("/") and recorded is None

    def paths(self, pattern: str) -> list[Path]:
        """Return the paths below the root that a glob pattern fits, sorted."""
        return [Path(found) for found in sorted(glob.glob(str(self.root / pattern.lstrip("/"))))]

    def shown(self, path: Path) -> str:
        """Return a path as the host itself would call it."""
        return "/" + path.relative_to(self.root).as_posix()

    def read(self, path: Path, max_bytes: int, *, tail: bool = False) -> Answer:
        """Read a file, its start or (tail) its end."""
        try:
            with path.open("rb", buffering=0) as stream:
                if tail and (size := os.fstat(stream.fileno()).st_size) > max_bytes:
                    stream.seek(size - max_bytes)
                    stream.readline()
                return Answer("ok", stream.read(max_bytes) or b"")
        except FileNotFoundError:
            return Answer("absent", reason="no such file")
        except PermissionError:
            return Answer("denied", reason="permission denied")
        except OSError as error:
            return Answer("failed", reason=error.strerror or str(error))

    def tree(self, patterns: list[str], max_bytes: int) -> Answer:
        """Read many one-line files as lines `path: value`; links as `path: -> target`."""
        lines: list[str] = []
        for pattern in patterns:
            for path in self.paths(pattern):
                shown = self.shown(path)
                try:
                    if path.is_symlink():
                        lines.append(f"{shown}: -> {path.readlink().as_posix()}")
                    elif path.is_file():
                        value = path.read_bytes()[:512].decode("utf-8", "replace").strip().replace("\n", " ")
                        lines.append(f"{shown}: {value}")
                except OSError:
                    continue  # sysfs attributes refuse one by one
        if not lines:
            return Answer("absent", reason="nothing there")
        return Answer("ok", ("\n".join(lines) + "\n").encode()[:max_bytes])

    def run(self, command: list[str], deadline: float, max_bytes: int) -> Answer:
        """Run a command (or look up its recording); never waits longer than the deadline and a moment."""
        if self.recorded is not None:
            return self._recorded(self.recorded, command, max_bytes)
        if self.root != Path("/"):
            return Answer("skipped", reason="commands are not run for another root")
        program = shutil.which(command[0])
        if program is None:
            return Answer("absent", reason=f"{command[0]}: command not found")
        return run_command([program, *command[1:]], deadline, max_bytes)

    def run_child(self, module: str, deadline: float, max_bytes: int, arguments: tuple[str, ...] = ()) -> Answer:
        """Run one of gpudoctor's own children: in-process trouble of the driver stays in that process."""
        if self.recorded is not None and (self.recorded / module).is_file():
            return self._recorded(self.recorded, [module], max_bytes)
        if module == "nvml" and not self.is_this_machine:
            return Answer("skipped", reason="the driver of another root can't be asked")
        code = f"from gpudoctor.collect.children import follow, {module} as m; follow.follow_parent(); m.main()"
        command = [*python_with(code), "--root", str(self.root), *arguments]
        return run_command(command, deadline, max_bytes, stdin=subprocess.PIPE)

    def _recorded(self, folder: Path, command: list[str], max_bytes: int) -> Answer:
        path = folder / recording_name(command)
        if not path.is_file():
            return Answer("absent", reason="not in the recording")
        code = 0
        exit_file = path.with_name(path.name + ".exit")
        if exit_file.is_file():
            code = int(exit_file.read_text().strip() or 0)
        output = path.read_bytes()[:max_bytes]
        return Answer("ok" if code == 0 else "failed", output, "" if code == 0 else f"exit status {code}", code)


def python_with(code: str) -> list[str]:
    """Return the command that runs code of ours in a Python of its own: with our path, so that it need not look for packages."""
    path = [str(Path(__file__).resolve().parents[2]), *sys.path]
    return [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {path!r}; {code}"]


def recording_name(command: list[str]) -> str:
    """Return the file name under which a command's output is recorded.

    >>> recording_name(["nvidia-smi", "-q", "-x"])
    'nvidia-smi_-q_-x'
    """
    return re.sub(r"[^\w.,=:-]+", "_", " ".join(command)).strip("_")[:150]


def run_command(command: list[str], deadline: float, max_bytes: int, stdin: int = subprocess.DEVNULL) -> Answer:
    """Run a command with a deadline (seconds) and a cap on its output; standard error is part of the output.

    stdin: DEVNULL, or PIPE for a child that ends when this process is gone (nothing is written there).
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **_ENV},
            bufsize=0,
        )
    except PermissionError:
        return Answer("denied", reason=f"{command[0]}: permission denied")
    except OSError as error:
        return Answer("failed", reason=f"{command[0]}: {error.strerror}")
    try:
        return _answer(process, deadline, max_bytes)
    finally:
        if process.stdin:
            process.stdin.close()


def _answer(process: subprocess.Popen[bytes], deadline: float, max_bytes: int) -> Answer:
    output = bytearray()
    end = time.monotonic() + deadline
    with selectors.DefaultSelector() as selector, process.stdout as pipe:  # type: ignore[union-attr]
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            left = end - time.monotonic()
            if left <= 0:
                _abandon(process)
                return Answer("timeout", bytes(output), f"no answer in {round(deadline, 1):g} s")
            if not selector.select(left):
                continue
            part = os.read(pipe.fileno(), 1 << 16)
            if not part:
                break
            output += part
            if len(output) > max_bytes:
                _abandon(process)
                return Answer("ok", bytes(output[:max_bytes]), f"output cut after {max_bytes} bytes")
            if len(part) < _SMALL:  # what is printed line by line would wake us for each line
                time.sleep(_GATHER)
    try:
        code = process.wait(max(0.0, end - time.monotonic()) + _GRACE)
    except subprocess.TimeoutExpired:
        _abandon(process)
        return Answer("timeout", bytes(output), f"did not end in {deadline:g} s")
    if code == 0:
        return Answer("ok", bytes(output), exit_code=0)
    reason = f"exit status {code}" if code > 0 else f"ended by signal {signal.Signals(-code).name}"
    return Answer("failed", bytes(output), reason, code)


def _abandon(process: subprocess.Popen[bytes]) -> None:
    """End a process group; one that can't be killed is left to itself."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(_GRACE)
            return
        except (ProcessLookupError, PermissionError):
            return
        except subprocess.TimeoutExpired:
            continue
    process.returncode = -9  # reaping would wait for the kernel: let the destructor believe that it is done
