"""The nodes of a sentence: frozen, with spans, and printing to text that parses to an equal node.

A span is the pair of offsets (start, end) of the text that a node was read from; it plays no part
in equality.  Nodes hold the written words, in canonical case; the checks compile their meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from sluice_dsl.diagnostics import Span
from sluice_dsl.syntax.keywords import quote

NOWHERE: Final[Span] = (0, 0)
OPERATOR_SIGNS: Final = {"==": "="}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Base of all nodes."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Word(Node):
    """A name, keyword or value.  Quotes do not change its meaning."""

    text: str

    def __str__(self) -> str:
        return quote(self.text)


@dataclass(frozen=True, slots=True)
class Target(Node):
    """The target after ``FOR``: ``level`` is empty for a bare name and for a group.

    ``select`` is name, group or all; ``name`` is None for ALL and CLUSTER.
    """

    level: str
    select: str
    name: Word | None = None

    def __str__(self) -> str:
        if self.select == "all":
            return f"ALL {self.level.upper()}S"
        first = "GROUP" if self.select == "group" else self.level.upper()
        return " ".join(filter(None, [first, str(self.name) if self.name else ""]))


@dataclass(frozen=True, slots=True)
class Clause(Node):
    """``subject [AT at] op value``; ``subject`` is in upper case, ``op`` one of < <= > >= == !=."""

    subject: Word
    op: str
    value: Word
    at: Word | None = None

    def __str__(self) -> str:
        at = f" AT {self.at}" if self.at else ""
        return f"{self.subject}{at} {OPERATOR_SIGNS.get(self.op, self.op)} {self.value}"


@dataclass(frozen=True, slots=True)
class Not(Node):
    """Binds stronger than AND."""

    part: Condition

    def __str__(self) -> str:
        return f"NOT {_inside(self.part, And, Or)}"


@dataclass(frozen=True, slots=True)
class And(Node):
    """Two or more parts; binds stronger than OR."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " AND ".join(_inside(part, And, Or) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or(Node):
    """Two or more parts."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " OR ".join(_inside(part, Or) for part in self.parts)


Condition = Clause | Not | And | Or


def clauses(condition: Condition | None) -> Iterator[Clause]:
    """All clauses of a condition, in the order of the text."""
    if isinstance(condition, Clause):
        yield condition
    elif isinstance(condition, Not):
        yield from clauses(condition.part)
    elif condition is not None:
        for part in condition.parts:
            yield from clauses(part)


def _inside(part: Condition, *weaker: type) -> str:
    return f"({part})" if isinstance(part, weaker) else str(part)


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """``name=value``; ``name`` is in lower case."""

    name: Word
    value: Word

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


@dataclass(frozen=True, slots=True)
class Action(Node):
    """``verb`` is set or delete, also for an inherited verb; ``place`` and ``life`` may be empty.

    ``existing`` is true when the action also applies to stored objects.  ``place_span``, ``life_span`` and
    ``existing_span`` are the spans of these words.
    """

    verb: str
    keyword: Word
    parameters: tuple[Parameter, ...] = ()
    place: str = ""
    life: str = ""
    place_span: Span = field(default=NOWHERE, compare=False, repr=False)
    life_span: Span = field(default=NOWHERE, compare=False, repr=False)
    existing: bool = False
    existing_span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        words = [self.verb.upper(), str(self.keyword)]
        if self.parameters:
            words += ["WITH", *map(str, self.parameters)]
        if self.place:
            words += ["ON", self.place.upper()]
        words += [self.life.upper()] if self.life else []
        return " ".join([*words, *(["EXISTING"] if self.existing else [])])


@dataclass(frozen=True, slots=True)
class Sentence(Node):
    """One policy."""

    target: Target
    actions: tuple[Action, ...]
    condition: Condition | None = None
    sustained: Word | None = None

    def __str__(self) -> str:
        when = f" WHEN {self.condition}" if self.condition else ""
        sustained = f" SUSTAINED {self.sustained}" if self.sustained else ""
        return f"FOR {self.target}{when}{sustained} DO {', '.join(map(str, self.actions))}"


def shift_spans(node: Any, by: int) -> Any:
    """Return ``node`` with all its spans moved by ``by``; other values are returned unchanged."""
    if isinstance(node, tuple):
        return tuple(shift_spans(one, by) for one in node)
    if not isinstance(node, Node):
        return node
    moved: dict[str, Any] = {}
    for node_field in fields(node):
        value = getattr(node, node_field.name)
        is_span = node_field.name.endswith("span")
        moved[node_field.name] = (value[0] + by, value[1] + by) if is_span else shift_spans(value, by)
    return replace(node, **moved)
