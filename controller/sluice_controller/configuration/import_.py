"""From a document (``sluice_controller.configuration.export``) to the configuration that it describes, or all that
is wrong.

Everything is checked as if it came by the other calls: sentences are compiled against the vocabulary *of the
document*, and against each other.  A policy that is as it stands keeps what it was compiled to, so that importing
what was exported changes nothing, whatever words were coined since.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.vocabulary import with_uploads
from sluice_controller.catalog.vocabulary_index import VocabularyIndex
from sluice_controller.code.manifest import check_manifest
from sluice_controller.configuration.configuration import Configuration
from sluice_controller.configuration.export import CODE_SECTIONS, FORMAT, POLICY_FIELDS, policy_document
from sluice_controller.policies.freeze import KEPT
from sluice_controller.registry.group_documents import check_group_document, unfold_members
from sluice_controller.validation.parameters import refuse_unknown
from sluice_core.errors import CallerError, SluiceError
from sluice_core.messages.policies import NAME, Assignment, Entry, Policy
from sluice_core.messages.registry import KINDS
from sluice_core.messages.uploads import FILTER_CODE, METRIC_CODE, Revision, Upload, upload_key
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.compile import Compiled, ExistingPolicy, PolicyErrors, compile_text
from sluice_dsl.plan import Plan

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}|")
_SECTIONS: Final = ("sluice", "policies", "registry", *CODE_SECTIONS)
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


def read_configuration(data: Any, backend: Backend, by: str, now: Configuration) -> Configuration:
    """The configuration that ``data`` describes, where ``now`` is the one that stands.

    :raises CallerError: naming everything that is wrong
    """
    if not isinstance(data, Mapping):
        raise CallerError("the body is no mapping, expected `sluice: 1` and what belongs to it")
    refuse_unknown(data, _SECTIONS, "section")
    if data.get("sluice") != FORMAT or isinstance(data["sluice"], bool):
        raise CallerError(f"`sluice` is `{data.get('sluice')}`, expected {FORMAT}, the version of the format")
    faults = Faults()
    reader = _Reader(by, int(backend.now() * 1000), now, faults)
    entries = {one.key: one for one in unfold_members(reader.all(data, "registry", reader.entry, lambda one: one.key))}
    found = [one for name in CODE_SECTIONS for one in reader.all(data, name, partial(reader.upload, name), _key)]
    uploads = {one.key: one for one in found}
    for upload in found:
        taken = {FILTER_CODE: backend.native.actions, METRIC_CODE: backend.native.metrics}.get(upload.kind, {})
        if upload.keyword in taken:
            faults.add(f"{upload.kind} `{upload.keyword}`", CallerError("is a keyword of the language already"))
    faults.end()
    catalogue = VocabularyIndex.of(entries).extend(with_uploads(backend.native, uploads))
    items = reader.all(data, "policies", reader.policy, lambda one: one.id)
    faults.end()
    policies = _Compiler(catalogue, now, faults, backend.config.text_limit).compile(items)
    faults.end()
    return Configuration(policies, uploads, entries)


@dataclass(frozen=True, slots=True)
class ImportedPolicy:
    """A policy as a document has it: ``kept`` are a plan and assignments."""

    id: str
    policy: str
    source: str
    enabled: bool
    created: int
    created_by: str
    origin: str
    kept: Mapping[str, Any] | None


class _Reader:
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

    def policy(self, one: Mapping[str, Any], number: int) -> ImportedPolicy:
        """A policy, not compiled yet."""
        refuse_unknown(one, POLICY_FIELDS, "field")
        name = _text(one, "id")
        if not _ID.fullmatch(name):
            raise CallerError(f"`id` is `{name}`, expected up to 64 letters, digits, `-` and `_`")
        kept = one.get(KEPT)
        if kept is not None:
            if not isinstance(kept, Mapping):
                raise CallerError("`kept` is no mapping")
            refuse_unknown(kept, ("plan", "assignments"), "field")
        text = _text(one, "policy")
        # the order of the document is that of their age
        created, by = self._origin(one, self._standing.policies.get(name), number)
        return ImportedPolicy(
            id=name,
            policy=text,
            source=_text(one, "source", text),
            enabled=_flag(one, "enabled", default=True),
            created=created,
            created_by=by,
            origin=_text(one, "origin", ""),
            kept=kept,
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
        known = {each.name: each for each in fields(KINDS[kind]) if each.name != "name"}
        refuse_unknown(data, known, f"field of {kind} `{name}`")
        entry = Entry(kind, name, dict(data), *self._origin(one, self._standing.entries.get(f"{kind}/{name}")))
        thing = KINDS[kind].read(entry)
        for field_name in known:
            _same_type(getattr(thing, field_name), getattr(KINDS[kind](name), field_name), field_name)
        check_group_document(entry)
        return entry

    def upload(self, section: str, one: Mapping[str, Any], _: int) -> Upload:
        """A registered filter, an uploaded metric or a controller."""
        refuse_unknown(one, [each.name for each in fields(Upload) if each.name != "kind"], "field")
        kind = CODE_SECTIONS[section]
        created, by = self._origin(one, self._standing.uploads.get(upload_key(kind, _text(one, "keyword", ""))))
        upload = Upload.from_data({**one, "kind": kind, "created": created, "created_by": by})
        default = Upload("", "", "", "", "", 0)
        for each in fields(Upload):
            _same_type(getattr(upload, each.name), getattr(default, each.name), each.name)
        for revision in upload.revisions:
            for each in fields(Revision):
                _same_type(getattr(revision, each.name), getattr(Revision(0, "", 0), each.name), each.name)
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


class _Compiler:
    """Compiles the policies of a document; those that are as they stand keep their plans."""

    def __init__(self, catalogue: Catalogue, now: Configuration, faults: Faults, longest: int) -> None:
        self._catalogue = catalogue
        self._now = now
        self._faults = faults
        self._longest = longest
        #: By account; those about no account in particular are everybody's neighbours.
        self._neighbours: dict[str, list[ExistingPolicy]] = defaultdict(list)

    def compile(self, items: Sequence[ImportedPolicy]) -> dict[str, Policy]:
        """All that can be compiled, by id."""
        found: dict[str, Policy] = {}
        new: list[ImportedPolicy] = []
        for item in items:
            standing = self._now.policies.get(item.id)
            if standing is not None and _says_the_same(item, standing):
                found[item.id] = standing
                self._settle(item.id, Plan.from_data(standing.plan))
            else:
                new.append(item)
        for item in new:
            try:
                policy, plan = self._kept(item) if item.kept is not None else self._compiled(item)
            except PolicyErrors as errors:
                self._faults.add(f"policy `{item.id}`", CallerError(errors.problems[0].message))
            except SluiceError as error:
                self._faults.add(f"policy `{item.id}`", error)
            else:
                found[item.id] = policy
                self._settle(item.id, plan)
        return {item.id: found[item.id] for item in items if item.id in found}

    def _settle(self, name: str, plan: Plan) -> None:
        self._neighbours[_account(plan)].append(ExistingPolicy(name, plan))

    def _compiled(self, item: ImportedPolicy) -> tuple[Policy, Plan]:
        if len(item.policy) > self._longest:
            raise CallerError(f"the sentence has {len(item.policy)} characters, expected at most {self._longest}")
        # which account it is about is known when it is compiled: once for that, once for its neighbours
        first = self._one(item.policy, ())
        account = _account(first.plan)
        everybody = self._neighbours if not account else ("", account)
        one = self._one(item.policy, [each for name in tuple(everybody) for each in self._neighbours[name]])
        return _policy(item, one.text, one.plan.to_data(), one.plan), one.plan

    def _one(self, text: str, existing: Sequence[ExistingPolicy]) -> Compiled:
        compiled = compile_text(text, self._catalogue, existing)
        if len(compiled) != 1:
            raise CallerError(f"{len(compiled)} sentences, expected one")
        return compiled[0]

    def _kept(self, item: ImportedPolicy) -> tuple[Policy, Plan]:
        """A policy that an actor left behind: static, with the assignments that it had."""
        assert item.kept is not None
        plan = Plan.from_data(_plain_mapping(item.kept.get("plan"), "plan"))
        if plan.dynamic or not plan.actions:
            raise CallerError("`plan` of a kept policy watches metrics, or has no action")
        given = item.kept.get("assignments")
        if not isinstance(given, list):
            raise CallerError("`assignments` of a kept policy is no list")
        for one in map(Assignment.from_data, (_plain_mapping(each, "assignments") for each in given)):
            if one.policy != item.id or not one.id.startswith(f"{item.id}."):
                raise CallerError(f"assignment `{one.id}` is not one of this policy")
            if self._catalogue.action(one.keyword) is None:
                raise CallerError(f"unknown keyword `{one.keyword}`")
        return _policy(item, item.policy, {**plan.to_data(), KEPT: given}, plan), plan


def _policy(item: ImportedPolicy, text: str, data: Mapping[str, Any], plan: Plan) -> Policy:
    return Policy(
        item.id, item.source, text, data, plan.dynamic, item.created, item.created_by, item.enabled, item.origin
    )


def _says_the_same(item: ImportedPolicy, standing: Policy) -> bool:
    there = policy_document(standing)
    mine = {each.name: getattr(item, each.name) for each in fields(ImportedPolicy)}
    defaults = {"source": standing.text, "enabled": True, "created_by": "", "origin": "", KEPT: None}
    return mine == {name: there.get(name, defaults.get(name)) for name in mine}


def _account(plan: Plan) -> str:
    """Policies about different accounts are no neighbours; those about none in particular are everybody's."""
    return plan.target.name.partition("/")[0] if plan.target.select == NAME else ""


def _key(upload: Upload) -> str:
    return upload.keyword


def _plain_mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise CallerError(f"`{name}` is no mapping")
    return value


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


def _same_type(value: Any, like: Any, name: str) -> None:
    """
    :raises CallerError: when ``value`` is of another type than a field's default
    """
    wanted: Any = Mapping if isinstance(like, Mapping) else (int, float) if isinstance(like, float) else type(like)
    if not isinstance(value, wanted) or isinstance(value, bool) is not isinstance(like, bool):
        raise CallerError(f"`{name}` is `{value}`, expected {_TYPES[type(like)]}")


_TYPES: Final[Mapping[type, str]] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    tuple: "a list",
    dict: "a mapping",
}
