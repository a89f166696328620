"""What a parser is: a pure function from the text of one output format to facts.

It gets the text from the line where the format begins (and whatever follows it in the file), reads what it knows, stops
where the format ends, and yields facts whose `at` is the line offset in that text. It raises NotThisFormat where the text
is something else after all. It never looks at the machine, the clock or another fact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpudoctor.facts.base import Fact


class NotThisFormat(ValueError):
    """The text is not in this format."""


class Malformed(ValueError):
    """The text is in this format and broken; the message says how."""


Parser = Callable[[str], Iterator[Fact]]


@dataclass(frozen=True)
class Format:
    """How a format is recognised by its content, and who reads it.

    anchors: fixed texts, one of which stands on the format's first line (or, with `back`, up to that many lines below it).
    lines: how many lines a text of this format may have. answers: kinds whose absence is known once it was read whole.
    fold: equal facts (but for place and time) become one that counts them: for lines that every rank of a job prints.
    keep: how many different facts of one kind are kept of one text where the format folds; the rest is only counted.
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
    message: Callable[[bytes], bytes] | None = None
