"""``egg:openstack-sluice#proxy``: policies on the proxy server.

Place in the pipeline.  It must stand right of every middleware that turns one client request into several or other
requests (``copy``, ``slo``, ``dlo``, ``versioned_writes``, ``symlink``): so it sees each stored object once.  It must
stand left of Swift's ``keymaster`` and ``encryption`` and of ``proxy-server``: so its encoded bytes are encrypted, and
ciphertext is never compressed.  This is the place of Swift's own encryption, for the same reasons.

For container-sync it makes timestamps comparable with those of rows (:func:`_after_offsets`).

A request without an object passes untouched.  The exception is a PUT that creates a container in an account with a
placement (:mod:`placement`).  Every object request is measured, throttled and handled by :mod:`object_handler`. This
module holds the state of the process: options, plugins, the snapshot, the sockets to the agent.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from sluice_core.describe import PROXY
from sluice_core.errors import SluiceError
from sluice_core.options import Option, read_options
from sluice_filters.registry import load_filters
from sluice_metrics.meter.busiest import LIMIT
from sluice_metrics.registry import load_metrics
from sluice_middleware.bandwidth.limiter import BandwidthLimiter
from sluice_middleware.cache import node_cache
from sluice_middleware.cache.visit import SEARCHED
from sluice_middleware.log import Logger, open_logger
from sluice_middleware.motifs.daemon_client import DaemonClient
from sluice_middleware.motifs.rights import public_error
from sluice_middleware.proxy.metric_adapters import RequestMetrics, count_body
from sluice_middleware.proxy.metric_reporter import Reporter, WorkerMetrics
from sluice_middleware.proxy.object_handler import ObjectHandler
from sluice_middleware.proxy.placement import ContainerPlacement
from sluice_middleware.swift import green
from sluice_middleware.swift.internal_api import Timestamp
from sluice_middleware.swift.proxy_api import register_swift_info
from sluice_middleware.wsgi import decoding
from sluice_middleware.wsgi.policy_lookup import LOOKED_UP, logical_object, object_path
from sluice_middleware.wsgi.response import App, Env, Headers, StartResponse
from sluice_middleware.wsgi.sysmeta import find_header
from sluice_middleware.wsgi.worker_context import OPTIONS, PASTE_OPTIONS, WorkerContext
from sluice_motif_control.announcements import MOTIF_STATES

PROXY_OPTIONS: Final = (
    *OPTIONS,
    *node_cache.OPTIONS,
    Option("motif_socket", "", "unix socket of the node's motif daemon; empty for none, then no object is expanded"),
    Option("busiest_objects", LIMIT, "objects whose metrics a worker counts, the busiest; 0 for none"),
)
#: The process that imported this module; a forked worker has another one.
_IMPORTED_BY: Final = os.getpid()
#: In requests of Swift's daemons; gatekeeper removes it from requests of clients, and the proxy adds it to all.
_FROM_DAEMON: Final = "HTTP_X_BACKEND_STORAGE_POLICY_INDEX"
_NOT_LOOKED_UP: Final = (None, None, None)


class ProxyMiddleware:
    """The WSGI filter; one per worker.

    It reports to the agent from its start on, so that the agent knows every worker: ``swift.common.wsgi`` loads the
    pipeline once to check it, and again in each worker.  In a server that does not fork, the first request starts the
    reports.
    """

    def __init__(self, app: App, options: Mapping[str, Any], logger: Logger) -> None:
        """
        :param options: the values of ``PROXY_OPTIONS``
        """
        self.app = app
        self.logger = logger
        cache = node_cache.open_cache(options, logger)
        self.context = WorkerContext(options, logger, cache)
        self.filters, self.reader = self.context.filters, self.context.reader
        metrics = load_metrics(self.context.failures)
        for name, reason in self.context.failures.items():
            self.logger.error("sluice: plugin `%s` is left out: %s", name, reason)
        self._metrics = WorkerMetrics(metrics, options, logger)
        self.meter = self._metrics.meter
        self.reporter = Reporter(
            options["agent_socket"],
            self.meter,
            self._actions(),
            lambda: self.reader.snapshot_id,
            self.logger,
            self.context.failures,
            motifs=MOTIF_STATES if options["motif_socket"] else 0,
        )
        self.context.filters_changed = lambda: self.reporter.update_actions(self._actions())
        below = app if cache is None else cache.wrap(app)
        motifs = DaemonClient(options["motif_socket"])
        self.handler = ObjectHandler(below, self.context.lookup, self.filters, logger, cache, motifs)
        self._placement = ContainerPlacement(app, lambda account: self.context.reader.placement(account))
        self.limiter = BandwidthLimiter(options["agent_socket"], PROXY, logger)
        self._alive: set[RequestMetrics] = set()
        self._started = self._reporting = False

    def __call__(self, env: Env, start_response: StartResponse) -> Iterable[bytes]:
        path, target, candidates = env.pop(LOOKED_UP, _NOT_LOOKED_UP)
        if path != env["PATH_INFO"]:  # a middleware in between may have changed the path
            target, candidates = object_path(env), None
        if target is None:
            return self._no_object(env, start_response)
        if not self._started:
            self._start(env)
        if candidates is None:
            candidates = self.context.lookup.candidates(target)
        method, from_daemon = env["REQUEST_METHOD"], _FROM_DAEMON in env
        named = logical_object(target)
        metrics = RequestMetrics(self.meter.begin(*named), method, env.get("swift.source"), self._alive)
        throttled = None
        if method == "PUT":
            throttled = self.limiter.throttle_upload(env, target, candidates, metrics)
        try:
            answer = self.handler.handle(env, target, candidates=candidates)
            body = self.limiter.throttle_download(env, target, answer, candidates) if method == "GET" else answer.body
        except SluiceError as error:
            metrics.end(decoding.refusal_status(error))
            self.logger.error("sluice: %s %s refused: %s", method, env["PATH_INFO"], error)
            return decoding.refuse(env, public_error(env, target[0], error), start_response)
        except BaseException:
            metrics.end(500)  # the status that Swift's catch_errors returns
            raise
        finally:
            if throttled is not None:
                throttled.close()
        metrics.answered(answer.status, env.pop(SEARCHED, ""))
        headers = _after_offsets(answer.headers) if from_daemon else answer.headers
        start_response(answer.status, headers, answer.exc_info)
        return count_body(body, metrics)

    def _no_object(self, env: Env, start_response: StartResponse) -> Iterable[bytes]:
        if env["REQUEST_METHOD"] != "PUT":
            return self.app(env, start_response)
        if not self._started:
            self._start(env)
        return self._placement(env, start_response)

    def _actions(self) -> dict[str, int]:
        return {keyword: one.info.version for keyword, one in self.filters.items()}

    def start_reports(self) -> None:
        """Start to report this worker to the agent each second; after the fork, since processes cannot share a
        connection.
        """
        if not self._reporting:
            self._reporting = True
            self.context.start()
            green.each_second(self._report)

    def _start(self, env: Env) -> None:
        self._started = True
        self.start_reports()
        self.limiter.start(env)
        self._report()

    def _report(self) -> None:
        """Send the counters to the agent; uploaded metrics are added and removed here, between two messages."""
        for metrics in self._alive:
            metrics.flush()
        if self._metrics.apply_uploads(self.reader.uploads):
            self.reporter.update_actions(self._actions())
        self.reporter.tick()


def _after_offsets(headers: Headers) -> Headers:
    """The headers of an object for one of Swift's daemons, with an ``X-Timestamp`` that no offset exceeds.

    Swift writes this header without the offset of an object whose bytes were replaced.  A row of the container has it,
    so container-sync considers the object that it reads older than the row, each time.  The timestamp is rounded up
    rather than sent with its offset: container-sync stores the object in the other cluster under it, and that cluster
    may have a container-sync of its own, and no Sluice.
    """
    stored = Timestamp(find_header(headers, "X-Backend-Timestamp") or 0)
    if not stored.offset:
        return headers
    rest = [(name, value) for name, value in headers if name.lower() != "x-timestamp"]
    return [*rest, ("X-Timestamp", Timestamp(stored.timestamp, delta=1).normal)]


def filter_factory(global_conf: dict[str, str], **local_conf: str) -> Callable[[App], ProxyMiddleware]:
    """Paste's entry point.

    :raises OptionError: for unknown options and bad values, all at once
    """
    options = read_options(PROXY_OPTIONS, local_conf, "[filter:sluice]", PASTE_OPTIONS)
    logger = open_logger({**global_conf, **local_conf}, "sluice")
    register_swift_info("sluice", filters=sorted(load_filters()))

    def make(app: App) -> ProxyMiddleware:
        proxy = ProxyMiddleware(app, options, logger)
        if os.getpid() != _IMPORTED_BY:
            proxy.start_reports()
        return proxy

    return make
