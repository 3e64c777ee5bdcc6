"""The catalogue of this cluster: installed and uploaded filters and metrics, built-in words, motifs and volumes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from sluice_code.volume_filters import describe_volume_filter
from sluice_controller.config import Config
from sluice_controller.identity.projects import ProjectAccounts, Session
from sluice_core.describe import NATIVE, NBDKIT, STORLET, ActionInfo
from sluice_core.errors import CallerError, PeerError, SluiceError
from sluice_core.messages.policies import Target
from sluice_core.messages.uploads import FILTER_CODE, METRIC_CODE, Upload
from sluice_core.store.store import Store
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.catalogue.extensions import VolumeIndex, with_motifs, with_volumes
from sluice_dsl.catalogue.vocabulary import base_catalogue
from sluice_dsl.diagnostics import closest_match
from sluice_filters import registry as filters
from sluice_filters.trial.native import native_info
from sluice_metrics import registry as metrics
from sluice_metrics.native import metric_info
from sluice_motif_control.calls import live_daemons
from sluice_motif_control.messages import MotifDaemon, MotifTemplate
from sluice_sandbox.descriptions import describe_upload
from sluice_sandbox.storlets.invocation import StorletInvocation
from sluice_volumes.messages import VolumeRecord
from sluice_volumes.operations import RECORDS

log = logging.getLogger(__name__)

#: Seconds for which the names of volumes, and whether there are any, are remembered.
REMEMBERED: Final = 1.0


class KnownVolumes:
    """The volumes that sentences may name: those of Cinder, or without Cinder those with a record of Sluice.

    A cluster has volumes if there is a Cinder, a node has a konnector, or a volume has a record.  Reads Redis at most
    once in :data:`REMEMBERED` seconds, and once more for an unknown name, so that a new volume can be
    named at once.

    :param search: finds the volumes of all projects with a name or id; None without a Cinder
    """

    def __init__(
        self,
        store: Store,
        search: Callable[[str], Sequence[VolumeRecord]] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._search = search
        self._now = now
        self._lock = threading.Lock()
        self._index = VolumeIndex(())
        self._available = False
        self._read_at = float("-inf")

    def extend(self, native: Catalogue) -> Catalogue:
        """``native`` with volumes, if the cluster has any.

        :raises PeerError: when Redis is unreachable
        """
        with self._lock:
            self._refresh(REMEMBERED)
            if not self._available:
                return native
        return with_volumes(native, lambda name: self._find(name, native.account), self._names)

    def _find(self, name: str, account_of: Callable[[str], str]) -> Sequence[Target]:
        if self._search is not None:
            try:
                # a volume may have a slash in its name
                words = dict.fromkeys((name, name.partition("/")[2]))
                seen = [one for word in words if word for one in self._search(word)]
                return VolumeIndex(seen).find(name, account_of)
            except PeerError as error:
                log.warning("names of volumes are looked up among those of Sluice alone: %s", error)
        with self._lock:
            index = self._index
        found = index.find(name, account_of)
        if found:
            return found
        with self._lock:
            self._refresh(0.0)
            index = self._index
        return index.find(name, account_of)

    def _names(self) -> Collection[str]:
        with self._lock:
            return self._index.names()

    def _refresh(self, age: float) -> None:
        now = self._now()
        if now - self._read_at < age:
            return
        records = self._store.run(RECORDS.read_all(self._store.keys))
        self._index = VolumeIndex(records.values())
        has_konnectors = any(one.konnector for one in self._store.nodes())
        self._available = self._search is not None or bool(records) or has_konnectors
        self._read_at = now


def filter_info(upload: Upload) -> ActionInfo:
    """The description of a registered filter with code for the language.

    :raises BadUpload: when its description is not valid
    """
    if upload.environment == NATIVE:
        return native_info(upload)
    return describe_volume_filter(upload) if upload.environment == NBDKIT else describe_upload(upload)


def with_uploads(native: Catalogue, uploads: Mapping[str, Upload]) -> Catalogue:
    """``native`` with the filters registered at run time that have code, and the uploaded metrics that are measured."""
    words = {}
    measured = {}
    for upload in uploads.values():
        try:
            if upload.kind == FILTER_CODE and upload.sha256:
                words[upload.keyword] = filter_info(upload)
            elif upload.kind == METRIC_CODE and upload.running:
                measured[upload.keyword] = metric_info(upload)
        except SluiceError as error:  # registered by a newer version
            log.error("skipped registered %s `%s`: %s", upload.kind, upload.keyword, error)
    if measured:
        native = replace(native, metrics={**measured, **native.metrics})
    if not words:
        return native
    explicit = _explicit(any(one.environment == STORLET for one in words.values()))
    return replace(native, actions={**words, **native.actions, **explicit})


def _explicit(available: bool) -> dict[str, ActionInfo]:
    """The keyword with which clients run storlets themselves; available once there are storlets."""
    return {StorletInvocation.info.keyword: replace(StorletInvocation.info, available=available)}


def with_projects(native: Catalogue, config: Config) -> Catalogue:
    """``native`` with the names of Keystone's projects as tenants; connects at the first look-up."""
    prefix = config.reseller_prefix
    return replace(native, tenants=ProjectAccounts(session_opener(config), prefix), account_prefix=prefix)


def session_opener(config: Config) -> Callable[[], Session]:
    """A function that opens a session of Sluice's service user, which may read all projects."""

    def open_session() -> Session:
        from sluice_controller.identity.keystone import read_conf, system_session

        found: Session = system_session(read_conf(config.keystone_source))
        return found

    return open_session


def build_catalogue(default_tenant: str = "", erasure_coded: str = "") -> Catalogue:
    """The catalogue for the check of sentences; an installed filter replaces a built-in word.

    :param erasure_coded: containers, separated by commas
    """
    installed = filters.load_filters()
    words = {**_explicit(available=False), **filters.descriptions(installed)}
    return replace(
        base_catalogue(words, metrics.descriptions(), installed),
        default_tenant=default_tenant,
        erasure_coded=frozenset(filter(None, map(str.strip, erasure_coded.split(",")))),
    )


def account_of(native: Catalogue, tenant: str) -> str:
    """The account of a tenant, which may be given by its project's name, as in sentences.

    :raises CallerError: when it is neither a project nor an account
    """
    account = native.account(tenant)
    if not account.startswith(native.account_prefix):
        near = closest_match(tenant, native.tenants)
        hint = f"did you mean `{near}`" if near else f"expected one, or an account `{native.account_prefix}…`"
        raise CallerError(f"there is no project `{tenant}`, {hint}")
    return account


class KnownMotifs:
    """Reads Redis at most once in :data:`REMEMBERED` seconds, and at each call while no daemon is known."""

    def __init__(self, store: Store, now: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._now = now
        self._lock = threading.Lock()
        self._daemons: list[MotifDaemon] = []
        self._read_at = float("-inf")

    def daemons(self) -> Sequence[MotifDaemon]:
        """The running daemons.

        :raises PeerError: when Redis is unreachable
        """
        with self._lock:
            now = self._now()
            if not self._daemons or now - self._read_at >= REMEMBERED:
                self._daemons = self._store.run(live_daemons(self._store.keys))
                self._read_at = now
            return self._daemons

    def templates(self) -> dict[str, MotifTemplate]:
        """The templates that every daemon has, by keyword: any daemon may have to expand an object.

        :raises PeerError: when Redis is unreachable
        """
        daemons = self.daemons()
        if not daemons:
            return {}
        known = [{one.keyword: one for one in daemon.templates} for daemon in daemons]
        common = set.intersection(*map(set, known))
        return {keyword: known[0][keyword] for keyword in sorted(common)}

    def extend(self, native: Catalogue) -> Catalogue:
        """``native`` with motifs, if a daemon runs.

        :raises PeerError: when Redis is unreachable
        """
        if not self.daemons():
            return native
        return with_motifs(native, _infos(self.templates()))


def _infos(templates: dict[str, MotifTemplate]) -> dict[str, ActionInfo]:
    infos = {}
    for keyword, template in templates.items():
        try:
            infos[keyword] = template.info
        except TypeError as error:  # the template of a newer daemon
            log.error("left out template `%s`: %s", keyword, error)
    return infos
