"""Names that administrators choose: the valid ones, and their clashes with existing words.

A sentence can quote any text, so any text is a name, with three exceptions: keywords of the language, because their
quotes are easily forgotten; a slash, which separates the parts of a path; and words that already have a meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sluice_controller.validation.bodies import plain_text
from sluice_core.describe import REQUEST_ATTRIBUTES
from sluice_core.errors import CallerError, Conflict
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.diagnostics import closest_match
from sluice_dsl.syntax.keywords import RESERVED

LONGEST_NAME: Final = 200
_ATTRIBUTES: Final = frozenset(one.name for one in REQUEST_ATTRIBUTES)


def new_name(value: Any, field: str = "name") -> str:
    """Return ``value`` if it is a valid name of a new object.

    :raises CallerError: with the reason
    """
    name = plain_text(value, field, LONGEST_NAME)
    if not name.strip() or name != name.strip():
        raise CallerError(f"`{field}` is `{name}`, expected a text without blanks around it")
    if name.upper() in RESERVED:
        raise CallerError(f"`{name}` is a word of the language, expected another name")
    if "/" in name:
        raise CallerError(f"`{name}` contains `/`, which separates the parts of a path")
    if name in (".", ".."):
        raise CallerError(f"`{name}` cannot be part of a URL, expected another name")
    return name


def refuse_clash(name: str, meanings: Mapping[str, bool]) -> None:
    """Refuse a new name that has a meaning already; ``meanings`` maps each meaning to whether the name has it.

    :raises Conflict: with the meaning
    """
    for what, known in meanings.items():
        if known:
            raise Conflict(f"`{name}` is {what} already, expected another name")


def near_miss(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """The end of an error about ``word``: the one of ``known`` that was probably meant, or else ``otherwise``."""
    near = closest_match(word, known)
    return f", did you mean `{near}`" if near else otherwise


def target_meanings(name: str, catalogue: Catalogue) -> dict[str, bool]:
    """The meanings of a bare word after FOR."""
    return {
        "an alias": name in catalogue.aliases,
        "a group": name in catalogue.groups,
        "a tenant": name in catalogue.tenants,
    }


def condition_meanings(name: str, catalogue: Catalogue) -> dict[str, bool]:
    """The meanings of a word before or after an operator; ``name`` is in upper case."""
    return {
        "a request attribute": name in _ATTRIBUTES,
        "a metric": catalogue.metric(name) is not None,
        "an alias of a metric": name in catalogue.metrics_by_alias,
        "a coined term": name in catalogue.terms,
    }


def action_meanings(name: str, catalogue: Catalogue) -> dict[str, bool]:
    """The meanings of a word after SET; ``name`` is in lower case."""
    return {
        "a keyword of the language": name in catalogue.actions,
        "an alias of a filter": name in catalogue.actions_by_alias,
    }
