"""GET and HEAD of objects with motifs.

Theory of operation.

* The object server answers as for any object.  Its response says whether the object has motifs, so requests for other
  objects cost nothing more.
* The versions of the sources of a derived object are compared first, before a 304 or 412 is returned, too.  A HEAD may
  show the last version; it says so.
* HEAD, 304 and 412 of a contracted object need other headers only: the object server compared the plain ETag.
* The node's motif daemon makes the bytes of a contracted object and sends them meanwhile.  A range waits for its own
  bytes, several ranges wait for the whole.
* New content, after a source changed, or made by a motif that is not exact, has another size and ETag, which are
  unknown before its end.  It is sent without them.  Ranges, conditions and requests of Swift's own wait until it is
  stored, and are then sent again.
* It has a time of its own, which clients see and conditions are compared with.  An object server compares with the
  time of the data file, which is that of a client's earlier upload: it returns 304 where the content has changed since,
  and lets If-Unmodified-Since pass.  Its response shows both cases, so objects without motifs cost nothing.

Only :meth:`MotifReads._staleness` decides whether an object is stale, so an unreachable daemon affects only the
objects whose bytes must be made.  Where the daemon makes all the bytes in any case, its reply says so instead
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from email.utils import formatdate
from functools import partial
from types import SimpleNamespace
from typing import Final

from sluice_core.errors import PeerError, SluiceError
from sluice_middleware.motifs.daemon_client import RETRY_AFTER, DaemonClient, GrantedCall, ItemReports, transaction_of
from sluice_middleware.motifs.daemon_protocol import EXPAND, OPEN, WorkerCall
from sluice_middleware.motifs.object_views import ObjectViews, item_name, view_of
from sluice_middleware.swift.proxy_api import Request, close_if_possible
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.decoding import respond_ranges
from sluice_middleware.wsgi.policy_lookup import Target
from sluice_middleware.wsgi.response import CONDITIONS, App, Env, Headers, OwnersError, UpstreamResponse
from sluice_middleware.wsgi.stored_object import StoredObject
from sluice_motifs.api import Template
from sluice_motifs.dependencies.freshness import Freshness, is_exact, may_get_stale, sources_by_name
from sluice_motifs.storage.records import ItemView

#: ``swift.source`` of requests that copy objects: Swift's ``copy`` for a client, and middlewares that keep old
#: versions.
COPY_SOURCES: Final = frozenset(("SSC", "VW", "OV"))
_UNKNOWN: Final = "unknown"
#: Headers of the earlier content; the new content has others.
_OF_THE_OLD: Final = frozenset(("etag", "content-length", "last-modified", "x-timestamp", "content-range"))
_MODIFIED_SINCE: Final = "HTTP_IF_MODIFIED_SINCE"
_OF_A_BODY: Final = frozenset(("content-length", "content-range"))


class NotAnswered(OwnersError):
    """The request must be sent again, to the newest copy of the object."""

    retry_after = RETRY_AFTER


class MotifReads:
    """:param app: Swift's proxy application below this middleware"""

    def __init__(
        self, app: App, daemon: DaemonClient, templates: Mapping[str, type[Template]], reports: ItemReports
    ) -> None:
        self._app = app
        self._daemon = daemon
        self._reports = reports
        self._templates = templates

    def answer(self, env: Env, target: Target, answer: UpstreamResponse) -> UpstreamResponse:
        """Return the response to the client's request, from the response for the stored object; it may stay encoded.

        :raises NotAnswered: when the request must be sent again
        :raises SluiceError: when the bytes cannot be made, or it is unknown whether they are stale
        """
        env[sysmeta.WITH_MOTIFS] = True
        try:
            stored = StoredObject(answer.headers)
            view = view_of(item_name(target), stored)
            stale = self._staleness(env, view, answer)
            if stale and env["REQUEST_METHOD"] == "GET":
                return self._made(env, view, answer, stale=True)
            if is_modified(env, stored, answer):
                raise NotAnswered(f"`{view.name}` keeps changing")
            answer = apply_content_time(env, stored, answer)
            if not stored.contracted:
                if env["REQUEST_METHOD"] == "GET" and answer.code in (200, 206):
                    self._reports.note_open(view.name)
                answer.headers = self._marked(env, view, sysmeta.strip_motifs(answer.headers), answer.code)
            elif env["REQUEST_METHOD"] == "HEAD" or answer.code in (304, 412):
                size = stored.size if answer.code == 200 else None
                answer.headers = sysmeta.plain_headers(answer.headers, size)
            else:
                return self._made(env, view, answer, stale=False)
        except BaseException:
            close_if_possible(answer.body)
            raise
        if stale:
            answer.headers.append((sysmeta.STALE, stale))
        return answer

    def _staleness(self, env: Env, view: ItemView, answer: UpstreamResponse) -> str:
        """`true` when the object is stale, empty when it is not; for a HEAD also `unknown`."""
        is_get = env["REQUEST_METHOD"] == "GET"
        if view.contracted and answer.code == 200 and is_get and not _is_for_the_whole(env):
            return ""  # the daemon makes all the bytes in any case, and says whether they are the object's
        try:
            if not may_get_stale(view, self._templates):
                return ""
            views = ObjectViews(self._app, env.get("swift.cache"))
            return "true" if Freshness(views, self._templates).check_sources(view).stale else ""
        except SluiceError as error:
            if env["REQUEST_METHOD"] != "HEAD":
                raise OwnersError(f"{error}") from error
            return _UNKNOWN

    def _made(self, env: Env, view: ItemView, answer: UpstreamResponse, stale: bool) -> UpstreamResponse:
        """Return a response with the bytes that the daemon makes of an object that is contracted, or ``stale``."""
        close_if_possible(answer.body)
        headers = sysmeta.plain_headers(answer.headers, view.plain.size)
        whole = _is_for_the_whole(env)
        if stale and whole:
            self._wait(env, view)
        if not stale:
            if env.get("swift.source") in COPY_SOURCES and "HTTP_RANGE" not in env and self._is_exact(view):
                lazy = LazyBody(lambda: self._open(env, view, new_content=True))
                return UpstreamResponse.build(answer.status, self._marked(env, view, headers, 200), lazy)
            if "," in env.get("HTTP_RANGE", ""):
                # parts are asked for one by one while they are sent, and may be in their place by then
                self._wait(env, view)
            if Request(env).range is not None:  # a malformed one is for the whole object
                one_range = SimpleNamespace(app_iter_range=partial(self._open, env, view))
                plain = view.plain
                return UpstreamResponse.build(*respond_ranges(env, headers, plain.size, plain.digest, one_range))
        granted = self._open(env, view, new_content=not whole)
        if stale or not granted.reply.same:
            headers = [(name, value) for name, value in headers if name.lower() not in _OF_THE_OLD]
        return UpstreamResponse.build("200 OK", headers, granted)

    def _wait(self, env: Env, view: ItemView) -> None:
        """Until the bytes are in their place.

        :raises NotAnswered: always, so that the request is sent again
        """
        self._daemon.call(WorkerCall(EXPAND, view.name, request=transaction_of(env))).close()
        raise NotAnswered(f"`{view.name}` changes again and again")

    def _open(
        self, env: Env, view: ItemView, start: int = 0, stop: int | None = None, new_content: bool = False
    ) -> GrantedCall:
        """The bytes that the daemon makes; the first are there, since what ends later can only be cut.

        :param new_content: whether other bytes than those that the object had are acceptable
        :raises NotAnswered: when the object has its bytes by now, or the daemon does not make them
        """
        sources = tuple(sources_by_name(view.record.motifs, view.name, self._templates))
        granted = self._daemon.call(WorkerCall(OPEN, view.name, start, stop, sources, request=transaction_of(env)))
        if granted.reply.status != 200:
            granted.close()
            raise NotAnswered(f"`{view.name}` keeps changing")
        try:
            granted.begin()
        except PeerError as error:
            raise NotAnswered(f"`{view.name}` cannot be read: {error}") from error
        if not granted.reply.same and not new_content:
            granted.close()
            self._wait(env, view)
        return granted

    def _is_exact(self, view: ItemView) -> bool:
        return all(is_exact(one, view.name, self._templates) for one in view.record.motifs)

    def _marked(self, env: Env, view: ItemView, headers: Headers, code: int) -> Headers:
        """Add the header by which the PUT of a copy finds the motifs of the copied object."""
        if env.get("swift.source") not in COPY_SOURCES or code != 200 or env["REQUEST_METHOD"] != "GET":
            return headers
        return [*headers, (sysmeta.COPIED, json.dumps({"n": view.name, "v": view.plain.version}))]


def _is_for_the_whole(env: Env) -> bool:
    """Whether size and ETag must be known before the response begins."""
    return env.get("swift.source") is not None or "HTTP_RANGE" in env or not env.keys().isdisjoint(CONDITIONS)


def is_modified(env: Env, stored: StoredObject, answer: UpstreamResponse) -> bool:
    """Whether a request answered with 304 must be sent again; If-Modified-Since is then removed from it."""
    if not stored.made or answer.code != 304 or _MODIFIED_SINCE not in env:
        return False
    since = Request(env).if_modified_since
    if since is None or _shown(stored) <= since.timestamp():
        return False
    del env[_MODIFIED_SINCE]
    return True


def apply_content_time(env: Env, stored: StoredObject, answer: UpstreamResponse) -> UpstreamResponse:
    """Return the response with the time of the content; 412 where If-Unmodified-Since is earlier than that."""
    if not stored.made:
        return answer
    times = {"last-modified": formatdate(_shown(stored), usegmt=True), "x-timestamp": f"{stored.modified:016.05f}"}
    answer.headers = [(name, times.get(name.lower(), value)) for name, value in answer.headers]
    until = Request(env).if_unmodified_since
    if answer.code not in (200, 206) or until is None or _shown(stored) <= until.timestamp():
        return answer
    close_if_possible(answer.body)
    headers = [(name, value) for name, value in answer.headers if name.lower() not in _OF_A_BODY]
    return UpstreamResponse.build("412 Precondition Failed", [*headers, ("Content-Length", "0")], [b""])


def _shown(stored: StoredObject) -> int:
    """The time of the content in seconds since 1970, rounded up as Swift does."""
    return math.ceil(stored.modified)


class LazyBody:
    """Bytes that are made only when they are read: a copy may not need them."""

    def __init__(self, open_call: Callable[[], GrantedCall]) -> None:
        self._open = open_call
        self._granted: GrantedCall | None = None

    def __iter__(self) -> Iterator[bytes]:
        self._granted = self._open()
        if not self._granted.reply.same:
            self.close()
            raise PeerError("the object changed while it was copied")
        yield from self._granted

    def close(self) -> None:
        """End the call to the daemon."""
        if self._granted is not None:
            self._granted.close()
