"""The writes of the shim, each of which replaces exactly the object, or its metadata, that was viewed.

All of them have the timestamp of the replaced state with an offset of their own (``sluice_rewrites.offsets``), so
that any write of a client meanwhile wins, also an upload that began before and has not ended.  New content has the
time at which it was made in its metadata.  All else that clients see is sent again.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Final

from sluice_core.errors import PeerError
from sluice_middleware.bandwidth.limiter import BandwidthLimiter
from sluice_middleware.motifs.object_views import target_of
from sluice_middleware.proxy.object_handler import ObjectHandler
from sluice_middleware.proxy.upload_filters import prepare_reversible
from sluice_middleware.swift.internal_api import AccountQuotaMiddleware, ContainerQuotaMiddleware
from sluice_middleware.swift.proxy_api import ChunkReadError, drain_and_close, header_to_environ_key
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.inputs import IterableInput
from sluice_middleware.wsgi.internal_client import make_environment
from sluice_middleware.wsgi.policy_lookup import Target
from sluice_middleware.wsgi.response import App, Env, UpstreamResponse
from sluice_middleware.wsgi.stored_object import StoredObject, carry_listing_values, describe_upload
from sluice_motifs.api import ExpansionError
from sluice_motifs.storage.records import ItemView, Plain, Record

_STORED: Final = 201
_POSTED: Final = 202
_MISMATCH: Final = 422


class ChecksumMismatch(PeerError):
    """The bytes differ from the announced digest, and were not stored."""


class ObjectWrites:
    """:param handler: of Swift's proxy application below gatekeeper and authorization
    :param uploads: another such application, which stores bytes.  An application that found a device full sends no
        requests to it for a minute; objects on the device must still be read, and contracted to make room
    :param limiter: stored bytes are an upload of the account for it, as at a proxy
    :param problem: returns why the policies are unknown; empty when they are known
    """

    def __init__(
        self, handler: ObjectHandler, uploads: App, limiter: BandwidthLimiter, problem: Callable[[], str] = str
    ) -> None:
        self._handler = handler
        self._uploads = uploads
        # a client's upload of new content passes quota checks in the proxies, left of this application
        self._new_content: App = ContainerQuotaMiddleware(AccountQuotaMiddleware(uploads))
        self._limiter = limiter
        self._problem = problem

    def post(self, seen: ItemView, record: Record) -> bool:
        """Post another record with the present metadata; return False when something newer is stored."""
        stored = _stored(seen)
        env = make_environment("POST", *_target(seen))
        for name, value in stored.own_headers().items():
            env[header_to_environ_key(name)] = value
        if record.motifs:
            env[sysmeta.POSTED_MOTIF_ENV] = stored.posted_motif(record.encode())
        elif stored.motif_record:  # otherwise the record of the data file would hold
            env[sysmeta.POSTED_MOTIF_ENV] = stored.posted_motif(Record().encode())
        env["HTTP_X_TIMESTAMP"] = stored.next_post_timestamp()
        return self._send(env, _POSTED, (404, 409))

    def contract(self, seen: ItemView, record: Record) -> bool:
        """Replace ``seen`` by a contracted object; return False when something newer is stored."""
        stored = _stored(seen)
        env = self._upload(seen, record)
        carry_listing_values(env, stored, always=True)
        env["CONTENT_LENGTH"] = "0"
        env["wsgi.input"] = io.BytesIO()
        env[sysmeta.CONTRACTED_ENV] = sysmeta.encode_contracted(stored.size)
        env[sysmeta.ETAG_ENV] = stored.etag
        stored.replace_by(env)
        return self._send(env, _STORED, (202,))

    def expand(self, seen: ItemView, record: Record, pieces: Iterator[bytes]) -> bool:
        """Store the bytes of a contracted object; return False when something newer is stored."""
        stored = _stored(seen)
        env = self._upload(seen, record)
        carry_listing_values(env, stored)
        env["HTTP_ETAG"] = stored.etag
        stored.replace_by(env)
        return self._store(env, _target(seen), pieces)

    def replace(self, seen: ItemView, record: Record, pieces: Iterator[bytes]) -> bool:
        """Store new content; return False when something newer is stored.

        It passes the quotas of its container and account as a client's chunked upload does: a container or account
        above its quota accepts no more bytes.

        :raises PeerError: when a quota, or Swift, refuses it
        """
        env = self._upload(seen, record)
        del env["CONTENT_LENGTH"]
        env["HTTP_TRANSFER_ENCODING"] = "chunked"
        _stored(seen).replace_by(env, new_content=True)
        return self._store(env, _target(seen), pieces, self._new_content)

    def create(self, name: str, seen: ItemView, plain: Plain, pieces: Iterator[bytes]) -> None:
        """Store other bytes under another name, as policies say for ``seen``.

        :param plain: their size and MD5
        :raises ExpansionError: when the bytes differ from these
        """
        target = target_of(name)
        assert target is not None, name
        env = make_environment("PUT", *target)
        env["CONTENT_LENGTH"] = str(plain.size)
        env["CONTENT_TYPE"] = "application/octet-stream"
        env["HTTP_ETAG"] = plain.digest
        try:
            self._store(env, _target(seen), pieces)
        except ChecksumMismatch as error:
            raise ExpansionError(f"the copy of `{seen.name}` would have other bytes") from error

    def _upload(self, seen: ItemView, record: Record) -> Env:
        """A PUT of all that clients see of ``seen`` except its bytes."""
        env = make_environment("PUT", *_target(seen))
        describe_upload(env, _stored(seen))
        env["swift.content_type_overridden"] = True
        env.pop(sysmeta.MOTIF_ENV, None)
        if record.motifs:
            env[sysmeta.MOTIF_ENV] = record.encode()
        return env

    def _store(self, env: Env, target: Target, pieces: Iterator[bytes], uploads: App | None = None) -> bool:
        """Send the bytes, stored as policies say for ``target``.

        :param uploads: instead of the application that stores bytes
        :raises PeerError: when the policies are unknown: a missing snapshot does not mean that there are none
        """
        if self._problem():
            raise PeerError(f"policies are not known: {self._problem()}")
        source = env["wsgi.input"] = _Pieces(pieces)
        candidates = self._handler.lookup.candidates(target)
        throttled = self._limiter.throttle_upload(env, target, candidates)
        wanted = self._handler.upload_filters(env, target, candidates)
        body = None if wanted is None else prepare_reversible(env, wanted.reversible())
        try:
            return self._send(env, _STORED, (202, 412), source, uploads or self._uploads)
        finally:
            for one in (body, throttled):
                if one is not None:
                    one.close()

    def _send(
        self, env: Env, done: int, newer: tuple[int, ...], source: _Pieces | None = None, app: App | None = None
    ) -> bool:
        answer = UpstreamResponse(app or self._handler.app, env)
        drain_and_close(answer.body)
        if source is not None and source.failure is not None:
            raise source.failure
        if answer.code == done:
            return True
        if answer.code in newer:
            return False
        if answer.code == _MISMATCH:
            raise ChecksumMismatch(f"the bytes of `{env['PATH_INFO']}` have another digest than they should")
        raise PeerError(f"swift answered `{answer.status}` to a {env['REQUEST_METHOD']} of `{env['PATH_INFO']}`")


class _Pieces(IterableInput):
    """The body of a PUT; an error in making it is kept, and Swift sees a disconnected client."""

    failure: Exception | None = None

    def read(self, size: int = -1) -> bytes:
        """The next ``size`` bytes at most.

        :raises ChunkReadError: when there will be no more bytes
        """
        try:
            return super().read(size)
        except Exception as error:
            self.failure = error
            raise ChunkReadError(f"{error}") from error


def _stored(seen: ItemView) -> StoredObject:
    stored: StoredObject = seen.opaque
    return stored


def _target(seen: ItemView) -> Target:
    target = target_of(seen.name)
    assert target is not None, seen.name
    return target
