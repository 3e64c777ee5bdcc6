"""GET and HEAD of objects with motifs.

Theory of operation.

* The object server answers as for any object.  Its answer says whether the object has motifs, so others pay nothing.
* The versions of the sources of a derived object are compared first, also before 304 and 412 are believed.  A HEAD may
  show the last version; it says so.
* HEAD, 304 and 412 of a contracted object need other headers only: the object server compared the plain ETag.
* The bytes of a contracted object come from the node's motif daemon while they are made.  A range waits for its own,
  several ranges for the whole.
* New content, after a source changed, or made by a motif that is not exact, has another size and ETag, which nobody
  knows before its end.  It is sent without them.  Ranges, conditions and requests of Swift's own wait until it is in
  its place, and ask again then.
* It has a time of its own (``content_times``).

Whether an object is out of date is judged here, so a daemon that is away hurts those alone that must be made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from sluice_core.errors import PeerError, SluiceError
from sluice_middleware.motifs import content_times
from sluice_middleware.motifs.contracted_bodies import LazyBody, MadeBody, respond_range
from sluice_middleware.motifs.daemon_client import RETRY_AFTER, DaemonClient, GrantedCall
from sluice_middleware.motifs.daemon_protocol import EXPAND, OPEN, WorkerCall
from sluice_middleware.motifs.item_reports import ItemReports
from sluice_middleware.motifs.object_views import ObjectViews, item_name, view_of
from sluice_middleware.swift.proxy_api import Request, close_if_possible
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.policy_lookup import Target
from sluice_middleware.wsgi.response import CONDITIONS, App, Env, Headers, OwnersError, UpstreamResponse
from sluice_middleware.wsgi.stored_object import StoredObject
from sluice_motifs.api import Template
from sluice_motifs.dependencies.freshness import Freshness, is_exact, may_get_stale, sources_by_name
from sluice_motifs.storage.records import ItemView

#: Who copies objects: Swift's ``copy``, for a client, and what keeps older versions.
COPY_SOURCES: Final = frozenset(("SSC", "VW", "OV"))
_UNKNOWN: Final = "unknown"
#: Of the object that was there; the new content has others.
_OF_THE_OLD: Final = frozenset(("etag", "content-length", "last-modified", "x-timestamp", "content-range"))


class NotAnswered(OwnersError):
    """The object is to be asked for again, at its newest copy."""

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
        """The answer to the client's request, out of the one for what is stored; that one may stay encoded.

        :raises NotAnswered: when the object is to be asked for again
        :raises SluiceError: when the bytes cannot be made, or nobody knows whether they are out of date
        """
        env[sysmeta.WITH_MOTIFS] = True
        try:
            stored = StoredObject(answer.headers)
            view = view_of(item_name(target), stored)
            # what is made for this very request is judged where it is made
            stale = "" if _is_made(env, stored, answer) else self._staleness(env, view)
            if stale and env["REQUEST_METHOD"] == "GET":
                return self._made(env, view, answer)
            if content_times.is_modified(env, stored, answer):
                raise NotAnswered(f"`{view.name}` changes again and again")
            answer = content_times.judged(env, stored, answer)
            if not stored.contracted:
                if env["REQUEST_METHOD"] == "GET" and answer.code in (200, 206):
                    self._reports.note_open(view.name)
                answer.headers = self._marked(env, view, sysmeta.strip_motifs(answer.headers), answer.code)
            elif env["REQUEST_METHOD"] == "HEAD" or answer.code in (304, 412):
                size = stored.size if answer.code == 200 else None
                answer.headers = sysmeta.plain_headers(answer.headers, size)
            else:
                return self._expanded(env, view, answer)
        except BaseException:
            close_if_possible(answer.body)
            raise
        if stale:
            answer.headers.append((sysmeta.STALE, stale))
        return answer

    def _staleness(self, env: Env, view: ItemView) -> str:
        """`true` when the object is out of date, empty when it is not; a HEAD may say that nobody knows."""
        try:
            if not may_get_stale(view, self._templates):
                return ""
            views = ObjectViews(self._app, env.get("swift.cache"))
            return "true" if Freshness(views, self._templates).check_sources(view).stale else ""
        except SluiceError as error:
            if env["REQUEST_METHOD"] != "HEAD":
                raise OwnersError(f"{error}") from error
            return _UNKNOWN

    def _expanded(self, env: Env, view: ItemView, answer: UpstreamResponse) -> UpstreamResponse:
        """The bytes of a contracted object that is not out of date."""
        close_if_possible(answer.body)
        headers = sysmeta.plain_headers(answer.headers, view.plain.size)
        if env.get("swift.source") in COPY_SOURCES and "HTTP_RANGE" not in env and self._is_exact(view):
            lazy = LazyBody(lambda: self._open(view, 0, None))
            return UpstreamResponse.build(answer.status, self._marked(env, view, headers, 200), lazy)
        if "," in env.get("HTTP_RANGE", ""):
            self._wait(view)  # parts are asked for one by one while they are sent, and may be in their place by then
        if Request(env).range is not None:  # a malformed one is for the whole object
            ranged = respond_range(
                env, headers, view.plain.size, view.plain.digest, lambda *span: self._same(view, *span)
            )
            return UpstreamResponse.build(*ranged)
        granted = self._open(view, 0, None)
        if not granted.reply.same:
            return self._new_content(env, view, headers, granted)
        return UpstreamResponse.build("200 OK", headers, MadeBody(granted))

    def _made(self, env: Env, view: ItemView, answer: UpstreamResponse) -> UpstreamResponse:
        """The new content of an object that is out of date."""
        close_if_possible(answer.body)
        if _is_for_the_whole(env):
            self._wait(view)
        granted = self._open(view, 0, None)
        return self._new_content(env, view, sysmeta.plain_headers(answer.headers, None), granted)

    def _new_content(self, env: Env, view: ItemView, headers: Headers, granted: GrantedCall) -> UpstreamResponse:
        if _is_for_the_whole(env):
            granted.close()
            self._wait(view)
        kept = [(name, value) for name, value in headers if name.lower() not in _OF_THE_OLD]
        return UpstreamResponse.build("200 OK", kept, MadeBody(granted))

    def _wait(self, view: ItemView) -> None:
        """Until the bytes are in their place.

        :raises NotAnswered: then
        """
        self._daemon.call(WorkerCall(EXPAND, view.name)).close()
        raise NotAnswered(f"`{view.name}` changes again and again")

    def _same(self, view: ItemView, start: int, stop: int | None) -> GrantedCall:
        granted = self._open(view, start, stop)
        if not granted.reply.same:
            granted.close()
            self._wait(view)
        return granted

    def _open(self, view: ItemView, start: int, stop: int | None) -> GrantedCall:
        """The bytes that the daemon makes; the first are there, since what ends later can only be cut.

        :raises NotAnswered: when the bytes are in their place by now, or are not made after all
        """
        sources = tuple(sources_by_name(view.record.motifs, view.name, self._templates))
        granted = self._daemon.call(WorkerCall(OPEN, view.name, start, stop, sources))
        if granted.reply.status != 200:
            granted.close()
            raise NotAnswered(f"`{view.name}` changes again and again")
        try:
            granted.begin()
        except PeerError as error:
            raise NotAnswered(f"`{view.name}` cannot be read: {error}") from error
        return granted

    def _is_exact(self, view: ItemView) -> bool:
        return all(is_exact(one, view.name, self._templates) for one in view.record.motifs)

    def _marked(self, env: Env, view: ItemView, headers: Headers, code: int) -> Headers:
        """Headers by which the PUT of a copy finds the motifs of the object that is copied."""
        if env.get("swift.source") not in COPY_SOURCES or code != 200 or env["REQUEST_METHOD"] != "GET":
            return headers
        return [*headers, (sysmeta.COPIED, json.dumps({"n": view.name, "v": view.plain.version}))]


def _is_made(env: Env, stored: StoredObject, answer: UpstreamResponse) -> bool:
    """Whether the daemon is asked for all the bytes in any case, and says whether they are those of the object."""
    return stored.contracted and answer.code == 200 and env["REQUEST_METHOD"] == "GET" and not _is_for_the_whole(env)


def _is_for_the_whole(env: Env) -> bool:
    """Whether size and ETag must be known before an answer begins."""
    return env.get("swift.source") is not None or "HTTP_RANGE" in env or not env.keys().isdisjoint(CONDITIONS)
