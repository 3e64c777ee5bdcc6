"""Filters that are registered at run time: their description in Redis, their code in Swift.

Registering says what the filter is; its code follows by ``PUT /filters/{id}/data``.  Code is immutable
and named by its SHA-256; other code is another revision.  Nodes get to know a filter once it has code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import IO, Any, Final

from sluice_controller.backend import Backend
from sluice_controller.failures import PreconditionFailed
from sluice_controller.intake import received
from sluice_controller.parameters import refuse_unknown
from sluice_core.code_shelf import CodeShelf
from sluice_core.describe import ENVIRONMENTS, NATIVE
from sluice_core.errors import CallerError, Conflict, NotFound, PeerError
from sluice_core.messages import Upload
from sluice_core.registry import ACTIVATION
from sluice_core.store import Draft
from sluice_sandbox.api import info_of

#: What a registration may say; ``capabilities`` are fields of ``describe.ActionInfo``.
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
#: Words that the paths below ``/filters`` use themselves.
RESERVED: Final = frozenset({"dependencies", "deploy", "undeploy"})


def described(body: Any, by: str, now: float, old: Upload | None = None) -> Upload:
    """The filter that ``body`` describes; what it does not say is taken from ``old``.

    :raises CallerError: for everything that is wrong with it
    """
    if not isinstance(body, Mapping):
        raise CallerError("the body is no object, expected the description of a filter")
    refuse_unknown(body, FIELDS, "field")
    words = {name: body.get(name, getattr(old, name, "")) for name in ("keyword", "environment", "language", "main")}
    for name, value in words.items():
        if not isinstance(value, str):
            raise CallerError(f"`{name}` is `{value}`, expected a text")
    isolated = [one for one in ENVIRONMENTS if one != NATIVE]
    if words["environment"] not in isolated:
        raise CallerError(f"`environment` is `{words['environment']}`, expected {', '.join(isolated)}")
    if not words["keyword"]:
        raise CallerError("`keyword` is missing, expected the word that sentences use")
    if words["keyword"] in RESERVED:
        raise CallerError(f"`keyword` is `{words['keyword']}`, which is a word of the API itself")
    flags = {name: body.get(name, getattr(old, name, False)) for name in ("reverse", "self_service")}
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise CallerError(f"`{name}` is `{value}`, expected true or false")
    upload = Upload(
        words["keyword"],
        words["environment"],
        words["language"],
        words["main"],
        sha256=old.sha256 if old else "",
        size=old.size if old else 0,
        revision=old.revision if old else 1,
        **flags,
        info=_info(body, old),
        dependencies=old.dependencies if old else {},
        earlier=old.earlier if old else (),
        created=old.created if old else int(now * 1000),
        created_by=old.created_by if old else by,
    )
    info_of(upload)
    return upload


def _info(body: Mapping[str, Any], old: Upload | None) -> dict[str, Any]:
    info = dict(old.info) if old else {}
    capabilities = body.get("capabilities", {})
    if not isinstance(capabilities, Mapping):
        raise CallerError(f"`capabilities` is `{capabilities}`, expected an object")
    info.update(capabilities)
    parameters = body.get("parameters")
    if parameters is not None:
        if not isinstance(parameters, list) or not all(isinstance(one, Mapping) for one in parameters):
            raise CallerError("`parameters` is no list of objects")
        info["parameters"] = [dict(one) for one in parameters]
    if "help" in body:
        if not isinstance(body["help"], str):
            raise CallerError(f"`help` is `{body['help']}`, expected a text")
        info["help"] = body["help"]
    return info


def register(backend: Backend, body: Any, by: str) -> tuple[Upload, int]:
    """A new filter without code; it and its version.

    :raises CallerError: when the description is wrong, or the keyword is taken by a native filter
    :raises Conflict: when one of this keyword is registered
    """
    upload = described(body, by, backend.now())
    if upload.keyword in backend.native.actions:
        raise Conflict(f"`{upload.keyword}` is a keyword of the language already")
    if upload.keyword in backend.shelf.contents().words.actions:
        raise Conflict(f"`{upload.keyword}` is an alias of a filter already")
    if backend.store.upload(upload.keyword) is not None:
        raise Conflict(f"filter `{upload.keyword}` is registered already")
    done = backend.store.commit(Draft(by, uploads=(upload,), expect={f"upload/{upload.keyword}": 0}))
    return upload, done.version


def find(backend: Backend, keyword: str, expected: int | None = None) -> tuple[Upload, int]:
    """The filter registered as ``keyword``, and its version.

    :raises NotFound: when there is none
    :raises PreconditionFailed: when it is not at the expected version
    """
    version = backend.store.version(f"upload/{keyword}")
    upload = backend.store.upload(keyword)
    if upload is None:
        raise NotFound(f"there is no registered filter `{keyword}`")
    if expected is not None and expected != version:
        raise PreconditionFailed(f"filter `{keyword}` is at version {version}, `If-Match` names {expected}")
    return upload, version


def describe_anew(backend: Backend, keyword: str, body: Any, by: str, expected: int | None) -> tuple[Upload, int]:
    """Change the description; code and revision stay.

    :raises CallerError: when it would be wrong, or would make stored objects unreadable
    """
    old, version = find(backend, keyword, expected)
    new = described(body, by, backend.now(), old)
    if new.keyword != keyword:
        raise CallerError(f"`keyword` is `{new.keyword}`, but a filter keeps its keyword `{keyword}`")
    if old.reverse and not new.reverse and old.sha256:
        raise Conflict(f"objects may be stored through filter `{keyword}`, so it must stay reversible")
    done = backend.store.commit(Draft(by, uploads=(new,), expect={f"upload/{keyword}": version}))
    return new, done.version


def put_code(
    backend: Backend, keyword: str, source: IO[bytes], size: int, announced: str, by: str, expected: int | None = None
) -> tuple[Upload, int]:
    """Take ``size`` bytes of code; nothing is kept unless all of it is there and its digest is the announced one.

    :raises CallerError: 413, 422, or 400 for a digest that is none
    """
    old, version = find(backend, keyword, expected)
    shelf = shelf_of(backend)
    with received(source, size, announced, backend.config.code_limit, "code of the filter") as (found, pieces):
        shelf.put(found, pieces, size)
    if found == old.sha256:
        return old, version
    earlier = (old.sha256, *old.earlier) if old.reverse and old.sha256 else old.earlier
    new = replace(
        old,
        sha256=found,
        size=size,
        revision=old.revision + 1 if old.sha256 else old.revision,
        earlier=tuple(one for one in dict.fromkeys(earlier) if one != found),
    )
    done = backend.store.commit(Draft(by, uploads=(new,), expect={f"upload/{keyword}": version}))
    return new, done.version


def get_code(backend: Backend, keyword: str) -> tuple[Upload, Iterable[bytes]]:
    """The code as it was registered.

    :raises NotFound: when the filter has none yet
    """
    upload, _ = find(backend, keyword)
    if not upload.sha256:
        raise NotFound(f"filter `{keyword}` has no code yet, `PUT /filters/{keyword}/data` it")
    return upload, shelf_of(backend).get(upload.sha256)


def unregister(backend: Backend, keyword: str, by: str, force: bool, expected: int | None = None) -> None:
    """Forget a filter; its code stays in Swift, where objects of other clusters may still need it.

    :raises Conflict: when policies name it, or objects may need it to be read and ``force`` is not given
    """
    upload, version = find(backend, keyword, expected)
    contents = backend.shelf.contents()
    users = [one.policy.id for one in contents.ordered if keyword in _keywords(one.plan)]
    if users:
        more = f" and {len(users) - 3} more" if len(users) > 3 else ""
        raise Conflict(f"policies {', '.join(users[:3])}{more} use filter `{keyword}`, delete them first")
    aliases = [f"`{alias}`" for alias, one in contents.words.actions.items() if one.keyword == keyword]
    if aliases and not force:
        raise Conflict(f"aliases {', '.join(aliases)} stand for filter `{keyword}`, delete them or insist with `force`")
    if upload.reverse and upload.sha256 and not force:
        raise Conflict(f"objects stored through filter `{keyword}` could not be read any more, `force=true` insists")
    # the service that activates it goes with it, lest the next filter of that name be activated there
    service = f"{ACTIVATION}/{keyword}"
    gone = (service,) if service in contents.entries else ()
    draft = Draft(by, upload_drops=(keyword,), entry_drops=gone, expect={f"upload/{keyword}": version})
    backend.store.commit(draft)


def shelf_of(backend: Backend) -> CodeShelf:
    """Where code lies.

    :raises PeerError: when this API was given no place for it
    """
    if backend.code is None:
        raise PeerError("this API has no place for code, its options `code_auth_url` and following name one")
    return backend.code


def _keywords(plan: Any) -> set[str]:
    return {action.keyword for action in plan.actions}
