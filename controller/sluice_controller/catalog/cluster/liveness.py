"""The health of what the controller depends on: Redis, actor hosts, broker, nodes and Keystone."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.cluster.enforcement import OK
from sluice_controller.catalog.selectors import cluster_now
from sluice_controller.config import KEYSTONE
from sluice_controller.identity.keystone_probe import probe_for
from sluice_core.errors import PeerError

log = logging.getLogger(__name__)

DEGRADED: Final = "degraded"


def dependency_health(backend: Backend) -> dict[str, str]:
    """``ok`` or ``degraded`` for each; no details, anybody may ask.

    ``actors``: a host lives; ``broker``: one that lives is connected to it; ``nodes``: all are well; ``keystone``,
    where it says who asks: it answers.
    """
    return {**_of_redis(backend), **_of_keystone(backend)}


def _of_keystone(backend: Backend) -> dict[str, str]:
    config = backend.config
    if config.auth != KEYSTONE or not config.keystone_source:
        return {}
    return {"keystone": OK if probe_for(config.keystone_source).is_up() else DEGRADED}


def _of_redis(backend: Backend) -> dict[str, str]:
    try:
        cluster = cluster_now(backend)
        hosts = backend.store.hosts()
    except PeerError as error:
        log.warning("health: %s", error)
        return dict.fromkeys(("redis", "actors", "broker", "nodes"), DEGRADED)
    alive = [host for host in hosts.values() if is_alive(backend, host)]
    connected = any(host.get("bus") is True for host in alive)
    well = bool(cluster.nodes) and all(cluster.state(node) == OK for node in cluster.nodes)
    found = {"redis": True, "actors": bool(alive), "broker": connected, "nodes": well}
    return {name: OK if good else DEGRADED for name, good in found.items()}


def is_alive(backend: Backend, host: Mapping[str, Any]) -> bool:
    """Whether an actor host has spoken lately, by its report."""
    at = host.get("at")
    return isinstance(at, int | float) and backend.now() - at <= backend.config.node_timeout
