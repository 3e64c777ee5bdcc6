"""From the text of a condition to its tree; ``language`` describes the language."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Final

from sluice_filters.api import BadParameter
from sluice_filters.csv import language
from sluice_filters.csv.language import Pattern, compile_pattern

KEYWORDS: Final = ("AND", "OR", "NOT", "IN", "LIKE", "ESCAPE", "BETWEEN", "IS", "NULL", "MISSING", "CAST", "AS")
TEXT_TYPES: Final = ("STRING", "VARCHAR", "CHAR")
NUMERIC_TYPES: Final = ("INT", "INTEGER", "FLOAT", "DECIMAL", "NUMERIC")
_COMPARISONS: Final = {"=": "==", "==": "==", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_DEEPEST: Final = 64
#: Number of characters of a condition that an error quotes.
_SHOWN: Final = 500
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))|(?P<text>'(?:[^']|'')*')"
    r'|(?P<quoted>"(?:[^"]|"")*")|(?P<word>[^\W\d][\w$\-]*)|(?P<mark><=|>=|<>|!=|==|[=<>(),.*\[\]]))',
)
_END: Final = re.compile(r"\s*\Z")


def parse(text: str, tables: Collection[str] = ()) -> language.Condition:
    """Return the condition in ``text``.

    :param tables: names that may stand before a column (``s.name``), in lower case
    :raises BadParameter: with the position and the expected words
    """
    reader = ConditionParser(text, tables)
    condition = reader.condition()
    reader.end()
    return condition


class ConditionParser:
    """A recursive descent over ``text``; SQL statements are parsed with it too."""

    def __init__(self, text: str, tables: Collection[str] = ()) -> None:
        self._text = text
        self._tables = tables
        self._depth = 0
        self._place = 0
        self.kind = ""
        self.token = ""
        self.next()

    def next(self) -> str:
        """Advance; return the token passed."""
        left = self.token
        self._begin = self._place
        if _END.match(self._text, self._place) is not None:
            self.kind, self.token = "", ""
            return left
        match = _TOKEN.match(self._text, self._place)
        if match is None:
            raise self.fault(
                f"`{self._text[self._place : self._place + 40].strip()[:20]}` is nothing that a condition is made of"
            )
        self.kind = str(match.lastgroup)
        self.token = match[self.kind]
        self._place = match.end()
        return left

    def fault(self, message: str) -> BadParameter:
        """Return an error at this position."""
        shown = self._text if len(self._text) <= _SHOWN else self._text[:_SHOWN] + "..."
        return BadParameter(f"at character {self._begin + 1} of `{shown}`: {message}")

    def expected(self, what: str) -> BadParameter:
        """Return an error: another token was expected here."""
        return self.fault(f"`{self.token}`, expected {what}" if self.token else f"it ends, expected {what}")

    def end(self) -> None:
        """Refuse further tokens."""
        if self.kind:
            raise self.expected("AND, OR or the end")

    def is_word(self, *words: str) -> bool:
        """Whether the present token is one of the keywords."""
        return self.kind == "word" and self.token.upper() in words

    def accept(self, *tokens: str) -> str | None:
        """Pass the present token if it is one of ``tokens``, and return it; return None otherwise."""
        folded = self.token.upper()
        if self.kind in ("word", "mark") and folded in tokens:
            self.next()
            return folded
        return None

    def expect(self, *tokens: str) -> str:
        """As :meth:`accept`, but raise if it is another token."""
        accepted = self.accept(*tokens)
        if accepted is None:
            raise self.expected(" or ".join(tokens))
        return accepted

    def condition(self) -> language.Condition:
        """OR binds least."""
        return self._joined("OR", lambda: self._joined("AND", self._negated))

    def _joined(self, word: str, part: Callable[[], language.Condition]) -> language.Condition:
        parts = [part()]
        while self.accept(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else language.Group(word.lower(), tuple(parts))

    def _negated(self) -> language.Condition:
        self._deeper()
        try:
            if self.accept("NOT"):
                return language.Not(self._negated())
            if self.accept("("):
                inner = self.condition()
                self.expect(")")
                return inner
            return self._test()
        finally:
            self._depth -= 1

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.fault(f"nested deeper than {_DEEPEST}")

    def _test(self) -> language.Condition:
        left, numeric = self.operand()
        if self.kind == "mark" and self.token in _COMPARISONS:
            op = _COMPARISONS[self.next()]
            right, also = self.operand()
            return self._compare(op, left, right, numeric or also)
        if self.accept("IS"):
            negated = self.accept("NOT") is not None
            self.expect("NULL", "MISSING")
            return _maybe_not(negated, language.IsNull(left))
        negated = self.accept("NOT") is not None
        word = self.expect("IN", "LIKE", "BETWEEN") if negated else self.accept("IN", "LIKE", "BETWEEN")
        if word is None:
            raise self.expected("a comparison, IN, LIKE, BETWEEN or IS")
        if word == "LIKE":
            return _maybe_not(negated, language.Like(left, self._pattern()))
        if word == "IN":
            return _maybe_not(negated, self._among(left, numeric))
        low, low_number = self.operand()
        self.expect("AND")
        high, high_number = self.operand()
        numeric = numeric or low_number or high_number
        parts = (self._compare(">=", left, low, numeric), self._compare("<=", left, high, numeric))
        return _maybe_not(negated, language.Group("and", parts))

    def _among(self, left: language.Operand, numeric: bool) -> language.Condition:
        self.expect("(")
        parts: list[language.Condition] = []
        while not parts or self.accept(","):
            right, also = self.operand()
            parts.append(self._compare("==", left, right, numeric or also))
        self.expect(")")
        return parts[0] if len(parts) == 1 else language.Group("or", tuple(parts))

    def _compare(self, op: str, left: language.Operand, right: language.Operand, numeric: bool) -> language.Compare:
        if isinstance(left, language.Literal) and isinstance(right, language.Column):
            left, right, op = right, left, _MIRRORED.get(op, op)
        if numeric:
            left, right = self._as_number(left), self._as_number(right)
        return language.Compare(op, left, right, numeric)

    def _as_number(self, operand: language.Operand) -> language.Operand:
        if not isinstance(operand, language.Literal) or not isinstance(operand.value, bytes):
            return operand
        number = language.parse_number(operand.value)
        if number is None:
            raise self.fault(f"`{operand.value.decode('utf-8', 'replace')}` is compared as a number and is none")
        return language.Literal(number)

    def operand(self) -> tuple[language.Operand, bool]:
        """Parse a column, constant or CAST; return it and whether it is a number."""
        if self.kind == "number":
            number = language.parse_number(self.next().encode())
            assert number is not None
            return language.Literal(number), True
        if self.kind == "text":
            return language.Literal(self.text()), False
        if self.is_word("CAST"):
            return self._cast()
        return self.column(), False

    def text(self) -> bytes:
        """Parse a constant in single quotes."""
        if self.kind != "text":
            raise self.expected("a text in single quotes")
        return self.next()[1:-1].replace("''", "'").encode("utf-8", "surrogateescape")

    def _cast(self) -> tuple[language.Operand, bool]:
        self.next()
        self.expect("(")
        self._deeper()
        operand, _ = self.operand()
        self._depth -= 1
        self.expect("AS")
        if not self.is_word(*NUMERIC_TYPES, *TEXT_TYPES):
            raise self.expected("one of " + ", ".join((*NUMERIC_TYPES, *TEXT_TYPES)))
        numeric = self.next().upper() in NUMERIC_TYPES
        self.expect(")")
        return (self._as_number(operand) if numeric else operand), numeric

    def column(self) -> language.Column:
        """Parse a column, with or without its table's name."""
        parts = [self.name()]
        while self.accept("."):
            parts.append(self.name())
        if len(parts) > 1 and parts[0].lower() in self._tables:
            del parts[0]
        return language.Column(".".join(parts))

    def name(self) -> str:
        """Parse a name, in double quotes or not."""
        if self.kind == "quoted":
            return self.next()[1:-1].replace('""', '"')
        if self.kind == "word" and self.token.upper() not in KEYWORDS:
            return self.next()
        raise self.expected("a column, a number or a text in single quotes")

    def _pattern(self) -> Pattern:
        text = self.text()
        escape = b""
        if self.accept("ESCAPE"):
            escape = self.text()
            if len(escape) != 1:
                raise self.fault(f"ESCAPE is `{escape.decode()}`, expected one ASCII character")
        return compile_pattern(text, escape)


def _maybe_not(negated: bool, condition: language.Condition) -> language.Condition:
    return language.Not(condition) if negated else condition
