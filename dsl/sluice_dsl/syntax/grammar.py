"""The grammar: a text to sentences with spans, and every syntax error in it.

Three steps.  *Scan* (``scan.py``) finds comments, quotes and where sentences begin (at FOR, or after ``;``),
so that an error in one sentence does not hide those of the next.  *Parse* runs pyparsing on one
sentence at a time.  *Shift* moves the spans to the place of the sentence in the text.

The expressions are built once, hold no state, use neither packrat nor ``ignore``, and so may be
used from several threads.  ``-`` instead of ``+`` means: there is no alternative from here on, report the expected
word.  Each alternative has a name that says what a user may write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from pyparsing import (
    Forward,
    Opt,
    ParseBaseException,
    ParserElement,
    ParseResults,
    Regex,
    StringEnd,
    ZeroOrMore,
)

from sluice_dsl.diagnostics import SYNTAX, Reporter, Span, UnknownWord, join_words
from sluice_dsl.syntax.ast import (
    Action,
    And,
    Clause,
    Condition,
    Not,
    Or,
    Parameter,
    Sentence,
    Target,
    Word,
    shift_spans,
)
from sluice_dsl.syntax.keywords import BARE, QUOTED, RESERVED_WORD, WORD, unquote
from sluice_dsl.syntax.scan import LEXEME, exceeds_depth, scan
from sluice_dsl.syntax.units import ALL_UNITS

_reserved = re.compile(RESERVED_WORD)
_backticked = re.compile(r"`([A-Z_]+)`")


def parse(text: str, reporter: Reporter) -> list[Sentence]:
    """Return the readable sentences of ``text``; errors of the others go to ``reporter``."""
    masked, stretches = scan(text, reporter)
    if not stretches:
        reporter.error("expected a sentence that begins with `FOR`, found nothing", (0, 0), code=SYNTAX)
    sentences = []
    for stretch in stretches:
        if stretch.broken or exceeds_depth(masked, stretch, reporter):
            continue
        body = masked[stretch.start : stretch.end]
        try:
            sentence = _SENTENCE.parse_string(body)[0]
        except ParseBaseException as error:
            _explain(error, body, stretch.start, reporter)
        else:
            sentences.append(shift_spans(sentence, stretch.start))
    return sentences


# The text for a found word where another was expected.


def _explain(error: ParseBaseException, body: str, offset: int, reporter: Reporter) -> None:
    at = len(body) - len(body[error.loc :].lstrip())
    expected = error.msg.removeprefix("Expected ")
    match = LEXEME.match(body, at)
    if match is None:
        end = offset + len(body)
        reporter.error(f"expected {expected}, found the end of the sentence", (end, end + 1), code=SYNTAX)
        return
    lexeme = match[0]
    keyword = bool(_reserved.fullmatch(lexeme))
    hint = f' (a keyword; as a name it is written `"{lexeme}"`)' if keyword and "a name" in expected else ""
    unknown = None if keyword else UnknownWord(lexeme, _backticked.findall(expected))
    span = (offset + at, offset + at + len(lexeme))
    reporter.error(f"expected {expected}, found `{lexeme}`{hint}", span, unknown, SYNTAX)


# The expressions.

Build = Callable[[str, int, ParseResults], Any]


def _terminal(pattern: str, name: str, build: Build | None = None) -> ParserElement:
    expression = Regex(pattern).set_name(name)
    return expression.set_parse_action(build) if build else expression.suppress()


def _keyword(word: str) -> ParserElement:
    return _terminal(rf"(?ai:{word})(?!{BARE})", f"`{word}`")


@dataclass(slots=True)
class _Mark:
    """A keyword with a meaning of its own: a level, verb, place or life; ``text`` in lower case."""

    what: str
    text: str
    span: Span


def _chosen(what: str, *words: str) -> ParserElement:
    """One of some keywords, as a :class:`_Mark`."""

    def build(source: str, at: int, found: ParseResults) -> _Mark:
        return _Mark(what, found[0].lower(), (at, at + len(found[0])))

    names = join_words([f"`{word}`" for word in words])
    return _terminal(rf"(?ai:{'|'.join(words)})(?!{BARE})", names, build)


def _word(source: str, at: int, found: ParseResults) -> Word:
    return Word(unquote(found[0]), span=(at, at + len(found[0])))


def _upper(source: str, at: int, found: ParseResults) -> Word:
    word = _word(source, at, found)
    return replace(word, text=word.text.upper())


def _lower(source: str, at: int, found: ParseResults) -> Word:
    word = _word(source, at, found)
    return replace(word, text=word.text.lower())


def _value(source: str, at: int, found: ParseResults) -> Word:
    word = _word(source, at, found)
    bare = found[0][0] not in "'\""
    return replace(word, text="".join(word.text.split())) if bare else word


def _span_of(*nodes: Any) -> Span:
    spans = [node.span for node in nodes]
    return spans[0][0], max(end for _, end in spans)


def _make_target(source: str, at: int, found: ParseResults) -> Target:
    span = _span_of(*found)
    first, last = found[0], found[-1]
    if isinstance(first, Word):
        return Target("", "name", first, span=span)
    if first.text == "all":
        return Target(last.text.removesuffix("s"), "all", span=span)
    if first.text == "cluster":
        return Target("cluster", "name", span=span)
    if first.text == "group":
        return Target("", "group", last, span=span)
    return Target(first.text, "name", last, span=span)


def _make_clause(source: str, at: int, found: ParseResults) -> Clause:
    subject, *place, op, value = found
    return Clause(subject, "==" if op == "=" else op, value, place[0] if place else None, span=_span_of(subject, value))


def _make_not(source: str, at: int, found: ParseResults) -> Condition:
    *nots, part = found
    for start in reversed(nots):
        part = Not(part, span=(start, part.span[1]))
    return part  # type: ignore[no-any-return]


def _make_joined(kind: type[And | Or], found: ParseResults) -> Condition:
    parts = tuple(found)
    return parts[0] if len(parts) == 1 else kind(parts, span=_span_of(*parts))


def _make_parameter(source: str, at: int, found: ParseResults) -> Parameter:
    name, value = found
    return Parameter(name, value, span=_span_of(name, value))


def _make_action(source: str, at: int, results: ParseResults) -> Action:
    marks = {one.what: one for one in results if isinstance(one, _Mark)}
    names = ("verb", "place", "life", "existing")
    verb, place, life, existing = (marks.get(what, _Mark(what, "", (0, 0))) for what in names)
    keyword = next(one for one in results if isinstance(one, Word))
    parameters = tuple(one for one in results if isinstance(one, Parameter))
    span = _span_of(*results)
    return Action(
        verb.text, keyword, parameters, place.text, life.text, place.span, life.span,
        bool(existing.text), existing.span, span=span,
    )  # fmt: skip


def _make_sentence(source: str, at: int, found: ParseResults) -> Sentence:
    parts = list(found)
    actions = tuple(_inheriting(one for one in parts if isinstance(one, Action)))
    condition = next((one for one in parts if isinstance(one, Clause | Not | And | Or)), None)
    sustained = next((one for one in parts if isinstance(one, Word)), None)
    return Sentence(parts[0], actions, condition, sustained, span=(at, actions[-1].span[1]))


def _inheriting(actions: Iterator[Action]) -> Iterator[Action]:
    verb = ""
    for action in actions:
        verb = action.verb or verb
        yield replace(action, verb=verb)


_END: Final = "the end of the sentence"
_UNITS: Final = "|".join(re.escape(unit) for unit in ALL_UNITS)
_SPACED: Final = rf"[+-]?\d[\d.]*(?:[eE][+-]?\d+)?\s+(?:{_UNITS})(?!{BARE})(?!\s*=)"


def _build() -> ParserElement:
    name = _terminal(rf"{WORD}|{QUOTED}", "a name", _word)
    value = _terminal(rf"{_SPACED}|{WORD}|{QUOTED}", "a value", _value)
    comma = _terminal(",", "`,`")

    level = _chosen("level", "TENANT", "CONTAINER", "OBJECT", "VOLUME", "GROUP")
    plurals = ("TENANTS", "CONTAINERS", "OBJECTS", "VOLUMES")
    members = _chosen("members", *(f"{plural}?" for plural in plurals)).set_name(
        join_words([f"`{one}`" for one in plurals])
    )
    target = ((_chosen("level", "ALL") - members) | _chosen("level", "CLUSTER") | (level - name) | name).set_name(
        "a target: a name, `TENANT`, `CONTAINER`, `OBJECT`, `VOLUME`, `GROUP`, `ALL` or `CLUSTER`"
    )
    target.set_parse_action(_make_target)

    subject = _terminal(rf"{WORD}|{QUOTED}", "a metric or request attribute", _upper)
    sign = _terminal(r"<=|>=|==|!=|<|>|=", "one of < <= > >= = == !=", lambda text, at, found: found[0])
    # AT is not a reserved word: behind a subject it is unambiguous
    place = _keyword("AT") - name.copy().set_name("the name of a node or storage policy")
    clause = (subject - Opt(place) - sign - value).set_parse_action(_make_clause)
    condition = Forward()
    closing = _terminal(r"\)", "`AND`, `OR` or `)`")
    group = _terminal(r"\(", "`(`") - condition - closing
    no = _terminal(rf"(?ai:NOT)(?!{BARE})", "`NOT`", lambda text, at, found: at)
    operand = (ZeroOrMore(no) + (group | clause).set_name("a condition")).set_parse_action(_make_not)
    operand.set_name("a condition")
    both = (operand + ZeroOrMore(_keyword("AND") - operand)).set_parse_action(partial(_make_joined, And))
    condition <<= (both + ZeroOrMore(_keyword("OR") - both)).set_parse_action(partial(_make_joined, Or))

    do = _keyword("DO")
    lasting = (_keyword("SUSTAINED") - value.copy().set_name("a duration") - do) | do
    when = _keyword("WHEN") - condition - lasting.set_name("`AND`, `OR`, `SUSTAINED` or `DO`")
    until_do = (when | do).set_name("`WHEN` or `DO`")

    actions = _build_actions(value, comma)
    sentence = _keyword("FOR") - target - until_do - actions - StringEnd().set_name(f"`,` or {_END}")
    return sentence.set_parse_action(_make_sentence).parse_with_tabs().streamline()


def _build_actions(value: ParserElement, comma: ParserElement) -> ParserElement:
    """``,`` continues the parameters when ``name=`` follows, else it begins another action."""
    verb = _chosen("verb", "SET", "DELETE")
    keyword = _terminal(rf"(?:{WORD}|{QUOTED})(?!\s*=)", "the keyword of an action", _lower)
    parameter_name = _terminal(rf"(?:{WORD}|{QUOTED})(?=\s*=)", "`name=value`", _lower)
    equals = _terminal("=", "`=`")
    parameter = (parameter_name - equals - value).set_parse_action(_make_parameter)
    parameters = parameter + ZeroOrMore(Opt(comma) + parameter)

    stop = Regex(r"(?=,|\Z)").suppress()
    life = _chosen("life", "TRANSIENT", "PERSISTENT")
    place = _chosen("place", "PROXY", "STORAGE_NODE")
    # EXISTING is not a reserved word: at the end of an action it is unambiguous
    stored = _chosen("existing", "EXISTING")
    end = (stored - stop.copy().set_name(f"`,` or {_END}")) | stop
    lives = f"`TRANSIENT`, `PERSISTENT`, `EXISTING`, `,` or {_END}"
    last = (life - end.copy().set_name(f"`EXISTING`, `,` or {_END}")) | end
    last.set_name(lives)
    placed = (_keyword("ON") - place - last) | last
    placed.set_name(f"`ON`, {lives}")
    given = parameters - (placed.copy().set_name(f"`name=value`, `ON`, {lives}"))
    rest = (_keyword("WITH") - given) | given | placed
    rest.set_name(f"`WITH`, `name=value`, `ON`, {lives}")
    first = (verb - keyword - rest).set_parse_action(_make_action)
    later = (Opt(verb) + keyword - rest).set_parse_action(_make_action).set_name("an action")
    return first + ZeroOrMore(comma - later)


_SENTENCE: Final = _build()


#: A character that is not in any sentence by itself.
_NO_WORD: Final = "!"


def expected_after(body: str) -> str:
    """Return the words that may follow ``body``, the beginning of a sentence without comments, as errors list them.

    Empty when no sentence begins with ``body``.
    """
    try:
        _SENTENCE.parse_string(body + _NO_WORD)
    except ParseBaseException as error:
        return str(error.msg).removeprefix("Expected ") if error.loc >= len(body.rstrip()) else ""
    raise AssertionError(f"a sentence ends in `{_NO_WORD}`")
