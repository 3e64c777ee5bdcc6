"""LIKE: ``%`` stands for any characters, ``_`` for one, in time proportional to text × pattern.

A single regular expression of several ``.*`` would backtrack without end on texts made for it, so
the pieces between the ``%`` are found one after the other, each as far left as it goes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

#: One UTF-8 character; in what is no UTF-8, one byte with those that look like its continuation.
_CHARACTER: Final = rb"(?:[\x00-\x7f]|[\x80-\xff][\x80-\xbf]*)"


@dataclass(frozen=True, slots=True)
class Pattern:
    """The pieces between ``%``, as regular expressions without repetition; ``text`` of one if it is plain text."""

    head: re.Pattern[bytes]
    middle: tuple[re.Pattern[bytes], ...]
    tail: re.Pattern[bytes] | None
    #: (kind, text) when the pattern is one of ``equal``, ``prefix``, ``suffix`` and ``inside``.
    simple: tuple[str, bytes] | None

    def matches(self, text: bytes) -> bool:
        """Whether the pattern covers the whole of ``text``."""
        if self.tail is None:
            return self.head.fullmatch(text) is not None
        found = self.head.match(text)
        if found is None:
            return False
        for piece in self.middle:
            found = piece.search(text, found.end())
            if found is None:
                return False
        return self.tail.search(text, found.end()) is not None


def compile_pattern(text: bytes, escape: bytes = b"") -> Pattern:
    """What ``text`` means after LIKE; ``escape`` is one byte or none."""
    pieces = _pieces(text, escape)
    expressions = [b"".join(_CHARACTER if mark is None else re.escape(mark) for mark in piece) for piece in pieces]
    plain = [b"".join(mark for mark in piece if mark is not None) for piece in pieces]
    simple = None if any(None in piece for piece in pieces) else _simple(plain)
    head = re.compile(expressions[0], re.DOTALL)
    if len(pieces) == 1:
        return Pattern(head, (), None, simple)
    middle = tuple(re.compile(one, re.DOTALL) for one in expressions[1:-1] if one)
    return Pattern(head, middle, re.compile(expressions[-1] + rb"\Z", re.DOTALL), simple)


def _pieces(text: bytes, escape: bytes) -> list[list[bytes | None]]:
    """The bytes between ``%``; None stands for ``_``."""
    pieces: list[list[bytes | None]] = [[]]
    marks = iter([text[place : place + 1] for place in range(len(text))])
    for mark in marks:
        if escape and mark == escape:
            pieces[-1].append(next(marks, b""))
        elif mark == b"%":
            pieces.append([])
        else:
            pieces[-1].append(None if mark == b"_" else mark)
    return pieces


def _simple(plain: list[bytes]) -> tuple[str, bytes] | None:
    match plain:
        case [only]:
            return "equal", only
        case [head, b""] if head:
            return "prefix", head
        case [b"", tail] if tail:
            return "suffix", tail
        case [b"", middle, b""] if middle:
            return "inside", middle
    return None
