"""The items of a configuration document, read one by one; policies are not compiled yet.

The description of uploaded code is checked.  The code itself is not read, since it may not be in Swift yet.  Nodes and
actor hosts try it before they use it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from sluice_controller.catalog.vocabulary import filter_info
from sluice_controller.code.controllers import check_name as check_controller_name
from sluice_controller.code.filters import PYTHON
from sluice_controller.code.metrics import check_name as check_metric_name
from sluice_controller.configuration.configuration import Configuration
from sluice_controller.configuration.export import CODE_SECTIONS, POLICY_FIELDS, check_group_document
from sluice_controller.policies.services import KEPT
from sluice_controller.validation.bodies import ANY_LENGTH, Body
from sluice_controller.validation.parameters import refuse_unknown
from sluice_core.control import ControllerInfo
from sluice_core.describe import NATIVE
from sluice_core.errors import CallerError, SluiceError
from sluice_core.messages.bandwidth import ALLOCATED_METHODS
from sluice_core.messages.policies import Entry, Policy
from sluice_core.messages.registry import KINDS
from sluice_core.messages.uploads import CONTROLLER_CODE, FILTER_CODE, METRIC_CODE, Revision, Upload, upload_key
from sluice_metrics.native import metric_info

#: The fields of a controller's description, besides its name.
_OF_CONTROLLER: Final = frozenset(one.name for one in fields(ControllerInfo)) - {"name"}


def check_manifest(upload: Upload) -> None:
    """
    :raises CallerError: when this is not a valid filter, metric or controller
    """
    if upload.kind == FILTER_CODE:
        _check_filter(upload)
        return
    if upload.environment != NATIVE or not upload.sha256:
        raise CallerError(f"{upload.kind} `{upload.keyword}` has no native code, expected `environment: {NATIVE}`")
    if upload.kind == METRIC_CODE:
        check_metric_name(upload.keyword)
        metric_info(upload)
    elif upload.kind == CONTROLLER_CODE:
        check_controller_name(upload.keyword)
        _check_controller(upload)


def _check_filter(upload: Upload) -> None:
    if upload.environment == NATIVE and upload.language != PYTHON:
        raise CallerError(f"`language` of filter `{upload.keyword}` is `{upload.language}`, expected `{PYTHON}`")
    if upload.environment == NATIVE and not upload.sha256:
        return  # it has no code yet, so no description
    info = filter_info(upload)
    if info.reversible != upload.reverse:
        raise CallerError(f"filter `{upload.keyword}`: `reverse` differs from `reversible` in its code")


def _check_controller(upload: Upload) -> None:
    unknown = sorted(set(upload.info) - _OF_CONTROLLER)
    if unknown:
        raise CallerError(f"controller `{upload.keyword}` has the field `{unknown[0]}`, which controllers do not have")
    metrics, period = upload.info.get("metrics", []), upload.info.get("period", 1.0)
    if not isinstance(metrics, list) or not all(isinstance(one, str) for one in metrics):
        raise CallerError(f"`metrics` of controller `{upload.keyword}` is not a list of texts")
    if isinstance(period, bool) or not isinstance(period, int | float) or not period >= 1:
        raise CallerError(f"`period` of controller `{upload.keyword}` is `{period}`, expected at least 1 second")
    allocates = upload.info.get("allocates", [])
    if not isinstance(allocates, list) or any(method not in ALLOCATED_METHODS for method in allocates):
        said = " and ".join(ALLOCATED_METHODS)
        raise CallerError(f"`allocates` of controller `{upload.keyword}` is `{allocates}`, expected a list of {said}")
    if not isinstance(upload.info.get("bandwidth", False), bool):
        raise CallerError(f"`bandwidth` of controller `{upload.keyword}` is neither true nor false")


_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}|")
#: The latest valid time in Unix milliseconds.
_LATEST: Final = 10**15 - 1
#: The maximum number of faults in an error.
_MOST_TOLD: Final = 20


@dataclass(slots=True)
class Faults:
    """The faults found so far, of any number."""

    found: list[str] = field(default_factory=list)

    def add(self, where: str, error: Exception) -> None:
        """One more."""
        self.found.append(f"{where}: {error}")

    def end(self) -> None:
        """
        :raises CallerError: when there is any fault
        """
        if self.found:
            more = len(self.found) - _MOST_TOLD
            told = [*self.found[:_MOST_TOLD], *([f"and {more} more"] if more > 0 else [])]
            raise CallerError("; ".join(told))


class DocumentReader:
    """Reads the items of a document one by one.

    An item without an author and a time keeps the present ones; a new item gets ``by``.
    """

    def __init__(self, by: str, at: int, standing: Configuration, faults: Faults) -> None:
        self._by = by
        self._at = at
        self._standing = standing
        self._faults = faults

    def all(self, data: Mapping[str, Any], section: str, read: Any, key: Any) -> list[Any]:
        """All items of a section that can be read."""
        given = data.get(section) or []
        if not isinstance(given, list):
            raise CallerError(f"`{section}` is not a list")
        things: dict[str, Any] = {}
        for number, item in enumerate(given, 1):
            try:
                if not isinstance(item, Mapping):
                    raise CallerError("is not a mapping")
                thing = read(item, number)
                if key(thing) in things:
                    raise CallerError(f"`{key(thing)}` is given twice")
                things[key(thing)] = thing
            except SluiceError as error:
                self._faults.add(f"{section}, number {number}", error)
        return list(things.values())

    def policy(self, item: Mapping[str, Any], number: int) -> Policy:
        """A policy, not compiled yet: it has a plan only if it was kept of an actor."""
        body = Body(item, *POLICY_FIELDS)
        name, text = body.text("id"), body.text("policy", longest=ANY_LENGTH)
        if not _ID.fullmatch(name):
            raise CallerError(f"`id` is `{name}`, expected up to 64 letters, digits, `-` and `_`")
        # Policies are in the order of their age in the document.
        created, by = self._origin(body, self._standing.policies.get(name), number)
        return Policy(
            id=name,
            source=body.text("source", text, ANY_LENGTH),
            text=text,
            plan=_kept_plan(item.get(KEPT)),
            dynamic=False,
            created=created,
            created_by=by,
            enabled=body.flag("enabled", True),
            origin=body.text("origin", "", ANY_LENGTH),
        )

    def entry(self, item: Mapping[str, Any], _: int) -> Entry:
        """An entry of the registry, whose data have the form of its kind."""
        body = Body(item, "kind", "name", "data", "created", "created_by")
        kind, name, data = body.one_of("kind", KINDS), body.text("name"), item.get("data")
        if not isinstance(data, Mapping):
            raise CallerError(f"`data` of {kind} `{name}` is not a mapping")
        known = [each.name for each in fields(KINDS[kind]) if each.name != "name"]
        refuse_unknown(data, known, f"field of {kind} `{name}`")
        entry = Entry(kind, name, dict(data), *self._origin(body, self._standing.entries.get(f"{kind}/{name}")))
        _same_types(KINDS[kind].read(entry), KINDS[kind](name))
        check_group_document(entry)
        return entry

    def upload(self, section: str, item: Mapping[str, Any], _: int) -> Upload:
        """A registered filter, an uploaded metric or a controller."""
        body = Body(item, *(each.name for each in fields(Upload) if each.name != "kind"))
        kind = CODE_SECTIONS[section]
        standing = self._standing.uploads.get(upload_key(kind, body.text("keyword", "", ANY_LENGTH)))
        created, by = self._origin(body, standing)
        upload = Upload.from_data({**item, "kind": kind, "created": created, "created_by": by})
        _same_types(upload, Upload("", "", "", "", "", 0))
        for revision in upload.revisions:
            _same_types(revision, Revision(0, "", 0))
        for digest in (*upload.files(), *(each.sha256 for each in upload.revisions)):
            if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
                raise CallerError(f"`{digest}` is not a SHA-256 in lower case hexadecimal")
        check_manifest(upload)
        return upload

    def _origin(self, body: Body, standing: Policy | Entry | Upload | None, number: int = 0) -> tuple[int, str]:
        if body.has("created"):
            return body.whole("created", 0, _LATEST, "unix milliseconds"), body.text("created_by", "")
        if standing is not None:
            return standing.created, body.text("created_by", standing.created_by)
        return self._at + number, body.text("created_by", self._by)


def _kept_plan(kept: Any) -> dict[str, Any]:
    """The data of the plan of a policy that was kept of an actor, with its assignments; empty for other policies."""
    if kept is None:
        return {}
    if not isinstance(kept, Mapping):
        raise CallerError("`kept` is not a mapping")
    refuse_unknown(kept, ("plan", "assignments"), "field")
    plan, assignments = kept.get("plan"), kept.get("assignments")
    if not isinstance(plan, Mapping):
        raise CallerError("`plan` is not a mapping")
    if not isinstance(assignments, list):
        raise CallerError("`assignments` of a kept policy is not a list")
    if not all(isinstance(each, Mapping) for each in assignments):
        raise CallerError("`assignments` is not a mapping")
    return {**plan, KEPT: assignments}


def _same_types(message: Any, like: Any) -> None:
    """
    :raises CallerError: when a field of ``message`` has another type than the same field of ``like``
    """
    for each in fields(message):
        value, default = getattr(message, each.name), getattr(like, each.name)
        kind = Mapping if isinstance(default, Mapping) else type(default)
        wanted: Any = (int, float) if kind is float else kind
        if not isinstance(value, wanted) or isinstance(value, bool) is not isinstance(default, bool):
            raise CallerError(f"`{each.name}` is `{value}`, expected {_TYPES[kind]}")


_TYPES: Final[Mapping[Any, str]] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    tuple: "a list",
    Mapping: "a mapping",
}
