"""Asking NCCL's RAS about a job that runs on this node: twice, because one answer alone is only a moment of a moving job."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpudoctor.collect.collected import Collected
from gpudoctor.diagnosis import Doctor
from gpudoctor.findings.model import Report
from gpudoctor.sources.base import Document, SourceNotes

_PORT = 28028  # NCCL's default; NCCL_RAS_ADDR changes it
_QUESTION = b"verbose status\n"
_HEAD = "NCCL version"  # the first line of every status
_MOST = 16 << 20  # bytes of an answer


class NoAnswer(Exception):
    """Nobody answered; str() is one line."""


@dataclass
class Asked:
    """What the answers came to. moved: they differ, so the job makes progress."""

    report: Report
    answers: list[str]
    moved: bool


def address_of(given: str | None, environ: Mapping[str, str]) -> tuple[str, int]:
    """Return host and port of the RAS to ask.

    >>> address_of(None, {}), address_of("gpu7", {}), address_of(None, {"NCCL_RAS_ADDR": "127.0.0.1:2900"})
    (('localhost', 28028), ('gpu7', 28028), ('127.0.0.1', 2900))
    """
    text = given or environ.get("NCCL_RAS_ADDR") or "localhost"
    host, colon, port = text.rpartition(":")
    return (host.strip("[]"), int(port)) if colon and port.isdigit() else (text, _PORT)


def ask(address: tuple[str, int], seconds: float) -> str:
    """Return one whole answer; raises NoAnswer."""
    shown = f"{address[0]}:{address[1]}"
    end = time.monotonic() + seconds
    answer = bytearray()
    try:
        with socket.create_connection(address, timeout=min(5.0, seconds)) as connection:
            connection.sendall(_QUESTION)
            while len(answer) < _MOST:
                connection.settimeout(max(0.1, end - time.monotonic()))
                part = connection.recv(1 << 16)
                if not part:
                    break
                answer += part
                if time.monotonic() > end:
                    raise TimeoutError
    except TimeoutError:
        raise NoAnswer(f"{shown} did not answer in {seconds:g} s") from None
    except OSError as error:
        raise NoAnswer(f"{shown}: {error.strerror or error}") from None
    text = answer.decode("utf-8", "replace")
    if _HEAD not in text:
        raise NoAnswer(f"{shown}: what answers there is not RAS")
    return text


def ask_twice(
    doctor: Doctor, address: tuple[str, int], wait: float, seconds: float, say: Callable[[str], None]
) -> Asked:
    """Ask, wait, ask again, and judge both answers together."""
    collected = Collected()
    answers: list[str] = []
    for number in (1, 2):
        if number == 2:
            say(f"asking again in {wait:g} s")
            time.sleep(wait)
        answers.append(ask(address, seconds))
        data = answers[-1].encode()
        name = f"RAS, answer {number}"
        document = Document(name, lambda data=data: (data,))  # type: ignore[misc]
        collected.add(document, doctor.scanner.scan(name, (data,)))
    return Asked(doctor.judge(collected, SourceNotes("live", "/")), answers, _counts(answers[0]) != _counts(answers[1]))


def _counts(answer: str) -> list[str]:
    """The lines that a job in motion changes; how long the question took is not one of them."""
    return [line.strip() for line in answer.splitlines() if "launched" in line]
