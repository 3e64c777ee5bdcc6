"""A Swift proxy application in memory, for tests of what stands before it.

It stores what it is sent the way the proxy and object servers do (footers beat headers, the ETag is
that of the stored bytes, ``X-Backend-Etag-Is-At`` and ``X-Backend-Ignore-Range-If-Metadata-Present``
are honoured, conditions and ranges are Swift's own ``swob.Response``), remembers what the container
listing would say, and counts the answers that nobody closed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sluice_middleware.swift_door import (
    ChunkReadError,
    HTTPException,
    Request,
    Response,
    multi_range_iterator,
    normalize_etag,
)

_OVERRIDE = "X-Object-Sysmeta-Container-Update-Override-"
_IGNORE = "X-Backend-Ignore-Range-If-Metadata-Present"


@dataclass
class Stored:
    """One object as it lies on the disks."""

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
    objects: dict[str, Stored] = field(default_factory=dict)
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    opened: int = 0
    closed: int = 0

    def __call__(self, env: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = Request(dict(env))  # what Swift does to its own requests, ours do not see
        self.requests.append((request.method, request.path_info, env.get("HTTP_RANGE")))
        try:
            if request.method == "PUT":
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

    def _put(self, request: Any) -> Any:
        pieces = []
        while True:
            piece = request.environ["wsgi.input"].read(self.piece)
            if not piece:
                break
            pieces.append(piece)
        body = b"".join(pieces)
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
        self.objects[request.path_info] = Stored(body, headers, etag)
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


def _names(value: str | None) -> list[str]:
    return [name.strip() for name in (value or "").split(",") if name.strip()]


class _Pieces:
    """A stored body that comes in pieces, whole or in ranges, as a disk file's reader gives it."""

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


class _Tracked:
    """A body that tells the application when it is closed."""

    def __init__(self, body: Iterable[bytes], app: FakeSwift) -> None:
        self._pieces = iter(body)
        self._app = app
        self._open = True

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._pieces)

    def close(self) -> None:
        if self._open:
            self._open = False
            self._app.closed += 1
