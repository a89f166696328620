"""Regular expressions that are compiled when first used: a run uses a few of hundreds, and compiling them all takes longer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any


class LazyRegex:
    """Stands for re.compile(pattern, flags).

    >>> LazyRegex("([0-9]+) GiB").search("80 GiB")[1]
    '80'
    """

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = pattern
        self.flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self.flags)

    def match(self, text: str, *span: int) -> re.Match[str] | None:
        """As re.Pattern.match."""
        return self._compiled.match(text, *span)

    def search(self, text: str, *span: int) -> re.Match[str] | None:
        """As re.Pattern.search."""
        return self._compiled.search(text, *span)

    def fullmatch(self, text: str, *span: int) -> re.Match[str] | None:
        """As re.Pattern.fullmatch."""
        return self._compiled.fullmatch(text, *span)

    def finditer(self, text: str, *span: int) -> Iterator[re.Match[str]]:
        """As re.Pattern.finditer."""
        return self._compiled.finditer(text, *span)

    def findall(self, text: str) -> list[Any]:
        """As re.Pattern.findall."""
        return self._compiled.findall(text)

    def split(self, text: str, maxsplit: int = 0) -> list[str]:
        """As re.Pattern.split."""
        return self._compiled.split(text, maxsplit)

    def sub(self, replacement: str | Callable[[re.Match[str]], str], text: str, count: int = 0) -> str:
        """As re.Pattern.sub."""
        return self._compiled.sub(replacement, text, count)
