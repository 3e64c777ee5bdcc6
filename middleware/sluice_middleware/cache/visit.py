"""The cache's part in one request.

A GET or HEAD of a cached object is answered at once when the client may read it and no write was
seen; in doubt, a HEAD asks the disks, which sends no body, and its headers replace the cached ones.  Requests with
unusual headers pass to Swift.

A whole body that passes, in either direction, is collected and stored at the end of the request.  The body of a PUT is
stored with its ETag alone: the first GET asks the disks for the headers, so that they are those of plain Swift for any
configuration of the object servers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from sluice_filters.api import Stream
from sluice_filters.visits import Call, Headers, Reply, Visit
from sluice_metrics.api import HIT, MISS
from sluice_middleware.cache.files import CachedFile
from sluice_middleware.cache.index import IndexEntry
from sluice_middleware.cache.response import build_reply
from sluice_middleware.cache.store import CacheStore, MarkSnapshot, write_stamp
from sluice_middleware.swift.proxy_api import close_if_possible, config_true_value, normalize_etag
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.response import Env

#: Requests with one of these are not answered from the cache, and their responses are not stored: the headers
#: that Swift adds to them depend on more than the object.
_UNUSUAL: Final = (
    "HTTP_ORIGIN",
    "HTTP_X_BACKEND_STORAGE_POLICY_INDEX",
    "HTTP_X_OPEN_EXPIRED",
    "HTTP_X_BACKEND_OPEN_EXPIRED",
)
#: The environment key of a GET or HEAD that says whether the cache had the object.
SEARCHED: Final = "sluice.cache"
#: Headers of one response rather than of the object.
_PASSING: Final = frozenset({"Date", "Connection", "Transfer-Encoding", "X-Trans-Id", "X-Openstack-Request-Id"})
#: The environment key that Swift's own encryption sets, at any place in the pipeline.
_ENCRYPTED: Final = "swift.callback.fetch_crypto_keys"


class Collector(Stream):
    """Collects the bytes that pass, up to ``limit``; ``pieces`` is None beyond that."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.size = 0
        self.pieces: list[bytes] | None = []

    def feed(self, data: bytes) -> bytes:
        if self.pieces is not None:
            self.size += len(data)
            if self.size <= self._limit:
                self.pieces.append(data)
            else:
                self.pieces = None
        return data


class WorkerCache(Protocol):
    """The cache of a worker, as a visit needs it."""

    @property
    def store(self) -> CacheStore:
        """The node's store, open while there are visits."""

    def is_trusted(self) -> bool:
        """Whether this node knows every write that is older than a second."""

    def container_is_there(self, env: Env) -> bool:
        """Whether the container of the request exists."""

    def is_wanted(self, key: bytes) -> bool:
        """Whether an object is stored, however rarely it was requested."""

    def reserve(self, size: int) -> bool:
        """Reserve ``size`` bytes of the worker's memory for a body; return False when they are not free."""

    def release(self, size: int) -> None:
        """Release what :meth:`reserve` reserved."""

    def store_later(self, keep: Callable[..., bool], *given: Any) -> None:
        """Call ``keep(*given)`` without delaying the request."""


class CacheVisit(Visit):
    """A visit that may store a body; the base of both directions."""

    def __init__(self, cache: WorkerCache, call: Call, key: bytes, params: Mapping[str, Any]) -> None:
        """
        :param params: of the policy's filter ``caching``
        """
        self._cache = cache
        self._store = cache.store
        self._call = call
        self._key = key
        self._params = params
        self._collector: Collector | None = None
        self._snapshot: MarkSnapshot | None = None
        self._reserved = 0

    def _collect(self, size: int) -> Stream | None:
        """Return a collector for at most ``size`` bytes; None when this worker's memory for bodies is used up."""
        if not self._cache.reserve(size):
            return None
        self._reserved = size
        self._collector = Collector(size)
        return self._collector

    def _protected(self) -> bool:
        environ = self._call.environ
        return self._call.protected or _ENCRYPTED in environ or sysmeta.WITH_MOTIFS in environ

    def _collected(self) -> Sequence[bytes] | None:
        """The whole body; None when it was not collected."""
        return None if self._collector is None else self._collector.pieces

    def end(self, complete: bool) -> None:
        try:
            if complete:
                self._keep()
        finally:
            self._cache.release(self._reserved)
            self._reserved = 0

    def _keep(self) -> None:
        """Store the collected body; called when the request succeeded."""


class WriteVisit(CacheVisit):
    """A PUT."""

    _etag = ""

    def body_in(self) -> Stream | None:
        if self._protected() or (self._call.size or 0) > self._params["max_size"]:
            return None
        if self._store.sketch.add(self._key) < self._params["admit"]:
            return None
        return self._collect(self._params["max_size"] if self._call.size is None else self._call.size)

    def response(self, reply: Reply) -> Reply:
        if self._collector is not None and reply.code == 201 and not self._protected():
            self._etag = normalize_etag(reply.headers.get("Etag")) or ""
            self._snapshot = self._store.snapshot(self._key)
        return reply

    def _keep(self) -> None:
        body = self._collected()
        if body is not None and self._etag and self._snapshot is not None:
            headers = {"Etag": self._etag}
            self._cache.store_later(self._store.keep, self._key, self._snapshot, headers, body, False)


def read_visit(cache: WorkerCache, call: Call, key: bytes, params: Mapping[str, Any]) -> ReadVisit | None:
    """The visit of a GET or HEAD; None when the cache has nothing to do, as for most misses."""
    environ = call.environ
    if config_true_value(environ.get("HTTP_X_NEWEST", "")) or not environ.keys().isdisjoint(_UNUSUAL):
        return None
    if call.decided:
        environ[SEARCHED] = MISS
    visit = ReadVisit(cache, call, key, params)
    return visit if visit.is_interested() else None


class ReadVisit(CacheVisit):
    """A GET or HEAD."""

    def __init__(self, cache: WorkerCache, call: Call, key: bytes, params: Mapping[str, Any]) -> None:
        super().__init__(cache, call, key, params)
        self._headers: dict[str, str] = {}
        self._entry = self._store.table.find(key)

    def is_interested(self) -> bool:
        """Whether the cache has the object, or may store the response."""
        if self._entry is not None or not self._call.decided:
            return True
        self._store.table.count("misses")
        return self._may_keep()

    def _may_keep(self) -> bool:
        """Whether the response is a whole body of an object that is requested often enough."""
        call = self._call
        if call.method != "GET" or "HTTP_RANGE" in call.environ:
            return False
        if self._cache.is_wanted(self._key):
            return True
        return bool(self._store.sketch.add(self._key) >= self._params["admit"])

    def request(self) -> Reply | None:
        if self._entry is not None:
            reply = self._from(self._entry)
            if reply is not None:
                self._call.environ[SEARCHED] = HIT
            if reply is not None or not self._may_keep():
                return reply
        if self._snapshot is None:
            self._snapshot = self._store.snapshot(self._key)
        return None

    def wait(self) -> None:
        if self._may_keep():
            self._snapshot = self._store.snapshot(self._key)

    def response(self, reply: Reply) -> Reply:
        if not self._call.decided:
            self._store.table.count("misses")
            self._call.environ[SEARCHED] = MISS
        if isinstance(reply.body, list | tuple) and "Content-Length" not in reply.headers:
            reply.headers["Content-Length"] = str(sum(map(len, reply.body)))  # as Swift does for a list
        return reply

    def body_out(self, reply: Reply) -> Stream | None:
        length = reply.headers.get("Content-Length", "")
        if self._snapshot is None or reply.code != 200 or not length.isdecimal() or self._protected():
            return None
        if int(length) > self._params["max_size"] or write_stamp(reply.headers) < self._store.marks.newest(self._key):
            return None
        self._headers = cacheable_headers(reply.headers)
        return self._collect(int(length))

    def _keep(self) -> None:
        body = self._collected()
        if body is None or self._snapshot is None or self._collector is None:
            return
        if str(self._collector.size) == self._headers["Content-Length"]:
            self._cache.store_later(self._store.keep, self._key, self._snapshot, self._headers, body)

    def _from(self, entry: IndexEntry) -> Reply | None:
        """The response from ``entry``; None: the request goes to Swift."""
        now = time.time()
        if entry.expires and entry.expires <= now:
            self._store.forget(entry)
            return None
        if self._call.authorize() is not None or not self._cache.container_is_there(self._call.environ):
            return None  # Swift answers with the error
        content = self._store.files.open(self._key, entry.serial)
        if content is None:
            self._store.forget(entry)
            return None
        reply = self._reply(entry, content, now)
        if reply is not None:
            self._store.table.touch(entry)
        return reply

    def _reply(self, entry: IndexEntry, content: CachedFile, now: float) -> Reply | None:
        """The response with ``content``, which is closed now or with the response."""
        try:
            if self._is_strict() or not self._is_sure(entry, now):
                confirmed = self._confirmed(entry, content, now)
                if confirmed is None:
                    content.close()
                    return None
                content = content._replace(headers=confirmed)
        except BaseException:
            content.close()
            raise
        try:
            return build_reply(self._call.environ, content)
        except OSError:
            self._store.forget(entry)
            return None

    def _is_strict(self) -> bool:
        return bool(self._params["mode"] == "strict")

    def _is_sure(self, entry: IndexEntry, now: float) -> bool:
        return now < entry.checked + self._params["ttl"] and self._store.unchanged(entry) and self._cache.is_trusted()

    def _confirmed(self, entry: IndexEntry, content: CachedFile, now: float) -> dict[str, str] | None:
        """Ask the disks; return the object's headers when the cached copy is current, else None.

        All replicas are asked where one that missed a write could return old data for long: in strict
        mode, and when this node does not know which write was the last.
        """
        store = self._store
        snapshot = store.snapshot(self._key)
        newest = store.marks.newest(self._key)
        unchanged = store.unchanged(entry) and now < entry.checked + self._params["ttl"]
        everybody = self._is_strict() or not (newest or unchanged)
        reply = self._call.send("HEAD", headers={"X-Newest": "true"} if everybody else {}, stored=True)
        close_if_possible(reply.body)
        store.table.count("validations")
        if reply.code != 200:
            if reply.code == 404:
                store.forget(entry)
            return None
        if write_stamp(reply.headers) < newest:
            return None  # from a replica that misses the last write
        if sysmeta.find_marks(reply.headers.items()).motifs:  # a change of its sources makes it stale without a write
            store.forget(entry)
            return None
        headers = plain_headers(reply.headers, content.length)
        same = normalize_etag(headers.get("Etag")) == normalize_etag(content.headers.get("Etag"))
        if not same or headers.get("Content-Length") != str(content.length) or not content.is_intact():
            store.forget(entry)
            return None
        if not unchanged:
            store.confirm(entry, content, snapshot, headers)
        return headers


def cacheable_headers(headers: Headers) -> dict[str, str]:
    """Return the headers of a plain response that belong to the object."""
    found = [(name, value) for name, value in headers.items() if name not in _PASSING]
    return dict(sysmeta.strip_headers(found))


def plain_headers(headers: Headers, size: int) -> dict[str, str]:
    """Return the headers that a client of the plain object sees, computed from those of the stored object."""
    found = [(name, value) for name, value in headers.items() if name not in _PASSING]
    return dict(sysmeta.plain_headers(found, size) if sysmeta.CHAIN in headers else sysmeta.strip_headers(found))
