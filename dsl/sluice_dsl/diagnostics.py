"""Errors and warnings of a text: their positions and their display.

The form follows Cedar and rustc: one line that names the fault and the expectation, the line of the source, and carets
below the marked words.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from sluice_core.errors import CallerError, Conflict

_surrogate = re.compile("[\ud800-\udfff]")

Span = tuple[int, int]

ERROR: Final = "error"
WARNING: Final = "warning"

#: A line longer than this is shown in part.
WIDEST: Final = 160

#: Codes of faults, for programs; the message is for users.
SYNTAX: Final = "syntax"
UNKNOWN: Final = "unknown"
UNAVAILABLE: Final = "unavailable"
VALUE: Final = "value"
MEANING: Final = "meaning"
CONFLICT: Final = "conflict"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error or warning; ``line`` and ``column`` count from 1, in characters.

    ``length`` is at least 1 and stays inside ``line``; ``source`` is that line, cut to about
    :data:`WIDEST` characters, of which ``cut`` are missing before its first.
    """

    message: str
    line: int
    column: int
    length: int
    source: str
    severity: str = ERROR
    near_miss: str = ""
    code: str = MEANING
    cut: int = 0

    @property
    def caret(self) -> str:
        """The line of the source and below it carets under the marked words."""
        start = self.column - 1 - self.cut
        before, meant = self.source[:start], self.source[start:][: self.length]
        blank = "".join("\t" if sign == "\t" else " " * _width(sign) for sign in before)
        return f"{self.source}\n{blank}{'^' * max(1, sum(map(_width, meant)))}"

    def __str__(self) -> str:
        shown = "\n".join("  " + line for line in self.caret.split("\n"))
        return f"{self.severity}: line {self.line}, column {self.column}: {self.message}\n{shown}"

    def to_data(self) -> dict[str, Any]:
        """The data in the API's answer."""
        return {
            "message": self.message,
            "line": self.line,
            "column": self.column,
            "end_column": self.column + self.length,
            "caret": self.caret,
            "near_miss": self.near_miss,
            "severity": self.severity,
            "code": self.code,
        }


class PolicyErrors(CallerError):
    """A refused text: all its errors, in the order of the text, and its warnings."""

    def __init__(self, problems: Sequence[Diagnostic], warnings: Sequence[Diagnostic] = ()) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)
        self.warnings = tuple(warnings)

    def to_data(self) -> list[dict[str, Any]]:
        """Errors, then warnings, as plain data."""
        return [problem.to_data() for problem in (*self.problems, *self.warnings)]


class PolicyConflict(PolicyErrors, Conflict):
    """A text that is valid by itself and contradicts an existing policy, or a property that cannot change any more."""

    status = Conflict.status


@dataclass(frozen=True)
class UnknownWord:
    """An unknown word of a text, and the known words at its place."""

    word: str
    known: Iterable[str]

    @cached_property
    def near_miss(self) -> str:
        """The known word that was probably meant, or an empty string; searched at the first access."""
        return closest_match(self.word, self.known)


class Reporter:
    """Collects the problems of one text; spans are offsets into it.

    Checks name the unknown word and the known ones; the near miss is searched here.
    """

    def __init__(self, text: str) -> None:
        self._text = _surrogate.sub("\N{REPLACEMENT CHARACTER}", text)
        self._problems: list[tuple[int, Diagnostic]] = []

    def error(self, message: str, span: Span, unknown: UnknownWord | None = None, code: str = MEANING) -> None:
        """Add an error; the near miss of ``unknown`` is appended to the message."""
        self._add(ERROR, message, span, unknown, code)

    def warn(self, message: str, span: Span, unknown: UnknownWord | None = None, code: str = MEANING) -> None:
        """Add a warning, which does not refuse the text, like :meth:`error`."""
        self._add(WARNING, message, span, unknown, code)

    def warn_if_near(self, message: str, span: Span, unknown: UnknownWord, code: str = MEANING) -> None:
        """Warn of a word that may be valid, only if a known word is near."""
        if unknown.near_miss:
            self._add(WARNING, message, span, unknown, code)

    def has_error_within(self, span: Span) -> bool:
        """True when an error begins inside ``span``."""
        return any(span[0] <= at < span[1] and problem.severity == ERROR for at, problem in self._problems)

    def all(self, severity: str, within: Span | None = None) -> tuple[Diagnostic, ...]:
        """Problems of ``severity`` in the order of the text, optionally only those that begin ``within`` a span."""
        low, high = within if within else (0, len(self._text) + 1)
        chosen = (item for item in self._problems if item[1].severity == severity and low <= item[0] < high)
        return tuple(problem for _, problem in sorted(chosen, key=lambda item: item[0]))

    def _add(self, severity: str, message: str, span: Span, unknown: UnknownWord | None, code: str) -> None:
        start = min(span[0], len(self._text))
        first = self._text.rfind("\n", 0, start) + 1
        end = self._text.find("\n", start)
        last = len(self._text) if end < 0 else end
        length = max(1, min(span[1], last) - start)
        line = self._text.count("\n", 0, start) + 1
        # a line is shown whole, or from some words before the marked ones
        cut = max(0, start - first - WIDEST // 2) if last - first > WIDEST else 0
        source = self._text[first + cut : min(last, first + cut + WIDEST)].rstrip("\r")
        near_miss = "" if unknown is None else unknown.near_miss
        message += f", did you mean `{near_miss}`" if near_miss else ""
        problem = Diagnostic(
            message, line, start - first + 1, length, source, severity, near_miss=near_miss, code=code, cut=cut
        )
        self._problems.append((start, problem))


def closest_match(word: str, known: Iterable[str]) -> str:
    """Return the one of ``known`` that ``word`` probably meant, in any case, or an empty string."""
    by_fold = {one.casefold(): one for one in sorted(known, reverse=True)}
    close = difflib.get_close_matches(word.casefold(), by_fold, 1)
    return by_fold[close[0]] if close else ""


def join_words(words: Sequence[str], last: str = "or") -> str:
    """``a, b or c``."""
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _width(sign: str) -> int:
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1
