"""Files beside the code of registered filters: their description, their data, and the filters that use them.

A dependency is not code by itself.  *Deploying* it for a target attaches it to the named filters, or else to
the registered filters that are deployed there; one upload serves all tenants, so all of them have the file.
Nodes get a filter together with its files (``Upload.dependencies``: name → SHA-256), as one change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, Final

from sluice_controller.catalog import entries, reference_guards
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import RecordKind, StoredRecord
from sluice_controller.catalog.reference_guards import InUse
from sluice_controller.code.filters import RESERVED
from sluice_controller.code.revisions import code_store, receive_upload, uploads_of_kind
from sluice_controller.errors import check_version
from sluice_controller.policies import deployments
from sluice_controller.validation.bodies import Body
from sluice_controller.validation.names import near_miss, new_name
from sluice_core.describe import NATIVE, NBDKIT, PROCESS, WASM
from sluice_core.errors import CallerError, Conflict, NotFound
from sluice_core.messages.policies import Target
from sluice_core.messages.registry import DEPENDENCY, Dependency
from sluice_core.messages.uploads import FILTER_CODE, Upload
from sluice_core.store.records import Draft

FIELDS: Final = ("name", "help")
_DEPENDENCIES: Final = RecordKind(Dependency, DEPENDENCY, "dependency")
#: Filters of these environments consist of one file.
_ALONE: Final = (WASM, PROCESS, NATIVE, NBDKIT)


@dataclass(frozen=True, slots=True)
class UsedDependency:
    """A dependency and the filters that use it."""

    found: StoredRecord[Dependency]
    filters: tuple[str, ...]

    @property
    def version(self) -> int:
        """The version of its entry."""
        return self.found.version


def list_all(backend: Backend) -> dict[str, UsedDependency]:
    """All dependencies by name."""
    contents = backend.policy_cache.contents()
    stored = _DEPENDENCIES.list_all(backend)
    return {name: UsedDependency(one, _users(name, contents.uploads.values())) for name, one in stored.items()}


def find(backend: Backend, name: str, expected: int | None = None) -> UsedDependency:
    """One dependency.

    :raises NotFound: when there is none
    """
    found = _DEPENDENCIES.find(backend, name, expected)
    return UsedDependency(found, _users(name, backend.policy_cache.contents().uploads.values()))


def create(backend: Backend, data: Any, by: str) -> UsedDependency:
    """Create a dependency without data.

    :raises Conflict: when the name is taken
    """
    body = Body(data, *FIELDS)
    name = new_name(body.text("name"))
    if name in RESERVED or name.startswith(".") or not name.isprintable():
        raise CallerError(f"`{name}` cannot be the name of a file here, expected printable text without a dot in front")
    return UsedDependency(entries.create(backend, Dependency(name, help=body.text("help", "")), by), ())


def update(backend: Backend, name: str, data: Any, by: str, expected: int | None = None) -> UsedDependency:
    """Change the description."""
    body = Body(data, *FIELDS)
    asked = body.text("name", name)
    if asked != name:
        raise CallerError(f"`name` is `{asked}`, but a dependency keeps its name `{name}`")
    old = find(backend, name)
    new = replace(old.found.record, help=body.text("help", old.found.record.help))
    check_version(f"dependency `{name}`", old.found.version, expected)
    return UsedDependency(entries.update(backend, old.found, new, by), old.filters)


def delete(backend: Backend, name: str, by: str, force: bool, expected: int | None = None) -> None:
    """Delete it; with ``force`` also while filters use it, which then lack it.

    :raises Conflict: naming the filters
    """

    def once(seen: dict[str, int]) -> None:
        old = find(backend, name, expected)
        if old.filters and not force:
            raise InUse(f"filters {_listed(old.filters)} use dependency `{name}`, undeploy it or use `force`")
        gone = Draft(by, entry_drops=(f"{DEPENDENCY}/{name}",), expect=seen)
        _commit(backend, old.found, gone, old.filters, "")

    # The filters that use it are changed too, so no other filter may start to use it meanwhile, also with force.
    reference_guards.unless_used(backend, f"entry/{DEPENDENCY}/{name}", once)


def put_data(
    backend: Backend, name: str, source: IO[bytes], size: int, announced: str, by: str, expected: int | None = None
) -> UsedDependency:
    """Store its data; the filters that use it get the new data with the same change.

    :raises CallerError: see :func:`sluice_controller.code.revisions.receive_upload`
    """
    old = find(backend, name, expected)
    shelf = code_store(backend)
    with receive_upload(source, size, announced, backend.config.code_limit, "data of the dependency") as (
        sha256,
        pieces,
    ):
        shelf.put(sha256, pieces, size)
    dependency = old.found.record
    if sha256 == dependency.sha256:
        return old
    new = replace(
        dependency,
        sha256=sha256,
        size=size,
        revision=dependency.revision + 1 if dependency.sha256 else dependency.revision,
    )
    draft = Draft(by, entries=(new.entry(old.found.created, old.found.created_by),))
    version = _commit(backend, old.found, draft, old.filters, sha256)
    return UsedDependency(replace(old.found, record=new, version=version), old.filters)


def get_data(backend: Backend, name: str) -> tuple[Dependency, Iterable[bytes]]:
    """Its data, unchanged.

    :raises NotFound: when there are no data yet
    """
    dependency = find(backend, name).found.record
    if not dependency.sha256:
        raise NotFound(f"dependency `{name}` has no data yet, `PUT` them to its `data`")
    return dependency, code_store(backend).get(dependency.sha256)


def deployed(backend: Backend, target: Target) -> dict[str, tuple[str, ...]]:
    """Name of each dependency that a filter deployed at ``target`` uses → those filters."""
    users: dict[str, list[str]] = {}
    for upload in _uploads_at(backend, target):
        for name in upload.dependencies:
            users.setdefault(name, []).append(upload.keyword)
    return {name: tuple(filters) for name, filters in users.items()}


def deploy(backend: Backend, target: Target, name: str, data: Any, by: str) -> UsedDependency:
    """Attach it to the filters in the body, by default to those deployed at ``target``.

    :raises Conflict: when it has no data, or the filter's environment takes only one file
    :raises NotFound: when a filter does not exist, or none is deployed there
    """
    used = find(backend, name)
    sha256 = used.found.record.sha256
    if not sha256:
        raise Conflict(f"dependency `{name}` has no data yet, `PUT` them to its `data` first")
    chosen = _chosen(backend, target, data)
    for upload in chosen:
        if upload.environment in _ALONE:
            raise Conflict(f"filter `{upload.keyword}` runs in `{upload.environment}`, which takes one file alone")
    missing = [upload.keyword for upload in chosen if upload.dependencies.get(name) != sha256]
    if missing:
        _commit(backend, used.found, Draft(by), missing, sha256)
    return find(backend, name)


def undeploy(backend: Backend, target: Target, name: str, data: Any, by: str) -> UsedDependency:
    """Detach it from the filters in the body, by default from those deployed at ``target``.

    :raises NotFound: when none of them uses it
    """
    used = find(backend, name)
    users = [upload.keyword for upload in _chosen(backend, target, data) if name in upload.dependencies]
    if not users:
        raise NotFound(f"dependency `{name}` is used by none of these filters")
    _commit(backend, used.found, Draft(by), users, "")
    return find(backend, name)


def _chosen(backend: Backend, target: Target, data: Any) -> list[Upload]:
    body = Body(data, "filters")
    if not body.has("filters"):
        deployed_filters = list(_uploads_at(backend, target))
        if not deployed_filters:
            raise NotFound(f"no registered filter is deployed at `{target.name}`, expected some in `filters`")
        return deployed_filters
    uploads = uploads_of_kind(backend.policy_cache.contents(), FILTER_CODE)
    keywords = body.texts("filters")
    unknown = [one for one in keywords if one not in uploads]
    if unknown or not keywords:
        raise NotFound(_unregistered(unknown, uploads) if unknown else "`filters` names none")
    return [uploads[one] for one in dict.fromkeys(keywords)]


def _uploads_at(backend: Backend, target: Target) -> Iterator[Upload]:
    contents = backend.policy_cache.contents()
    keywords = dict.fromkeys(one.action.keyword for one in deployments.list_deployed(contents, target))
    return (contents.uploads[one] for one in keywords if one in contents.uploads)


def _users(name: str, uploads: Iterable[Upload]) -> tuple[str, ...]:
    return tuple(sorted(one.keyword for one in uploads if name in one.dependencies))


def _commit(backend: Backend, old: StoredRecord[Dependency], draft: Draft, keywords: Iterable[str], sha256: str) -> int:
    """Commit ``draft`` with filters that use ``sha256`` of dependency ``old`` (empty: none); return the new version."""
    name = old.record.name
    edited, expect = [], {**draft.expect, f"entry/{DEPENDENCY}/{name}": old.version}
    for keyword in keywords:
        # The version is read before the filter that it guards.
        expect[f"upload/{keyword}"] = backend.store.version(f"upload/{keyword}")
        upload = backend.store.upload(keyword)
        if upload is None:
            raise Conflict(f"filter `{keyword}` was unregistered meanwhile")
        used = {key: data for key, data in {**upload.dependencies, name: sha256}.items() if data or key != name}
        edited.append(replace(upload, dependencies=used, revision=upload.revision + 1))
    return backend.store.commit(replace(draft, uploads=tuple(edited), expect=expect)).version


def _unregistered(unknown: Sequence[str], uploads: Iterable[str]) -> str:
    return f"there is no registered filter {_listed(unknown)}{near_miss(unknown[0], uploads)}"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{one}`" for one in words)
