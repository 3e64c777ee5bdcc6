"""Activation URLs of filters: Sluice's own deploy call, unless an administrator registers a federated service.

An unknown keyword may be registered with the URL of a service, and the parameters of the filter: it is then the
filter of a third party, which is enforced by calls to its service alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final
from urllib.parse import quote

from sluice_controller.catalog import entries, reference_guards
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import RecordKind, StoredRecord
from sluice_controller.catalog.policy_cache import CacheContents
from sluice_controller.code.filters import RESERVED
from sluice_controller.errors import check_version
from sluice_controller.validation import names
from sluice_controller.validation.bodies import Body, shortened
from sluice_controller.validation.parameters import refuse_unknown
from sluice_core import activation
from sluice_core.activation import FILTER_HOLE, LONGEST_TIMEOUT, LONGEST_URL, check_url
from sluice_core.describe import PARAMETER_TYPES, ActionInfo, Parameter
from sluice_core.errors import CallerError, Conflict, NotFound
from sluice_core.messages.policies import ALL, GROUP, Entry, Target
from sluice_core.messages.registry import ACTIVATION, ALIAS, HOLE, Activation
from sluice_dsl.diagnostics import join_words
from sluice_dsl.plan import Plan

FIELDS: Final = ("keyword", "url", "undo", "timeout", "help", "parameters")
#: Fields for the filter of a third party alone, since other filters describe themselves.
_OWN: Final = ("help", "parameters")
_MOST_PARAMETERS: Final = 50
_keyword = re.compile(r"[a-z0-9_]+")


def _users(contents: CacheContents, activation: Activation) -> Iterable[str]:
    """Policies that set the filter of a third party; other filters work without their activation."""
    return reference_guards.policies_setting(contents, activation.name) if activation.service else ()


_ACTIVATIONS: Final = RecordKind(Activation, ACTIVATION, "activation URL for filter", _users)


@dataclass(frozen=True, slots=True)
class FilterActivation:
    """A keyword of the language and its activation; version 0 means Sluice's own call."""

    info: ActionInfo
    activation: Activation
    federated: bool
    version: int = 0


def default_activation(keyword: str) -> Activation:
    """Sluice's own deploy call."""
    undo = f"/filters/{HOLE}/undeploy/{FILTER_HOLE}"
    return Activation(keyword, f"/filters/{HOLE}/deploy/{FILTER_HOLE}", undo)


def list_all(backend: Backend) -> dict[str, FilterActivation]:
    """Every keyword of the language."""
    stored = _ACTIVATIONS.list_all(backend)
    return {keyword: _shown(info, stored.get(keyword)) for keyword, info in backend.catalogue.actions.items()}


def find(backend: Backend, keyword: str, expected: int | None = None) -> FilterActivation:
    """One keyword.

    :raises NotFound: when the language does not have it
    """
    info = _info(backend, keyword)
    try:
        return _shown(info, _ACTIVATIONS.find(backend, info.keyword, expected))
    except NotFound:
        check_version(f"filter `{keyword}`", 0, expected)
        return _shown(info, None)


def create(backend: Backend, data: Any, by: str) -> FilterActivation:
    """Register the service of a filter that has none yet.

    :raises Conflict: when it has one already
    """
    body = Body(data, *FIELDS)
    keyword = body.text("keyword").lower()
    if keyword in backend.catalogue.actions:
        old = find(backend, keyword)
        if old.federated:
            raise Conflict(f"filter `{keyword}` has an activation URL already, change it by PUT")
        return _shown(old.info, entries.create(backend, _described(keyword, body), by))
    new = _described(_new_keyword(backend, keyword), body, service=True)
    return _shown(new.info(), entries.create(backend, new, by, (ALIAS,)))


def update(backend: Backend, keyword: str, data: Any, by: str, expected: int | None = None) -> FilterActivation:
    """Change the service of a filter, or register one.

    :raises Conflict: when policies set the filter of a third party, and its parameters would change
    """
    body = Body(data, *FIELDS)
    old = find(backend, keyword)
    if body.text("keyword", keyword) != keyword:
        raise Conflict(f"`keyword` is `{body.text('keyword')}`, but this is filter `{keyword}`")
    new = _described(keyword, body, old.activation.service)
    if old.activation.service and new.parameters != old.activation.parameters:
        reference_guards.refuse_used(
            f"filter `{keyword}`", _users(backend.policy_cache.contents(), old.activation), False
        )
    check_version(f"filter `{keyword}`", old.version, expected)
    if not old.federated:
        stored = entries.create(backend, new, by)
    else:
        stored = entries.update(backend, StoredRecord(old.activation, old.version), new, by)
    return _shown(new.info() if new.service else old.info, stored)


def delete(backend: Backend, keyword: str, by: str, force: bool = False, expected: int | None = None) -> None:
    """Restore Sluice's own call; the filter of a third party is deleted.

    :raises NotFound: when it has no registered service
    :raises Conflict: when policies set the filter of a third party, unless ``force``
    """
    _ACTIVATIONS.delete(backend, keyword, by, force, expected)


def activation_calls(plan: Plan, known_entries: Mapping[str, Entry]) -> list[dict[str, Any]]:
    """For each action of a plan: the calls when it fires and when it is taken back.

    For a group or ALL the member is known only at that time, so its placeholder stays.
    """
    calls = []
    target = _path(plan.target)
    for action in plan.actions:
        entry = known_entries.get(f"{ACTIVATION}/{action.keyword}")
        one = Activation.read(entry) if entry else default_activation(action.keyword)
        urls = (one.url, one.undo) if action.verb == "set" else (one.undo, "")
        url, undo = (_filled(each, target, action.keyword) for each in urls)
        params = {"params": dict(action.params), "place": action.place}
        calls.append({"keyword": action.keyword, "url": url, "undo": undo, **params})
    return calls


def _filled(template: str, target: str, keyword: str) -> str:
    whole = activation.fill_url(template, target or HOLE, keyword)
    return whole if target else whole.replace(quote(HOLE, safe="/"), HOLE)


def _path(target: Target) -> str:
    """The path that replaces the placeholder; empty if only the firing has it."""
    return "" if target.select in (GROUP, ALL) else target.name or target.level


def _shown(info: ActionInfo, stored: StoredRecord[Activation] | None) -> FilterActivation:
    if stored is None:
        return FilterActivation(info, default_activation(info.keyword), False)
    return FilterActivation(info, stored.record, True, stored.version)


def _info(backend: Backend, keyword: str) -> ActionInfo:
    info = backend.catalogue.actions.get(keyword)
    if info is None:
        raise NotFound(f"there is no filter `{keyword}`{names.near_miss(keyword, backend.catalogue.actions)}")
    return info


def _new_keyword(backend: Backend, keyword: str) -> str:
    """Return ``keyword`` if it is a valid name of a new filter."""
    name = names.new_name(keyword, "keyword")
    if not _keyword.fullmatch(name) or name in RESERVED:
        words = join_words(sorted(RESERVED))
        raise CallerError(f"`{name}` cannot be a filter, expected letters, digits and `_`, and not {words}")
    names.refuse_clash(name, names.action_meanings(name, backend.catalogue))
    return name


def _described(keyword: str, body: Body, service: bool = False) -> Activation:
    for field in _OWN:
        if body.has(field) and not service:
            raise CallerError(f"`{field}` is for the filter of a third party, and `{keyword}` describes itself")
    url = body.text("url", longest=LONGEST_URL)
    undo = body.text("undo", "", longest=LONGEST_URL)
    check_url(url)
    if undo:
        check_url(undo)
    timeout = body.number("timeout", Activation("").timeout, 0.1, LONGEST_TIMEOUT)
    parameters = tuple(map(_parameter, body.objects("parameters", _MOST_PARAMETERS)))
    return Activation(keyword, url, undo, timeout, service, body.text("help", ""), parameters)


def _parameter(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``data`` if it describes a parameter.

    :raises CallerError: with the reason
    """
    refuse_unknown(data, [one.name for one in fields(Parameter)], "field of a parameter")
    try:
        parameter = Parameter.from_data(data)
    except TypeError as error:
        raise CallerError(f"parameter `{shortened(data)}`: {error}") from error
    if not isinstance(parameter.name, str) or not _keyword.fullmatch(parameter.name):
        raise CallerError(
            f"parameter `{shortened(parameter.name)}`, expected a name of lower case letters, digits and `_`"
        )
    if parameter.type not in PARAMETER_TYPES:
        raise CallerError(
            f"parameter `{parameter.name}` has type `{parameter.type}`, expected {', '.join(PARAMETER_TYPES)}"
        )
    return dict(data)
