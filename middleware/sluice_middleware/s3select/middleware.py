"""``egg:openstack-sluice#s3select``: SelectObjectContent, which Swift's s3api does not implement.

It must stand directly left of ``s3api``, whose code parses the request, checks its signature and its
permissions; every other request passes to it untouched.  The object is read by a GET through the pipeline
right of s3api, with the rights of the client: large objects whole, transformed ones plain, and under policies with
read-time filters only the filters' output.  The selection is that of csv_select.

An invalid request is answered with S3's error before the response begins, later errors
by an error message in the stream; a response without its End message is not complete.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final
from urllib.parse import parse_qs

from sluice_core.errors import CallerError, SluiceError
from sluice_filters.api import BadParameter
from sluice_filters.csv.stream import CsvStream
from sluice_middleware.log import Logger, open_logger
from sluice_middleware.s3select import event_stream
from sluice_middleware.s3select.event_stream import Formatter
from sluice_middleware.s3select.request import LONGEST, SelectRequest, read_request
from sluice_middleware.swift import green
from sluice_middleware.swift.proxy_api import close_if_possible, reiterate
from sluice_middleware.swift.s3api import GetObject, S3Error, SelectApi, is_s3api
from sluice_middleware.wsgi.response import App, Env

#: Bytes of an object between two progress messages.
_STEP: Final = 8 << 20
#: Plain bytes that are decompressed and processed at once.
_PIECE: Final = 1 << 20
#: Bytes that are read before the response begins without a record.
_PATIENCE: Final = 1 << 20


class S3Select:
    """The WSGI filter."""

    def __init__(self, app: App, logger: Logger) -> None:
        """
        :raises ValueError: when the next application is not s3api
        """
        if not is_s3api(app):
            raise ValueError("`egg:openstack-sluice#s3select` must stand directly left of s3api in the pipeline")
        self._s3api = app
        self._logger = logger
        self._select = SelectApi(app, self._answer, LONGEST)

    def __call__(self, env: Env, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if env["REQUEST_METHOD"] == "POST" and _selects(env.get("QUERY_STRING", "")):
            answer: Iterable[bytes] = self._select(env, start_response)
            return answer
        return self._s3api(env, start_response)

    def _answer(self, body: bytes, get_object: GetObject) -> Iterable[bytes]:
        """Return the messages of one response after making the first one, so that an early error is an S3 error."""
        request = read_request(body)
        start = max(request.query.first - 1, 0)
        headers = {"Range": f"bytes={start}-"} if start else {}
        response = get_object(headers)
        if response.status_int != 206:
            start = 0
        try:
            return SelectResponse(request, response.app_iter or [response.body], start, self._logger)
        except CallerError as error:
            raise S3Error("InvalidRequest", str(error)) from error
        except SluiceError as error:
            raise S3Error("InternalError", str(error), "500 Internal Server Error") from error


class SelectResponse:
    """The messages that answer one request, read as they are sent."""

    def __init__(self, request: SelectRequest, body: Iterable[bytes], start: int, logger: Logger) -> None:
        """
        :param body: the object from byte ``start`` on; closed with this object, and when it cannot be read
        """
        self._body = body
        self._logger = logger
        self._stream = CsvStream(request.query, start)
        self._format = Formatter(request)
        self._request = request
        self._scanned = self._processed = self._returned = 0
        try:
            self._messages: Iterator[bytes] = iter(reiterate(self._run()))
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._messages)
        except SluiceError as error:
            self._logger.error("sluice: select failed after %d bytes: %s", self._scanned, error)
            self._messages = iter(())
            return event_stream.failure("InternalError", str(error))

    def close(self) -> None:
        """Close the connection."""
        close_if_possible(self._body)

    def _run(self) -> Iterator[bytes]:
        shown = 0
        for piece in _gathered(self._plain()):
            self._processed += len(piece)
            yield from self._records(green.run_in_thread(self._stream.feed, piece))
            if self._stream.done or self._format.full:
                break
            if self._scanned - shown >= _STEP or (not shown and self._scanned >= _PATIENCE):
                shown = self._scanned
                yield self._figures("Progress") if self._request.progress else event_stream.keep_alive()
        if not self._format.full:
            yield from self._records(self._stream.finish())
        yield from self._sent(self._format.finish())
        if self._request.progress:
            yield self._figures("Progress")
        yield self._figures("Stats")
        yield event_stream.end()

    def _records(self, rows: bytes) -> Iterator[bytes]:
        yield from self._sent(self._format.write(rows, self._stream.names))

    def _sent(self, data: bytes) -> Iterator[bytes]:
        self._returned += len(data)
        return event_stream.records(data)

    def _figures(self, kind: str) -> bytes:
        return event_stream.figures(kind, self._scanned, self._processed, self._returned)

    def _plain(self) -> Iterator[bytes]:
        """The object's bytes, decompressed if they are compressed."""
        inflate = _Inflate() if self._request.gzip else None
        for piece in self._body:
            self._scanned += len(piece)
            if inflate is not None:
                yield from inflate.feed(piece)
            elif piece:
                yield piece
        if inflate is not None:
            inflate.finish()


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """``pieces`` joined into larger ones that are worth a hand-over to a thread."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= _PIECE:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


class _Inflate:
    """gzip, of one member or several, in pieces of bounded size."""

    def __init__(self) -> None:
        self._make = functools.partial(zlib.decompressobj, zlib.MAX_WBITS | 16)
        self._one = self._make()
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._one.eof:
                self._one = self._make()
            self._begun = True
            try:
                plain = self._one.decompress(data, _PIECE)
            except zlib.error as error:
                raise BadParameter("the object is not in the GZIP format") from error
            data = self._one.unconsumed_tail or self._one.unused_data
            if plain:
                yield plain

    def finish(self) -> None:
        """
        :raises BadParameter: when the data end early
        """
        if self._begun and not self._one.eof:
            raise BadParameter("the object in GZIP format ends early")


def _selects(query: str) -> bool:
    found = parse_qs(query, keep_blank_values=True)
    return "select" in found and found.get("select-type") == ["2"]


def filter_factory(global_conf: dict[str, str], **local_conf: str) -> Callable[[App], S3Select]:
    """Paste's entry point; the only options are those of logging."""
    logger = open_logger({**global_conf, **local_conf}, "sluice-s3select")
    return lambda app: S3Select(app, logger)
