"""Candidates for completion at a position of a text: words of the grammar, and names of the catalogue.

The sentence up to the position is parsed without the incomplete word: the parser's error lists the keywords, and the
sorts of names, that may follow.  Names come from the catalogue.  Each candidate is then parsed behind the same
beginning, and left out unless the sentence can continue; of names of one sort only one is parsed, since the grammar
does not distinguish them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from sluice_core.describe import REQUEST_ATTRIBUTES, Parameter
from sluice_core.messages.policies import GROUP, VOLUME
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.checks.conditions import METHODS
from sluice_dsl.diagnostics import Reporter
from sluice_dsl.syntax.grammar import expected_after
from sluice_dsl.syntax.keywords import quote, unquote
from sluice_dsl.syntax.scan import LEXEME, exceeds_depth, scan

#: The sorts of candidates.
KEYWORD: Final = "keyword"
SIGN: Final = "sign"
TENANT: Final = "tenant"
ALIAS: Final = "alias"
NODE: Final = "node"
METRIC: Final = "metric"
ATTRIBUTE: Final = "attribute"
ACTION: Final = "action"
PARAMETER: Final = "parameter"
VALUE: Final = "value"
KINDS: Final = (KEYWORD, SIGN, TENANT, GROUP, VOLUME, ALIAS, NODE, METRIC, ATTRIBUTE, ACTION, PARAMETER, VALUE)

_backticked = re.compile(r"`([A-Z_]+|[,)])`")
_SIGNS: Final = ("<", "<=", ">", ">=", "=", "==", "!=")
_ATTRIBUTES: Final = {one.name: one for one in REQUEST_ATTRIBUTES}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate: ``text`` as it is inserted, ``label`` as it is shown."""

    text: str
    kind: str
    label: str
    help: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """The words of the sentence before the position, and the words that the grammar expects there."""

    words: Sequence[str]
    expected: str
    catalogue: Catalogue

    @property
    def last(self) -> str:
        """The last word, in upper case; empty at the beginning."""
        return self.words[-1].upper() if self.words else ""

    def action(self) -> tuple[str, list[str]]:
        """The keyword of the incomplete action, and the names of its parameters so far."""
        keyword, given = "", list[str]()
        begun = [word.upper() for word in self.words].index("DO")
        for number in range(begun + 1, len(self.words)):
            word, before = self.words[number], self.words[number - 1].upper()
            following = self.words[number + 1] if number + 1 < len(self.words) else ""
            if following == "=":
                given.append(unquote(word).lower())
            elif before in ("SET", "DELETE") or (before == "," and word.upper() not in ("SET", "DELETE")):
                keyword, given = unquote(word).lower(), []
        return keyword, given


def candidates(place: Place) -> Iterator[Candidate]:
    """Yield the candidates at ``place`` before they are parsed."""
    if place.expected == "a name":
        yield from _names(place)
    for sort, find in _SORTS.items():
        if sort in place.expected:
            yield from find(place)
    for word in _backticked.findall(place.expected):
        if VOLUME in place.catalogue.levels or word not in ("VOLUME", "VOLUMES"):
            yield Candidate(word, SIGN if word in ",)" else KEYWORD, word)
    if "the end of the sentence" in place.expected:
        yield Candidate("FOR", KEYWORD, "FOR", "another sentence")


def _named(names: Iterable[str], kind: str, help_of: Callable[[str], str] = lambda name: "") -> Iterator[Candidate]:
    return (Candidate(quote(name), kind, name, help_of(name)) for name in sorted(names))


def _words(kind: str, *words: str) -> Iterator[Candidate]:
    return (Candidate(word, kind, word) for word in words)


def _targets(place: Place) -> Iterator[Candidate]:
    yield from _named(place.catalogue.aliases, ALIAS, lambda name: place.catalogue.aliases[name].name)
    yield from _named(place.catalogue.groups, GROUP, lambda name: f"{place.catalogue.groups[name]}s")
    yield from _named(place.catalogue.tenants, TENANT)


def _names(place: Place) -> Iterator[Candidate]:
    """Names of the last written level."""
    catalogue, level = place.catalogue, place.last.lower()
    if level == GROUP:
        yield from _named(catalogue.groups, GROUP, lambda name: f"{catalogue.groups[name]}s")
        return
    aliases = {name: one for name, one in catalogue.aliases.items() if one.level == level}
    yield from _named(aliases, ALIAS, lambda name: aliases[name].name)
    if level == TENANT:
        yield from _named(catalogue.tenants, TENANT)
    elif level == VOLUME:
        yield from _named(catalogue.volume_names(), VOLUME)


def _conditions(place: Place) -> Iterator[Candidate]:
    catalogue = place.catalogue
    helps = {name: one.help for name, one in catalogue.metrics.items()}
    helps |= {alias: one.help for one in catalogue.metrics.values() for alias in one.aliases}
    helps |= {name: f"`{one.metric}`" for name, one in catalogue.metrics_by_alias.items()}
    yield from _named(helps, METRIC, helps.__getitem__)
    yield from _named(_ATTRIBUTES, ATTRIBUTE, lambda name: _ATTRIBUTES[name].help)
    yield from _words(KEYWORD, "NOT")
    yield from _words(SIGN, "(")


def _signs(place: Place) -> Iterator[Candidate]:
    yield from _words(SIGN, *_SIGNS)
    yield Candidate("AT", KEYWORD, "AT", "at one node, storage policy or pool")


def _nodes(place: Place) -> Iterator[Candidate]:
    return _named(place.catalogue.known_nodes(), NODE)


def _actions(place: Place) -> Iterator[Candidate]:
    if place.last == ",":
        yield from _words(KEYWORD, "SET", "DELETE")
        yield from _parameters(place)
    known = {name: one for name, one in place.catalogue.actions.items() if one.available}
    yield from _named(known, ACTION, lambda name: known[name].help)
    aliases = place.catalogue.actions_by_alias
    yield from _named(aliases, ACTION, lambda name: f"`{aliases[name].keyword}`")


def _parameters(place: Place) -> Iterator[Candidate]:
    """Parameters of the action that are not given yet."""
    keyword, given = place.action()
    for one in _described(keyword, place.catalogue):
        if one.name not in given:
            yield Candidate(f"{one.name}=", PARAMETER, one.name, one.help)


def _described(keyword: str, catalogue: Catalogue) -> Sequence[Parameter]:
    alias = catalogue.actions_by_alias.get(keyword)
    info = catalogue.action(alias.keyword if alias else keyword)
    return info.parameters if info else ()


def _values(place: Place) -> Iterator[Candidate]:
    """Values of a parameter, or of an attribute in a comparison."""
    words = [word.upper() for word in place.words]
    if "DO" in words:
        keyword, given = place.action()
        parameter = next((one for one in _described(keyword, place.catalogue) if one.name == given[-1]), None)
        if parameter is not None:
            choices = ("true", "false") if parameter.type == "bool" else parameter.choices
            yield from (Candidate(quote(str(one)), VALUE, str(one)) for one in choices)
        return
    attribute = _ATTRIBUTES.get(unquote(place.words[-2]).upper())
    if attribute is not None and attribute.type == "type":
        terms = place.catalogue.terms
        yield from _named(terms, VALUE, lambda name: ", ".join(terms[name]))
    elif attribute is not None and attribute.type == "method":
        yield from (Candidate(quote(one), VALUE, one) for one in METHODS)


#: The grammar's name of a sort of words → the words; the sort that it names first comes first.
_SORTS: Final[Mapping[str, Callable[[Place], Iterator[Candidate]]]] = {
    "a target": _targets,
    "a condition": _conditions,
    "one of <": _signs,
    "the name of a node": _nodes,
    "the keyword of an action": _actions,
    "`name=value`": _parameters,
    "a value": _values,
}


#: The greatest number of returned candidates, and of characters of the beginning of a sentence.
MOST: Final = 100
LONGEST: Final = 4000


@dataclass(frozen=True, slots=True)
class Completion:
    """``candidates`` for the text from ``start`` to ``end``, offsets in characters.

    ``more`` is true when there are further candidates, which more letters would select.
    """

    start: int
    end: int
    candidates: tuple[Candidate, ...] = ()
    more: bool = False


def complete(text: str, position: int, catalogue: Catalogue) -> Completion:
    """Return candidates at ``position``, an offset in characters, of ``text``, in place of the word that is there.

    Only words that begin with the part before ``position`` are candidates, in any case.
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
    """Return the start and end of the word at ``position``; a quoted word counts as complete at its end."""
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
    """Yield the candidates of ``offered`` behind which a sentence that begins with ``body`` can continue."""
    known: dict[tuple[str, bool], bool] = {}
    for candidate in offered:
        sort = (
            candidate.text if candidate.kind in (KEYWORD, SIGN) else candidate.kind,
            candidate.text != candidate.label,
        )
        if sort not in known:
            known[sort] = _can_follow(body, candidate)
        if known[sort]:
            yield candidate


def _can_follow(body: str, candidate: Candidate) -> bool:
    """Whether a sentence that begins with ``body`` and the candidate can continue."""
    if candidate.kind == KEYWORD and candidate.text == "FOR":
        return True  # another sentence, or the first word of this one
    longer = f"{body}{candidate.text}"
    if candidate.text in ("NOT", "("):
        masked, sentences = scan(longer, Reporter(longer))
        if exceeds_depth(masked, sentences[-1], Reporter(longer)):
            return False
    return bool(expected_after(longer))
