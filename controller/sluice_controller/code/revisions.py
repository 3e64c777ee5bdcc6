"""Revisions of uploaded code, for filters, metrics and controllers: receive, try, commit, roll back.

Code is immutable and named by its SHA-256.  Other code is a new revision, and so is a rollback to earlier code.  The
bytes are stored in Swift, the description in Redis.  *Isolated* code is described by the request that registers it.
*Native* code describes itself: it is parsed, then tried in a child process (``sluice_controller.code.code_trial``),
and the result of the trial becomes its description.  A *filter of volumes* (a shared object) is described by its
request, checked here, and tried by the nodes that have a konnector.

Order of a change: receive the bytes, count and hash them; try native code; apply the rules of its kind; store the
bytes in Swift; commit the description, expecting the version that was read first.  A change that fails early leaves
at most unreferenced bytes in Swift.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import IO, Any, Final

from sluice_code.swift_code_store import SwiftCodeStore
from sluice_code.volume_filters import ENTRY, LARGEST, check_shared_object
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.policy_cache import CacheContents
from sluice_controller.code import code_trial
from sluice_controller.errors import check_version
from sluice_controller.validation.bodies import Body
from sluice_controller.validation.names import near_miss
from sluice_core.describe import NATIVE, NBDKIT
from sluice_core.errors import CallerError, Conflict, NotFound, PeerError
from sluice_core.messages.uploads import REVISIONS, Revision, Upload, upload_key
from sluice_core.store.records import Committed, Draft

_CHUNK: Final = 1 << 16
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class DigestMismatch(CallerError):
    """The received bytes do not have the announced digest."""

    status = 422


class CodeTooLarge(CallerError):
    """The code exceeds the limit of this cluster."""

    status = 413


@contextmanager
def receive_upload(
    source: IO[bytes], size: int, announced: str, limit: int, what: str = "code"
) -> Iterator[tuple[str, Iterator[bytes]]]:
    """SHA-256 and pieces of ``size`` bytes, after a check that they are complete and match ``announced`` (empty: any).

    :raises CallerError: 413, 422, or 400 for an invalid digest, a body that ends early or an empty one
    """
    if announced and not _DIGEST.fullmatch(announced):
        raise CallerError(f"the announced digest is `{announced}`, expected SHA-256 in lower case hexadecimal")
    if size > limit:
        raise CodeTooLarge(f"the {what} has {size} bytes, expected at most {limit}")
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
        sha256 = digest.hexdigest()
        if announced and announced != sha256:
            raise DigestMismatch(f"the {what} has SHA-256 `{sha256}`, announced was `{announced}`")
        if size == 0:
            raise CallerError(f"the body is empty, expected the {what}")
        kept.seek(0)
        yield sha256, iter(partial(kept.read, _CHUNK), b"")


#: Native code is source text written by hand; parsing it takes some hundred times its size of memory.
NATIVE_LIMIT: Final = 1 << 20
_LIMITS: Final[Mapping[str, int]] = {NATIVE: NATIVE_LIMIT, NBDKIT: LARGEST}


@dataclass(frozen=True, slots=True)
class RegisteredCode:
    """Registered code, its version, and the epoch of its last change (0: not known)."""

    upload: Upload
    version: int
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class IncomingCode:
    """``size`` bytes of code in a request; ``announced`` is their SHA-256, or empty.

    ``main`` is the class to run; empty for the class of the last revision, or the only one.
    """

    source: IO[bytes]
    size: int
    announced: str = ""
    main: str = ""


@dataclass(frozen=True)
class CodeKind:
    """Finds, receives and rolls back registered code of one kind.

    :param title: the name of the kind in errors
    :param accept: called with the present and the new upload; raises if the new one is not acceptable
    """

    kind: str
    title: str
    accept: Callable[[Backend, Upload, Upload], None]

    def find(self, backend: Backend, name: str, expected: int | None = None) -> RegisteredCode:
        """The registered code of a name.

        :raises NotFound: when there is none
        :raises PreconditionFailed: when it is not at the expected version
        """
        key = upload_key(self.kind, name)
        version = backend.store.version(f"upload/{key}")
        upload = backend.store.upload(key)
        if upload is None:
            known = uploads_of_kind(backend.policy_cache.contents(), self.kind)
            raise NotFound(f"there is no {self.title} `{name}`{near_miss(name, known)}")
        check_version(f"{self.kind} `{name}`", version, expected)
        return RegisteredCode(upload, version, backend.policy_cache.contents().upload_epochs.get(key, 0))

    def find_or_new(self, backend: Backend, name: str, by: str, expected: int | None) -> RegisteredCode:
        """Like :meth:`find`; for an unknown name and no expected version, new native code, stopped, at version 0."""
        if expected is not None or backend.store.upload(upload_key(self.kind, name)) is not None:
            return self.find(backend, name, expected)
        now = int(backend.now() * 1000)
        new = Upload(name, NATIVE, "python", "", "", 0, kind=self.kind, running=False, created=now, created_by=by)
        return RegisteredCode(new, 0)

    def put_code(self, backend: Backend, old: RegisteredCode, given: IncomingCode, draft: Draft) -> RegisteredCode:
        """Receive code and commit it as the next revision of ``old``; identical code changes nothing.

        :raises CallerError: 413, 422, or 400 with the fault in the code
        :raises PeerError: when Swift is unreachable, or a trial is not possible now
        """
        standing = old.upload
        store = code_store(backend)
        limit = backend.config.code_limit
        limit = min(limit, _LIMITS.get(standing.environment, limit))
        what = f"code of the {self.kind}"
        with receive_upload(given.source, given.size, given.announced, limit, what) as (sha256, pieces):
            if sha256 == standing.sha256 and given.main in ("", standing.main):
                return old
            code: Iterable[bytes] = pieces
            revision = Revision(0, sha256, given.size, given.main or standing.main, standing.info)
            if standing.environment == NATIVE:
                code = (b"".join(pieces),)
                wanted = replace(revision, main=given.main)
                revision = code_trial.try_native_code(backend, store, standing, code[0], wanted)
            elif standing.environment == NBDKIT:
                code = (b"".join(pieces),)
                check_shared_object(code[0], ENTRY)
            new = with_revision(standing, revision)
            self.accept(backend, standing, new)
            store.put(sha256, code, given.size)
        return commit(backend, new, old.version, draft)

    def roll_back(
        self, backend: Backend, name: str, number: int | None, by: str, expected: int | None = None
    ) -> RegisteredCode:
        """Commit the code of revision ``number`` as a new revision; None: of the one before.

        Native code is tried again: its environment may have changed, and it must be able to read what newer revisions
        have stored.  Isolated code keeps the present description of its filter.

        :raises NotFound: when the revision is not kept
        :raises CallerError: with the present fault in its code
        """
        registered = self.find(backend, name, expected)
        old = registered.upload
        target = _revision(old, number)
        store = code_store(backend)
        if old.environment == NATIVE:
            code = code_trial.fetch_code(store, target)
            target = code_trial.try_native_code(backend, store, old, code, target)
        else:
            target = replace(target, main=old.main, info=old.info)
        new = with_revision(old, target)
        self.accept(backend, old, new)
        return commit(backend, new, registered.version, Draft(by))


def uploads_of_kind(contents: CacheContents, kind: str) -> dict[str, Upload]:
    """Registered code of one kind, by name."""
    return {one.keyword: one for one in contents.uploads.values() if one.kind == kind}


def _revision(old: Upload, number: int | None) -> Revision:
    if number is None:
        if not old.revisions:
            raise NotFound(f"{old.kind} `{old.keyword}` has no earlier revision")
        return old.revisions[0]
    for one in old.revisions:
        if one.number == number:
            return one
    kept = ", ".join(str(one.number) for one in old.revisions) or "none"
    raise NotFound(f"{old.kind} `{old.keyword}` has no earlier revision {number}, kept are {kept}")


def requested_revision(data: Any) -> int | None:
    """The revision in the body of a rollback; None: the one before.

    :raises CallerError: when it is not a number
    """
    body = Body(data, "revision")
    return body.whole("revision", 1, 10**9) if body.has("revision") else None


def with_revision(old: Upload, new: Revision) -> Upload:
    """``old`` with the code of ``new`` instead of its own, which becomes an earlier revision.

    Native code contains its ``reverse``; objects may still need every reversible revision.
    """
    reverse = bool(new.info.get("reversible", False)) if old.environment == NATIVE else old.reverse
    earlier = (old.sha256, *old.earlier) if old.reverse and old.sha256 else old.earlier
    return replace(
        old.at(new),
        main=new.main,
        revision=old.revision + 1 if old.sha256 else old.revision,
        reverse=reverse,
        earlier=tuple(one for one in dict.fromkeys(earlier) if one != new.sha256),
        uploaded=0,
        uploaded_by="",
        revisions=(old.current, *old.revisions)[:REVISIONS] if old.sha256 else old.revisions,
    )


def commit(backend: Backend, new: Upload, version: int, draft: Draft) -> RegisteredCode:
    """Commit ``draft`` with ``new`` instead of the upload at ``version`` (0: none).

    :raises Conflict: when it was changed meanwhile
    """
    if new.sha256 and not new.uploaded:
        new = replace(new, uploaded=int(backend.now() * 1000), uploaded_by=draft.by)
    done = _committed(backend, new, version, replace(draft, uploads=(new,)))
    return RegisteredCode(new, done.version, done.epoch)


def drop(backend: Backend, old: RegisteredCode, draft: Draft) -> None:
    """Commit ``draft`` without the code; its bytes stay in Swift, where other clusters or objects may need them.

    :raises Conflict: when it was changed meanwhile
    """
    _committed(backend, old.upload, old.version, replace(draft, upload_drops=(old.upload.key,)))


def _committed(backend: Backend, upload: Upload, version: int, draft: Draft) -> Committed:
    try:
        return backend.store.commit(replace(draft, expect={**draft.expect, f"upload/{upload.key}": version}))
    except Conflict as error:
        raise Conflict(f"{upload.kind} `{upload.keyword}` was changed by another request meanwhile: {error}") from error


def stored_code(backend: Backend, upload: Upload) -> Iterable[bytes]:
    """The code as it was uploaded.

    :raises NotFound: when there is no code yet
    """
    if not upload.sha256:
        raise NotFound(f"{upload.kind} `{upload.keyword}` has no code yet, `PUT` it to its `data`")
    return code_store(backend).get(upload.sha256)


def code_store(backend: Backend) -> SwiftCodeStore:
    """The store of code in Swift.

    :raises PeerError: when this API has no configured store for code
    """
    if backend.code is None:
        raise PeerError("this API has no place for code, its options `code_auth_url` and following name one")
    return backend.code
