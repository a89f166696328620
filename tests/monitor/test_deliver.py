"""Receivers that are slow, away or wrong cost events, never time."""

from __future__ import annotations

import threading
import time

import msgspec
from report.reports import HOSTILE, finding

from gpudoctor.monitor.deliver import MAX_WAITING, TRIES, Delivery, sentence
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


def test_a_line_for_the_systems_log_is_one_line():
    for name in HOSTILE:
        if name != "\ud800":
            line = sentence(event(1, finding=finding(name)))
            assert line.isprintable()
            assert len(line) <= 900
