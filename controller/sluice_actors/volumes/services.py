"""The services of a host for volumes; most of them need a Cinder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sluice_actors.metrics.metric_router import MetricRouter
from sluice_actors.policies.group_index import GroupIndex
from sluice_actors.runtime.event_log import LogEvent
from sluice_actors.runtime.services import Ownership, Service
from sluice_actors.volumes.attachments import Confirmations, Revocations
from sluice_actors.volumes.discovery import PoolDiscovery
from sluice_actors.volumes.finishing import OperationFinisher
from sluice_actors.volumes.notifications import CinderNotifications
from sluice_actors.volumes.tier_keeper import TierKeeper
from sluice_actors.volumes.volume_floors import VolumeFloors
from sluice_actors.volumes.volume_report import VolumeReporter
from sluice_core.messages.policies import Change
from sluice_core.store.store import AsyncStore
from sluice_volumes.cinder.service import CinderService, CinderSettings, service_session
from sluice_volumes.konnector_client import TIMEOUT, NodeKonnectors


class VolumeServices:
    """:param settings: values of ``sluice_actors.settings.OPTIONS``
    :param groups: the host updates it before it calls :meth:`apply`
    :raises OptionError: when an option of Cinder is not valid
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        store: AsyncStore,
        ownership: Ownership,
        groups: GroupIndex,
        router: MetricRouter,
        clock: Callable[[], float],
        log_event: LogEvent,
    ) -> None:
        self._floors = VolumeFloors(settings, store, ownership, groups, clock, log_event)
        self._tiers: TierKeeper | None = None
        self._notifications: CinderNotifications | None = None
        #: In the order in which they are started.
        self.services: list[Service] = [self._floors, VolumeReporter(router, store, ownership, clock)]
        place = CinderSettings.from_options(settings)
        if place is not None:
            cinder = CinderService(place)
            self._tiers = TierKeeper(cinder, store, ownership, groups, clock, log_event)
            self.services += [PoolDiscovery(cinder, store, ownership, clock, settings["amqp_url"]), self._tiers]
            self.services += _of_operations(settings, place, cinder, store, ownership, clock, log_event)
        if settings["cinder_amqp_url"]:
            exchange, durable = settings["cinder_exchange"], settings["cinder_exchange_durable"]
            self._notifications = CinderNotifications(
                settings["cinder_amqp_url"], exchange, durable, ownership, log_event
            )
            self.services.append(self._notifications)

    def reload(self) -> None:
        """Read the store anew, since the state read before may be out of date."""
        self._floors.reload()
        if self._tiers is not None:
            self._tiers.reload()

    def apply(self, change: Change) -> None:
        """Apply ``change``, which the groups contain already."""
        self._floors.apply(change)
        if self._tiers is not None:
            self._tiers.apply(change)

    def hears_cinder(self) -> bool:
        """Whether this host reads Cinder's notifications now."""
        return self._notifications is not None and self._notifications.consumer.connected.is_set()


def _of_operations(
    settings: Mapping[str, Any],
    place: CinderSettings,
    cinder: CinderService,
    store: AsyncStore,
    ownership: Ownership,
    clock: Callable[[], float],
    log_event: LogEvent,
) -> Iterator[Service]:
    """The services that finish operations, revoke missed detachments, and confirm attachments."""
    session = service_session(place, TIMEOUT)

    def konnectors(urls: Mapping[str, str]) -> NodeKonnectors:
        return NodeKonnectors(session, lambda: urls, place.konnector_ca_file)

    yield Confirmations(konnectors, store, ownership, settings["node_timeout"], clock, log_event, cinder)
    yield Revocations(konnectors, store, ownership, settings["node_timeout"], clock, log_event)
    yield OperationFinisher(cinder, konnectors, store, ownership, settings["reseller_prefix"], clock)
