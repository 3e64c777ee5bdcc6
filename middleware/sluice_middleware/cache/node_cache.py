"""The node's cache: the proxy lends it to the filter ``caching``, and it reports writes.

Policies, with their conditions, decide whether an object is cached; each write must be reported in any case.  So
:meth:`NodeCache.wrap` stands directly below the proxy middleware and reports every write to any object, whichever
middleware makes it.  In a cluster where one proxy caches, all proxies must do so: all have the option ``cache_dir``,
or none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from sluice_core.cache.write_journal import WriteJournal
from sluice_core.cache.write_marks import BEGUN, ENDED, WriteMarks, object_digest, open_write_marks, timestamp_units
from sluice_core.describe import Scalar
from sluice_core.errors import PeerError
from sluice_core.messages.predicate import Facts
from sluice_core.options import Option, OptionError, retired_option
from sluice_filters.visits import Call, Visit
from sluice_middleware.cache.prefetch import Prefetcher
from sluice_middleware.cache.store import POLICIES, CacheStore, open_store
from sluice_middleware.cache.visit import WriteVisit, read_visit
from sluice_middleware.log import Logger
from sluice_middleware.swift import green
from sluice_middleware.swift.proxy_api import get_container_info
from sluice_middleware.wsgi.response import App, Env, UpstreamResponse

OPTIONS: Final = (
    Option("cache_dir", "", "folder of cached objects, on a fast disk; empty for none; all proxies or no proxy"),
    Option("cache_size", 10 << 30, "bytes that cached objects may take"),
    Option("cache_policy", "lru", "lru removes the least recently used object first, lfu the least frequently used"),
    Option("cache_alone", False, "true when no other node has a proxy, so that the cache needs no agent"),
    *map(retired_option, ("cache_window", "cache_buffer")),
)
#: Bytes of bodies that a worker collects at the same time, at most.
BUFFER: Final = 64 << 20

_WRITES: Final = frozenset({"PUT", "POST", "DELETE"})
#: Status codes after which the timestamp is that of the stored object.
_STORED: Final = {"PUT": (201,), "POST": (202,), "DELETE": (204,)}
#: Seconds after which a store that could not be opened is tried again.
_AGAIN: Final = 30.0
#: Seconds for which a container that exists counts as existing (Swift itself caches that for 60).
_THERE: Final = 10.0
_MOST_CONTAINERS: Final = 10_000
#: Bodies up to this size are written in the calling thread; a hand-over to another thread costs more.
_INLINE: Final = 64 << 10


class NodeCache:
    """One per worker; nothing is opened before the first request, hence after the fork."""

    def __init__(self, options: Mapping[str, Any], logger: Logger) -> None:
        """
        :param options: the values of :data:`OPTIONS`
        """
        self._options = options
        self._logger = logger
        self._alone: bool = options["cache_alone"]
        self._free = BUFFER
        self._folder = Path(options["cache_dir"])
        self._marks: WriteMarks | None = None
        self._journal: WriteJournal | None = None
        self._store: CacheStore | None = None
        self._process = 0
        self._next_try = {"marks": 0.0, "store": 0.0}
        self._app: App | None = None
        self._prefetcher = Prefetcher(lambda key: self.store.table.find(key) is not None, logger)
        self._there: dict[tuple[str, str], float] = {}

    # -- for the proxy -----------------------------------------------------------------------

    def wrap(self, app: App) -> App:
        """Return ``app``, wrapped so that every write that reaches it is reported."""
        self._app = app
        return _Watched(self, app)

    def visit(self, call: Call, params: Mapping[str, Scalar | None]) -> Visit | None:
        """The visit of the filter ``caching`` for ``call``."""
        if call.method not in ("GET", "HEAD", "PUT") or self._app is None or not self.is_open():
            return None
        key = object_key(call.environ)
        if key is None:
            return None
        kind = WriteVisit if call.method == "PUT" else read_visit
        return kind(self, call, key, params)

    def prefetch(self, call: Call, params: Mapping[str, Scalar | None]) -> Visit | None:
        """The visit of the filter ``prefetch`` for ``call``."""
        return self._prefetcher.visit(call, params) if self._app is not None and self.is_open() else None

    def complete_facts(self, env: Env, facts: Facts) -> Facts:
        """Add facts of the object's cached copy to ``facts``; type and tags only if the disks have confirmed them."""
        key = object_key(env) if self.is_open() else None
        return facts if key is None else self.store.complete_facts(key, facts)

    def write(self, app: App, env: Env, key: bytes) -> UpstreamResponse:
        """Make a write, and report its begin and its end."""
        assert self._marks is not None
        assert self._journal is not None
        self._marks.begin(key)
        self._journal.append(key, BEGUN)
        ended_at = ENDED
        try:
            answer = UpstreamResponse(app, env)
            if answer.code in _STORED[env["REQUEST_METHOD"]]:
                ended_at = timestamp_units(env.get("HTTP_X_TIMESTAMP", ""))
        finally:
            self._marks.end(key, ended_at)
            self._journal.append(key, ended_at)
        return answer

    def can_report_writes(self) -> bool:
        """Whether writes can be reported, which needs no store."""
        if self._marks is not None and self._process == os.getpid():
            return True
        if not self._is_time("marks"):
            return False
        try:
            self._marks = open_write_marks(self._folder)
        except PeerError as error:
            self._logger.error("sluice: cache: writes through this worker are not reported: %s", error)
            return False
        self._journal = WriteJournal(self._folder, self._marks)
        self._store = None
        self._process = os.getpid()
        return True

    def is_open(self) -> bool:
        """Whether the store is open; opening is retried after :data:`_AGAIN` seconds."""
        if not self.can_report_writes():
            return False
        if self._store is not None:
            return True
        if not self._is_time("store"):
            return False
        assert self._marks is not None
        limit, policy = self._options["cache_size"], self._options["cache_policy"]
        try:
            self._store = open_store(self._folder, self._marks, limit, policy, self._logger)
        except PeerError as error:
            self._logger.error("sluice: %s", error)
            return False
        green.start_in_thread(self._store.sweep)
        return True

    def _is_time(self, what: str) -> bool:
        now = time.monotonic()
        if now < self._next_try[what]:
            return False
        self._next_try[what] = now + _AGAIN
        return True

    # -- for the visits ----------------------------------------------------------------------

    @property
    def store(self) -> CacheStore:
        """The store, which is open while there are visits."""
        assert self._store is not None
        return self._store

    def is_trusted(self) -> bool:
        """Whether this node knows every write that is older than a second."""
        return self._alone or self.store.marks.is_trusted()

    def container_is_there(self, env: Env) -> bool:
        """Return False when the container or its account is gone: its objects may be deleted without a report."""
        _, _, account, container, _ = env["PATH_INFO"].split("/", 4)
        now = time.monotonic()
        if self._there.get((account, container), 0.0) > now:
            return True
        info = get_container_info(env, self._app, swift_source="SLU")
        if not 200 <= int(info["status"] or 0) < 300:
            return False
        if len(self._there) >= _MOST_CONTAINERS:
            self._there.clear()
        self._there[account, container] = now + _THERE
        return True

    def is_wanted(self, key: bytes) -> bool:
        """Whether the object is being read ahead."""
        return key in self._prefetcher.wanted

    def reserve(self, size: int) -> bool:
        """Reserve a share of this worker's memory for bodies; return False when there is none."""
        if size > self._free:
            return False
        self._free -= size
        return True

    def release(self, size: int) -> None:
        """Release what :meth:`reserve` took."""
        self._free += size

    def store_later(self, keep: Callable[..., bool], *given: Any) -> None:
        """Store a body without delaying the request."""
        if sum(map(len, given[3])) <= _INLINE:
            self.store_now(keep, *given)
        else:
            green.start_in_thread(self.store_now, keep, *given)

    def store_now(self, keep: Callable[..., bool], *given: Any) -> None:
        """Store a body now."""
        try:
            keep(*given)
        except Exception:  # it may run in a thread that no caller waits for
            self._logger.exception("sluice: cache: an object was not kept")


class _Watched:
    """The application below the proxy middleware, as the middlewares above it see it."""

    def __init__(self, cache: NodeCache, app: App) -> None:
        self._cache = cache
        self._app = app

    def __call__(self, env: Env, start_response: Callable[..., Any]) -> Iterable[bytes]:
        key = object_key(env) if env["REQUEST_METHOD"] in _WRITES else None
        if key is None or not self._cache.can_report_writes():
            return self._app(env, start_response)
        answer = self._cache.write(self._app, env, key)
        start_response(answer.status, answer.headers, answer.exc_info)
        return answer.body

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)  # Swift searches the end of the pipeline through this attribute


def open_cache(options: Mapping[str, Any], logger: Logger) -> NodeCache | None:
    """Open the cache that ``options`` describe; return None without ``cache_dir``.

    :raises OptionError: for a value that cannot be used
    """
    if options["cache_policy"] not in POLICIES:
        names = " or ".join(POLICIES)
        raise OptionError(f"option `cache_policy` is `{options['cache_policy']}`, expected {names}")
    if options["cache_size"] < 0:
        raise OptionError(f"option `cache_size` is `{options['cache_size']}`, expected 0 or more")
    return NodeCache(options, logger) if options["cache_dir"] else None


def object_key(env: Env) -> bytes | None:
    """The key of the object of a request; None for requests of accounts and containers, and for Swift's own objects."""
    path: str = env["PATH_INFO"]
    parts = path.split("/", 4)
    if len(parts) != 5 or not parts[4] or not parts[3] or parts[2][:1] in ("", "."):
        return None
    if "\0" in path and "HTTP_X_BACKEND_ALLOW_RESERVED_NAMES" not in env:
        return None  # Swift refuses the path
    return object_digest("/".join(parts[2:]).encode("latin-1"))
