"""What may be written at a place of a text that is being typed: words of the grammar, and names of the catalogue.

The grammar decides.  The sentence up to the place, without the word that is being written there, is parsed: what its
error expects are the keywords, and the sorts of names, that may follow.  Names come from the catalogue.  Each candidate
is then parsed behind the same beginning, and left out unless the sentence can go on behind it; of names of one sort one
is parsed, since the grammar does not tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from sluice_dsl.candidates import KEYWORD, SIGN, Candidate, Place, candidates
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.diagnostics import Reporter
from sluice_dsl.syntax.grammar import expected_after
from sluice_dsl.syntax.keywords import unquote
from sluice_dsl.syntax.scan import LEXEME, exceeds_depth, scan

#: Candidates that are answered, and characters of the longest beginning of a sentence that is completed.
MOST: Final = 100
LONGEST: Final = 4000


@dataclass(frozen=True, slots=True)
class Completion:
    """``candidates`` for what stands from ``start`` to ``end`` of the text, offsets in characters.

    ``more`` says that there are others, which more letters will tell apart.
    """

    start: int
    end: int
    candidates: tuple[Candidate, ...] = ()
    more: bool = False


def complete(text: str, position: int, catalogue: Catalogue) -> Completion:
    """What may stand at ``position``, an offset in characters, of ``text``, in place of the word that is there.

    Only what begins with the part of the word before ``position`` is a candidate, in any case.
    """
    start, end = _word_at(text, position)
    begun = unquote(text[start:position]).strip("\"'").casefold()
    masked, sentences = scan(f"{text[:start]}!", Reporter(text))
    if not sentences or sentences[-1].end != len(masked) or sentences[-1].broken:
        return Completion(start, end)
    body = masked[sentences[-1].start : -1]
    if len(body) > LONGEST:
        return Completion(start, end)
    words = [match[0] for match in LEXEME.finditer(body) if match.lastgroup != "blank"]
    offered = candidates(Place(words, expected_after(body), catalogue))
    fitting = _following(body, (one for one in offered if one.label.casefold().startswith(begun)))
    found = tuple(islice(fitting, MOST + 1))
    return Completion(start, end, found[:MOST], len(found) > MOST)


def _word_at(text: str, position: int) -> tuple[int, int]:
    """Where the word begins and ends that ``position`` is in or at the end of; a quoted one is left at its end."""
    for match in LEXEME.finditer(text):
        start, end = match.span()
        if start < position <= end:
            if match.lastgroup == "word" or (match.lastgroup == "quoted" and position < end):
                return start, end
            if match.lastgroup == "open":
                return start, position
        if start >= position:
            break
    return position, position


def _following(body: str, offered: Iterable[Candidate]) -> Iterator[Candidate]:
    """Those of ``offered`` behind which a sentence that begins with ``body`` can go on."""
    known: dict[tuple[str, bool], bool] = {}
    for one in offered:
        sort = (one.text if one.kind in (KEYWORD, SIGN) else one.kind, one.text != one.label)
        if sort not in known:
            known[sort] = _can_follow(body, one)
        if known[sort]:
            yield one


def _can_follow(body: str, one: Candidate) -> bool:
    """Whether a sentence that begins with ``body`` and the candidate can go on."""
    if one.kind == KEYWORD and one.text == "FOR":
        return True  # another sentence, or the first word of this one
    longer = f"{body}{one.text}"
    if one.text in ("NOT", "("):
        masked, sentences = scan(longer, Reporter(longer))
        if exceeds_depth(masked, sentences[-1], Reporter(longer)):
            return False
    return bool(expected_after(longer))
