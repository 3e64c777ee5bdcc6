"""Finds comments, quotes and sentences in a text before the grammar reads it.

A sentence begins at FOR or after ``;``.  Comments and odd blanks become blanks of the same length,
so that offsets stay and the grammar ignores them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from sluice_dsl.diagnostics import SYNTAX, Reporter
from sluice_dsl.syntax.keywords import BARE, QUOTED, unquote

#: Parentheses and NOTs inside each other; keeps a hostile sentence from exhausting the stack.
DEEPEST: Final = 16

LEXEME = re.compile(
    rf"""(?P<comment>\#[^\n]*) | (?P<blank>\s+) | (?P<word>{BARE}+)
    | (?P<quoted>"(?:[^"\\\n]|\\[^\n])*" | '(?:[^'\\\n]|\\[^\n])*') | (?P<open>["'][^\n]*) | (?P<sign>.)""",
    re.VERBOSE,
)
_quoted = re.compile(QUOTED)


@dataclass(slots=True)
class SentenceRange:
    """The position of one sentence in the text; ``broken`` when the scan found an error in it."""

    start: int
    end: int
    broken: bool = False


def scan(text: str, reporter: Reporter) -> tuple[str, list[SentenceRange]]:
    """Return ``text`` with comments and odd blanks replaced by blanks, and the positions of its sentences."""
    masked: list[str] = []
    stretches: list[SentenceRange] = []
    current: SentenceRange | None = None
    for match in LEXEME.finditer(text):
        kind, lexeme = match.lastgroup, match[0]
        masked.append(" " * len(lexeme) if kind in ("comment", "blank") or lexeme == ";" else lexeme)
        if kind in ("comment", "blank"):
            continue
        if lexeme == ";":
            current = None
            continue
        if current is None or (kind == "word" and lexeme.upper() == "FOR"):
            current = SentenceRange(match.start(), match.end())
            stretches.append(current)
        current.end = match.end()
        fault = _lexical_fault(kind, lexeme)
        if fault:
            current.broken = True
            reporter.error(fault, match.span(), code=SYNTAX)
    return "".join(masked), stretches


def _lexical_fault(kind: str | None, lexeme: str) -> str:
    if kind == "open":
        return f"quote {lexeme[0]} is not closed on its line"
    if kind == "quoted" and not _quoted.fullmatch(lexeme):
        return r"expected only the escapes \\ \" \' \n \r \t \u{hex} between quotes"
    if any("\ud800" <= sign <= "\udfff" for sign in unquote(lexeme)):
        return "a lone surrogate is not a character"
    if kind == "sign" and not lexeme.isprintable():
        return f"unexpected character U+{ord(lexeme):04X}"
    return ""


def exceeds_depth(masked: str, stretch: SentenceRange, reporter: Reporter) -> bool:
    """Whether parentheses and NOTs are nested deeper than :data:`DEEPEST`; reported if so.

    ``opened`` has for each open parenthesis its own depth and that of the NOTs before it.
    """
    opened: list[int] = []
    pending = 0
    for match in LEXEME.finditer(masked, stretch.start, stretch.end):
        lexeme = match[0]
        if match.lastgroup == "blank":
            continue
        if lexeme.upper() == "NOT":
            pending += 1
        elif lexeme == "(":
            opened.append(pending + 1)
            pending = 0
        else:
            pending = 0
            if lexeme == ")" and opened:
                opened.pop()
        if sum(opened) + pending > DEEPEST:
            reporter.error(f"conditions inside each other more than {DEEPEST} deep", match.span(), code=SYNTAX)
            return True
    return False
