"""The store, policy cache, catalogue and clock of a process for its requests, and the counters of requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from typing import Final, TypeVar

from django.conf import settings
from prometheus_client import CollectorRegistry, Counter, Histogram

from sluice_code.swift_code_store import SwiftCodeStore, SwiftCodeStoreSettings
from sluice_controller.catalog.policy_cache import CacheContents, PolicyCache, PolicyStatuses
from sluice_controller.catalog.vocabulary import (
    KnownMotifs,
    KnownVolumes,
    build_catalogue,
    session_opener,
    with_projects,
    with_uploads,
)
from sluice_controller.config import KEYSTONE, Config
from sluice_controller.identity.projects import ListedProjects
from sluice_core.errors import DecodeError, NotFound, PeerError
from sluice_core.store.operation import Operation
from sluice_core.store.store import Store
from sluice_dsl.catalogue.base import Catalogue
from sluice_volumes.cinder.service import CinderService, CinderSettings, service_session
from sluice_volumes.konnector_client import TIMEOUT, Konnector, NodeKonnectors, konnector_urls
from sluice_volumes.messages import VolumeRecord, is_volume_id

T = TypeVar("T")

# The counters of each worker process; ``sluice_controller.api.prometheus.cluster`` exports them.  They are in files
# that all workers share if ``PROMETHEUS_MULTIPROC_DIR`` is set before this import (``sluice_controller.app.server``
# does that before it forks), otherwise in memory.
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"})
OWN: Final = CollectorRegistry()
REQUESTS: Final = Counter("sluice_api_requests", "answers given", ["method", "route", "status"], registry=OWN)
SECONDS: Final = Histogram(
    "sluice_api_request_seconds",
    "duration of answers",
    ["method", "route"],
    buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0),
    registry=OWN,
)
REDIS_ERRORS: Final = Counter("sluice_redis_errors", "commands that Redis did not answer", registry=OWN)


def count_request(method: str, route: str, status: int, seconds: float) -> None:
    """Count one answer; ``route`` is that of the call, not the path of the request."""
    known = method if method in _METHODS else "other"
    REQUESTS.labels(known, route, str(status)).inc()
    SECONDS.labels(known, route).observe(seconds)


class CountedStore(Store):
    """A store whose errors are counted."""

    def run(self, operation: Operation[T]) -> T:
        try:
            return super().run(operation)
        except DecodeError:
            raise
        except PeerError:
            REDIS_ERRORS.inc()
            raise


@dataclass(frozen=True, slots=True)
class Backend:
    """Passed to services and selectors, which know neither Django nor settings.

    ``native`` is the vocabulary of the installed software, :attr:`catalogue` that with the registered words.
    ``code`` is the store for the code of filters, None without one; ``volumes`` finds volumes by name for sentences,
    None without a Cinder.
    ``motifs`` returns the running daemons `sluice-motifs`, None without motifs.
    ``projects`` are those of Keystone; None without it.
    ``cinder`` is Cinder with the rights of Sluice's service user, ``konnectors`` gives the konnector of a node; None
    without a Cinder.
    ``history`` is the Redis with the history of metrics.
    ``now`` is Unix time in seconds; ``waiters`` are the slots for requests that wait for a roll-out.
    """

    config: Config
    store: Store
    native: Catalogue
    policy_cache: PolicyCache
    policy_statuses: PolicyStatuses
    waiters: threading.BoundedSemaphore
    history: Store
    now: Callable[[], float] = time.time
    code: SwiftCodeStore | None = None
    volumes: KnownVolumes | None = None
    motifs: KnownMotifs | None = None
    cinder: CinderService | None = None
    konnectors: Callable[[str], Konnector] | None = None
    projects: ListedProjects | None = None

    @property
    def catalogue(self) -> Catalogue:
        """The current catalogue for the check of sentences.

        :raises PeerError: when Redis is unreachable
        """
        return self.vocabulary(self.policy_cache.contents())

    def vocabulary(self, contents: CacheContents) -> Catalogue:
        """The catalogue at the moment of ``contents``."""
        return contents.vocabulary.extend(self.described(contents))

    def described(self, contents: CacheContents) -> Catalogue:
        """The actions and metrics of that catalogue, without the words of the registry."""
        return with_uploads(self.built_in, contents.uploads)

    @property
    def built_in(self) -> Catalogue:
        """The installed vocabulary, with that of volumes and motifs if there are any, without registered words.

        :raises PeerError: when Redis is unreachable
        """
        native = replace(self.native, known_nodes=self._node_names)
        if self.volumes is not None:
            native = self.volumes.extend(native)
        if self.motifs is not None:
            native = self.motifs.extend(native)
        return native

    def label(self, path: str) -> str:
        """An account or a path in it, with its project's name in place of the account; empty if that is not known."""
        account, slash, rest = path.partition("/")
        name = "" if self.projects is None else self.projects.name(account)
        return f"{name}{slash}{rest}" if name else ""

    def _node_names(self) -> list[str]:
        return [one.node for one in self.store.nodes()]


@lru_cache(maxsize=8)
def open_backend(config: Config) -> Backend:
    """The backend of ``config``; it connects at the first request, so after the fork."""
    store = CountedStore(config.redis_url, config.redis_prefix)
    waiters = threading.BoundedSemaphore(config.threads - 1)
    place = SwiftCodeStoreSettings.from_options(asdict(config))
    code = None if place is None else SwiftCodeStore(place)
    native = build_catalogue(config.default_tenant, config.erasure_coded)
    projects = None
    if config.auth == KEYSTONE:
        native = with_projects(native, config)
        projects = ListedProjects(session_opener(config), config.reseller_prefix)
    cinder, konnectors = _open_cinder(config, store)
    history_url = config.history_redis_url
    history = CountedStore(history_url, config.redis_prefix) if history_url else store
    return Backend(
        config,
        store,
        native,
        PolicyCache(store),
        PolicyStatuses(store),
        waiters,
        history,
        code=code,
        volumes=KnownVolumes(store, None if cinder is None else partial(_named_volumes, cinder, config)),
        motifs=KnownMotifs(store),
        cinder=cinder,
        konnectors=konnectors,
        projects=projects,
    )


def _open_cinder(config: Config, store: Store) -> tuple[CinderService | None, NodeKonnectors | None]:
    settings = CinderSettings.from_options(asdict(config))
    if settings is None:
        return None, None
    session = service_session(settings, TIMEOUT)
    konnectors = NodeKonnectors(session, lambda: konnector_urls(store.nodes()), settings.konnector_ca_file)
    return CinderService(settings), konnectors


def _named_volumes(cinder: CinderService, config: Config, word: str) -> list[VolumeRecord]:
    """The volumes of all projects whose name or id is ``word``.

    :raises PeerError: when Cinder is away
    """
    try:
        named = [cinder.volume(word)] if is_volume_id(word) else cinder.volumes(everybody=True, name=word)
    except NotFound:
        return []
    return [VolumeRecord(one.id, one.project, config.reseller_prefix + one.project, one.name) for one in named]


def current_backend() -> Backend:
    """The backend of this process."""
    return open_backend(settings.SLUICE)
