"""Python pickles that hold nothing but plain data, as JSON text; whatever would build an object is refused unread.

A pickle is a program. Before it is run, its instructions are gone through one by one: only those that push constants and fill
lists, tuples and dictionaries may occur, so nothing is imported and nothing called.
"""

from __future__ import annotations

import io
import json
import pickle
import pickletools
from typing import Any

from gpudoctor.sources.stream import ByteStream

MAX_BYTES = 64 * 1024 * 1024
MAX_VALUES = 4_000_000  # also of what is referred to again and again
_MAX_DEPTH = 100
_CONSTANTS_AND_CONTAINERS = (
    "MARK STOP POP POP_MARK DUP PROTO FRAME NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT "
    "STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8 "
    "EMPTY_LIST LIST APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT DICT SETITEM SETITEMS "
    "GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT MEMOIZE"
)
_PLAIN = frozenset(_CONSTANTS_AND_CONTAINERS.split())
_PLACED = ("PUT", "BINPUT", "LONG_BINPUT")


class NotPlain(ValueError):
    """The pickle holds more than plain data, or too much of it; str() says what."""


class _Plain(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> Any:
        raise NotPlain(f"it asks for {module_name}.{global_name}")


def as_json(stream: ByteStream) -> bytes:
    """Return what the pickle holds as one line of JSON; raises NotPlain, before anything was built, where it is not plain data."""
    data = bytearray()
    for piece in stream.rest():
        data += piece
        if len(data) > MAX_BYTES:
            raise NotPlain(f"it is larger than {MAX_BYTES >> 20} MiB")
    try:
        _check(data)
        value = _Plain(io.BytesIO(data)).load()
        _bounded(value)
        return json.dumps(_keyed(value), ensure_ascii=False).encode("utf-8", "replace")
    except NotPlain:
        raise
    except Exception as error:  # cut or garbled: the standard library raises nearly anything
        raise NotPlain(f"it can't be read ({type(error).__name__}: {error})") from None


def _check(data: bytes | bytearray) -> None:
    for count, (opcode, argument, _) in enumerate(pickletools.genops(bytes(data))):
        if opcode.name not in _PLAIN:
            raise NotPlain(f"it holds the instruction {opcode.name}, which builds more than plain data")
        if opcode.name in _PLACED and isinstance(argument, int) and argument > count:
            raise NotPlain("it reserves places that it doesn't fill")  # would reserve memory for them


def _bounded(value: Any) -> None:
    """Refuse what grows beyond all measure when it is written out: the same list in a list in a list, or itself."""
    known: dict[int, int] = {}

    def size(part: Any, depth: int) -> int:
        if not isinstance(part, (list, tuple, dict)):
            return 1
        if id(part) in known:
            return known[id(part)]
        if depth > _MAX_DEPTH:
            raise NotPlain(f"it is nested more than {_MAX_DEPTH} times")
        known[id(part)] = MAX_VALUES + 1  # where it is met again inside itself, there is no end
        inside = [*part.keys(), *part.values()] if isinstance(part, dict) else part
        known[id(part)] = 1 + sum(size(member, depth + 1) for member in inside)
        return known[id(part)]

    if size(value, 0) > MAX_VALUES:
        raise NotPlain(f"it holds more than {MAX_VALUES} values")


def _keyed(value: Any) -> Any:
    """JSON knows texts as keys, and no bytes."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): _keyed(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_keyed(member) for member in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
