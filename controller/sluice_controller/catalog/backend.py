"""The store, policy cache, catalogue and clock that requests work with, made once per process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial

from django.conf import settings

from sluice_code.swift_code_store import SwiftCodeStore, SwiftCodeStoreSettings
from sluice_controller.catalog.counters import CountedStore
from sluice_controller.catalog.motif_daemons import KnownMotifs
from sluice_controller.catalog.policy_cache import CacheContents, PolicyCache
from sluice_controller.catalog.policy_statuses import PolicyStatuses
from sluice_controller.catalog.vocabulary import (
    KnownVolumes,
    build_catalogue,
    session_opener,
    with_projects,
    with_uploads,
)
from sluice_controller.config import KEYSTONE, Config
from sluice_controller.identity.projects import ListedProjects
from sluice_core.errors import NotFound
from sluice_core.store.store import Store
from sluice_dsl.catalogue.base import Catalogue
from sluice_volumes.cinder.options import CinderSettings, service_session
from sluice_volumes.cinder.service import CinderService
from sluice_volumes.konnector_client import TIMEOUT, Konnector, NodeKonnectors, konnector_urls
from sluice_volumes.messages import VolumeRecord, is_volume_id


@dataclass(frozen=True, slots=True)
class Backend:
    """Handed to services and selectors; they know neither Django nor settings.

    ``native`` is the vocabulary of what is installed, :attr:`catalogue` that with what is registered.
    ``code`` is where the code of filters lies, None without such a place; ``volumes`` what sentences may call volumes,
    None where nobody asks.
    ``motifs`` are the daemons `sluice-motifs` that run, None where nobody asks.
    ``projects`` are those of Keystone; None without it.
    ``cinder`` is Cinder as our service user sees it, ``konnectors`` gives the konnector of a node; None
    without a Cinder.
    ``history`` is the Redis with the history of metrics.
    ``now`` is unix time in seconds; ``waiters`` are the places for requests that wait for a roll-out.
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
        """The catalogue that sentences are checked against now.

        :raises PeerError: when Redis is away
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
        """What is installed, and what volumes and motifs add while there are any; nothing that somebody registered.

        :raises PeerError: when Redis is away
        """
        native = replace(self.native, known_nodes=self._node_names)
        if self.volumes is not None:
            native = self.volumes.extend(native)
        if self.motifs is not None:
            native = self.motifs.extend(native)
        return native

    def label(self, path: str) -> str:
        """An account, or what is in it, with the name of its project in front; empty where that is not known."""
        account, slash, rest = path.partition("/")
        name = "" if self.projects is None else self.projects.name(account)
        return f"{name}{slash}{rest}" if name else ""

    def _node_names(self) -> list[str]:
        return [one.node for one in self.store.nodes()]


@lru_cache(maxsize=8)
def open_backend(config: Config) -> Backend:
    """The backend of ``config``; connects when it is first asked, hence after the fork."""
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
    """The volumes of all projects that are called ``word`` or have it as their id.

    :raises PeerError: when Cinder is away
    """
    try:
        found = [cinder.volume(word)] if is_volume_id(word) else cinder.volumes(everybody=True, name=word)
    except NotFound:
        return []
    return [VolumeRecord(one.id, one.project, config.reseller_prefix + one.project, one.name) for one in found]


def current_backend() -> Backend:
    """The backend of this process."""
    return open_backend(settings.SLUICE)
