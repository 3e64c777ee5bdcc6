"""Rewrites one object: reads it, decides about it, and writes it back at its own timestamp with an offset.

Theory of operation.

* The object is read as it is stored, below all middlewares that interpret it: manifests, links and versions are objects
  like others.  The filters in its metadata are decoded while it is read; the filters of the policies in force run while
  it is written, or none; or only encryption is done again (:mod:`key_change`).
* The PUT goes to the timestamp of the data that were read, with a new offset (``sluice_rewrites.offsets``).
    A client's write meanwhile wins; Swift then answers 202, and the object is rewritten again if necessary.
* All headers that belong to the object are sent with it: type, user and system metadata, expiry, and the values that
    the container listing shows.  The check of the ETag, which is that of the plain bytes, verifies that the body
    arrived unchanged.
* Filters that change the bytes irreversibly ran when the client wrote; they are not run again.
* The policies of a contracted object were applied to the object; they are not applied to its copies again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sluice_core.errors import SluiceError
from sluice_filters.api import CorruptData
from sluice_filters.key_ring import MissingKey
from sluice_middleware.proxy.object_handler import ObjectHandler
from sluice_middleware.proxy.upload_filters import UploadFilters, prepare_reversible
from sluice_middleware.swift import green
from sluice_middleware.swift.internal_api import FileLikeIter, Timeout
from sluice_middleware.swift.proxy_api import close_if_possible, drain_and_close
from sluice_middleware.wsgi import backend_headers, encoding
from sluice_middleware.wsgi.encoding import EncodedInput
from sluice_middleware.wsgi.inputs import RewoundInput
from sluice_middleware.wsgi.internal_client import make_environment
from sluice_middleware.wsgi.policy_lookup import Target
from sluice_middleware.wsgi.response import Env, UpstreamResponse
from sluice_middleware.wsgi.stored_object import StoredObject, carry_listing_values, describe_upload
from sluice_rewriter.key_change import describe_encrypted_upload, has_old_key
from sluice_rewrites.accounts import is_copies_account
from sluice_rewrites.messages import KEY, PLAIN

log = logging.getLogger(__name__)

REWRITTEN: Final = "rewritten"
UNCHANGED: Final = "unchanged"
SKIPPED: Final = "skipped"
FAILED: Final = "failed"
GONE: Final = "gone"
#: The object was not started: the job must not continue here for now.
STOPPED: Final = "stopped"

#: How often an object is tried again that changed while it was rewritten, or that Swift could not read or write.
_TRIES: Final = 4
#: The reasons of failures that are counted; other error texts are not counted one by one.
_REASONS: Final[Mapping[type[SluiceError], str]] = {
    CorruptData: "damaged",
    MissingKey: "its key is missing",
    backend_headers.RefusedByStorageNode: "refused by a storage node",
}
_OTHER: Final = "cannot be read or written now"
_LONGEST_DETAIL: Final = 200
_CRYPTO: Final = ("x-object-sysmeta-crypto-", "x-object-transient-sysmeta-crypto-")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for an object: ``state``, and its plain ``size`` if that is known.

    ``reason`` says why it was skipped or failed, in one of a few texts that are counted; ``detail`` says more.
    """

    state: str
    reason: str = ""
    size: int | None = None
    detail: str = ""


class ObjectRewriter:
    """:param handler: of a worker whose application is Swift's proxy below gatekeeper and authorization
    :param pace: called with the size of each object before it is read, and may sleep; returns False to stop
    """

    def __init__(self, handler: ObjectHandler, pace: Callable[[int], bool] = lambda size: True) -> None:
        self._handler = handler
        self._pace = pace

    def rewrite(self, target: Target, goal: str) -> Outcome:
        """Bring one object to ``goal``, one of ``sluice_rewrites.messages.GOALS``."""
        outcome = Outcome(FAILED, "not tried")
        for _ in range(_TRIES):
            try:
                outcome = self._attempt(target, goal)
            except SluiceError as error:
                reason = next((words for kind, words in _REASONS.items() if isinstance(error, kind)), _OTHER)
                outcome = Outcome(FAILED, reason, detail=" ".join(str(error).split())[:_LONGEST_DETAIL])
            except (Exception, Timeout) as error:
                log.exception("object `%s` is not rewritten", "/".join(target))
                outcome = Outcome(FAILED, _OTHER, detail=repr(error)[:_LONGEST_DETAIL])
            if outcome.state != FAILED:
                break
        return outcome

    def _attempt(self, target: Target, goal: str) -> Outcome:
        answer = UpstreamResponse(self._handler.app, make_environment("HEAD", *target))
        close_if_possible(answer.body)
        if answer.code == 404:
            return Outcome(GONE, size=0)
        if answer.code != 200:
            return Outcome(FAILED, f"HEAD: {answer.status}")
        if any(name.lower().startswith(_CRYPTO) for name, _ in answer.headers):
            return Outcome(SKIPPED, "encrypted by Swift")
        stored = StoredObject(answer.headers)
        if stored.contracted:
            return (
                Outcome(SKIPPED, "contracted", stored.size) if goal == PLAIN else Outcome(UNCHANGED, size=stored.size)
            )
        if self._is_as_wanted(target, goal, stored):
            return Outcome(UNCHANGED, size=stored.size)
        return self._copy(target, goal) if self._pace(stored.size) else Outcome(STOPPED)

    def _is_as_wanted(self, target: Target, goal: str, stored: StoredObject) -> bool:
        if goal == PLAIN:
            return stored.is_plain
        if goal == KEY:
            return not has_old_key(stored, self._handler.filters)
        if is_copies_account(target[0]):
            return True
        candidates = self._handler.lookup.candidates(target)
        if "compressibility" in candidates.asked:
            return False  # only its bytes tell
        env = make_environment("PUT", *target)
        describe_upload(env, stored)
        return _is_stored_by(self._handler.upload_filters(env, target, candidates), stored)

    def _copy(self, target: Target, goal: str) -> Outcome:
        """Read the object and write it back with the metadata of the response to this read."""
        source = make_environment("GET", *target)
        answer = UpstreamResponse(self._handler.app, source)
        try:
            if answer.code == 404:
                return Outcome(GONE, size=0)
            if answer.code != 200:
                return Outcome(FAILED, f"GET: {answer.status}")
            stored = StoredObject(answer.headers)
            if stored.contracted:
                return Outcome(UNCHANGED, size=stored.size)
            env = make_environment("PUT", *target)
            describe_upload(env, stored)
            if goal == KEY:
                app, filters = self._handler.app, self._handler.filters
                body = describe_encrypted_upload(env, source, target, stored, answer, app, filters)
            else:
                if stored.chain is not None:
                    self._handler.decode(source, target, answer, stored.chain)
                env["wsgi.input"] = FileLikeIter(answer.body)
                body, changes = self._encode(env, target, goal, stored)
                if not changes:
                    return Outcome(UNCHANGED, size=stored.size)
            return self._put(env, stored, body)
        finally:
            close_if_possible(answer.body)

    def _encode(self, env: Env, target: Target, goal: str, stored: StoredObject) -> tuple[EncodedInput | None, bool]:
        """Turn ``env`` into the upload for ``goal``; return the encoded body, if any, and whether it is needed."""
        carry_listing_values(env, stored)
        env["HTTP_ETAG"] = stored.etag
        if goal == PLAIN:
            return None, True
        wanted = self._handler.upload_filters(env, target, self._handler.lookup.candidates(target))
        if wanted is None:
            return None, not stored.is_plain
        wanted = wanted.reversible()
        if wanted.are_recorded(stored.records, stored.node_steps):
            return None, False
        if len(wanted.on_proxy) > len(stored.records):
            effective = _without_idle(env, wanted)
            if effective.are_recorded(stored.records, stored.node_steps):
                return None, False
        return prepare_reversible(env, wanted), True

    def _put(self, env: Env, stored: StoredObject, body: EncodedInput | None) -> Outcome:
        stored.replace_by(env, record_carried=True)
        env["swift.content_type_overridden"] = True
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


def _is_stored_by(wanted: UploadFilters | None, stored: StoredObject) -> bool:
    return stored.is_plain if wanted is None else wanted.reversible().are_recorded(stored.records, stored.node_steps)


def _without_idle(env: Env, wanted: UploadFilters) -> UploadFilters:
    """Remove the first filters that do not change the body of ``env``: no record would show that they ran in vain."""
    idle = 0
    for step in wanted.on_proxy:
        if not 0 < step.decides_within <= encoding.BATCH:
            break
        sample = _read_sample(env, step.decides_within)
        stream = step.encoder(wanted.hint)
        green.run_in_thread(stream.feed, sample)
        if len(sample) < step.decides_within:
            stream.finish()
        if not stream.transparent:
            break
        idle += 1
    return replace(wanted, on_proxy=wanted.on_proxy[idle:])


def _read_sample(env: Env, size: int) -> bytes:
    """Read the first ``size`` bytes of the body, which stays whole; all when there are fewer."""
    source, sample = env["wsgi.input"], b""
    while len(sample) < size and (piece := source.read(size - len(sample))):
        sample += piece
    env["wsgi.input"] = RewoundInput(sample, source)
    return sample
