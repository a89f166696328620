"""What a parser is: a pure function from the text of one output format to facts.

It gets the text from the line where the format begins (and whatever follows it in the file), reads what it knows, stops
where the format ends, and yields facts whose `at` is the line offset in that text. It raises NotThisFormat where the text
is something else after all. It never looks at the machine, the clock or another fact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from gpudoctor.facts.base import Fact


class NotThisFormat(ValueError):
    """The text is not in this format."""


class Malformed(ValueError):
    """The text is in this format and broken; the message says how."""


Parser = Callable[[str], Iterator[Fact]]

MAX_YAML_NODES = 200_000


def json_object(text: str, start: int, what: str, signs: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the JSON object that begins at `start`; raises Malformed where it breaks off, NotThisFormat where there is none.

    signs: where given, what breaks off is only Malformed if it holds one of them, else it is another program's.

    >>> json_object('x {"a": 1} y', 2, "the sample")
    {'a': 1}
    """
    import json

    if start < 0:
        raise NotThisFormat
    try:
        data, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        if signs and not any(sign in text for sign in signs):
            raise NotThisFormat from None
        raise Malformed(f"{what} breaks off or is damaged ({error})") from None
    if not isinstance(data, dict):
        raise NotThisFormat
    return data


def yaml_data(text: str) -> Any:
    r"""What a YAML text holds; NotThisFormat where it is none, contains itself, or aliases make it grow beyond all measure.

    >>> yaml_data("a: &a [1, 2]\nb: *a")
    {'a': [1, 2], 'b': [1, 2]}
    """
    import yaml

    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
        node = loader.get_single_node()
        if node is None:
            return None
        if _written_out(node, {}) > MAX_YAML_NODES:
            raise NotThisFormat
        return loader.construct_document(node)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise NotThisFormat from None


def _written_out(node: Any, known: dict[int, int]) -> int:
    """How many nodes there are with every alias written out."""
    if (size := known.get(id(node))) is not None:
        return size
    known[id(node)] = MAX_YAML_NODES + 1  # where it is met again inside itself, there is no end
    size = 1
    for member in node.value if isinstance(node.value, list) else ():
        size += sum(_written_out(part, known) for part in (member if isinstance(member, tuple) else (member,)))
    known[id(node)] = size
    return size


class Format(msgspec.Struct, frozen=True):
    """How a format is recognised by its content, and who reads it.

    anchors: fixed texts, one of which stands on the format's first line (or, with `back`, up to that many lines below it).
    lines: how many lines a text of this format may have. answers: kinds whose absence is known once it was read whole.
    fold: equal facts (but for place and time) become one that counts them: for lines that every rank of a job prints.
    keep: how many different facts of one kind are kept of one text where the format folds; the rest is only counted.
    apart: fields in which facts are another matter: of each of their values that many are kept.
    message: the part of a line that matters, for formats of one line that fold: a line alike in it is counted, not read again.
    """

    name: str
    anchors: tuple[str, ...]
    parse: Parser
    lines: int = 400
    back: int = 0
    answers: tuple[str, ...] = ()
    fold: bool = False
    keep: int = 300
    apart: tuple[str, ...] = ()
    message: Callable[[bytes], bytes] | None = None
