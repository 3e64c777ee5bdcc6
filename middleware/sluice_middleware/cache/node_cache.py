"""The node's cache as the proxy lends it to the filter ``caching``, and as it watches over writes.

Whether an object is cached is a policy's matter, and policies have conditions and come and go; whether a
write is told must not be.  So :meth:`NodeCache.wrap` stands right below the proxy middleware and tells of
every write to any object, by whoever makes it.  It must be so in all proxies of a cluster in which one caches:
all have the option ``cache_dir``, or none.
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
    Option("cache_policy", "lru", "which object goes first: lru, the one used longest ago, or lfu, the one used least"),
    Option("cache_alone", False, "true when no other node has a proxy, so that no agent need vouch for the others"),
    *map(retired_option, ("cache_window", "cache_buffer")),
)
#: Bytes of bodies that a worker collects at the same time.
BUFFER: Final = 64 << 20

_WRITES: Final = frozenset({"PUT", "POST", "DELETE"})
#: Answers that say what was written; after any other the timestamp is of no use.
_STORED: Final = {"PUT": (201,), "POST": (202,), "DELETE": (204,)}
#: Seconds after which a store that could not be opened is tried again.
_AGAIN: Final = 30.0
#: Seconds for which a container that was there is taken to be there (Swift itself remembers for 60).
_THERE: Final = 10.0
_MOST_CONTAINERS: Final = 10_000
#: Bodies up to this size are written where we are; handing them to a thread costs more.
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
        """``app``, with an eye on every write that goes to it."""
        self._app = app
        return _Watched(self, app)

    def visit(self, call: Call, params: Mapping[str, Scalar | None]) -> Visit | None:
        """The visit that accompanies ``call``."""
        if call.method not in ("GET", "HEAD", "PUT") or self._app is None or not self.is_open():
            return None
        key = object_key(call.environ)
        if key is None:
            return None
        kind = WriteVisit if call.method == "PUT" else read_visit
        return kind(self, call, key, params)

    def prefetch(self, call: Call, params: Mapping[str, Scalar | None]) -> Visit | None:
        """The visit that reads ahead of ``call``."""
        return self._prefetcher.visit(call, params) if self._app is not None and self.is_open() else None

    def complete_facts(self, env: Env, facts: Facts) -> Facts:
        """``facts`` with what a kept copy of the object says; type and tags only once the disks were asked for them."""
        key = object_key(env) if self.is_open() else None
        return facts if key is None else self.store.complete_facts(key, facts)

    def write(self, app: App, env: Env, key: bytes) -> UpstreamResponse:
        """Make a write, and tell that it began and how it ended."""
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
        """Whether writes can be reported, which needs less than a store."""
        if self._marks is not None and self._process == os.getpid():
            return True
        if not self._is_time("marks"):
            return False
        try:
            self._marks = open_write_marks(self._folder)
        except PeerError as error:
            self._logger.error("sluice: cache: writes through this worker are not told: %s", error)
            return False
        self._journal = WriteJournal(self._folder, self._marks)
        self._store = None
        self._process = os.getpid()
        return True

    def is_open(self) -> bool:
        """Whether there is a store; one that could not be opened is tried again now and then."""
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
        """The store, open while there are visits."""
        assert self._store is not None
        return self._store

    def is_trusted(self) -> bool:
        """Whether every write of a second ago and before is known here."""
        return self._alone or self.store.marks.is_trusted()

    def container_is_there(self, env: Env) -> bool:
        """Return False when the container or its account is gone: its objects may be deleted, which nobody reports."""
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
        """Keep a body without making anybody wait."""
        if sum(map(len, given[3])) <= _INLINE:
            self.store_now(keep, *given)
        else:
            green.start_in_thread(self.store_now, keep, *given)

    def store_now(self, keep: Callable[..., bool], *given: Any) -> None:
        """Keep a body now."""
        try:
            keep(*given)
        except Exception:  # nobody waits for it, so nobody else would tell
            self._logger.exception("sluice: cache: an object was not kept")


class _Watched:
    """The application below the proxy middleware, for everybody above."""

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
        return getattr(self._app, name)  # Swift looks for the end of the pipeline here


def open_cache(options: Mapping[str, Any], logger: Logger) -> NodeCache | None:
    """The cache that ``options`` ask for; None without ``cache_dir``.

    :raises OptionError: for a value that cannot be used
    """
    if options["cache_policy"] not in POLICIES:
        names = " or ".join(POLICIES)
        raise OptionError(f"option `cache_policy` is `{options['cache_policy']}`, expected {names}")
    if options["cache_size"] < 0:
        raise OptionError(f"option `cache_size` is `{options['cache_size']}`, expected 0 or more")
    return NodeCache(options, logger) if options["cache_dir"] else None


def object_key(env: Env) -> bytes | None:
    """The key of the object of a request; None when it is for none, or one of Swift's own."""
    path: str = env["PATH_INFO"]
    parts = path.split("/", 4)
    if len(parts) != 5 or not parts[4] or not parts[3] or parts[2][:1] in ("", "."):
        return None
    if "\0" in path and "HTTP_X_BACKEND_ALLOW_RESERVED_NAMES" not in env:
        return None  # Swift refuses it
    return object_digest("/".join(parts[2:]).encode("latin-1"))
