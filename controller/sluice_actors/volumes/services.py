"""The services of a host that need a Cinder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sluice_actors.runtime.ownership import Ownership
from sluice_actors.runtime.tasks import Service
from sluice_actors.volumes.discovery import PoolDiscovery
from sluice_actors.volumes.finishing import OperationFinisher
from sluice_core.store.store import AsyncStore
from sluice_core.volumes.cinder_adapter import CinderService
from sluice_core.volumes.cinder_options import CinderSettings, service_session
from sluice_core.volumes.konnector_client import TIMEOUT, NodeKonnectors


def volume_services(
    settings: Mapping[str, Any], store: AsyncStore, ownership: Ownership, clock: Callable[[], float]
) -> list[Service]:
    """The services; none without a Cinder.

    :param settings: values of ``sluice_actors.settings.OPTIONS``
    :raises OptionError: when an option of Cinder cannot be used
    """
    place = CinderSettings.from_options(settings)
    if place is None:
        return []
    cinder = CinderService(place)
    session = service_session(place, TIMEOUT)

    def konnectors(urls: Mapping[str, str]) -> NodeKonnectors:
        return NodeKonnectors(session, lambda: urls, place.konnector_ca_file)

    return [
        PoolDiscovery(cinder, store, ownership, clock),
        OperationFinisher(cinder, konnectors, store, ownership, settings["reseller_prefix"], clock),
    ]
