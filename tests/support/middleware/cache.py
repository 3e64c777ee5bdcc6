"""For tests of the cache: replicas that may miss writes, and a proxy of one node in front of them."""

from __future__ import annotations

import hashlib
import io
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swift.common.utils import Timestamp

from sluice_core.describe import PROXY
from sluice_core.options import read_options
from sluice_filters.api import Filter, HostServices
from sluice_filters.requests.caching import Caching
from sluice_filters.visits import Headers, Reply
from sluice_middleware.cache.node_cache import OPTIONS, NodeCache, open_cache
from sluice_middleware.swift.proxy_api import (
    Request,
    Response,
    resolve_etag_is_at_header,
    resolve_ignore_range_header,
)
from sluice_middleware.wsgi.request_filters import FilterHost, RequestFilters
from sluice_middleware.wsgi.response import Env, UpstreamResponse

log = logging.getLogger(__name__)

PATH = "/v1/AUTH_a/c/o"
_USER = ("x-object-", "content-type", "x-delete-at", "x-static-", "content-encoding", "x-backend-fragments")


@dataclass
class Stored:
    """An object on the disks."""

    body: bytes
    headers: dict[str, str]
    timestamp: str


@dataclass
class Disks:
    """A Swift below the proxy middleware; ``now`` is its next timestamp.

    ``asleep`` holds the responses of a replica that misses the last write; only a request with
    X-Newest bypasses it.  ``seen`` are the received requests, as (method, path).
    """

    now: float = 1_700_000_000.0
    objects: dict[str, Stored] = field(default_factory=dict)
    asleep: dict[str, Stored] = field(default_factory=dict)
    seen: list[tuple[str, str]] = field(default_factory=list)
    status: int = 0
    during_get: Callable[[], None] | None = None

    def __call__(self, env: Env, start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = Request(env if env["REQUEST_METHOD"] not in ("GET", "HEAD") else dict(env))
        self.seen.append((request.method, request.path_info))
        if self.status:
            response = Response(request=request, status=self.status)
        elif request.method in ("GET", "HEAD"):
            response = self._get(request)
        else:
            response = getattr(self, f"_{request.method.lower()}")(request)
        body: Iterable[bytes] = response(env, start_response)
        return body

    def count(self, method: str) -> int:
        """The number of requests with ``method``."""
        return sum(one == method for one, _ in self.seen)

    def _stamp(self, request: Any) -> str:
        if "HTTP_X_TIMESTAMP" not in request.environ:
            self.now += 1
            request.environ["HTTP_X_TIMESTAMP"] = Timestamp(self.now).internal
        text: str = request.environ["HTTP_X_TIMESTAMP"]
        return text

    def _put(self, request: Any) -> Any:
        body = b"".join(iter(lambda: request.environ["wsgi.input"].read(65536), b""))
        length = request.environ.get("CONTENT_LENGTH")
        if length and len(body) < int(length):
            return Response(request=request, status=499)
        headers = {name: value for name, value in request.headers.items() if name.lower().startswith(_USER)}
        headers.setdefault("Content-Type", "application/octet-stream")
        self.objects[request.path_info] = Stored(body, headers, self._stamp(request))
        return Response(request=request, status=201, headers={"Etag": _md5(body)})

    def _post(self, request: Any) -> Any:
        stored = self.objects[request.path_info]
        meta = {name: value for name, value in request.headers.items() if name.lower().startswith("x-object-meta-")}
        kept = {name: value for name, value in stored.headers.items() if not name.startswith("X-Object-Meta-")}
        self.objects[request.path_info] = Stored(stored.body, {**kept, **meta}, self._stamp(request))
        return Response(request=request, status=202)

    def _delete(self, request: Any) -> Any:
        self._stamp(request)
        return Response(request=request, status=204 if self.objects.pop(request.path_info, None) else 404)

    def _get(self, request: Any) -> Any:
        newest = "HTTP_X_NEWEST" in request.environ
        stored = (None if newest else self.asleep.get(request.path_info)) or self.objects.get(request.path_info)
        if request.method == "GET" and self.during_get is not None:
            self.during_get()
        if stored is None:
            return Response(request=request, status=404, conditional_response=True)
        resolve_ignore_range_header(request, stored.headers)
        response = Response(
            request=request,
            headers=stored.headers,
            body=stored.body,
            conditional_response=True,
            conditional_etag=resolve_etag_is_at_header(request, stored.headers),
        )
        response.etag = _md5(stored.body)
        response.last_modified = float(Timestamp(stored.timestamp))
        response.accept_ranges = "bytes"
        response.headers["X-Timestamp"] = Timestamp(stored.timestamp).normal
        response.headers["X-Backend-Timestamp"] = stored.timestamp
        return response


class Worker:
    """One proxy worker with the policy ``SET caching WITH admit=1``; several may share a folder, as on one node."""

    def __init__(self, disks: Disks, folder: Path, params: Mapping[str, Any] | None = None, **options: str) -> None:
        given = {"cache_dir": str(folder), "cache_size": str(64 << 20), "cache_alone": "true", **options}
        cache = open_cache(read_options(OPTIONS, given, "test"), log)
        assert cache is not None
        self.cache: NodeCache = cache
        cache.store_later = cache.store_now  # type: ignore[method-assign]  # at once: tests do not wait
        self.app = cache.wrap(disks)
        self.filter: Filter = Caching.bound(HostServices(cache=cache))({"admit": 1, **(params or {})})
        self.allowed = True
        self.container_status = 200
        self.protective: tuple[str, ...] = ()

    def request(self, method: str, path: str = PATH, body: bytes = b"", **headers: Any) -> Reply:
        """The whole response; ``if_match`` becomes ``If-Match``."""
        answer = self.start(method, path, body, **headers)
        pieces = list(answer.body)
        close = getattr(answer.body, "close", None)
        if close is not None:
            close()
        return Reply(answer.status, Headers(answer.headers), pieces)

    def get(self, path: str = PATH, **headers: Any) -> bytes:
        """The body of a GET."""
        return b"".join(self.request("GET", path, **headers).body)

    def start(self, method: str, path: str = PATH, body: bytes = b"", **headers: Any) -> UpstreamResponse:
        """A response whose body was not read."""
        env = environment(method, path, body, headers, self.container_status)
        target = tuple(path.split("/", 4)[2:])
        host = FilterHost(PROXY, log, self._authorize, lambda behind: self._sender(env), self.protective.__contains__)
        stored_by = self.protective if method == "PUT" else ()
        request_filters = RequestFilters(host, env, target, stored_by)  # type: ignore[arg-type]

        def forward() -> UpstreamResponse:
            answer = UpstreamResponse(self.app, env)
            answer.filters = self.protective
            return answer

        return request_filters.respond([self.filter], forward)

    def _authorize(self) -> Reply | None:
        return None if self.allowed else Reply("403 Forbidden")

    def _sender(self, env: Env) -> Any:
        def send(method: str, headers: Mapping[str, str], stored: bool) -> Reply:
            assert stored
            given = {name.replace("-", "_"): value for name, value in headers.items()}
            answer = UpstreamResponse(self.app, environment(method, env["PATH_INFO"], b"", given))
            return Reply(answer.status, Headers(answer.headers), answer.body)

        return send


def environment(method: str, path: str, body: bytes, headers: Mapping[str, str], status: int = 200) -> Env:
    """A WSGI environment whose container has the cached ``status``."""
    _, _, account, container, _ = path.split("/", 4)
    env: Env = Request.blank(path, method=method, body=body, headers={}).environ
    env["wsgi.input"] = io.BytesIO(body)
    if method == "PUT":
        env["CONTENT_LENGTH"] = str(len(body))
    for name, value in headers.items():
        folded = name.upper()
        env[folded if folded == "CONTENT_LENGTH" else f"HTTP_{folded}"] = value
    env["swift.infocache"] = {f"container/{account}/{container}": {"status": status, "sysmeta": {}}}
    return env


def _md5(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()
