"""Builds a motif daemon from its configuration, and adapts the node's snapshot and event log to its contracts."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Final

from sluice_core.describe import MOTIF, PROXY
from sluice_core.errors import PeerError
from sluice_core.messages.elasticity import Membership, membership
from sluice_core.messages.events import Event
from sluice_core.messages.predicate import Facts
from sluice_core.options import OptionError
from sluice_core.process.logs import start_logging
from sluice_core.snapshot.reader import SnapshotReader
from sluice_core.store.store import Store
from sluice_middleware.bandwidth.limiter import BandwidthLimiter
from sluice_middleware.cache import node_cache
from sluice_middleware.proxy.object_handler import ObjectHandler
from sluice_middleware.swift import green
from sluice_middleware.wsgi.internal_client import SwiftClient, final_app, load_app
from sluice_middleware.wsgi.response import App
from sluice_middleware.wsgi.worker_context import WorkerContext
from sluice_motif_control.announcements import ContractionGuard
from sluice_motif_control.spaces import write_spaces
from sluice_motifs.contraction.copies import CopySweeper
from sluice_motifs.contraction.outdated import OutdatedContractor
from sluice_motifs.expansion.opening import ExpansionConfig
from sluice_motifs.expansion.turns import Turns
from sluice_motifs.runtime import Runtime
from sluice_motifs.runtime_calls import RuntimeCalls, described_templates
from sluice_motifs.space.controller import SpaceController
from sluice_motifs.space.keeper import SpaceConfig
from sluice_motifs.templates.registry import load_templates, template_context
from sluice_motifs_swift.attachments import Attachments, owns_account
from sluice_motifs_swift.changed_objects import ChangedObjects, NewContentObserver
from sluice_motifs_swift.cluster.activity_exchange import ActivityExchange
from sluice_motifs_swift.cluster.call_server import CallServer
from sluice_motifs_swift.cluster.leases import RedisLeases
from sluice_motifs_swift.copy_upkeep import CopySweep, VersionOne
from sluice_motifs_swift.daemon import Daemon
from sluice_motifs_swift.objects.batched_app import BatchedApp
from sluice_motifs_swift.objects.containers import Containers, RetainedSources
from sluice_motifs_swift.objects.item_index import ItemIndex, RedisDerivations
from sluice_motifs_swift.objects.shim import SwiftShim
from sluice_motifs_swift.scan import NewItems, Scan
from sluice_motifs_swift.settings import read_settings
from sluice_motifs_swift.worker_calls import WorkerCalls, WorkerServer

log = logging.getLogger(__name__)

#: Sentences about spaces have no conditions on requests.
_NO_FACTS: Final = Facts("PUT")
#: Concurrent contractions, which share requests to the object servers.
_CONTRACTIONS: Final = 192


def make_daemon(*paths: Path) -> Daemon:
    """Build the daemon that the configuration files describe.

    :raises OptionError: when a file or an option cannot be used
    """
    values = read_settings(*paths)
    start_logging(values["log_level"], values["log_format"])
    if not Path(values["socket"]).parent.is_dir():
        raise OptionError(f"option `socket` is `{values['socket']}`, whose folder does not exist")
    context = WorkerContext(values, logging.getLogger("sluice"))
    failures: dict[str, str] = {}
    templates = load_templates(failures, template_context(values, context.uploaded_filter))
    for name, reason in failures.items():
        log.error("template `%s` is left out: %s", name, reason)
    store = Store(values["redis_url"], values["redis_prefix"])
    final, uploads = load_app(*paths), load_app(*paths)
    client = SwiftClient(final)
    containers, index = Containers(client), ItemIndex(store, client, templates)
    batched = BatchedApp(final)
    app, uploads = _with_cache((batched, uploads), values["cache_dir"])
    handler = ObjectHandler(app, context.lookup, context.filters, log)
    guard = ContractionGuard(store.nodes, time.time)
    limiter = BandwidthLimiter(values["agent_socket"], PROXY, log)
    policies = _Policies(context, store, limiter)
    shim = SwiftShim(
        handler, uploads, containers, index, templates, store, limiter, final_app(final), guard, policies.problem
    )
    node = values["node"] or socket.gethostname()
    report_event = EventReporter(store, node, time.time)
    turns = Turns(values["expansions"], lambda name: name.partition("/")[0])
    observer = NewContentObserver(report_event, templates, lambda names: changed.note(names))
    config = ExpansionConfig(pause=green.pause, turns=turns, observer=observer)
    leases = RedisLeases(store)
    grace = values["copy_grace"]
    runtime = Runtime(shim, leases, templates, config=config, grace=grace, may_share=owns_account)
    shim.reads.open, index.items = runtime.notify_open, runtime.items
    attachments = Attachments(runtime, shim, containers, index, templates)
    fresh = NewItems(runtime, shim, index.add)
    outdated = OutdatedContractor(shim, templates, RedisDerivations(store), runtime.contract, green.pause)
    changed = ChangedObjects(outdated, values["change_stream"])
    retained = RetainedSources(client, shim)
    answers = WorkerCalls(runtime, shim, attachments, retained, fresh.note, fresh.note_change, changed.note)
    server = WorkerServer(values["socket"], answers)
    # calls of the API, and spaces that are kept at their targets
    calls = RuntimeCalls(runtime, shim, guard, lambda name: spaces.space_of(name), attachments.admit)
    called = CallServer(store, calls, node, described_templates(templates), time.time)
    spaces = SpaceController(
        runtime,
        SnapshotRules(SnapshotReader(values["snapshot_dir"])),
        leases,
        called.daemon.name,
        SpaceConfig(
            guard=guard,
            report=lambda statuses: store.run(write_spaces(store.keys, statuses)),
            report_event=report_event,
            share=values["reexpansion_share"],
            contractions=_CONTRACTIONS,
        ),
    )
    exchange = ActivityExchange(store, runtime.items, called.daemon.name)
    sweep = CopySweep(CopySweeper(shim.copies, grace), leases, values["copy_sweep"])
    version_one = VersionOne(store, client, shim, containers, runtime, leases, templates)
    return Daemon(
        [policies, Scan(store, runtime), version_one, spaces, exchange, called, sweep, fresh, changed, server]
    )


def _with_cache(apps: Sequence[App], folder: str) -> Sequence[App]:
    """The applications, whose writes invalidate the caches of all proxies."""
    options = {option.name: option.default for option in node_cache.OPTIONS} | {"cache_dir": folder}
    cache = node_cache.open_cache(options, log)
    return apps if cache is None else [cache.wrap(app) for app in apps]


class _Policies:
    """A service: follows the snapshot of the node's agent, with its shares of bandwidth."""

    def __init__(self, context: WorkerContext, store: Store, limiter: BandwidthLimiter) -> None:
        self._context = context
        self._store = store
        self._limiter = limiter

    def problem(self) -> str:
        """Why the policies are unknown; empty when they are known, or there never was a snapshot."""
        problem = self._context.reader.problem
        if problem:
            try:
                if not self._store.head().history:
                    return ""
            except PeerError as error:
                return f"{problem}; {error}"
        return problem

    def start(self) -> None:
        self._context.start()
        self._limiter.start({})

    def stop(self) -> None:
        """Do nothing."""


class SnapshotRules:
    """The policies of spaces, from the snapshot of the node's agent; implements ``SpaceRules``.

    Items are named like objects: account/container/object.
    """

    def __init__(self, snapshot: SnapshotReader) -> None:
        self._snapshot = snapshot

    def refresh(self) -> Hashable:
        """History and epoch of the policies that are read from now on."""
        self._snapshot.refresh()
        position = self._snapshot.position()
        return position.history, position.epoch

    def container(self, item: str) -> str:
        """``account/container``."""
        return "/".join(item.split("/", 2)[:2])

    def membership(self, container: str) -> Membership | None:
        """The space of all items in a container; assignments to single objects do not concern spaces."""
        account, _, name = container.partition("/")
        pipelines = self._snapshot.find(account, name).resolve(_NO_FACTS)
        return membership(pipelines.get(MOTIF, ()), account, name)


class EventReporter:
    """Logs events in the name of a node; while Redis is unreachable they are only in the daemon's own log.

    :param now: unix seconds
    """

    def __init__(self, store: Store, node: str, now: Callable[[], float]) -> None:
        self._store = store
        self._node = node
        self._now = now

    def __call__(self, kind: str, subject: str, text: str) -> None:
        """
        :param kind: one of ``sluice_core.messages.events.KINDS``
        :param subject: its space or object
        """
        log.warning("%s: %s", kind, text)
        event = Event.make(self._now(), kind, text, f"motifs/{self._node}", subject=subject, node=self._node)
        try:
            self._store.append_events([event])
        except PeerError as error:
            log.warning("an event is not logged: %s", error)
