"""Sends requests, retries them where that is safe, and turns every failure into an exception of this package.

Rules of retrying:

- Only idempotent requests: GET, DELETE, PUT with ``If-Match``, and POST with an idempotency key.  Any other POST is
  sent once: when its response is lost, only the caller can find out its effect.
- Only after a failed connection, or a 503 with ``Retry-After``.  A time-out is not retried, since more requests do not
  make a slow controller faster.
- A few times, with growing, jittered pauses, none longer than ``longest``.
- A truncated response counts as none, also one that cannot be distinguished from a truncated one.
- An earlier attempt whose response was lost may have worked.  So a DELETE that then finds nothing has succeeded, and
  the error of a PUT that then finds another version says so.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from sluice_client.errors import ApiError, Unreachable
from sluice_client.rest.auth import HttpSession, Request

#: The JSON of a response.
Data = dict[str, Any]

_BUSY: Final = 503
#: Statuses of responses without a body, which need no length.
_EMPTY: Final = (204, 304)


@dataclass(frozen=True, slots=True)
class Retries:
    """At most ``tries``; the first pause is about ``first`` seconds, each later one twice as long."""

    tries: int = 4
    first: float = 0.1
    longest: float = 5.0
    pause: Callable[[float], object] = field(default=time.sleep, repr=False)

    def wait(self, turn: int, asked: float = 0.0) -> None:
        """Pause after attempt number ``turn``, from 1 on; ``asked``: the seconds of ``Retry-After``."""
        seconds = max(asked, self.first * 2 ** (turn - 1))
        # jitter: clients that failed together do not retry together
        self.pause(min(seconds, self.longest) * (1 + random.random() / 2))  # noqa: S311 -- spreads, hides nothing


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """The JSON or bytes of a response (None without a body), its ``ETag``, and the digest in its headers."""

    data: Any
    etag: str = ""
    sha256: str = ""


class Transport:
    """Sends requests over an HTTP session and reads the JSON of the responses."""

    def __init__(self, session: HttpSession, retries: Retries) -> None:
        self._session = session
        self._retries = retries

    def close(self) -> None:
        """Close all connections."""
        self._session.close()

    def call(self, method: str, path: str, **more: Any) -> Data:
        """Return the JSON of the response, None without a body; ``more`` are fields of :class:`Request`."""
        data: Data = self.request(Request(method, path, **more)).data
        return data

    def request(self, request: Request) -> ApiResponse:
        """Return the response to ``request``.

        :raises ApiError: when the controller refuses
        :raises Unreachable: when there is no response, or not one of the controller
        """
        response, lost = self._send(request)
        if lost and request.method == "DELETE" and response.status_code == 404:
            return ApiResponse(None)
        try:
            return self._read(response, request)
        except ApiError as error:
            if lost and error.status == 412:
                error.message += "; an earlier try, whose answer was lost, may have done it"
            raise

    def _send(self, request: Request) -> tuple[Any, bool]:
        """Return the last response, and whether the response of an earlier attempt was lost."""
        last = self._retries.tries if request.is_repeatable else 1
        lost = False
        for turn in range(1, last + 1):
            request.rewind()
            try:
                response = self._complete(self._session.send(request))
            except Unreachable as error:
                if turn == last or not error.passing:
                    raise
                asked: float | None = 0.0
            else:
                asked = None if _BUSY in request.accepted else _retry_after(response)
                if turn == last or asked is None:
                    return response, lost
            lost = True
            self._retries.wait(turn, asked or 0.0)
        raise AssertionError("the last try returns or raises")

    def _read(self, response: Any, request: Request) -> ApiResponse:
        status, address = response.status_code, self._session.address
        etag = response.headers.get("ETag", "")
        if status == 204 and request.method != "GET":
            return ApiResponse(None, etag)
        if request.raw and status < 300:
            return ApiResponse(response.content, etag, response.headers.get("X-Content-Sha256", ""))
        try:
            data = response.json()
        except ValueError as error:
            raise Unreachable(f"{address} answered {status} without JSON; is it the controller?") from error
        if status < 300 or status in request.accepted:
            return ApiResponse(data, etag)
        raise self._refusal(response, data)

    def _refusal(self, response: Any, data: Any) -> Exception:
        try:
            detail = data["error"]
            message, problems = detail["message"], detail["problems"]
        except (KeyError, TypeError):
            status = response.status_code
            return Unreachable(f"{self._session.address} answered {status} in a form that is not the controller's")
        return ApiError(response.status_code, message, problems, response.headers.get("X-Request-Id", ""))

    def _complete(self, response: Any) -> Any:
        """Return ``response``, if it is final and complete.

        :raises Unreachable: for an interim response, or one that ends with the connection and may be truncated
        """
        status, address = response.status_code, self._session.address
        if status < 200:
            # the final response would be taken for that of the next request
            response.connection.close()
            raise Unreachable(f"{address} answered {status} and not what came of it")
        measured = {"content-length", "transfer-encoding"} & {name.lower() for name in response.headers}
        if not measured and status not in _EMPTY:
            raise Unreachable(f"{address} cut its answer, or did not say how long it is", passing=True)
        return response


def _retry_after(response: Any) -> float | None:
    """Return the seconds of ``Retry-After`` of a 503; None without them."""
    value = response.headers.get("Retry-After", "")
    return float(value) if response.status_code == _BUSY and value.isascii() and value.isdigit() else None
