"""Rewrites one object: reads it, judges it, and writes it back at its own timestamp with an offset.

Theory of operation.

* The object is read as it is stored, below everything that interprets it: manifests, links and versions are objects
  like others.  What its metadata name is undone while it is read; the filters of the policies in force run while it
  is written, or none.
* The PUT goes to the timestamp of the data that were read, with a new offset (``sluice_core.rewrites.offsets``).
  Whatever a client writes meanwhile wins; Swift then answers 202, and the object is judged again.
* All headers that belong to the object are sent with it: type, user and system metadata, expiry, and the values that
  the container listing shows.  The check of the ETag, which is that of the plain bytes, decides whether the body
  arrived as it was.
* Filters that change the bytes for good ran when the client wrote; they are not run again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sluice_core.errors import PeerError, SluiceError
from sluice_core.rewrites.messages import PLAIN
from sluice_core.rewrites.offsets import next_offset
from sluice_filters import chain
from sluice_filters.chain import ChainEncoder
from sluice_middleware.proxy.object_handler import ObjectHandler
from sluice_middleware.proxy.upload_filters import UploadFilters
from sluice_middleware.swift.internal_api import FileLikeIter, Timestamp
from sluice_middleware.swift.proxy_api import close_if_possible, drain_and_close
from sluice_middleware.wsgi import backend_headers, encoding, sysmeta
from sluice_middleware.wsgi.policy_lookup import Target
from sluice_middleware.wsgi.response import Env, Headers, UpstreamResponse
from sluice_rewriter.swift_client import make_environment

REWRITTEN: Final = "rewritten"
UNCHANGED: Final = "unchanged"
SKIPPED: Final = "skipped"
FAILED: Final = "failed"
GONE: Final = "gone"

#: How often an object is judged again that changed while it was rewritten, or that Swift could not give or take.
_TRIES: Final = 4
_DATA_TIMESTAMP: Final = "X-Backend-Data-Timestamp"
_OVERRIDE_ETAG: Final = "x-object-sysmeta-container-update-override-etag"
_OVERRIDE_SIZE: Final = "x-object-sysmeta-container-update-override-size"
#: Headers of an answer that say nothing of the object, or that the PUT makes anew.
_NOT_CARRIED: Final = frozenset(
    (
        *("content-length", "content-range", "content-type", "etag", "last-modified", "x-timestamp"),
        *("date", "age", "server", "connection", "keep-alive", "transfer-encoding", "accept-ranges"),
        *("x-trans-id", "x-openstack-request-id"),
    )
)
_CRYPTO: Final = ("x-object-sysmeta-crypto-", "x-object-transient-sysmeta-crypto-")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an object: ``state``, the ``reason`` where it was skipped or failed, its plain ``size``."""

    state: str
    reason: str = ""
    size: int = 0


class ObjectRewriter:
    """:param handler: of a worker whose application is Swift's proxy below gatekeeper and authorization
    :param pace: is told the size of each object before it is read, and may sleep
    """

    def __init__(self, handler: ObjectHandler, pace: Callable[[int], None] = lambda size: None) -> None:
        self._handler = handler
        self._pace = pace

    def rewrite(self, target: Target, goal: str) -> Outcome:
        """Bring one object to ``goal``, one of ``sluice_core.rewrites.messages.GOALS``."""
        outcome = Outcome(FAILED, "not tried")
        for _ in range(_TRIES):
            try:
                outcome = self._attempt(target, goal)
            except SluiceError as error:
                outcome = Outcome(FAILED, " ".join(str(error).split())[:200])
            if outcome.state != FAILED:
                break
        return outcome

    def _attempt(self, target: Target, goal: str) -> Outcome:
        answer = UpstreamResponse(self._handler.app, make_environment("HEAD", *target))
        close_if_possible(answer.body)
        if answer.code == 404:
            return Outcome(GONE)
        if answer.code != 200:
            return Outcome(FAILED, f"HEAD: {answer.status}")
        if any(name.lower().startswith(_CRYPTO) for name, _ in answer.headers):
            return Outcome(SKIPPED, "encrypted by Swift")
        stored = _StoredObject(answer.headers)
        if self._is_as_wanted(target, goal, stored):
            return Outcome(UNCHANGED, size=stored.size)
        self._pace(stored.size)
        return self._copy(target, goal)

    def _is_as_wanted(self, target: Target, goal: str, stored: _StoredObject) -> bool:
        if goal == PLAIN:
            return stored.is_plain
        candidates = self._handler.lookup.candidates(target)
        if "compressibility" in candidates.asked:
            return False  # its bytes tell
        env = make_environment("PUT", *target)
        _describe_upload(env, stored)
        wanted = self._handler.upload_filters(env, target, candidates)
        return _is_stored_by(wanted, stored)

    def _copy(self, target: Target, goal: str) -> Outcome:
        """Read the object and write it back; its metadata are those of this very answer."""
        source = make_environment("GET", *target)
        answer = UpstreamResponse(self._handler.app, source)
        try:
            if answer.code == 404:
                return Outcome(GONE)
            if answer.code != 200:
                return Outcome(FAILED, f"GET: {answer.status}")
            stored = _StoredObject(answer.headers)
            if stored.chain is not None:
                self._handler.decode(source, target, answer, stored.chain)
            return self._put(target, goal, stored, answer)
        finally:
            close_if_possible(answer.body)

    def _put(self, target: Target, goal: str, stored: _StoredObject, plain: UpstreamResponse) -> Outcome:
        env = make_environment("PUT", *target)
        _describe_upload(env, stored)
        _carry_listing_values(env, stored)
        env["HTTP_X_TIMESTAMP"] = stored.next_timestamp()
        env["HTTP_ETAG"] = stored.etag
        env["swift.content_type_overridden"] = True
        env["wsgi.input"] = FileLikeIter(plain.body)
        body = None
        if goal != PLAIN:
            wanted = self._handler.upload_filters(env, target, self._handler.lookup.candidates(target))
            if _is_stored_by(wanted, stored):
                return Outcome(UNCHANGED, size=stored.size)
            if wanted is not None:
                body = _prepare(env, wanted.reversible())
                if body is None and stored.is_plain and not wanted.on_nodes:
                    return Outcome(UNCHANGED, size=stored.size)
        try:
            answer = UpstreamResponse(self._handler.app, env)
        finally:
            if body is not None:
                body.close()
        drain_and_close(answer.body)
        if answer.code == 201:
            return Outcome(REWRITTEN, size=stored.size)
        if answer.code == 202:
            return Outcome(FAILED, "changed again and again", stored.size)
        return Outcome(FAILED, f"PUT: {answer.status}", stored.size)


def _is_stored_by(wanted: UploadFilters | None, stored: _StoredObject) -> bool:
    return stored.is_plain if wanted is None else wanted.reversible().are_recorded(stored.records, stored.node_steps)


def _prepare(env: Env, wanted: UploadFilters) -> encoding.EncodedInput | None:
    """Make the upload in ``env`` one of the encoded body; None when no filter of the proxy will change it."""
    backend_headers.write_steps(env, wanted.on_nodes)
    if not wanted.on_proxy:
        return None
    encoder = ChainEncoder(wanted.on_proxy, wanted.hint)
    sampling = all(0 < one.decides_within <= encoding.BATCH for one in wanted.on_proxy)
    return encoding.prepare_upload(env, encoder, wanted.hint.size, encoder.heavy, sampling)


class _StoredObject:
    """An object as the headers of an answer describe it, which nobody changed."""

    def __init__(self, headers: Headers) -> None:
        """
        :raises SluiceError: when the metadata make no sense
        """
        self.headers = headers
        self.chain, node = sysmeta.find_chain_and_node(headers)
        self.records = () if self.chain is None else tuple(sysmeta.decode_chain(self.chain))
        self.node_steps = node
        plain = sysmeta.plain_headers(headers, self._plain_size()) if self.chain is not None else headers
        self.size = int(sysmeta.find_header(plain, "Content-Length") or 0)
        self.etag = (sysmeta.find_header(plain, "Etag") or "").strip('"')
        self.content_type = sysmeta.find_header(headers, "Content-Type")

    @property
    def is_plain(self) -> bool:
        """True when nothing has to be undone."""
        return self.chain is None and self.node_steps is None

    def _plain_size(self) -> int:
        return chain.plain_size(self.records)

    def next_timestamp(self) -> str:
        """The timestamp of the next attempt to replace these data.

        :raises PeerError: when the answer does not tell when they were written
        """
        value = sysmeta.find_header(self.headers, _DATA_TIMESTAMP)
        if not value:
            raise PeerError("an object server does not say when the data were written")
        stored = Timestamp(value)
        replaced: str = Timestamp(stored.timestamp, offset=next_offset(stored.offset)).internal
        return replaced

    def own_headers(self) -> Mapping[str, str]:
        """The headers that a PUT of this object carries, by their names in lower case."""
        return {
            name.lower(): value
            for name, value in self.headers
            if name.lower() not in _NOT_CARRIED
            and not name.lower().startswith((sysmeta.PREFIX, sysmeta.OVERRIDE_PREFIX, "x-backend-"))
        }


def _describe_upload(env: Env, stored: _StoredObject) -> None:
    """Make ``env`` the upload of the plain object."""
    for name, value in stored.own_headers().items():
        env["HTTP_" + name.upper().replace("-", "_")] = value
    env["CONTENT_LENGTH"] = str(stored.size)
    if stored.content_type:
        env["CONTENT_TYPE"] = stored.content_type


def _carry_listing_values(env: Env, stored: _StoredObject) -> None:
    """Send what the container listing shows, where that is something else than the plain object's own values."""
    given = {name.lower(): value for name, value in stored.headers}
    own: dict[str, Any] = {_OVERRIDE_ETAG: stored.etag, _OVERRIDE_SIZE: str(stored.size)}
    for name, plain in own.items():
        if name in given and given[name] != plain:
            env["HTTP_" + name.upper().replace("-", "_")] = given[name]
