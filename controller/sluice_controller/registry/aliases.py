"""Aliases: additional names of a filter with parameters, of a metric at a level, or of a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sluice_controller.catalog import entries
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import RecordKind, StoredRecord
from sluice_controller.catalog.groups import resolve_member
from sluice_controller.catalog.reference_guards import policies_using_alias
from sluice_controller.catalog.vocabulary_index import parameter_text, path_target
from sluice_controller.validation import names
from sluice_controller.validation.bodies import Body
from sluice_core.describe import ActionInfo, Parameter, Scalar
from sluice_core.errors import CallerError
from sluice_core.messages.policies import LEVELS, VOLUME
from sluice_core.messages.registry import (
    ALIAS,
    FILTER,
    MEMBER_KINDS,
    METRIC,
    METRIC_ENTRY,
    TARGET,
    TERM,
    Alias,
)
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.diagnostics import join_words
from sluice_dsl.syntax.units import UnitError, read_parameter

FIELDS: Final = ("name", "of", "text", "level", "params")
OF: Final = (FILTER, METRIC, TARGET)
#: Levels of an alias of a metric; empty: that of the sentence.  For a target only volume is a valid level: the levels
#: of other targets follow from the path.
ALIAS_LEVELS: Final = ("", *LEVELS)

_RIVALS: Final = {FILTER: (), METRIC: (TERM, METRIC_ENTRY), TARGET: tuple(MEMBER_KINDS)}


def create(backend: Backend, data: Any, by: str) -> StoredRecord[Alias]:
    """Create an alias.

    :raises CallerError: when it is not valid
    :raises Conflict: when its name has a meaning already where it would be used
    """
    body = Body(data, *FIELDS)
    of = body.one_of("of", OF)
    name = _cased(names.new_name(body.text("name")), of)
    catalogue = backend.catalogue
    names.refuse_clash(name, _meanings(of, name, catalogue))
    return entries.create(backend, _described(name, of, body, catalogue), by, _RIVALS[of])


def update(
    backend: Backend, name: str, data: Any, by: str, force: bool, expected: int | None = None
) -> StoredRecord[Alias]:
    """Change the meaning of an alias; existing policies keep the meaning that they were compiled with.

    :raises Conflict: when policies use it, unless ``force``
    """
    body = Body(data, *FIELDS)

    def revise(old: Alias) -> Alias:
        of = body.one_of("of", OF, old.of)
        if (_cased(body.text("name", name), of), of) != (name, old.of):
            raise CallerError(f"an alias keeps its name and what it is of: `{name}` is of a {old.of}")
        new = _described(name, of, body, backend.catalogue)
        if new != old:
            _ALIASES.refuse_used(backend, old, force)
        return new

    return _ALIASES.update(backend, name, by, revise, force, expected)


_ALIASES: Final = RecordKind(Alias, ALIAS, "alias", policies_using_alias)
list_all = _ALIASES.list_all
find = _ALIASES.find
delete = _ALIASES.delete


def _cased(name: str, of: str) -> str:
    """The name in the case of such words in canonical sentences."""
    return {FILTER: name.lower(), METRIC: name.upper()}.get(of, name)


def _meanings(of: str, name: str, catalogue: Catalogue) -> dict[str, bool]:
    meanings = {FILTER: names.action_meanings, METRIC: names.condition_meanings, TARGET: names.target_meanings}
    return meanings[of](name, catalogue)


def _described(name: str, of: str, body: Body, catalogue: Catalogue) -> Alias:
    text, level = body.text("text"), body.one_of("level", ALIAS_LEVELS, "")
    params = body.scalars("params")
    if params and of != FILTER:
        raise CallerError(f"`params` are for an alias of a filter, not of a {of}")
    if level and of != METRIC and (of, level) != (TARGET, VOLUME):
        raise CallerError(f"`level` is for an alias of a metric or a volume, not of a {of}")
    if of == FILTER:
        info = _action(text, catalogue)
        return Alias(name, of, info.keyword, params=_checked(info, params, catalogue))
    if of == METRIC:
        return Alias(name, of, _metric(text, level, catalogue), level)
    member = resolve_member(level or path_target(text).level, text, catalogue)
    return Alias(name, of, member.path, level)


def _action(text: str, catalogue: Catalogue) -> ActionInfo:
    info = catalogue.action(text)
    if info is None:
        raise CallerError(f"unknown action `{text}`{names.near_miss(text, catalogue.actions)}")
    if not info.available:
        raise CallerError(f"`{info.keyword}` is not available on this cluster")
    return info


def _checked(info: ActionInfo, params: Mapping[str, Scalar], catalogue: Catalogue) -> dict[str, Scalar]:
    """Check the parameters of an alias; a sentence adds the missing ones."""
    checked: dict[str, Scalar] = {}
    read: dict[str, Scalar] = {}
    named = [(_parameter(name, info), value) for name, value in params.items()]
    for parameter, value in sorted(named, key=lambda one: bool(one[0].range_by)):  # those that set ranges come first
        try:
            read[parameter.name] = read_parameter(parameter_text(value), info.with_range(parameter, read))
        except UnitError as error:
            raise CallerError(f"parameter `{parameter.name}` of `{info.keyword}`: {error}") from error
        checked[parameter.name] = value
    trial = catalogue.trials.get(info.keyword)
    if trial and read and all(one.name in read for one in info.parameters if one.required):
        try:
            trial(read)
        except CallerError as error:
            raise CallerError(f"`{info.keyword}`: {error}") from error
    return checked


def _parameter(name: str, info: ActionInfo) -> Parameter:
    parameter = info.parameter(name)
    if parameter is None:
        known = [one.name for one in info.parameters]
        raise CallerError(f"`{info.keyword}` has no parameter `{name}`{names.near_miss(name, known)}")
    return parameter


def _metric(text: str, level: str, catalogue: Catalogue) -> str:
    metric = catalogue.metric(text)
    if metric is None:
        raise CallerError(f"unknown metric `{text}`{names.near_miss(text, catalogue.metrics)}")
    if level and level not in metric.granularities:
        raise CallerError(f"`{metric.name}` is measured per {join_words(metric.granularities, 'and')}, not per {level}")
    return metric.name
