r"""A log line written as it looks, with typed holes.

`NVRM: Xid (PCI:{pci}): 79,{detail}` matches the line wherever it stands in the text. A hole is `{name}` or `{name:type}`;
`{}` skips anything. Without a type the name decides (`pci`, `version`, `uuid` are their own types), else it is `text`.
White space in the template matches any run of white space. `{{` and `}}` are literal braces.

Each template becomes one literal *anchor* for the multi-pattern scan and one regular expression, which runs only on the
lines where the anchor was found. Text holes are matched up to the first place where what follows fits and never tried
again (an atomic group), so that a hostile line costs linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

import msgspec

from gpudoctor.facts.base import Scalar
from gpudoctor.patterns.address import pci_address

MAX_LINE = 4000  # longest part of a line that is looked at; bug reports hold lines of 8 kB
MIN_ANCHOR = 4

_UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def size_bytes(text: str) -> float:
    """Return a size with its unit in bytes; units are powers of 1024, as CUDA programs mean them.

    >>> size_bytes("2.00 GiB"), size_bytes("512MB"), size_bytes("1024")
    (2147483648.0, 536870912.0, 1024.0)
    """
    match = re.fullmatch(r"([\d.,]+)\s*([kmgtKMGT]?)i?[bB]?(?:ytes?)?", text.strip())
    if not match:
        raise ValueError(f"not a size: {text!r}")
    return float(match[1].replace(",", "")) * _UNITS[match[2].lower()]


class HoleType(msgspec.Struct, frozen=True):
    """What a hole matches, and what its text is turned into."""

    regex: str
    convert: Callable[[str], Scalar] = str


HOLES: dict[str, HoleType] = {
    "text": HoleType(r".*?", str.strip),
    "word": HoleType(r"[^\s,;]+"),
    "int": HoleType(r"-?\d{1,19}", int),
    "hex": HoleType(r"(?:0[xX])?[0-9a-fA-F]+", lambda text: int(text, 16)),
    "float": HoleType(r"-?\d+(?:\.\d+)?", float),
    "bytes": HoleType(r"\d[\d.,]*\s*(?:[kKMGT]i?)?(?:[bB](?:ytes?)?)?", size_bytes),
    "pci": HoleType(
        r"(?:PCI:)?(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?(?![0-9a-fA-F]|:[0-9a-fA-F])",
        pci_address,
    ),
    "version": HoleType(r"\d+(?:\.\d+)+"),
    "uuid": HoleType(r"(?:GPU|MIG)-[0-9a-fA-F-]+", str),
    "path": HoleType(r"/[^\s'\":,;]*"),
    "name": HoleType(r"[A-Za-z0-9_.+-]+"),
    "quoted": HoleType(r"\"[^\"]*\"|'[^']*'", lambda text: text[1:-1]),
}

_GAP = re.compile(r"\s{2,}|\t")
_GROUP = re.compile(r"\(\?P<(\w+)>")
_TOKEN = re.compile(r"\{\{|\}\}|\{(?:(?P<name>[a-z_][a-z0-9_]*)(?::(?P<type>[a-z]+))?)?\}|(?P<text>[^{}]+)")


class BadTemplate(ValueError):
    """A template that can't be compiled; the message says why."""


class Template(msgspec.Struct, frozen=True, dict=True):
    """A compiled line. `anchor` is the literal that the scan looks for; `lines` how many lines the message may take.

    >>> Template.compile("NVRM: Xid (PCI:{pci}): {code:int}, {detail}").match("NVRM: Xid (PCI:0000:3b:00): 79, gone")
    {'pci': '0000:3b:00.0', 'code': 79, 'detail': 'gone'}
    """

    text: str
    anchor: str
    types: tuple[tuple[str, str], ...] = ()
    lines: int = 1
    ignore_case: bool = False
    by_hand: bool = False  # the text is a regular expression

    @classmethod
    def compile(cls, text: str, *, lines: int = 1, ignore_case: bool = False) -> Template:
        """Compile a template; raises BadTemplate with the reason."""
        parts = _parts(text)
        chunks = [chunk for kind, chunk, _ in parts if kind == "literal"]
        if lines > 1:  # the anchor must stand on the first line
            chunks = chunks[:1]
        pieces = [piece for chunk in chunks for piece in (_GAP.split(chunk) if _GAP.search(chunk) else (chunk,))]
        anchor = max(pieces, key=len, default="").strip()
        if len(anchor) < MIN_ANCHOR:
            raise BadTemplate(f"{text!r} has no fixed text of at least {MIN_ANCHOR} characters to look for")
        return cls(text, anchor, _types(parts), lines, ignore_case)

    @classmethod
    def from_regex(cls, regex: str, anchor: str, *, lines: int = 1, ignore_case: bool = False) -> Template:
        """Take a hand-written expression; its named groups are text, or typed with a suffix such as `pid__int`."""
        names = dict.fromkeys(_GROUP.findall(regex))
        if len(anchor) < MIN_ANCHOR:
            raise BadTemplate(f"anchor {anchor!r} is shorter than {MIN_ANCHOR} characters")
        types = tuple((name, (name.partition("__")[2] or _default_type(name))) for name in names)
        if unknown := [type_ for _, type_ in types if type_ not in HOLES]:
            raise BadTemplate(f"{regex!r}: unknown hole type {unknown[0]!r}")
        return cls(regex, anchor, types, lines, ignore_case, by_hand=True)

    def check(self) -> None:
        """Raise BadTemplate where the expression can't be compiled, or takes for ever on some lines."""
        try:
            self.regex  # noqa: B018
        except re.error as error:
            raise BadTemplate(f"{self.pattern!r} is not a regular expression: {error}") from None
        if self.by_hand:
            from gpudoctor.patterns.backtracking import hazard  # only what nobody has checked yet

            if reason := hazard(self.pattern, self.regex.flags):
                raise BadTemplate(
                    f"{self.pattern!r} would take for ever on some lines: {reason}; bound it, as in {{0,80}}, or write a `log` with holes"
                )

    @cached_property
    def pattern(self) -> str:
        """The regular expression's text."""
        return self.text if self.by_hand else _regex(_parts(self.text))

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The expression, compiled when first needed."""
        return re.compile(self.pattern, re.IGNORECASE if self.ignore_case else 0)

    def match(self, line: str) -> dict[str, Scalar] | None:
        """Return what the holes caught, or None where the line doesn't fit."""
        found = self.regex.search(line[:MAX_LINE])
        if found is None:
            return None
        caught: dict[str, Scalar] = {}
        for name, type_ in self.types:
            text = found[name]
            try:
                caught[name.partition("__")[0]] = None if text is None else HOLES[type_].convert(text)
            except ValueError:
                return None
        return caught

    @property
    def caseless(self) -> bool:
        """Whether the anchor may stand in another case on lines that fit; looking for it as it is finds far fewer."""
        if self.ignore_case or (self.by_hand and "(?i" in self.text):
            return True
        if self.by_hand:  # the anchor may be one of several spellings in it
            here = self.text.replace("\\", "")
            return self.anchor not in here or here.lower().count(self.anchor.lower()) != here.count(self.anchor)
        return False

    @property
    def names(self) -> frozenset[str]:
        """The names of the holes."""
        return frozenset(name.partition("__")[0] for name, _ in self.types)


def _default_type(name: str) -> str:
    return name if name in HOLES else "text"


def _parts(text: str) -> list[tuple[str, str, str]]:
    """Split a template into ("literal", text, "") and ("hole", name, type)."""
    parts: list[tuple[str, str, str]] = []
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise BadTemplate(
                f"{text!r}: stray brace at character {position + 1} (write {{{{ or }}}} for a literal one)"
            )
        position = token.end()
        whole = token[0]
        if whole in ("{{", "}}") or token["text"] is not None:
            literal = whole[0] if whole in ("{{", "}}") else whole
            if parts and parts[-1][0] == "literal":
                parts[-1] = ("literal", parts[-1][1] + literal, "")
            else:
                parts.append(("literal", literal, ""))
            continue
        name = token["name"] or ""
        type_ = token["type"] or (_default_type(name) if name else "text")
        if type_ not in HOLES:
            raise BadTemplate(f"{text!r}: unknown hole type {type_!r}")
        parts.append(("hole", name, type_))
    return parts


def _literal(text: str) -> str:
    return r"\s+".join(re.escape(word) for word in re.split(r"\s+", text))


def _regex(parts: list[tuple[str, str, str]]) -> str:
    out: list[str] = []
    index = 0
    while index < len(parts):
        kind, value, type_ = parts[index]
        if kind == "literal":
            out.append(_literal(value))
        else:
            body = HOLES[type_].regex
            group = f"(?P<{value}>{body})" if value else f"(?:{body})"
            following = parts[index + 1] if index + 1 < len(parts) else None
            if type_ == "text" and following and following[0] == "literal":
                # (?=(...))\1 is an atomic group for Pythons before 3.11
                out.append(f"(?=(?P<_{index}>{group}{_literal(following[1])}))(?P=_{index})")
                index += 1
            elif type_ == "text" and following is None:
                out.append(group.replace(".*?", ".*"))
            else:
                out.append(group)
        index += 1
    return "".join(out)


def _types(parts: list[tuple[str, str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, type_) for kind, name, type_ in parts if kind == "hole" and name)
