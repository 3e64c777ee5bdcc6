"""Filters that are registered at run time: their descriptions, and the conditions for changes and deletions.

A registration describes an isolated filter or one of volumes; its code follows by ``PUT /filters/{id}/data``.  A native
filter is registered by its keyword alone, and its code contains the rest.  Nodes receive a filter once it has code.
Filters that are installed with the software of the nodes can be used and shown, and never change here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from sluice_controller.catalog import reference_guards
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.reference_guards import InUse, name_some
from sluice_controller.catalog.vocabulary import filter_info
from sluice_controller.code import revisions
from sluice_controller.code.revisions import CodeKind, IncomingCode, RegisteredCode
from sluice_controller.errors import check_version
from sluice_controller.validation.bodies import ANY_LENGTH, Body
from sluice_core.describe import ENVIRONMENTS, FILTER, NATIVE, NBDKIT, TRIED, ActionInfo
from sluice_core.errors import CallerError, Conflict
from sluice_core.messages.registry import ACTIVATION, ALIAS
from sluice_core.messages.uploads import FILTER_CODE, Upload
from sluice_core.store.records import Draft
from sluice_dsl.catalogue.base import Catalogue
from sluice_filters.trial.native import declared_fields
from sluice_volumes.operations import RECORDS

#: The fields of a registration; ``capabilities`` are fields of ``describe.ActionInfo``.
FIELDS: Final = (
    "keyword",
    "environment",
    "language",
    "main",
    "reverse",
    "capabilities",
    "parameters",
    "help",
    "self_service",
)
#: The fields that the code of a native filter contains.
SAID_BY_CODE: Final = ("reverse", "capabilities", "parameters", "help")
#: The one language of native code.
PYTHON: Final = "python"
#: Words in the paths below ``/filters``.
RESERVED: Final = frozenset({"dependencies", "deploy", "undeploy"})


def described_filter(data: Any, old: Upload) -> Upload:
    """The filter that ``data``, a body, describes; missing fields are taken from ``old``.

    :raises CallerError: when ``data`` is not valid
    """
    body = Body(data, *FIELDS)
    words: dict[str, Any] = {
        name: body.text(name, getattr(old, name), ANY_LENGTH) for name in ("keyword", "language", "main")
    }
    environment = body.one_of("environment", ENVIRONMENTS, old.environment)
    if not words["keyword"]:
        raise CallerError("`keyword` is missing, expected the filter's word in sentences")
    if words["keyword"] in RESERVED:
        raise CallerError(f"`keyword` is `{words['keyword']}`, which is reserved for paths of the API")
    if environment == NATIVE:
        _refuse_said_by_code(body, words)
    flags: dict[str, Any] = {name: body.flag(name, getattr(old, name)) for name in ("reverse", "self_service")}
    upload = replace(old, environment=environment, info=_info(data, body, old), **words, **flags)
    if environment != NATIVE:
        filter_info(upload)
    return upload


def _refuse_said_by_code(body: Body, words: dict[str, str]) -> None:
    said = [name for name in SAID_BY_CODE if body.has(name)]
    if said:
        named = ", ".join(f"`{one}`" for one in said)
        raise CallerError(f"{named}: defined by the code of a native filter")
    words["language"] = words["language"] or PYTHON
    if words["language"] != PYTHON:
        raise CallerError(f"`language` is `{words['language']}`, expected `{PYTHON}` for native code")
    keyword = words["keyword"]
    if not keyword.replace("_", "").isalnum() or keyword != keyword.lower() or not keyword.isascii():
        raise CallerError(f"keyword `{keyword}`, expected lower case letters, digits and `_`")


def _info(data: Mapping[str, Any], body: Body, old: Upload) -> dict[str, Any]:
    info = dict(old.info)
    capabilities = data.get("capabilities", {})
    if not isinstance(capabilities, Mapping):
        raise CallerError(f"`capabilities` is `{capabilities}`, expected an object")
    info.update(capabilities)
    if body.has("parameters"):
        parameters = data["parameters"]
        if not isinstance(parameters, list) or not all(isinstance(one, Mapping) for one in parameters):
            raise CallerError("`parameters` is not a list of objects")
        info["parameters"] = [dict(one) for one in parameters]
    if body.has("help"):
        info["help"] = body.text("help", "", ANY_LENGTH)
    return info


def register(backend: Backend, body: Any, by: str) -> RegisteredCode:
    """Register a new filter without code.

    :raises CallerError: when the description is not valid, or the keyword is that of a native filter
    :raises Conflict: when the keyword is registered already
    """
    blank = Upload("", "", "", "", "", 0, created=int(backend.now() * 1000), created_by=by)
    upload = described_filter(body, blank)
    _refuse_taken(backend, upload.keyword)
    if backend.store.upload(upload.keyword) is not None:
        raise Conflict(f"filter `{upload.keyword}` is registered already")
    return revisions.commit(backend, upload, 0, Draft(by, expect={f"entry/{ALIAS}/{upload.keyword}": 0}))


def _refuse_taken(backend: Backend, keyword: str) -> None:
    if keyword in backend.native.actions:
        raise Conflict(f"`{keyword}` is a keyword of the language already")
    if keyword in backend.policy_cache.contents().vocabulary.actions:
        raise Conflict(f"`{keyword}` is an alias of a filter already")


def is_administrators(body: Any) -> bool:
    """Whether a registration is for code that only administrators may upload."""
    return isinstance(body, Mapping) and body.get("environment") in TRIED


def update_description(backend: Backend, keyword: str, body: Any, by: str, expected: int | None) -> RegisteredCode:
    """Change the description; code and revision stay.

    :raises CallerError: when it is not valid, or makes stored objects unreadable
    """
    old = find(backend, keyword)
    _refuse_other_nature(old.upload, body)
    new = described_filter(body, old.upload)
    if new.keyword != keyword:
        raise CallerError(f"`keyword` is `{new.keyword}`, but a filter keeps its keyword `{keyword}`")
    check_version(f"filter `{keyword}`", old.version, expected)
    _refuse_irreversible(old.upload, new)
    return revisions.commit(backend, new, old.version, Draft(by))


def _refuse_other_nature(old: Upload, body: Any) -> None:
    """Refuse another environment for existing code, and another class for native code, which was tried with one."""
    if not old.sha256 or not isinstance(body, Mapping):
        return
    environment, main = body.get("environment", old.environment), body.get("main", old.main)
    if {old.environment, environment} & set(TRIED) and old.environment != environment:
        raise Conflict(f"filter `{old.keyword}` has code for `{old.environment}`, so its environment stays")
    if old.environment == NATIVE and old.main != main:
        raise Conflict(f"`main` of native code is tried with it: `PUT /filters/{old.keyword}/data?main={main}`")


def _refuse_irreversible(old: Upload, new: Upload) -> None:
    if old.reverse and not new.reverse and old.sha256:
        what = "volumes" if old.environment == NBDKIT else "objects"
        raise Conflict(f"{what} may be stored through filter `{old.keyword}`, so it must stay reversible")


def put_code(
    backend: Backend, keyword: str, given: IncomingCode, by: str, expected: int | None = None
) -> RegisteredCode:
    """Receive code; nothing is stored unless it is complete and usable.

    :raises CallerError: 413, 422, or 400 with the fault in the code
    """
    old = find(backend, keyword, expected)
    _refuse_taken(backend, keyword)
    return _FILTERS.put_code(backend, old, given, Draft(by))


def _accept(backend: Backend, old: Upload, new: Upload) -> None:
    info = filter_info(new)
    _refuse_irreversible(old, new)
    if new.environment in TRIED:
        _refuse_unusable(backend, info)


_FILTERS: Final = CodeKind(FILTER_CODE, "registered filter", _accept)
find = _FILTERS.find
roll_back = _FILTERS.roll_back


def _refuse_unusable(backend: Backend, info: ActionInfo) -> None:
    """Refuse code that no longer accepts the parameters in policies.

    :raises Conflict: naming a policy
    """
    for cached in backend.policy_cache.contents().ordered:
        for action in cached.plan.actions:
            if action.keyword != info.keyword or action.verb != "set":
                continue
            strange = [name for name in action.params if info.parameter(name) is None]
            if strange or action.place not in info.places:
                what = f"parameter `{strange[0]}`" if strange else f"place `{action.place}`"
                raise Conflict(f"the code does not have {what}, which policy `{cached.policy.id}` uses")


def unregister(backend: Backend, keyword: str, by: str, force: bool, expected: int | None = None) -> None:
    """Delete a filter; its code stays in Swift, where objects of other clusters may still need it.

    :raises Conflict: when policies use it, a volume is stored through it, or objects may need it to be read and
        ``force`` is not given
    """
    reference_guards.unless_used(
        backend, f"upload/{keyword}", lambda seen: _unregister(backend, keyword, by, force, expected, seen)
    )


def _unregister(
    backend: Backend, keyword: str, by: str, force: bool, expected: int | None, seen: dict[str, int]
) -> None:
    old = find(backend, keyword, expected)
    contents = backend.policy_cache.contents()
    users = [one.policy.id for one in contents.ordered if keyword in {each.keyword for each in one.plan.actions}]
    if users:
        raise InUse(f"policies {name_some(users, 3)} use filter `{keyword}`, delete them first")
    aliases = [f"`{alias}`" for alias, one in contents.vocabulary.actions.items() if one.keyword == keyword]
    if aliases and not force:
        raise InUse(f"aliases {', '.join(aliases)} stand for filter `{keyword}`, delete them or use `force`")
    if old.upload.environment == NBDKIT:
        _refuse_stored(backend, keyword)
    elif old.upload.reverse and old.upload.sha256 and not force:
        raise InUse(f"objects stored through filter `{keyword}` would become unreadable, `force=true` allows it")
    # Its activation is deleted too, so that a later filter of that name does not use the service.
    service = f"{ACTIVATION}/{keyword}"
    gone = (service,) if service in contents.entries else ()
    revisions.drop(backend, old, Draft(by, entry_drops=gone, expect=seen))


def _refuse_stored(backend: Backend, keyword: str) -> None:
    """
    :raises InUse: naming the volumes stored through the filter, which cannot be attached without it
    """
    records = backend.store.run(RECORDS.read_all(backend.store.keys))
    users = [name for name, one in sorted(records.items()) if any(step.keyword == keyword for step in one.stack)]
    if users:
        raise InUse(f"volumes {name_some(users, 3)} are stored through filter `{keyword}`, delete them first")


def list_usable(catalogue: Catalogue) -> dict[str, ActionInfo]:
    """The filters that policies can set, installed and registered ones, by keyword."""
    return {word: one for word, one in catalogue.actions.items() if one.available and one.kind == FILTER}


def find_installed(backend: Backend, keyword: str) -> Upload | None:
    """An installed filter in the form of a registration without code; its revision is its version.

    None if there is none with this keyword, or a filter is registered under it.
    """
    contents = backend.policy_cache.contents()
    catalogue = backend.vocabulary(contents)
    info = list_usable(catalogue).get(keyword)
    if info is None or keyword in contents.uploads:
        return None
    return Upload(
        keyword,
        info.environment,
        PYTHON,
        getattr(catalogue.trials.get(keyword), "__name__", ""),
        "",
        0,
        revision=info.version,
        reverse=info.reversible,
        info=declared_fields(info),
        self_service=keyword in backend.config.self_service_words,
    )
