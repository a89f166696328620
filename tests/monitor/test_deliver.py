"""Receivers that are slow, away or wrong cost events, never time."""

from __future__ import annotations

import subprocess
import threading
import time
import urllib.error
from http.server import BaseHTTPRequestHandler, HTTPServer

import msgspec
import pytest
from report.reports import HOSTILE, finding

from gpudoctor.monitor.deliver import MAX_WAITING, TRIES, Delivery, reason, sentence, to_command, to_webhook
from gpudoctor.monitor.events import Event


def event(number: int, **values: object) -> Event:
    return msgspec.convert({"event": "appeared", "sequence": number, "time": 1.0, "status": "critical"} | values, Event)


def test_a_receiver_that_hangs_delays_nobody_and_the_newest_events_stay():
    free, got = threading.Event(), []

    def send(one: Event) -> None:
        free.wait(20)
        got.append(one.sequence)

    delivery = Delivery(send)
    began = time.monotonic()
    for number in range(1000):
        delivery.put(event(number))
    assert time.monotonic() - began < 2
    free.set()
    delivery.stop(20)
    assert got[-1] == 999
    assert len(got) <= MAX_WAITING + 1
    assert delivery.failed == 1000 - len(got)


def test_what_fails_is_tried_again_then_counted():
    tries = []

    def send(one: Event) -> None:
        tries.append(one.sequence)
        raise OSError("refused")

    delivery = Delivery(send, pause=0.0)
    delivery.put(event(1))
    delivery.put(event(2))
    delivery.stop(10)
    assert tries == [1] * TRIES + [2] * TRIES
    assert delivery.failed == 2


def test_a_receiver_that_refuses_is_complained_of_once_until_it_takes_something():
    complaints = []

    def send(one: Event) -> None:
        if one.sequence != 3:
            raise ConnectionRefusedError(111, "Connection refused")

    delivery = Delivery(send, pause=0.0, complain=complaints.append)
    for number in range(1, 6):
        delivery.put(event(number))
    assert delivery.stop(10) == 0
    assert complaints == ["connection refused; the event is lost"] * 2
    assert delivery.failed == 4


def test_what_is_left_at_the_end_is_counted():
    free = threading.Event()
    delivery = Delivery(lambda one: free.wait(20) and None)
    for number in range(3):
        delivery.put(event(number))
    assert delivery.stop(0.2) == 3
    free.set()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http:///x", "names no host"),
        ("https://host:99999/x", "Port out of range"),
        ("https://[::1", "Invalid IPv6"),
        ("https://me:secret@host/x", "password in it"),
        ("https://host/größe", "ASCII"),
    ],
)
def test_an_address_that_nothing_can_be_posted_to_is_refused(url, words):
    with pytest.raises(ValueError, match=words) as refused:
        to_webhook(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("program", "words"), [("exit 3", "it ended with status 3"), ("kill -9 $$", "it ended with status -9")]
)
def test_what_a_command_does_wrong_is_said(program, words):
    with pytest.raises(subprocess.CalledProcessError) as failure:
        to_command(["sh", "-c", program])(event(1))
    assert reason(failure.value) == words


@pytest.mark.parametrize(("status", "words"), [(404, "it answers 404 Not Found"), (503, "it answers 503 ")])
def test_what_a_webhook_answers_is_said(status, words):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_error(status)

        def log_message(self, *arguments):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        with pytest.raises(urllib.error.HTTPError) as failure:
            to_webhook(f"http://127.0.0.1:{server.server_port}/gpu")(event(1))
        assert reason(failure.value).startswith(words)


def test_a_line_for_the_systems_log_is_one_line():
    for name in HOSTILE:
        if name != "\ud800":
            line = sentence(event(1, finding=finding(name)))
            assert line.isprintable()
            assert len(line) <= 900
