"""``egg:openstack-sluice#storage``: filters in an object server's pipeline.

Place in the pipeline.  It must stand directly left of the object server: no middleware to the right may change the
object server's response.

Theory of operation.

* A GET whose ``X-Backend-Sluice-Read`` names read-time filters is answered with their output, when this node can run
  them alone: it has the whole object as clients see it (no manifest, no link, no fragment, no object that the proxy
  transformed).  Where it cannot, or a filter fails before its first output, the response is as without the header,
  and the proxy runs the filters, and reports errors.
* Request filters whose policy says ``ON STORAGE_NODE`` accompany the requests of replicated storage policies, as the
  node's own snapshot says.
* Uploads and downloads are counted for bandwidth, and downloads are throttled (:mod:`limiter`).

Requests of daemons (REPLICATE, SSYNC) pass; SSYNC's own requests do not reach this middleware.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from sluice_core.describe import OBJECT_METHODS, STORAGE_NODE
from sluice_core.errors import CallerError, SluiceError
from sluice_core.options import read_options
from sluice_filters.api import Filter, Hint
from sluice_filters.visits import Headers, Reply
from sluice_middleware.bandwidth.limiter import BandwidthLimiter
from sluice_middleware.log import open_logger
from sluice_middleware.swift.proxy_api import POLICIES, REPL_POLICY, HTTPConflict, Request
from sluice_middleware.wsgi import read_pipeline, sysmeta
from sluice_middleware.wsgi.inputs import IterableInput
from sluice_middleware.wsgi.policy_lookup import (
    Target,
    decoded_path,
    logical_object,
    request_facts,
    upload_facts,
)
from sluice_middleware.wsgi.request_filters import FilterHost, RequestFilters
from sluice_middleware.wsgi.response import App, Env, StartResponse, UpstreamResponse, object_size
from sluice_middleware.wsgi.visit_adapters import set_headers
from sluice_middleware.wsgi.worker_context import OPTIONS, PASTE_OPTIONS, WorkerContext

#: A stored object with one of these differs from the object that clients see.
_NOT_WHOLE: Final = frozenset(
    {
        sysmeta.CHAIN.lower(),
        sysmeta.CONTRACTED.lower(),
        "x-static-large-object",
        "x-object-manifest",
        "x-object-sysmeta-symlink-target",
        "x-object-sysmeta-ec-frag-index",
    }
)
#: Options that stand in ``[DEFAULT]`` with a prefix, for disk files and daemons too.
_SHARED: Final = ("agent_socket", "key_file", "key_manager_conf")
#: Environment keys that a sub-request copies from the request that it belongs to.
_PASSED_ON: Final = (
    *("PATH_INFO", "SCRIPT_NAME", "SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL", "wsgi.errors"),
    *("HTTP_X_TIMESTAMP", "HTTP_X_BACKEND_STORAGE_POLICY_INDEX", "HTTP_X_TRANS_ID"),
)
#: Bytes of an unread body that are read at once.
_DROPPED: Final = 1 << 16
#: A PUT with one of these carries the object in a MIME envelope, followed by footers.
_ENVELOPED: Final = ("HTTP_X_BACKEND_OBJ_METADATA_FOOTER", "HTTP_X_BACKEND_OBJ_MULTIPART_MIME_BOUNDARY")


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """The read-time filters that ``X-Backend-Sluice-Read`` requests."""

    steps: Sequence[Mapping[str, Any]]
    asked: Mapping[str, str]
    range: str | None

    @classmethod
    def parse(cls, text: str) -> ReadRequest:
        """
        :raises CallerError: for a value that :mod:`read_filters` does not write
        """
        try:
            data = json.loads(text)
            steps, asked, wanted = data["steps"], data["a"], data["range"]
        except (ValueError, TypeError, KeyError) as error:
            raise CallerError(f"`{sysmeta.READ}` cannot be read: {error}") from error
        if not isinstance(steps, list) or not isinstance(asked, dict):
            raise CallerError(f"`{sysmeta.READ}` names no steps")
        return cls(steps, asked, wanted)


class StorageMiddleware:
    """The WSGI filter; one per worker of an object server."""

    def __init__(self, app: App, context: WorkerContext, limiter: BandwidthLimiter | None = None) -> None:
        """
        :param limiter: counts and throttles bytes; None for neither
        """
        self.app = app
        self.context = context
        self.logger = context.logger
        self.limiter = limiter or BandwidthLimiter("", STORAGE_NODE, context.logger)
        self._started = False

    def __call__(self, env: Env, start_response: StartResponse) -> Iterable[bytes]:
        method, path = env["REQUEST_METHOD"], env["PATH_INFO"]
        # /device/partition/account/container/object
        parts = (path if path.isascii() else decoded_path(env)).split("/", 5)
        if method not in OBJECT_METHODS or len(parts) != 6 or not parts[5] or parts[3][:1] in ("", "."):
            return self.app(env, start_response)
        target = (parts[3], parts[4], parts[5])
        if not self._started:  # after the fork; the first request names this server's address
            self._started = True
            self.context.start()
            self.limiter.start(env)
        lookup = self.context.lookup
        candidates = lookup.candidates(target)
        throttled = self.limiter.throttle_upload(env, target, candidates) if method == "PUT" else None
        try:
            if lookup.request_keywords[method].isdisjoint(candidates.keywords) or not _is_replicated(env):
                if method != "GET" and throttled is None:  # by far the most frequent case
                    return self.app(env, start_response)
                answer = self._plain(env, target) if sysmeta.READ_ENV in env else UpstreamResponse(self.app, env)
            else:
                name = logical_object(target)[2]
                facts = upload_facts(env, name) if method == "PUT" else request_facts(env, name)
                visitors = [one.filter for one in lookup.request_filters(candidates, facts, STORAGE_NODE)]
                answer = self._accompanied(env, target, visitors) if visitors else self._plain(env, target)
        except SluiceError as error:
            self.logger.error("sluice: %s %s refused: %s", method, env["PATH_INFO"], error)
            answer = _refusal(env, error)
        finally:
            if throttled is not None:
                throttled.close()
        body = self.limiter.throttle_download(env, target, answer, candidates) if method == "GET" else answer.body
        start_response(answer.status, answer.headers, answer.exc_info)
        return body

    # -- request filters ---------------------------------------------------------------------

    def _accompanied(self, env: Env, target: Target, visitors: Sequence[Filter]) -> UpstreamResponse:
        host = FilterHost(
            place=STORAGE_NODE,
            logger=self.logger,
            authorize=lambda: None,  # the proxy has authorized the request
            sender=lambda _: partial(_send, self.app, env, target),
            is_protective=self.context.lookup.is_protective,
        )
        intended = sysmeta.filter_keywords(env.get(sysmeta.NODE_ENV))
        request_filters = RequestFilters(
            host, env, target, intended, bodies=not any(name in env for name in _ENVELOPED)
        )
        return request_filters.respond(visitors, lambda: self._plain(env, target))

    # -- read-time filters -------------------------------------------------------------------

    def _plain(self, env: Env, target: Target) -> UpstreamResponse:
        """The object server's response, through the filters that the proxy requests."""
        text = env.pop(sysmeta.READ_ENV, None)
        if text is None or env["REQUEST_METHOD"] != "GET":
            return UpstreamResponse(self.app, env)
        request = ReadRequest.parse(text)
        if request.range != env.get("HTTP_RANGE"):
            raise CallerError("an answer that filters made cannot be resumed")
        filters = self._filters(request)
        answer = UpstreamResponse(self.app, dict(env) if filters else env)
        if not filters or answer.code not in (200, 206) or _is_partial(answer):
            return answer
        hint = Hint(
            size=object_size(answer),
            content_type=sysmeta.find_header(answer.headers, "Content-Type"),
            name=target[2],
            account=target[0],
            asked=request.asked,
        )
        try:
            read_pipeline.apply_filters(answer, filters, hint)
        except SluiceError as error:
            self.logger.info("sluice: GET %s is left to the proxy: %s", env["PATH_INFO"], error)
            return UpstreamResponse(self.app, env)
        answer.headers = [*answer.headers, (sysmeta.READ, "done")]
        return answer

    def _filters(self, request: ReadRequest) -> list[Filter]:
        """The requested filters in running order; none when one of them is missing here or has another version."""
        filters = []
        for step in request.steps:
            known = self.context.filters.get(str(step.get("f")))
            if known is None or known.info.version != step.get("v"):
                return []
            filters.append(known(step.get("p") or {}))
        return filters


def _send(
    app: App,
    server_env: Env,
    target: Target,
    method: str,
    path: tuple[str, str, str] | tuple[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    body: Iterable[bytes] | None = None,
    query: str = "",
    stored: bool = False,
) -> Reply:
    """``Call.send`` on a storage node: to its own object server, for the same device and partition."""
    if path is not None and path != target:
        return Reply("501 Not Implemented", Headers(), [b"sluice: a storage node reaches its own object only\n"])
    env: Env = {name: server_env[name] for name in _PASSED_ON if name in server_env}
    set_headers(env, headers or {})
    env |= {"REQUEST_METHOD": method, "QUERY_STRING": query, "wsgi.input": IterableInput(body or ())}
    answer = UpstreamResponse(app, env)
    return Reply(answer.status, Headers(answer.headers), answer.body)


def _is_replicated(env: Env) -> bool:
    policy = POLICIES.get_by_index(env.get("HTTP_X_BACKEND_STORAGE_POLICY_INDEX", "0"))
    return policy is not None and policy.policy_type == REPL_POLICY


def _is_partial(answer: UpstreamResponse) -> bool:
    """Whether the stored object is not the whole object that clients see."""
    return any(name.lower() in _NOT_WHOLE for name, _ in answer.headers)


def _refusal(env: Env, error: SluiceError) -> UpstreamResponse:
    """Return a 409 with the reason, after the body of an upload (see :mod:`sysmeta`)."""
    if env["REQUEST_METHOD"] == "PUT":
        source = env["wsgi.input"]
        announce = getattr(source, "set_hundred_continue_response_headers", None)
        if announce is not None and _ENVELOPED[0] in env:
            announce([("X-Obj-Metadata-Footer", "yes")])  # without it Swift's proxy assumes an old object server
        while source.read(_DROPPED):
            pass
    response = HTTPConflict(request=Request(env), body=str(error), content_type="text/plain")
    response.status = sysmeta.REFUSED_STATUS
    response.headers[sysmeta.REFUSED] = sysmeta.reason_header(error)
    return UpstreamResponse(response, env)


def filter_factory(global_conf: dict[str, str], **local_conf: str) -> Callable[[App], StorageMiddleware]:
    """Paste's entry point; the keys are those that ``[DEFAULT]`` names for the disk files.

    :raises OptionError: for unknown options and bad values, all at once
    """
    given = {name: global_conf[f"sluice_{name}"] for name in _SHARED if f"sluice_{name}" in global_conf}
    options = read_options(OPTIONS, {**given, **local_conf}, "[filter:sluice-storage]", PASTE_OPTIONS)
    logger = open_logger({**global_conf, **local_conf}, "sluice-storage")
    context = WorkerContext(options, logger)
    server = (global_conf.get("bind_ip", ""), global_conf.get("bind_port", ""))

    def make(app: App) -> StorageMiddleware:
        limiter = BandwidthLimiter(options["agent_socket"], STORAGE_NODE, logger, server)
        return StorageMiddleware(app, context, limiter)

    return make
