"""Requests for the trial of a request filter: the order of ``sluice_filters.visits``, without a Swift behind it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Final

from sluice_core.describe import OBJECT_METHODS
from sluice_core.errors import SluiceError
from sluice_filters.api import Filter, Stream
from sluice_filters.visits import Call, Headers, Reply, Visit

_BODY: Final = b"some words of a body"


def try_requests(made: Filter) -> None:
    """Let a filter accompany one request of each kind; a refusal with an error of Sluice is not a fault."""
    for place in made.info.places:
        for method in OBJECT_METHODS:
            for decided in (True, False) if made.info.on_answer and method in ("GET", "HEAD") else (True,):
                with contextlib.suppress(SluiceError):
                    _accompany(made, _call(place, method, decided))


def _accompany(made: Filter, call: Call) -> None:
    visit = made.visit(call)
    if visit is None:
        return
    if not isinstance(visit, Visit):
        raise TypeError(f"visit() gave `{type(visit).__name__}`, expected a Visit or None")
    try:
        if not call.decided:
            visit.wait()
        if not call.decided or visit.request() is None:
            if call.method == "PUT":
                _through(visit.body_in())
            reply = visit.response(Reply("200 OK", Headers({"Content-Length": str(len(_BODY))}), [_BODY]))
            if call.method == "GET":
                _through(visit.body_out(reply))
    finally:
        visit.end(True)


def _through(stream: Stream | None) -> None:
    if stream is not None:
        stream.feed(_BODY)
        stream.finish()


def _call(place: str, method: str, decided: bool) -> Call:
    size = len(_BODY) if method == "PUT" else None
    headers = Headers({} if size is None else {"Content-Length": str(size)})
    return Call(
        place=place,
        method=method,
        account="AUTH_trial",
        container="trial",
        object="trial.txt",
        read_headers=lambda: headers,
        query="",
        size=size,
        content_type="text/plain",
        authorize=lambda: None,
        send=_nobody,
        environ={"REQUEST_METHOD": method, "PATH_INFO": "/v1/AUTH_trial/trial/trial.txt", "QUERY_STRING": ""},
        decided=decided,
    )


def _nobody(
    method: str,
    path: tuple[str, str, str] | tuple[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    body: Iterable[bytes] | None = None,
    query: str = "",
    stored: bool = False,
) -> Reply:
    """Answer 404: a trial has no stored objects."""
    return Reply("404 Not Found", Headers({"Content-Length": "0"}), [])
