"""``egg:sluice#proxy``: policies on the proxy server.

It must stand right of everything that turns one client request into several or into others
(``copy``, ``slo``, ``dlo``, ``versioned_writes``, ``symlink``), so that it sees the objects that are
really stored, and left of Swift's ``keymaster`` and ``encryption`` and of ``proxy-server``, so that
what it stores is what is encrypted.  That is the place of Swift's own encryption, for the same reasons.

A request for no object passes untouched.  Every object request is counted; a PUT is encoded by the
filters that policies put on it (``upload``), and a GET undoes what the object's own metadata say was
done to it (``download``), whatever the policies are today.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from sluice_core.errors import SluiceError
from sluice_core.options import Option, read_options
from sluice_core.resolve import Candidates
from sluice_core.snapshot import SnapshotReader
from sluice_filters.api import Hint
from sluice_filters.chain import ChainEncoder
from sluice_filters.registry import load_filters
from sluice_metrics.meter import Meter
from sluice_metrics.registry import load_metrics
from sluice_middleware import download, green, metadata, upload
from sluice_middleware.answers import Answer, AskAgain
from sluice_middleware.counting import CountedBody, CountedInput, Life
from sluice_middleware.download import Transformed
from sluice_middleware.remembered import Ranges
from sluice_middleware.reporter import Reporter
from sluice_middleware.selection import (
    Env,
    Selector,
    Target,
    content_length,
    download_facts,
    is_data,
    object_path,
    upload_facts,
)
from sluice_middleware.swift_door import close_if_possible, constraints, get_logger, register_swift_info

StartResponse = Callable[..., Any]
Logger = logging.Logger | logging.LoggerAdapter[Any]
App = Callable[[Env, StartResponse], Iterable[bytes]]

OPTIONS: Final = (
    Option("snapshot_dir", "/var/lib/sluice/snapshot", "folder of the agent's snapshot of policies"),
    Option("agent_socket", "/run/sluice/agent.sock", "unix socket that the node's agent listens on"),
)
#: What paste adds to every section, and the logging options that Swift allows in any.
_NOT_OURS: Final = (
    "__file__",
    "__name__",
    "here",
    "use",
    "log_name",
    "log_level",
    "log_facility",
    "log_address",
    "set log_name",
    "set log_level",
    "set log_facility",
    "set log_address",
)
#: How often a GET is asked anew when its object changes between two requests for parts of it.
_TRIES: Final = 3


class ProxyMiddleware:
    """The WSGI filter; one per worker, told to work by the first request (after the fork)."""

    def __init__(self, app: App, options: Mapping[str, Any], logger: Logger) -> None:
        """
        :param options: the values of ``OPTIONS``
        """
        self.app = app
        self.logger = logger
        failures: dict[str, str] = {}
        self.filters = load_filters(failures)
        metrics = load_metrics(failures)
        for name, reason in failures.items():
            self.logger.error("sluice: plugin `%s` is left out: %s", name, reason)
        self.meter = Meter([metric() for metric in metrics.values()])
        self.reader = SnapshotReader(options["snapshot_dir"])
        self.selector = Selector(self.reader, self.filters)
        self.reporter = Reporter(
            options["agent_socket"],
            self.meter,
            {keyword: filter_class.info.version for keyword, filter_class in self.filters.items()},
            lambda: self.reader.snapshot_id,
            self.logger,
        )
        self.ranges = Ranges(self.filters)
        self._at_work = False
        self._problem: str | None = None

    def __call__(self, env: Env, start_response: StartResponse) -> Iterable[bytes]:
        target = object_path(env)
        if target is None:
            return self.app(env, start_response)
        if not self._at_work:
            self._go_to_work()
        method = env["REQUEST_METHOD"]
        life = Life(self.meter.begin(target[0], target[1]), method, env.get("swift.source"))
        try:
            if method in ("GET", "HEAD"):
                return self._read(env, start_response, target, life)
            if method == "PUT":
                return self._write(env, start_response, target, life)
            answer = Answer(self.app, env)
        except BaseException:
            life.ended()
            raise
        return self._pass(answer, start_response, life)

    def _go_to_work(self) -> None:
        """Each worker starts after its fork: no connection and no snapshot is shared by two."""
        self._at_work = True
        self.reader.refresh()
        green.each_second(self._tick)
        self._tick()

    def _tick(self) -> None:
        self.reader.refresh()
        if self.reader.problem != self._problem:
            self._problem = self.reader.problem
            if self._problem:
                self.logger.warning("sluice: no policies: %s", self._problem)
            else:
                self.logger.info("sluice: policies from snapshot `%s`", self.reader.snapshot_id)
        self.reporter.tick()

    def _pass(self, answer: Answer, start_response: StartResponse, life: Life) -> Iterable[bytes]:
        """An answer as it is; its body may still be counted."""
        life.answered(answer.status)
        start_response(answer.status, answer.headers, answer.exc_info)
        return CountedBody(answer.body, life)

    # -- PUT ---------------------------------------------------------------------------------

    def _write(self, env: Env, start_response: StartResponse, target: Target, life: Life) -> Iterable[bytes]:
        metadata.strip_request(env)
        env["wsgi.input"] = CountedInput(env["wsgi.input"], life)
        try:
            body = self._encode(env, target)
        except SluiceError as error:
            life.ended()
            self.logger.error("sluice: PUT %s refused: %s", env["PATH_INFO"], error)
            return download.refuse(env, error, start_response)
        try:
            answer = Answer(self.app, env)
        finally:
            if body is not None:
                body.close()
        if body is not None:
            answer.headers = upload.plain_answer(answer.headers, body)
        return self._pass(answer, start_response, life)

    def _encode(self, env: Env, target: Target) -> upload.EncodedInput | None:
        """Put the policies' filters before the body; None when none of them may change it.

        :raises SluiceError: when a policy wants what this node cannot do
        """
        candidates = self.selector.candidates(target)
        if candidates.constant == {} or not is_data(env):
            return None
        size = content_length(env)
        if size is not None and size > constraints.MAX_FILE_SIZE:
            return None  # Swift refuses it
        facts = upload_facts(env, target[2])
        hint = Hint(size=size, content_type=facts.content_type, name=target[2])
        filters = [one for one in self.selector.upload_filters(candidates, facts) if one.applies(hint)]
        if not filters:
            return None
        encoder = ChainEncoder(filters, hint)
        if not any(one.info.changes_content for one in filters):
            env["wsgi.input"] = upload.PassingInput(env["wsgi.input"], encoder)
            return None
        return upload.prepare(env, encoder, size, encoder.heavy)

    # -- GET and HEAD ------------------------------------------------------------------------

    def _read(self, env: Env, start_response: StartResponse, target: Target, life: Life) -> Iterable[bytes]:
        download.prepare(env)
        candidates = self.selector.candidates(target)
        for _ in range(_TRIES):
            answer = self.ranges.ask(self.app, env) if "HTTP_RANGE" in env else None
            answer = answer or Answer(self.app, env)
            value = metadata.find_chain(answer.headers)
            if value is None and candidates.constant == {}:
                return self._pass(answer, start_response, life)
            try:
                status, headers, body = self._decode(env, answer, value, candidates, target)
            except AskAgain as error:
                problem: SluiceError = error
                continue
            except SluiceError as error:
                close_if_possible(answer.body)
                problem = error
                break
            life.answered(status)
            start_response(status, headers, answer.exc_info)
            return CountedBody(body, life)
        life.ended()
        self.logger.error("sluice: GET %s refused: %s", env["PATH_INFO"], problem)
        return download.refuse(env, problem, start_response)

    def _decode(
        self, env: Env, answer: Answer, value: str | None, candidates: Candidates, target: Target
    ) -> tuple[str, metadata.Headers, Iterable[bytes]]:
        """The plain answer, then the read-time filters that policies want today."""
        size = None
        status, headers, body = answer.status, answer.headers, answer.body
        if value is not None:
            item = Transformed(self.app, env, answer, value, self.filters)
            size = item.size
            status, headers, body = download.respond(item, answer, env)
            if "HTTP_RANGE" in env and status.startswith("206"):
                self.ranges.remember(env, value, item.records)
        if candidates.constant != {} and env["REQUEST_METHOD"] == "GET" and status[:3] in ("200", "206"):
            facts = download_facts("GET", target[2], headers, size)
            filters = self.selector.download_filters(candidates, facts)
            if filters:
                headers, body = download.read_through(filters, facts, status, headers, body, env)
        return status, headers, body


def filter_factory(global_conf: dict[str, str], **local_conf: str) -> Callable[[App], ProxyMiddleware]:
    """Paste's entry point.

    :raises OptionError: unknown options and bad values, all at once
    """
    options = read_options(OPTIONS, local_conf, "[filter:sluice]", _NOT_OURS)
    logger = get_logger({**global_conf, **local_conf}, log_route="sluice")
    register_swift_info("sluice", filters=sorted(load_filters()))
    return lambda app: ProxyMiddleware(app, options, logger)
