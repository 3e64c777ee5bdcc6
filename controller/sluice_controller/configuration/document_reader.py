"""The items of a configuration document, read one by one; policies are not compiled yet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from sluice_controller.code.manifest import check_manifest
from sluice_controller.configuration.configuration import Configuration
from sluice_controller.configuration.export import CODE_SECTIONS, POLICY_FIELDS
from sluice_controller.policies.freeze import KEPT
from sluice_controller.registry.group_documents import check_group_document
from sluice_controller.validation.parameters import refuse_unknown
from sluice_core.errors import CallerError, SluiceError
from sluice_core.messages.policies import Entry, Policy
from sluice_core.messages.registry import KINDS
from sluice_core.messages.uploads import Revision, Upload, upload_key

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}|")
#: Faults that are told at once.
_MOST_TOLD: Final = 20


@dataclass(slots=True)
class Faults:
    """What is wrong so far; there may be much of it."""

    found: list[str] = field(default_factory=list)

    def add(self, where: str, error: Exception) -> None:
        """One more."""
        self.found.append(f"{where}: {error}")

    def end(self) -> None:
        """
        :raises CallerError: when there was anything
        """
        if self.found:
            more = len(self.found) - _MOST_TOLD
            told = [*self.found[:_MOST_TOLD], *([f"and {more} more"] if more > 0 else [])]
            raise CallerError("; ".join(told))


class DocumentReader:
    """Reads things one by one.

    Where a document does not say whose a thing is and how old, it stays what it was, and a new one is ``by``'s.
    """

    def __init__(self, by: str, at: int, standing: Configuration, faults: Faults) -> None:
        self._by = by
        self._at = at
        self._standing = standing
        self._faults = faults

    def all(self, data: Mapping[str, Any], section: str, read: Any, key: Any) -> list[Any]:
        """Everything in a section that can be read."""
        given = data.get(section) or []
        if not isinstance(given, list):
            raise CallerError(f"`{section}` is no list")
        found: dict[str, Any] = {}
        for number, one in enumerate(given, 1):
            try:
                if not isinstance(one, Mapping):
                    raise CallerError("is no mapping")
                thing = read(one, number)
                if key(thing) in found:
                    raise CallerError(f"`{key(thing)}` stands there twice")
                found[key(thing)] = thing
            except SluiceError as error:
                self._faults.add(f"{section}, number {number}", error)
        return list(found.values())

    def policy(self, one: Mapping[str, Any], number: int) -> Policy:
        """A policy, not compiled yet: it has a plan only when it was kept of an actor."""
        refuse_unknown(one, POLICY_FIELDS, "field")
        name = _text(one, "id")
        if not _ID.fullmatch(name):
            raise CallerError(f"`id` is `{name}`, expected up to 64 letters, digits, `-` and `_`")
        text = _text(one, "policy")
        # the order of the document is that of their age
        created, by = self._origin(one, self._standing.policies.get(name), number)
        return Policy(
            id=name,
            source=_text(one, "source", text),
            text=text,
            plan=_kept_plan(one.get(KEPT)),
            dynamic=False,
            created=created,
            created_by=by,
            enabled=_flag(one, "enabled", default=True),
            origin=_text(one, "origin", ""),
        )

    def entry(self, one: Mapping[str, Any], _: int) -> Entry:
        """An entry of the registry, whose data are of its kind's shape."""
        refuse_unknown(one, ("kind", "name", "data", "created", "created_by"), "field")
        kind, name, data = _text(one, "kind"), _text(one, "name"), one.get("data")
        if kind not in KINDS:
            raise CallerError(f"`kind` is `{kind}`, expected {', '.join(KINDS)}")
        if not name:
            raise CallerError("`name` is empty, expected a text")
        if not isinstance(data, Mapping):
            raise CallerError(f"`data` of {kind} `{name}` is no mapping")
        known = [each.name for each in fields(KINDS[kind]) if each.name != "name"]
        refuse_unknown(data, known, f"field of {kind} `{name}`")
        entry = Entry(kind, name, dict(data), *self._origin(one, self._standing.entries.get(f"{kind}/{name}")))
        _same_types(KINDS[kind].read(entry), KINDS[kind](name))
        check_group_document(entry)
        return entry

    def upload(self, section: str, one: Mapping[str, Any], _: int) -> Upload:
        """A registered filter, an uploaded metric or a controller."""
        refuse_unknown(one, [each.name for each in fields(Upload) if each.name != "kind"], "field")
        kind = CODE_SECTIONS[section]
        created, by = self._origin(one, self._standing.uploads.get(upload_key(kind, _text(one, "keyword", ""))))
        upload = Upload.from_data({**one, "kind": kind, "created": created, "created_by": by})
        _same_types(upload, Upload("", "", "", "", "", 0))
        for revision in upload.revisions:
            _same_types(revision, Revision(0, "", 0))
        for digest in (*upload.files(), *(each.sha256 for each in upload.revisions)):
            if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
                raise CallerError(f"`{digest}` is no SHA-256 in lower case hexadecimal")
        check_manifest(upload)
        return upload

    def _origin(
        self, one: Mapping[str, Any], standing: Policy | Entry | Upload | None, number: int = 0
    ) -> tuple[int, str]:
        if "created" in one:
            return _whole(one, "created"), _text(one, "created_by", "")
        if standing is not None:
            return standing.created, _text(one, "created_by", standing.created_by)
        return self._at + number, _text(one, "created_by", self._by)


def _text(one: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = one.get(name, default)
    if not isinstance(value, str):
        raise CallerError(f"`{name}` is missing" if value is None else f"`{name}` is `{value}`, expected a text")
    return value


def _flag(one: Mapping[str, Any], name: str, default: bool) -> bool:
    value = one.get(name, default)
    if not isinstance(value, bool):
        raise CallerError(f"`{name}` is `{value}`, expected true or false")
    return value


def _whole(one: Mapping[str, Any], name: str) -> int:
    value = one[name]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 10**15:
        raise CallerError(f"`{name}` is `{value}`, expected unix milliseconds")
    return value


def _kept_plan(kept: Any) -> dict[str, Any]:
    """The data of the plan of a policy that was kept of an actor, with its assignments; empty for other policies."""
    if kept is None:
        return {}
    if not isinstance(kept, Mapping):
        raise CallerError("`kept` is no mapping")
    refuse_unknown(kept, ("plan", "assignments"), "field")
    plan, assignments = kept.get("plan"), kept.get("assignments")
    if not isinstance(plan, Mapping):
        raise CallerError("`plan` is no mapping")
    if not isinstance(assignments, list):
        raise CallerError("`assignments` of a kept policy is no list")
    if not all(isinstance(each, Mapping) for each in assignments):
        raise CallerError("`assignments` is no mapping")
    return {**plan, KEPT: assignments}


def _same_types(message: Any, like: Any) -> None:
    """
    :raises CallerError: when a field of ``message`` is of another type than the same field of ``like``
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
