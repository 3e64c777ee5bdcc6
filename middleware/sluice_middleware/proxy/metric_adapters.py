"""Body adapters that report the bytes of bodies to the meter, on the plain side of every filter.

A piece of a body is only added up here: the meter gets the sum once a second, and at the end.

Some uploads are sampled (``sluice_metrics.meter.sampling``): their first bytes are kept as they pass, as the
client sent them, and evaluated when there are enough or the body ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import InitVar, dataclass, field
from time import monotonic
from typing import Final

from sluice_metrics.api import Response
from sluice_metrics.meter.meter import RequestHandle
from sluice_metrics.meter.sampling import Sample
from sluice_middleware.bandwidth.bodies import ThrottledBody
from sluice_middleware.swift.proxy_api import close_if_possible
from sluice_middleware.wsgi.response import WrappedBody

#: Status codes of requests that Swift did not admit; no metric counts them.
_REFUSED: Final = (401, 403)
#: Requests that Swift's own middlewares make as part of a client's request, which is counted
#: already: segments of large objects, the source of a copy, versions, quota checks.
PARTS: Final = frozenset({"SLO", "DLO", "SSC", "VW", "OV", "SW", "LO", "SLU"})


@dataclass(slots=True, eq=False)
class RequestMetrics:
    """The metric events of one request, from its WSGI calls.

    Bytes of every request count; requests that are parts of another one count no operation.
    """

    handle: RequestHandle
    method: str
    #: ``swift.source`` of the request.
    source: InitVar[str | None]
    #: The requests that are flushed each second; this one is among them until it ends.
    alive: set[RequestMetrics] | None = None
    #: Swift has authorized the upload.
    begun: bool = False
    #: Plain bytes that were sent.
    went: int = 0
    #: Status of the response, 0 before there is one.
    _status: int = 0
    _cache: str = ""
    _came: int = 0
    _told: tuple[int, int] = (0, 0)
    _operation: bool = field(init=False)
    _sample: Sample | None = None
    _progress: Callable[[], int] | None = None
    _began: float = field(default_factory=monotonic)

    def __post_init__(self, source: str | None) -> None:
        self._operation = source not in PARTS
        if self.alive is not None:
            self.alive.add(self)

    def upload_admitted(self) -> None:
        """Handle the first read by Swift, which has authorized the upload; may be called again."""
        if not self.begun:
            self.begun = True
            if self._operation:
                self.handle.admitted(self.method)
                self._sample = self.handle.sample()

    def answered(self, status: str, cache: str = "") -> None:
        """Handle the start of a response with ``status``; Swift has admitted the request unless the status says
        otherwise.

        :param cache: whether the node's cache had the object, as in :class:`~sluice_metrics.api.Response`
        """
        self._status, self._cache = int(status[:3]), cache
        if self._operation and not self.begun and self._status not in _REFUSED:
            self.handle.admitted(self.method)

    def received(self, data: bytes) -> None:
        """Handle plain bytes that were read."""
        self._came += len(data)
        if self._sample is not None and (not data or self._sample.add(data)):
            self._no_more()

    def count_from(self, progress: Callable[[], int]) -> None:
        """Read the number of bytes from ``progress``, since another input counts them."""
        self._progress = progress

    def flush(self) -> None:
        """Report the bytes since the last flush to the meter."""
        if self._progress is not None:
            self.went = self._progress()
        (came, went), self._told = self._told, (self._came, self.went)
        if self._came > came:
            self.handle.received(self.method, self._came - came)
        if self.went > went:
            self.handle.sent(self.method, self.went - went)

    def end(self, status: int = 0) -> None:
        """End the request; may be called again.

        :param status: of the response that another middleware gives, if there was none
        """
        self.flush()
        if self.alive is not None:
            self.alive.discard(self)
        if self._sample is not None:
            self._no_more()
        if self._operation:
            self.handle.ended(self.method)
        status, self._status = self._status or status, 0
        if status and status not in _REFUSED:
            response = Response(self.method, status, self._cache, not self._operation)
            self.handle.responded(response, monotonic() - self._began)

    def _no_more(self) -> None:
        sample, self._sample = self._sample, None
        if sample is not None:
            sample.end()


def count_body(body: Iterable[bytes], metrics: RequestMetrics) -> Iterable[bytes]:
    """Return ``body``, counted.

    A list stays a list: Swift's middlewares close an error's body and send it to the client afterwards.  A body that
    was throttled is counted already.
    """
    if isinstance(body, list | tuple):
        metrics.went += sum(map(len, body))
        metrics.end()
        return body
    if isinstance(body, ThrottledBody):
        metrics.count_from(body.passed)
        body.on_close(metrics.end)
        return body
    return CountedBody(body, metrics)


class CountedBody(WrappedBody):
    """A response body whose bytes are counted as they are taken; of every GET, so it calls no base class."""

    __slots__ = ("_metrics",)

    def __init__(self, body: Iterable[bytes], metrics: RequestMetrics) -> None:
        self._body = body
        self._pieces = iter(body)
        self._metrics = metrics

    def __next__(self) -> bytes:
        piece = next(self._pieces)
        self._metrics.went += len(piece)
        return piece

    def close(self) -> None:
        """Handle the end of the request, whether the body was read to its end or not."""
        self._metrics.end()
        close_if_possible(self._body)
