"""A GET or HEAD of a transformed object, answered as the plain object.

Theory of operation.  Only the metadata of the response tell whether an object was transformed, and requests for plain
objects must not cost more.  So the request is forwarded as it came; a header only names the place of the plain ETag
for the object server (``X-Backend-Etag-Is-At``).  A response without a chain passes.  Otherwise:

* HEAD, 304 and 412 need other headers only (the object server compared plain ETags).
* A whole body is decoded while it passes.
* A range was answered with *stored* bytes (206, or 416 where there are fewer of them).  The range is computed again
  for the plain size by Swift's own code (``swob.Response``).  The stored bytes that contain it are fetched by a
  second request below this middleware, for the same object in the same state, unless the first response contains
  them.
* Several ranges are fetched as a whole (``X-Backend-Ignore-Range-If-Metadata-Present``), since the content type is
  not a header of a multipart response.  So is any range of a contracted object (``motifs``).

A filter that is missing here, or invalid metadata, give a 503 with the reason: transformed bytes never reach a client.
Damage in the first bytes gives a 503, too; damage that is found later cuts the transfer.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sluice_core.errors import PeerError, SluiceError
from sluice_filters import chain
from sluice_filters.api import BadParameter, Filter, Hint, Stream
from sluice_middleware.swift.proxy_api import (
    Request,
    Response,
    close_if_possible,
    csv_append,
    multi_range_iterator,
)
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.response import (
    CONDITIONS,
    SKIP,
    App,
    DecodedBody,
    Env,
    Headers,
    ObjectChanged,
    RefusedRequest,
    SlicedBody,
    UpstreamResponse,
    discard_body,
    slice_body,
    stored_span,
)

_ETAG_IS_AT: Final = "HTTP_X_BACKEND_ETAG_IS_AT"
_IGNORE_RANGE: Final = "HTTP_X_BACKEND_IGNORE_RANGE_IF_METADATA_PRESENT"


def prepare_download(env: Env) -> None:
    """Name the header with the plain ETag for the object server; costs requests for plain objects nothing."""
    if "HTTP_IF_MATCH" in env or "HTTP_IF_NONE_MATCH" in env:
        env[_ETAG_IS_AT] = csv_append(env.get(_ETAG_IS_AT), sysmeta.ETAG)
    if "HTTP_RANGE" in env:
        env[_IGNORE_RANGE] = csv_append(env.get(_IGNORE_RANGE), sysmeta.CONTRACTED)
        if "," in env["HTTP_RANGE"]:
            env[_IGNORE_RANGE] = csv_append(env[_IGNORE_RANGE], sysmeta.CHAIN)


@dataclass(eq=False)
class TransformedObject:
    """One transformed object as its response describes it.

    ``value`` is that of the chain header.  ``account`` is the object's, which isolated filters need.
    ``content_type`` is that of the last response with bytes of the object.
    """

    app: App
    env: Env
    answer: UpstreamResponse
    value: str
    filters: Mapping[str, type[Filter]]
    account: str = ""
    content_type: str | None = None

    def __post_init__(self) -> None:
        """
        :raises SluiceError: when the metadata are invalid or a filter is missing here
        """
        self._body: Iterable[bytes] | None = self.answer.body
        self._stored_etag = sysmeta.find_header(self.answer.headers, "Etag")
        self.records = sysmeta.decode_chain(self.value)
        self.size = chain.plain_size(self.records)
        self.missing = chain.missing(self.records, self.filters)

    def headers(self, size: int | None) -> Headers:
        """The response's headers for the plain object."""
        return sysmeta.plain_headers(self.answer.headers, size)

    def read_range(self, start: int, stop: int) -> Iterator[bytes]:
        """The plain bytes ``[start, stop)``, from as few stored bytes as the filters allow."""
        if not chain.can_seek(self.records, self.filters):
            return slice_body(self.read_all().started(), start, stop)
        search = chain.locate(self.records, self.filters, start, stop)
        try:
            first, last = next(search)
            while True:
                index = b"".join(self._fetch(first, last))
                first, last = search.send(index)
        except StopIteration as found:
            located = found.value
        return DecodedBody(self._fetch(located.start, located.stop), located.stream, self._heavy()).started()

    def _fetch(self, start: int | None, stop: int | None) -> Iterable[bytes]:
        """Fetch the stored bytes ``[start, stop)`` of this version of the object.

        :raises ObjectChanged: when the response is of another version
        """
        reused = self._reuse(start, stop)
        if reused is not None:
            return reused
        self.close()
        answer = UpstreamResponse(self.app, _sub_environment(self.env, start, stop))
        same = (
            answer.code == (200 if start is None else 206)
            and sysmeta.find_header(answer.headers, sysmeta.CHAIN) == self.value
            and sysmeta.find_header(answer.headers, "Etag") == self._stored_etag
        )
        if not same:
            close_if_possible(answer.body)
            raise ObjectChanged(f"object changed while it was read (second answer {answer.status})")
        self.content_type = sysmeta.find_header(answer.headers, "Content-Type")
        return answer.body

    def read_all(self) -> DecodedBody:
        """The whole object, decoded."""
        stream = self.decoder()  # first, since it may raise an error
        return DecodedBody(self._fetch(None, None), stream, self._heavy())

    def decoder(self) -> Stream:
        """Return a stream that decodes all filters.

        :raises SluiceError: when that is impossible, as without a key
        """
        return chain.chain_decoder(self.records, self.filters, Hint(account=self.account))

    def _heavy(self) -> bool:
        return any(self.filters[record["f"]].heavy for record in self.records)

    def close(self) -> None:
        """Close the body of the first response, unless it is in use."""
        if self._body is not None:
            body, self._body = self._body, None
            discard_body(body, self.answer)

    def _reuse(self, start: int | None, stop: int | None) -> Iterable[bytes] | None:
        """Return the bytes ``[start, stop)`` of the first response's body if it contains them; usable once."""
        span = stored_span(self.answer)
        if span is None or self._body is None:
            return None
        first, last = span
        if start is None or stop is None:
            if self.answer.code != 200:
                return None
            body, self._body = self._body, None
            return body
        if not (first <= start <= first + SKIP and stop <= last):
            return None
        body, self._body = self._body, None
        return SlicedBody(body, start - first, stop - first)


def _sub_environment(env: Env, start: int | None, stop: int | None) -> Env:
    """A request for stored bytes of the object that the client may read."""
    sub = {name: value for name, value in env.items() if name not in CONDITIONS}
    sub["REQUEST_METHOD"] = "GET"
    sub["wsgi.input"] = io.BytesIO()
    sub["swift.authorize"] = _allow
    sub["swift.authorize_override"] = True
    sub["swift.source"] = "SLU"
    sub.pop("HTTP_RANGE", None)
    sub.pop(_IGNORE_RANGE, None)
    if start is not None and stop is not None:
        sub["HTTP_RANGE"] = f"bytes={start}-{stop - 1}"
    return sub


def _allow(request: Any) -> None:
    """Allow the request: Swift authorized the first one for the same object and method."""


class _Ranges:
    """The app_iter from which ``swob.Response`` reads the plain ranges that it computed."""

    def __init__(self, item: TransformedObject) -> None:
        self._item = item
        self._taken: DecodedBody | None = None

    def __iter__(self) -> Iterator[bytes]:
        """Return the whole object: the range was malformed."""
        self._taken = self._item.read_all()
        return self._taken

    def close(self) -> None:
        if self._taken is not None:
            self._taken.close()
        self._item.close()

    def app_iter_range(self, start: int, stop: int) -> Iterator[bytes]:
        return self._item.read_range(start, stop)

    def app_iter_ranges(
        self, ranges: list[tuple[int, int]], content_type: bytes, boundary: bytes, size: int
    ) -> Iterator[bytes]:
        try:
            yield from multi_range_iterator(ranges, content_type, boundary, size, self._part)
        finally:
            self.close()

    def _part(self, start: int, stop: int) -> Iterator[bytes]:
        body = self._item.read_range(start, stop)
        try:
            yield from body
        finally:
            close_if_possible(body)


def respond(item: TransformedObject, answer: UpstreamResponse, env: Env) -> tuple[str, Headers, Iterable[bytes]]:
    """Status, headers and body for the client.

    :raises ObjectChanged: when the object must be requested again
    :raises SluiceError: when the object cannot be decoded here
    """
    code = answer.code
    if env["REQUEST_METHOD"] == "HEAD" or code in (304, 412):
        size = None if code in (304, 412) else item.size
        return answer.status, item.headers(size), answer.body
    if code not in (200, 206, 416):
        return answer.status, item.headers(None), answer.body
    if item.missing:
        item.close()
        raise PeerError(f"this node cannot undo {', '.join(item.missing)}")
    if "," in env.get("HTTP_RANGE", ""):
        item.decoder()  # raises an error now, since parts are decoded while they are sent
    if "HTTP_RANGE" not in env:
        return answer.status, item.headers(item.size), item.read_all().started()
    headers = [(name, value) for name, value in item.headers(item.size) if name.lower() != "content-range"]
    etag = sysmeta.find_header(answer.headers, sysmeta.ETAG)
    status, sent, body = respond_ranges(env, headers, item.size, etag, _Ranges(item))
    if code == 416 and status.startswith("206") and item.content_type:
        # with erasure coding a 416 has the type of its error text
        sent = [(name, item.content_type if name.lower() == "content-type" else value) for name, value in sent]
    return status, sent, body


def respond_ranges(
    env: Env, headers: Headers, size: int, etag: str | None, ranges: Any
) -> tuple[str, Headers, Iterable[bytes]]:
    """Return status, headers and body of a request for ranges of an object of ``size`` bytes, as Swift answers it.

    :param ranges: the app_iter of a ``swob.Response``
    :raises SluiceError: any error of ``ranges``
    """
    response = Response(
        request=Request(env),
        status=200,
        headers=dict(headers),
        app_iter=ranges,
        conditional_response=True,
        conditional_etag=etag,
    )
    response.content_length = size
    started: list[Any] = []
    body = response(env, lambda status, sent, exc_info=None: started.extend((status, sent)))
    return started[0], started[1], body


def refuse(env: Env, error: SluiceError, start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer with the reason of a refused GET or PUT: 4xx when the client's request is invalid, else 503."""
    response = Response(
        request=Request(env), status=refusal_status(error), body=f"sluice: {error}\n", content_type="text/plain"
    )
    if isinstance(error, PeerError) and error.retry_after:
        response.headers["Retry-After"] = str(error.retry_after)
    body: Iterable[bytes] = response(env, start_response)
    return body


def refusal_status(error: SluiceError) -> int:
    """The status that :func:`refuse` answers with."""
    if isinstance(error, RefusedRequest):
        return error.status
    return 400 if isinstance(error, BadParameter) else 503
