"""What the control plane has in a motif daemon: calls of the API, the spaces that are kept here, and what others do."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from sluice_core.errors import PeerError
from sluice_core.messages.events import Event
from sluice_core.motifs.announcements import ContractionGuard
from sluice_core.motifs.call_server import CallServer
from sluice_core.motifs.snapshot_rules import Snapshot, SnapshotRules
from sluice_core.motifs.spaces import write_spaces
from sluice_core.store.store import Store
from sluice_motifs.api import Template
from sluice_motifs.records import Motif
from sluice_motifs.runtime import Runtime
from sluice_motifs.runtime_calls import RuntimeCalls, described_templates
from sluice_motifs.shim import Leases, Shim
from sluice_motifs.space.controller import SpaceController, SpaceSurroundings
from sluice_motifs.space.exchange import ActivityExchange
from sluice_motifs_swift.daemon import Service

log = logging.getLogger(__name__)


def event_teller(store: Store) -> Callable[[str, str, str], None]:
    """What logs events of this node; while Redis is away they are in the daemon's log alone."""
    node = socket.gethostname()

    def tell(kind: str, subject: str, text: str) -> None:
        log.warning("%s: %s", kind, text)
        try:
            store.append_events([Event.make(time.time(), kind, text, f"motifs/{node}", subject=subject, node=node)])
        except PeerError as error:
            log.warning("an event is not logged: %s", error)

    return tell


def control_services(
    store: Store,
    runtime: Runtime,
    shim: Shim,
    leases: Leases,
    snapshot: Snapshot,
    templates: Mapping[str, type[Template]],
    admit: Callable[[str, Motif], Any],
    at_once: int = 4,
) -> list[Service]:
    """The services, in the order in which they start; before them nothing scans.

    :param snapshot: what policies say of spaces
    :param admit: as of ``RuntimeCalls``
    :param at_once: contractions and refills of spaces at a time
    """
    keys = store.keys
    guard = ContractionGuard(store.nodes, time.time)
    calls = RuntimeCalls(runtime, shim, guard, lambda name: spaces.space_of(name), admit)
    server = CallServer(store, calls, socket.gethostname(), described_templates(templates), time.time)
    around = SpaceSurroundings(
        guard,
        report=lambda statuses: store.run(write_spaces(keys, statuses)),
        tell=event_teller(store),
        at_once=at_once,
    )
    spaces = SpaceController(runtime, SnapshotRules(snapshot), leases, server.daemon.name, around)
    return [spaces, ActivityExchange(store, runtime.items, server.daemon.name), server]
