"""Activation URLs of filters: our own deploy call, unless an administrator registers a federated service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from sluice_controller.catalog import entries
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import RecordKind, StoredRecord
from sluice_controller.errors import check_version
from sluice_controller.validation.bodies import Body
from sluice_core import activation
from sluice_core.activation import FILTER_HOLE, LONGEST_TIMEOUT, LONGEST_URL, check_url
from sluice_core.describe import ActionInfo
from sluice_core.errors import Conflict, NotFound
from sluice_core.messages.policies import ALL, GROUP, Entry, Target
from sluice_core.messages.registry import ACTIVATION, HOLE, Activation
from sluice_dsl.plan import Plan

FIELDS: Final = ("keyword", "url", "undo", "timeout")
_ACTIVATIONS: Final = RecordKind(Activation, ACTIVATION, "activation URL for filter")


@dataclass(frozen=True, slots=True)
class FilterActivation:
    """A keyword of the language and how it is activated; version 0 stands for our own call."""

    info: ActionInfo
    activation: Activation
    federated: bool
    version: int = 0


def default_activation(keyword: str) -> Activation:
    """Our own deploy call."""
    undo = f"/filters/{HOLE}/undeploy/{FILTER_HOLE}"
    return Activation(keyword, f"/filters/{HOLE}/deploy/{FILTER_HOLE}", undo)


def list_all(backend: Backend) -> dict[str, FilterActivation]:
    """Every keyword of the language."""
    stored = _ACTIVATIONS.list_all(backend)
    return {keyword: _shown(info, stored.get(keyword)) for keyword, info in backend.catalogue.actions.items()}


def find(backend: Backend, keyword: str, expected: int | None = None) -> FilterActivation:
    """One keyword.

    :raises NotFound: when the language has none such
    """
    info = _info(backend, keyword)
    try:
        return _shown(info, _ACTIVATIONS.find(backend, info.keyword, expected))
    except NotFound:
        check_version(f"filter `{keyword}`", 0, expected)
        return _shown(info, None)


def create(backend: Backend, data: Any, by: str) -> FilterActivation:
    """Name the service of a filter that has none yet.

    :raises Conflict: when it has one
    """
    body = Body(data, *FIELDS)
    info = _info(backend, body.text("keyword").lower())
    if find(backend, info.keyword).federated:
        raise Conflict(f"filter `{info.keyword}` has an activation URL already, change it by PUT")
    return _shown(info, entries.create(backend, _described(info.keyword, body), by))


def update(backend: Backend, keyword: str, data: Any, by: str, expected: int | None = None) -> FilterActivation:
    """Name another service, or the first one."""
    body = Body(data, *FIELDS)
    old = find(backend, keyword, expected)
    if body.text("keyword", keyword) != keyword:
        raise Conflict(f"`keyword` is `{body.text('keyword')}`, but this is filter `{keyword}`")
    new = _described(keyword, body)
    if not old.federated:
        found = entries.create(backend, new, by)
    else:
        found = entries.update(backend, StoredRecord(old.activation, old.version), new, by)
    return _shown(old.info, found)


def delete(backend: Backend, keyword: str, by: str, expected: int | None = None) -> None:
    """Back to our own call.

    :raises NotFound: when that is what it has
    """
    _ACTIVATIONS.drop(backend, _ACTIVATIONS.find(backend, keyword, expected), by)


def activation_calls(plan: Plan, known_entries: Mapping[str, Entry]) -> list[dict[str, Any]]:
    """For each action of a plan: what is called when it fires and when it is taken back.

    A group's or everybody's member is known only then, so its place stays a hole.
    """
    found = []
    target = _path(plan.target)
    for action in plan.actions:
        entry = known_entries.get(f"{ACTIVATION}/{action.keyword}")
        one = Activation.read(entry) if entry else default_activation(action.keyword)
        urls = (one.url, one.undo) if action.verb == "set" else (one.undo, "")
        url, undo = (_filled(each, target, action.keyword) for each in urls)
        params = {"params": dict(action.params), "place": action.place}
        found.append({"keyword": action.keyword, "url": url, "undo": undo, **params})
    return found


def _filled(template: str, target: str, keyword: str) -> str:
    whole = activation.fill_url(template, target or HOLE, keyword)
    return whole if target else whole.replace(quote(HOLE, safe="/"), HOLE)


def _path(target: Target) -> str:
    """What goes into the hole; empty where only firing tells."""
    return "" if target.select in (GROUP, ALL) else target.name or target.level


def _shown(info: ActionInfo, found: StoredRecord[Activation] | None) -> FilterActivation:
    if found is None:
        return FilterActivation(info, default_activation(info.keyword), False)
    return FilterActivation(info, found.record, True, found.version)


def _info(backend: Backend, keyword: str) -> ActionInfo:
    info = backend.catalogue.actions.get(keyword)
    if info is None:
        raise NotFound(f"there is no filter `{keyword}`")
    return info


def _described(keyword: str, body: Body) -> Activation:
    url = body.text("url", longest=LONGEST_URL)
    undo = body.text("undo", "", longest=LONGEST_URL)
    check_url(url)
    if undo:
        check_url(undo)
    return Activation(keyword, url, undo, body.number("timeout", Activation("").timeout, 0.1, LONGEST_TIMEOUT))
