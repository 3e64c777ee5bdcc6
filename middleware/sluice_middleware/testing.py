"""A Swift proxy application in memory for tests of middlewares, and a pipeline before it as a client sees it.

It stores objects the way the proxy and object servers do (footers replace headers, the ETag is
that of the stored bytes, ``X-Backend-Etag-Is-At`` and ``X-Backend-Ignore-Range-If-Metadata-Present``
are honoured, conditions and ranges are Swift's own ``swob.Response``), keeps the values of the container
listing, and counts the responses that were not closed.  Every account exists, and every
container that is not in ``missing``; ``swift.authorize`` is called as Swift calls it.  :class:`ProxyStack` puts
Sluice's middlewares before it, under policies that the test gives.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluice_core.messages.policies import Assignment
from sluice_core.resolve import Candidates
from sluice_filters.api import Filter
from sluice_middleware.proxy.middleware import PROXY_OPTIONS, ProxyMiddleware
from sluice_middleware.proxy.read_filters import ReadsMiddleware
from sluice_middleware.swift.proxy_api import (
    ChunkReadError,
    HTTPException,
    Request,
    Response,
    multi_range_iterator,
    normalize_etag,
)
from sluice_middleware.wsgi.response import WrappedBody
from sluice_middleware.wsgi.worker_context import WorkerContext

_OVERRIDE = "X-Object-Sysmeta-Container-Update-Override-"
_IGNORE = "X-Backend-Ignore-Range-If-Metadata-Present"


@dataclass
class FakeObject:
    """One object as it is stored on the disks."""

    body: bytes
    headers: dict[str, str]
    etag: str

    @property
    def listing(self) -> tuple[int, str]:
        """Size and hash that the container listing shows."""
        size = int(self.headers.get(_OVERRIDE + "Size", len(self.body)))
        return size, self.headers.get(_OVERRIDE + "Etag", self.etag)


@dataclass
class FakeSwift:
    """The WSGI application; ``objects`` by path, ``requests`` as (method, path, range)."""

    piece: int = 65536
    objects: dict[str, FakeObject] = field(default_factory=dict)
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    headers: list[dict[str, str]] = field(default_factory=list)
    opened: int = 0
    closed: int = 0

    def __call__(self, env: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = Request(dict(env))  # a copy: Swift's changes must not reach the caller's request
        if request.path_info.count("/") < 4 and request.method == "GET":
            listed: Iterable[bytes] = self._list(request)(env, start_response)
            return listed
        if request.path_info.count("/") < 4 and request.method == "HEAD":
            status = 404 if request.path_info in self.missing else 204
            quiet: Iterable[bytes] = Response(request=request, status=status)(env, start_response)
            return quiet
        self.requests.append((request.method, request.path_info, env.get("HTTP_RANGE")))
        self.headers.append(dict(request.headers))
        try:
            denial = env["swift.authorize"](request) if "swift.authorize" in env else None
            if denial is not None:
                response = denial
            elif request.method == "DELETE":
                known = self.objects.pop(request.path_info, None)
                response = Response(request=request, status=404 if known is None else 204)
            elif request.path_info.rpartition("/")[0] in self.missing:
                response = Response(request=request, status=404)
            elif request.method == "PUT":
                self.missing.discard(request.path_info)
                response = self._put(request)
            elif request.method in ("GET", "HEAD"):
                response = self._get(request)
            else:
                response = Response(request=request, status=202)
        except HTTPException as error:
            response = error
        except ChunkReadError:
            response = Response(request=request, status=499)
        body = response(env, start_response)
        self.opened += 1
        return _Tracked(body, self)

    def _list(self, request: Any) -> Any:
        """A container's listing as JSON, by marker, prefix and limit."""
        self.requests.append(("LIST", request.path_info, None))
        given = request.params
        start = request.path_info + "/"
        marker, prefix = _text(given.get("marker", "")), _text(given.get("prefix", ""))
        rows: list[dict[str, Any]] = [
            {"name": _text(path[len(start) :]), "bytes": found.listing[0]}
            for path, found in sorted(self.objects.items())
            if path.startswith(start)
        ]
        rows = [one for one in rows if one["name"] > marker and one["name"].startswith(prefix)]
        limit = int(given.get("limit", 10_000))
        return Response(request=request, body=json.dumps(rows[:limit]), content_type="application/json")

    def _put(self, request: Any) -> Any:
        source = request.environ["wsgi.input"]
        try:
            body = b"".join(iter(lambda: source.read(self.piece), b""))
        except (ValueError, OSError) as error:
            raise ChunkReadError(str(error)) from error
        length = request.environ.get("CONTENT_LENGTH")
        if length and len(body) < int(length):
            return Response(request=request, status=499)
        footers: dict[str, str] = {}
        callback = request.environ.get("swift.callback.update_footers")
        if callback:
            callback(footers)
        headers = {
            name: value
            for name, value in {**request.headers, **footers}.items()
            if name.lower().startswith(("x-object-", "content-type"))
        }
        etag = hashlib.md5(body, usedforsecurity=False).hexdigest()
        announced = footers.get("Etag", request.headers.get("Etag"))
        if announced and normalize_etag(announced) != etag:
            return Response(request=request, status=422)
        self.objects[request.path_info] = FakeObject(body, headers, etag)
        return Response(request=request, status=201, headers={"Etag": etag})

    def _get(self, request: Any) -> Any:
        stored = self.objects.get(request.path_info)
        if stored is None:
            return Response(request=request, status=404)
        conditional = stored.etag
        for name in _names(request.headers.get("X-Backend-Etag-Is-At")):
            if name in stored.headers:
                conditional = stored.headers[name]
                break
        if any(name in stored.headers for name in _names(request.headers.get(_IGNORE))):
            request.environ.pop("HTTP_RANGE", None)
        response = Response(
            request=request,
            headers=dict(stored.headers),
            app_iter=_Pieces(stored.body, self.piece),
            conditional_response=True,
            conditional_etag=conditional,
        )
        response.content_length = len(stored.body)
        response.etag = stored.etag
        return response


class FixedPolicies:
    """A snapshot reader with the same assignments for all objects, or by path with ``paths``.

    ``placements`` maps accounts to the storage policies of their new containers.
    """

    snapshot_id = "fixed"
    problem = ""

    def __init__(self, *assignments: Assignment, paths: Mapping[str, Sequence[Assignment]] | None = None) -> None:
        self.candidates = Candidates(assignments)
        self._paths = {path: Candidates(some) for path, some in (paths or {}).items()}
        self.placements: dict[str, str] = {}

    def find(self, account: str, container: str = "", obj: str = "") -> Candidates:
        """As the real one does."""
        for path in (f"{account}/{container}/{obj}", f"{account}/{container}"):
            if path in self._paths:
                return self._paths[path]
        return self.candidates

    def placement(self, account: str) -> str:
        """As the real one does."""
        return self.placements.get(account, "")

    def refresh(self) -> None:
        """Do nothing: the assignments never change."""


class ProxyStack:
    """``reads`` and the proxy middleware before a fake Swift, and a client of them."""

    def __init__(
        self, folder: Path, *filters: type[Filter], logger: logging.Logger | None = None, **given: Any
    ) -> None:
        """
        :param filters: filters besides the installed ones
        :param given: options of the proxy middleware that differ from their defaults
        """
        self.swift = FakeSwift()
        self.log = logger or logging.getLogger("sluice.stand")
        options = {one.name: one.default for one in PROXY_OPTIONS}
        options |= {"agent_socket": str(folder / "none.sock"), "snapshot_dir": str(folder / "none"), **given}
        self.proxy = ProxyMiddleware(self.swift, options, self.log)
        self.reads = ReadsMiddleware(self.proxy, WorkerContext(options, self.log))
        for context in (self.proxy.context, self.reads.context):
            context.filters.update({one.info.keyword: one for one in filters})
            context.lookup.rebuild()
            context.started = True
        self.proxy._started = True

    def set_policies(self, *assignments: Assignment, paths: Mapping[str, Sequence[Assignment]] | None = None) -> None:
        """Set these policies for every object, or for those that ``paths`` name."""
        fixed: Any = FixedPolicies(*assignments, paths=paths)
        for context in (self.proxy.context, self.reads.context):
            context.reader = context.lookup._reader = fixed

    def set_filters(self, filters: Mapping[str, type[Filter]]) -> None:
        """Install exactly these filters."""
        for context in (self.proxy.context, self.reads.context):
            context.filters.clear()
            context.filters.update(filters)
            context.lookup.rebuild()

    def __call__(
        self, method: str, path: str = "/v1/AUTH_a/c/o", body: bytes | None = None, env: Any = None, **headers: str
    ) -> Any:
        """Return the response to the request, read to its end; ``_`` in header names stands for ``-``."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        request = Request.blank(path, method=method, headers=names, body=body)
        request.environ.update(env or {})
        return self.answer(request.environ)

    def answer(self, env: dict[str, Any]) -> Any:
        """Return the response to the request in ``env``, read to its end."""
        response = Request(env).get_response(self.reads)
        _ = response.body
        return response

    def all_closed(self) -> bool:
        """Whether all responses of Swift were closed."""
        return self.swift.opened == self.swift.closed


def _text(wire: str) -> str:
    """Text that was sent as bytes of UTF-8 read as latin-1."""
    return wire.encode("latin-1").decode("utf-8", "surrogateescape")


def _names(value: str | None) -> list[str]:
    return [name.strip() for name in (value or "").split(",") if name.strip()]


class _Pieces:
    """A stored body in pieces, whole or in ranges, as a disk file's reader returns it."""

    def __init__(self, body: bytes, piece: int) -> None:
        self._body = body
        self._piece = piece

    def __iter__(self) -> Iterator[bytes]:
        return self.app_iter_range(0, len(self._body))

    def app_iter_range(self, start: int, stop: int) -> Iterator[bytes]:
        for first in range(start, stop, self._piece):
            yield self._body[first : min(first + self._piece, stop)]

    def app_iter_ranges(self, ranges: Any, content_type: bytes, boundary: bytes, size: int) -> Iterator[bytes]:
        yield from multi_range_iterator(ranges, content_type, boundary, size, self.app_iter_range)


class _Tracked(WrappedBody):
    """A body that reports its closing to the application."""

    def __init__(self, body: Iterable[bytes], app: FakeSwift) -> None:
        super().__init__(body)
        self._app = app
        self._open = True

    def close(self) -> None:
        if self._open:
            self._open = False
            self._app.closed += 1
