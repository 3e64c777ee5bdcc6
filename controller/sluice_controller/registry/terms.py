"""Object-type terms: the built-in ones, which cannot be changed, and those that administrators define."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from sluice_controller.catalog import entries
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import RecordKind, StoredRecord
from sluice_controller.catalog.reference_guards import policies_using_term
from sluice_controller.errors import check_version
from sluice_controller.registry import takeovers
from sluice_controller.validation.bodies import Body
from sluice_controller.validation.names import condition_meanings, new_name, refuse_clash
from sluice_core.errors import CallerError, Conflict
from sluice_core.messages.registry import ALIAS, METRIC_ENTRY, TERM, Term
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.checks.conditions import is_type_pattern, type_pattern

FIELDS: Final = ("term", "patterns")


def list_all(backend: Backend) -> dict[str, StoredRecord[Term]]:
    """All terms by name; built-in ones are at version 0."""
    builtin = {name: StoredRecord(Term(name, tuple(values)), 0) for name, values in backend.native.terms.items()}
    return {**_TERMS.list_all(backend), **builtin}


def is_builtin(backend: Backend, name: str) -> bool:
    """Whether the term is part of the software."""
    return name in backend.native.terms


def find(backend: Backend, name: str, expected: int | None = None) -> StoredRecord[Term]:
    """One term, in any case.

    :raises NotFound: when there is none
    """
    name = name.upper()
    if is_builtin(backend, name):
        check_version(f"term `{name}`", 0, expected)
        return StoredRecord(Term(name, tuple(backend.native.terms[name])), 0)
    return _TERMS.find(backend, name, expected)


def create(backend: Backend, data: Any, by: str) -> StoredRecord[Term]:
    """Create a term.

    :raises Conflict: when its name has a meaning already
    """
    body = Body(data, *FIELDS)
    name = new_name(body.text("term"), "term").upper()
    catalogue = backend.catalogue
    refuse_clash(name, {**condition_meanings(name, catalogue), **_as_pattern(name, catalogue)})
    term = Term(name, _patterns(body.texts("patterns")))
    return entries.create(backend, term, by, (ALIAS, METRIC_ENTRY))


def _as_pattern(name: str, catalogue: Catalogue) -> dict[str, bool]:
    """Refuse a name that is also a type: a term called PDF would change the meaning of ``OBJECT_TYPE = pdf``."""
    pattern = type_pattern(name)
    return {f"a type that `{term}` stands for": pattern in values for term, values in catalogue.terms.items()}


def update(
    backend: Backend, name: str, data: Any, by: str, force: bool, expected: int | None = None
) -> StoredRecord[Term]:
    """Change the types of a term; existing policies keep the types that they were compiled with.

    :raises Conflict: when policies use it, unless ``force``
    """
    body = Body(data, *FIELDS)

    def revise(old: Term) -> Term:
        if body.text("term", name).upper() != old.name:
            raise CallerError(f"`term` is `{body.text('term')}`, but a term keeps its name `{old.name}`")
        new = replace(old, values=_patterns(body.texts("patterns")))
        if new != old:
            _TERMS.refuse_used(backend, old, force)
        return new

    return _TERMS.update(backend, name.upper(), by, revise, force, expected)


def delete(backend: Backend, name: str, by: str, force: bool, expected: int | None = None) -> None:
    """Delete a term; policies do not use one that a built-in has taken over.

    :raises Conflict: when policies use it, unless ``force``
    """
    if takeovers.is_taken_over(takeovers.TERM, name.upper(), backend):
        _TERMS.drop(backend, _TERMS.find(backend, name.upper(), expected), by)
        return
    _TERMS.delete(backend, name.upper(), by, force, expected)


def _coined(backend: Backend, name: str, expected: int | None) -> StoredRecord[Term]:
    if is_builtin(backend, name.upper()):
        raise Conflict(f"term `{name.upper()}` is built in and cannot be changed, create another one")
    return find(backend, name, expected)


_TERMS: Final = RecordKind(Term, TERM, "term", policies_using_term, _coined)


def _patterns(texts: Iterable[str]) -> tuple[str, ...]:
    patterns = tuple(dict.fromkeys(map(type_pattern, texts)))
    if not patterns:
        raise CallerError("`patterns` is empty, expected extensions and media types such as pdf, text/plain or image/*")
    for one in patterns:
        if not is_type_pattern(one):
            raise CallerError(f"`{one}` is not a type, expected an extension or a media type such as pdf or image/*")
    return patterns
