"""Finds regular expressions that take for ever on some lines, before a line does.

Python's `re` tries every way to split a text between the repetitions that could take it. Where one text has many ways through a
loop, as "aaaa" through `(a+)+b`, the time doubles with every letter; where several repetitions in a row could take the same
letters, as in `.*a.*b.*c`, it grows with a power of the line's length.

The expression is turned into its position automaton (Glushkov): a node per letter or class, an edge where one may follow the
other. Two different paths between the same nodes of a loop that read the same text mean exponential time (Weber and Seidl,
1991). Letters are the 256 of Latin-1 and one for each sort of the others.
"""

from __future__ import annotations

import itertools
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

if sys.version_info >= (3, 11):
    from re import _constants as sre
    from re import _parser as parser
else:
    import sre_constants as sre
    import sre_parse as parser

MAX_POWER = 3  # of a line's length: a line of 4,000 letters then takes a second or two, with 4 an hour
_LINE = 4000
_COPIES = 4  # of a counted repetition; what may be repeated more often is a loop
_MAX_POSITIONS = 1000
_LATIN = 256
_LETTERS = "".join(map(chr, range(_LATIN))) + "\u2003\u0663\u0416\u2192"  # a space, a digit, a letter, none of them
_OTHERS = 0b1111 << _LATIN
_ANY = (1 << len(_LETTERS)) - 1
_CATEGORIES = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}


def hazard(expression: str, flags: int = 0) -> str | None:
    """Say why an expression can take for ever; None where it can't. Raises re.error where it is none.

    >>> hazard("(a+)+b"), hazard("Xid ([0-9]+), (?:[a-z]+, )*end")
    ('a repetition within a repetition can take the same letters in ever so many ways', None)
    """
    tree = parser.parse(expression, flags)
    pending: list[tuple[Any, bool]] = [(tree, not _anchored(tree))]
    while pending:
        body, searched = pending.pop()
        automaton = _Automaton(tree.state.flags)
        try:
            ends = automaton.part(body)
        except _TooLong:
            return f"it has more than {_MAX_POSITIONS} letters and classes"
        pending += [(inner, False) for inner in automaton.apart]
        if reason := _judge(automaton, ends, searched):
            return reason
    return None


class _TooLong(Exception):
    pass


class _Ends(NamedTuple):
    """Whether a part may be empty, and with which positions (each in how many ways) it may begin and end."""

    empty: bool
    first: Counter[int]
    last: Counter[int]


_NOTHING = _Ends(True, Counter(), Counter())


class _Automaton:
    """Positions with the letters that they take, and in how many ways one follows another."""

    def __init__(self, flags: int) -> None:
        self.letters: list[int] = []
        self.times: list[float] = []  # how often a position can be repeated, at most
        self.follow: dict[int, Counter[int]] = {}
        self.apart: list[Any] = []  # what is matched by itself: look-around, atomic groups
        self.failing = 0  # how many positions stand before the last thing that may fail and takes no letter
        self._flags = flags

    def part(self, items: Iterable[Any]) -> _Ends:
        """Add a sequence."""
        ends = _NOTHING
        for name, value in items:
            ends = self._then(ends, self._item(str(name), value))
        return ends

    def _item(self, name: str, value: Any) -> _Ends:
        match name:
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
                return self._position(self._taken(name, value))
            case "SUBPATTERN":
                return self.part(value[-1])
            case "BRANCH":
                return self._either(self.part(branch) for branch in value[1])
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self._repeat(*value)
            case "POSSESSIVE_REPEAT" | "ATOMIC_GROUP":
                body = value[2] if name == "POSSESSIVE_REPEAT" else value
                self.apart.append(body)
                inner = _Automaton(self._flags)
                ends = inner.part(body)
                empty = ends.empty or (name == "POSSESSIVE_REPEAT" and value[0] == 0)
                return self._position(_together(inner, range(len(inner.letters))))._replace(empty=empty)
            case "ASSERT" | "ASSERT_NOT":
                self.apart.append(value[1])
                self.failing = len(self.letters)
            case "GROUPREF":
                return self._position(_ANY)
            case "GROUPREF_EXISTS":
                return self._either(_NOTHING if branch is None else self.part(branch) for branch in value[1:])
            case "AT":
                self.failing = len(self.letters)
        return _NOTHING

    def _position(self, letters: int) -> _Ends:
        if len(self.letters) >= _MAX_POSITIONS:
            raise _TooLong
        here = Counter([len(self.letters)])
        self.letters.append(letters)
        self.times.append(1)
        return _Ends(False, here, here)

    def _join(self, last: Counter[int], first: Counter[int]) -> None:
        for a, ways in last.items():
            to = self.follow.setdefault(a, Counter())
            for b, more in first.items():
                to[b] += ways * more

    def _then(self, a: _Ends, b: _Ends) -> _Ends:
        self._join(a.last, b.first)
        first = a.first + b.first if a.empty else a.first
        last = a.last + b.last if b.empty else b.last
        return _Ends(a.empty and b.empty, first, last)

    def _either(self, branches: Iterable[_Ends]) -> _Ends:
        empty, first, last = False, Counter[int](), Counter[int]()
        for branch in branches:
            empty, first, last = empty or branch.empty, first + branch.first, last + branch.last
        return _Ends(empty, first, last)

    def _repeat(self, least: int, most: int, body: Any) -> _Ends:
        ends = _NOTHING
        for _ in range(min(least, _COPIES) - 1):
            ends = self._then(ends, self.part(body))
        begin = len(self.letters)
        once = self.part(body)
        if most - least > _COPIES:
            self._join(once.last, once.first)
            for position in range(begin, len(self.letters)):
                self.times[position] = min(self.times[position] * min(most, _LINE), _LINE)
        ends = self._then(ends, once if least else once._replace(empty=True))
        if most - least <= _COPIES:
            for _ in range(most - max(least, 1)):
                ends = self._then(ends, self.part(body)._replace(empty=True))
        return ends

    def _taken(self, name: str, value: Any) -> int:
        """Return the letters that an item takes, as a set of bits."""
        match name:
            case "LITERAL":
                return self._cases(_letter(value))
            case "NOT_LITERAL":
                return _ANY if value >= _LATIN else _ANY & ~self._cases(_letter(value))
            case "RANGE":
                low, high = min(value[0], _LATIN), min(value[1] + 1, _LATIN)
                return self._cases((1 << high) - (1 << low) | (_OTHERS if value[1] >= _LATIN else 0))
            case "CATEGORY":
                word = str(value).rpartition("_")[2]
                found = sum(1 << _LETTERS.index(letter) for letter in re.findall(_CATEGORIES[word], _LETTERS))
                return _ANY & ~found if "NOT" in str(value) else found
            case "IN":
                negated = str(value[0][0]) == "NEGATE"
                taken = 0
                for kind, what in value[negated:]:
                    letters = self._taken(str(kind), what)
                    taken |= letters & ~_OTHERS if negated and str(kind) != "CATEGORY" else letters
                return _ANY & ~taken if negated else taken
        return _ANY if self._flags & re.DOTALL else _ANY & ~_letter(ord("\n"))

    def _cases(self, letters: int) -> int:
        if self._flags & re.IGNORECASE:
            for letter in _LETTERS[:_LATIN]:
                if letters & _letter(ord(letter)):
                    letters |= _letter(ord(letter.lower()[0])) | _letter(ord(letter.upper()[0]))
        return letters


def _letter(code: int) -> int:
    if code < _LATIN:
        return 1 << code
    letter = chr(code)
    return 1 << _LATIN + (0 if letter.isspace() else 1 if letter.isdecimal() else 2 if letter.isalnum() else 3)


def _together(automaton: _Automaton, positions: Iterable[int]) -> int:
    """Return all letters that these positions take."""
    taken = 0
    for position in positions:
        taken |= automaton.letters[position]
    return taken


def _anchored(tree: Any) -> bool:
    return bool(len(tree)) and tree[0] == (sre.AT, sre.AT_BEGINNING) and not tree.state.flags & re.MULTILINE


def _judge(automaton: _Automaton, ends: _Ends, searched: bool) -> str | None:
    """Judge an automaton whose text may begin anywhere (searched) or only where it stands."""
    last = {position for position in ends.last if position >= automaton.failing}
    loops = [loop for loop in _loops(automaton) if not loop <= last]  # what may end anywhere never goes back
    if any(_ambiguous(loop, automaton) for loop in loops):
        return "a repetition within a repetition can take the same letters in ever so many ways"
    taken = [_together(automaton, loop) for loop in loops]
    power: list[float] = []  # of what begins with this loop
    for number, loop in enumerate(loops):
        starts = {after for position in loop for after in automaton.follow[position]}
        behind = [
            power[other]
            for other in range(number)
            if _leads(automaton, starts, loops[other], taken[number] & taken[other])
        ]
        times = max(automaton.times[position] for position in loop)
        power.append(math.log(times, _LINE) + max(behind, default=0))
    begun = [
        1 + one
        for one, loop, letters in zip(power, loops, taken, strict=True)
        if searched and _leads(automaton, ends.first, loop, letters)
    ]
    if max([*power, *begun], default=0) > MAX_POWER:
        return "too many repetitions in a row can take the same letters"
    return None


def _loops(automaton: _Automaton) -> list[set[int]]:
    """Return the strongly connected components that hold an edge, each after those that it leads to (Tarjan)."""
    follow = automaton.follow
    number: dict[int, int] = {}
    lowest: dict[int, int] = {}
    open_: list[int] = []
    found: list[set[int]] = []

    def visit(position: int) -> tuple[int, Any]:
        number[position] = lowest[position] = len(number)
        open_.append(position)
        return position, iter(follow.get(position, ()))

    for root in range(len(automaton.letters)):
        stack = [visit(root)] if root not in number else []
        while stack:
            here, rest = stack[-1]
            for after in rest:
                if after not in number:
                    stack.append(visit(after))
                    break
                if after in open_:
                    lowest[here] = min(lowest[here], number[after])
            else:
                stack.pop()
                if stack:
                    lowest[stack[-1][0]] = min(lowest[stack[-1][0]], lowest[here])
                if lowest[here] == number[here]:
                    start = open_.index(here)
                    component = set(open_[start:])
                    del open_[start:]
                    if len(component) > 1 or here in follow.get(here, ()):
                        found.append(component)
    return found


def _ambiguous(loop: set[int], automaton: _Automaton) -> bool:
    """Tell whether two different paths of the loop read the same text between the same positions."""
    inside = {a: [b for b in automaton.follow[a] if b in loop] for a in loop}
    if any(automaton.follow[a][b] > 1 for a in loop for b in inside[a]):
        return True
    came_from: dict[tuple[int, int], set[tuple[int, int]]] = {}
    pending = [(a, a) for a in loop]
    seen = set(pending)
    while pending:
        pair = pending.pop()
        for after in itertools.product(inside[pair[0]], inside[pair[1]]):
            if automaton.letters[after[0]] & automaton.letters[after[1]]:
                came_from.setdefault(after, set()).add(pair)
                if after not in seen:
                    seen.add(after)
                    pending.append(after)
    # back from where both paths are at one position: was there a moment at which they were not?
    return any(a != b for position in loop for a, b in came_from.get((position, position), ()))


def _leads(automaton: _Automaton, starts: Iterable[int], loop: set[int], letters: int) -> bool:
    """Tell whether a path from one of the starts into the loop reads nothing but these letters."""
    pending = [start for start in starts if automaton.letters[start] & letters]
    seen = set(pending)
    while pending:
        here = pending.pop()
        if here in loop:
            return True
        for after in automaton.follow.get(here, ()):
            if after not in seen and automaton.letters[after] & letters:
                seen.add(after)
                pending.append(after)
    return False
