"""``egg:sluice#proxy``: policies on the proxy server.

It must stand right of everything that turns one client request into several or into others
(``copy``, ``slo``, ``dlo``, ``versioned_writes``, ``symlink``), so that it sees the objects that are
really stored, and left of Swift's ``keymaster`` and ``encryption`` and of ``proxy-server``, so that
what it stores is what is encrypted.  That is the place of Swift's own encryption, for the same reasons.

A request for no object passes untouched, but a PUT that makes a container where a placement says its storage
policy (``placing``).  Every object request is counted and answered by ``objects``.
What is in here belongs to the process: options, plugins, the snapshot, the socket to the agent.
"""

from __future__ import annotations

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
from sluice_middleware.proxy.metric_adapters import CountedInput, RequestMetrics, counted
from sluice_middleware.proxy.metric_loader import WorkerMetrics
from sluice_middleware.proxy.metric_reporter import Reporter
from sluice_middleware.proxy.object_handler import ObjectHandler
from sluice_middleware.proxy.placement import ContainerPlacement
from sluice_middleware.swift import green
from sluice_middleware.swift.proxy_api import get_logger, register_swift_info
from sluice_middleware.wsgi import decoding
from sluice_middleware.wsgi.policy_lookup import Env, logical, object_path
from sluice_middleware.wsgi.worker_context import NOT_OURS, OPTIONS, Logger, WorkerContext

StartResponse = Callable[..., Any]

PROXY_OPTIONS: Final = (
    *OPTIONS,
    *node_cache.OPTIONS,
    Option("busiest_objects", LIMIT, "objects whose metrics a worker counts, the busiest; 0 for none"),
)
App = Callable[[Env, StartResponse], Iterable[bytes]]


class ProxyMiddleware:
    """The WSGI filter; one per worker, told to work by the first request (after the fork)."""

    def __init__(self, app: App, options: Mapping[str, Any], logger: Logger) -> None:
        """
        :param options: the values of ``PROXY_OPTIONS``
        """
        self.app = app
        self.logger = logger
        cache = node_cache.open_cache(options, logger)
        self.lookout = WorkerContext(options, logger, cache)
        self.filters, self.reader = self.lookout.filters, self.lookout.reader
        metrics = load_metrics(self.lookout.failures)
        for name, reason in self.lookout.failures.items():
            self.logger.error("sluice: plugin `%s` is left out: %s", name, reason)
        self._measuring = WorkerMetrics(metrics, options, logger)
        self.meter = self._measuring.meter
        self.reporter = Reporter(
            options["agent_socket"], self.meter, self._actions(), lambda: self.reader.snapshot_id, self.logger
        )
        self.lookout.changed = lambda: self.reporter.announce(self._actions())
        below = app if cache is None else cache.watched(app)
        self.objects = ObjectHandler(below, self.lookout.selector, self.filters, logger)
        self._placing = ContainerPlacement(app, lambda account: self.lookout.reader.placement(account))
        self.regulator = BandwidthLimiter(options["agent_socket"], PROXY, self.lookout.selector, logger)
        self._alive: set[RequestMetrics] = set()
        self._at_work = False

    def __call__(self, env: Env, start_response: StartResponse) -> Iterable[bytes]:
        target = object_path(env)
        if target is None:
            return self._no_object(env, start_response)
        if not self._at_work:
            self._go_to_work(env)
        method = env["REQUEST_METHOD"]
        named = logical(target)
        life = RequestMetrics(self.meter.begin(*named), method, env.get("swift.source"), self._alive)
        paying = None
        if method == "PUT":
            paying = self.regulator.upload(env, target)
            env["wsgi.input"] = CountedInput(env["wsgi.input"], life)
        try:
            answer = self.objects.ask(env, target)
            body = self.regulator.download(env, target, answer) if method == "GET" else answer.body
        except SluiceError as error:
            life.ended()
            self.logger.error("sluice: %s %s refused: %s", method, env["PATH_INFO"], error)
            return decoding.refuse(env, error, start_response)
        except BaseException:
            life.ended()
            raise
        finally:
            if paying is not None:
                paying.close()
        life.answered(answer.status)
        start_response(answer.status, answer.headers, answer.exc_info)
        return counted(body, life)

    def _no_object(self, env: Env, start_response: StartResponse) -> Iterable[bytes]:
        if env["REQUEST_METHOD"] != "PUT":
            return self.app(env, start_response)
        if not self._at_work:
            self._go_to_work(env)
        return self._placing(env, start_response)

    def _actions(self) -> dict[str, int]:
        return {keyword: one.info.version for keyword, one in self.filters.items()}

    def _go_to_work(self, env: Env) -> None:
        """Each worker starts after its fork: no connection is shared by two."""
        self._at_work = True
        self.lookout.start()
        self.regulator.start(env)
        green.each_second(self._tell)
        self._tell()

    def _tell(self) -> None:
        """Tell the agent what was counted; uploaded metrics come and go here, between two messages."""
        for life in self._alive:
            life.look()
        if self._measuring.take(self.reader.uploads):
            self.reporter.announce(self._actions())
        self.reporter.tick()


def filter_factory(global_conf: dict[str, str], **local_conf: str) -> Callable[[App], ProxyMiddleware]:
    """Paste's entry point.

    :raises OptionError: unknown options and bad values, all at once
    """
    options = read_options(PROXY_OPTIONS, local_conf, "[filter:sluice]", NOT_OURS)
    logger = get_logger({**global_conf, **local_conf}, log_route="sluice")
    register_swift_info("sluice", filters=sorted(load_filters()))
    return lambda app: ProxyMiddleware(app, options, logger)
