"""Filters that are registered at run time: their description in Redis, their code in Swift.

Registering says what the filter is; its code follows by ``PUT /filters/{id}/data``.  Code is immutable
and named by its SHA-256; other code is another revision.  Nodes get to know a filter once it has code.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import IO, Any, Final

from sluice_controller.backend import Backend
from sluice_controller.failures import PreconditionFailed
from sluice_controller.parameters import refuse_unknown
from sluice_core.code_shelf import CodeShelf
from sluice_core.describe import ENVIRONMENTS, NATIVE
from sluice_core.errors import CallerError, Conflict, NotFound, PeerError
from sluice_core.messages import Upload
from sluice_core.store import Draft
from sluice_sandbox.api import info_of

#: What a registration may say; ``capabilities`` are fields of ``describe.ActionInfo``.
FIELDS: Final = ("keyword", "environment", "language", "main", "reverse", "capabilities", "parameters", "help")
#: Words that the paths below ``/filters`` use themselves.
RESERVED: Final = frozenset({"dependencies", "deploy", "undeploy"})
_CHUNK: Final = 1 << 16
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class WrongDigest(CallerError):
    """What came is not what was announced."""

    status = 422


class TooLarge(CallerError):
    """More code than this cluster takes."""

    status = 413


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
    reverse = body.get("reverse", old.reverse if old else False)
    if not isinstance(reverse, bool):
        raise CallerError(f"`reverse` is `{reverse}`, expected true or false")
    upload = Upload(
        words["keyword"],
        words["environment"],
        words["language"],
        words["main"],
        sha256=old.sha256 if old else "",
        size=old.size if old else 0,
        revision=old.revision if old else 1,
        reverse=reverse,
        info=_info(body, old),
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
    if announced and not _DIGEST.fullmatch(announced):
        raise CallerError(f"the announced digest is `{announced}`, expected SHA-256 in lower case hexadecimal")
    if size > backend.config.code_limit:
        raise TooLarge(f"the code has {size} bytes, expected at most {backend.config.code_limit}")
    digest = hashlib.sha256()
    with tempfile.TemporaryFile() as kept:
        remaining = size
        while remaining:
            piece = source.read(min(_CHUNK, remaining))
            if not piece:
                raise CallerError(f"the body ended {remaining} bytes early")
            digest.update(piece)
            kept.write(piece)
            remaining -= len(piece)
        found = digest.hexdigest()
        if announced and announced != found:
            raise WrongDigest(f"the code has SHA-256 `{found}`, announced was `{announced}`")
        if size == 0:
            raise CallerError("the body is empty, expected the code of the filter")
        kept.seek(0)
        shelf.put(found, _pieces(kept), size)
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
    users = [one.policy.id for one in backend.shelf.contents().ordered if keyword in _keywords(one.plan)]
    if users:
        more = f" and {len(users) - 3} more" if len(users) > 3 else ""
        raise Conflict(f"policies {', '.join(users[:3])}{more} use filter `{keyword}`, delete them first")
    if upload.reverse and upload.sha256 and not force:
        raise Conflict(f"objects stored through filter `{keyword}` could not be read any more, `force=true` insists")
    backend.store.commit(Draft(by, upload_drops=(keyword,), expect={f"upload/{keyword}": version}))


def shelf_of(backend: Backend) -> CodeShelf:
    """Where code lies.

    :raises PeerError: when this API was given no place for it
    """
    if backend.code is None:
        raise PeerError("this API has no place for code, its options `code_auth_url` and following name one")
    return backend.code


def _keywords(plan: Any) -> set[str]:
    return {action.keyword for action in plan.actions}


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(_CHUNK):
        yield piece
