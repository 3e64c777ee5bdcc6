"""Predicates over one request, in three-valued logic.

A predicate is plain JSON data, so that it can travel inside an assignment:

    true | false
    ["and", p, ...]  ["or", p, ...]  ["not", p]
    ["size", op, bytes]         op one of < <= > >= == !=
    ["compressibility", op, n]  how many times smaller the beginning of an upload becomes
    ["type", [pattern, ...]]    "pdf" (extension), "text/plain", "image/*"
    ["tag", [tag, ...]]
    ["method", [name, ...]]

An attribute that is not known (the size of a chunked PUT) makes its clause
*unknown*; NOT of unknown is unknown, AND and OR follow Kleene, and unknown at
the top counts as false.  So silence never satisfies a condition, whichever
way round it is written, and ``NOT a < b`` always equals ``a >= b``.
"""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from sluice_core.errors import DecodeError

Predicate = bool | list[Any]
Test = Callable[["Facts"], bool | None]

OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(slots=True)
class Facts:
    """The known properties of one request; None is unknown.

    ``name`` is the object's name (its extension counts as a type), ``tags`` is
    None while metadata are not known (before a GET's answer).  ``compressibility`` is plain bytes by
    compressed ones, of the first bytes of an upload.
    """

    method: str
    name: str = ""
    size: int | None = None
    content_type: str | None = None
    tags: frozenset[str] | None = None
    compressibility: float | None = None


def _join(word: str, absorbing: bool, parts: Sequence[Predicate]) -> Predicate:
    kept: list[Predicate] = []
    for part in parts:
        if isinstance(part, bool):
            if part is absorbing:
                return absorbing
            continue
        for one in part[1:] if part[0] == word else [part]:
            if one not in kept:
                kept.append(one)
    if not kept:
        return not absorbing
    return kept[0] if len(kept) == 1 else [word, *kept]


def all_of(*parts: Predicate) -> Predicate:
    """AND of ``parts``, flattened, without repetitions and constants."""
    return _join("and", False, parts)


def any_of(*parts: Predicate) -> Predicate:
    """OR of ``parts``, flattened, without repetitions and constants."""
    return _join("or", True, parts)


def predicate_words(predicate: Predicate) -> frozenset[str]:
    """The words of the clauses in ``predicate``: what it asks for."""
    if isinstance(predicate, bool):
        return frozenset()
    word, *rest = predicate
    if word in ("and", "or", "not"):
        return frozenset[str]().union(*map(predicate_words, rest))
    return frozenset({word})


def compile_predicate(predicate: Predicate) -> Test:
    """A function that answers True, False or None (unknown) for some :class:`Facts`.

    :raises DecodeError: when ``predicate`` is not of the form above
    """
    if isinstance(predicate, bool):
        return lambda facts: predicate
    try:
        word, *rest = predicate
        maker = _MAKERS[word]
        return maker(*rest)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise DecodeError(f"not a request predicate: `{reprlib.repr(predicate)}`") from error


def _make_joined(absorbing: bool, *parts: Predicate) -> Test:
    """AND of ``parts``, which False decides, or OR, which True decides."""
    tests = [compile_predicate(part) for part in parts]

    def test(facts: Facts) -> bool | None:
        answer: bool | None = not absorbing
        for one in tests:
            value = one(facts)
            if value is absorbing:
                return absorbing
            if value is None:
                answer = None
        return answer

    return test


def _make_not(part: Predicate) -> Test:
    inner = compile_predicate(part)

    def test(facts: Facts) -> bool | None:
        value = inner(facts)
        return None if value is None else not value

    return test


def _make_comparison(attribute: str, op: str, limit: float) -> Test:
    compare = OPERATORS[op]
    if not isinstance(limit, int | float):
        raise ValueError(limit)

    def test(facts: Facts) -> bool | None:
        value = getattr(facts, attribute)
        return None if value is None else compare(value, limit)

    return test


def _make_type(patterns: Sequence[str]) -> Test:
    words = {pattern.lower() for pattern in patterns}
    families = tuple(word[:-1] for word in words if word.endswith("/*"))

    def test(facts: Facts) -> bool | None:
        leaf = facts.name.rpartition("/")[2]
        _, dot, extension = leaf.rpartition(".")
        if dot and extension.lower() in words:
            return True
        if facts.content_type is None:
            return None
        media = facts.content_type.partition(";")[0].strip().lower()
        return media in words or media.startswith(families)

    return test


def _make_tag(tags: Sequence[str]) -> Test:
    wanted = frozenset(tag.lower() for tag in tags)

    def test(facts: Facts) -> bool | None:
        return None if facts.tags is None else not wanted.isdisjoint(facts.tags)

    return test


def _make_method(names: Sequence[str]) -> Test:
    wanted = frozenset(name.upper() for name in names)
    return lambda facts: facts.method in wanted


_MAKERS: Final[dict[str, Callable[..., Test]]] = {
    "and": partial(_make_joined, False),
    "or": partial(_make_joined, True),
    "not": _make_not,
    "size": partial(_make_comparison, "size"),
    "compressibility": partial(_make_comparison, "compressibility"),
    "type": _make_type,
    "tag": _make_tag,
    "method": _make_method,
}
