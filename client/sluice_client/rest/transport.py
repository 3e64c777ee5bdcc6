"""Requests that are tried again when that is safe, and one way to fail.

Rules of trying again:

- only what means the same when it happens twice: GET, DELETE, PUT that names the version it
  replaces, and POST with a key by which the controller knows it again.  Any other POST is sent once: when its answer
  is lost, only the caller can look what became of it.
- only when the connection failed, or the controller said 503 and when to come back.  A time-out is
  not tried again, since whoever is slow does not get faster by being asked more.
- a few times, with pauses that grow and differ between clients, none longer than ``longest``.
- an answer that was cut is none; one that cannot be told from a cut one is none either.
- an earlier try whose answer was lost may have worked.  So a DELETE that then finds nothing is done,
  and a PUT that then finds another version says so.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from sluice_client.errors import ApiError, Unreachable
from sluice_client.rest.auth import Request, Sender

_BUSY: Final = 503
#: Statuses of answers that have no body and need not say so.
_EMPTY: Final = (204, 304)


@dataclass(frozen=True, slots=True)
class Retries:
    """At most ``tries``; the first pause is about ``first`` seconds, each later one twice as long."""

    tries: int = 4
    first: float = 0.1
    longest: float = 5.0
    pause: Callable[[float], object] = field(default=time.sleep, repr=False)

    def wait(self, turn: int, asked: float = 0.0) -> None:
        """Pause before try number ``turn``, from 1 on; ``asked`` is what the controller asked for."""
        seconds = max(asked, self.first * 2 ** (turn - 1))
        # half of it again at random: clients that failed together do not come back together
        self.pause(min(seconds, self.longest) * (1 + random.random() / 2))  # noqa: S311 -- spreads, hides nothing


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer's JSON or bytes (None without a body), its ``ETag``, and the digest that it says its bytes have."""

    data: Any
    etag: str = ""
    sha256: str = ""


class Transport:
    """Sends requests and reads JSON."""

    def __init__(self, sender: Sender, retries: Retries) -> None:
        self._sender = sender
        self._retries = retries

    def close(self) -> None:
        """Close all connections."""
        self._sender.close()

    def call(self, method: str, path: str, **more: Any) -> Any:
        """The answer's JSON; ``more`` are fields of :class:`Request`."""
        return self.ask(Request(method, path, **more)).data

    def ask(self, request: Request) -> Answer:
        """The answer.

        :raises ApiError: when the controller refuses
        :raises Unreachable: when there is no answer, or not one of the controller's
        """
        response, lost = self._send(request)
        if lost and request.method == "DELETE" and response.status_code == 404:
            return Answer(None)
        try:
            return self._read(response, request)
        except ApiError as error:
            if lost and error.status == 412:
                error.message += "; an earlier try, whose answer was lost, may have done it"
            raise

    def _send(self, request: Request) -> tuple[Any, bool]:
        """What was answered last, and whether the answer of an earlier try was lost."""
        last = self._retries.tries if request.repeatable else 1
        lost = False
        for turn in range(1, last + 1):
            request.rewind()
            try:
                response = self._whole(self._sender.send(request))
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

    def _read(self, response: Any, request: Request) -> Answer:
        status, place = response.status_code, self._sender.place
        etag = response.headers.get("ETag", "")
        if status == 204 and request.method != "GET":
            return Answer(None, etag)
        if request.raw and status < 300:
            return Answer(response.content, etag, response.headers.get("X-Content-Sha256", ""))
        try:
            data = response.json()
        except ValueError as error:
            raise Unreachable(f"{place} answered {status} without JSON; is it the controller?") from error
        if status < 300 or status in request.accepted:
            return Answer(data, etag)
        raise self._refusal(response, data)

    def _refusal(self, response: Any, data: Any) -> Exception:
        try:
            detail = data["error"]
            message, problems = detail["message"], detail["problems"]
        except (KeyError, TypeError):
            status = response.status_code
            return Unreachable(f"{self._sender.place} answered {status} in a form that is not the controller's")
        return ApiError(response.status_code, message, problems, response.headers.get("X-Request-Id", ""))

    def _whole(self, response: Any) -> Any:
        """``response``, if it is one and all of it has come.

        :raises Unreachable: when it is another's beginning, or ends with the connection, which may have been cut
        """
        status, place = response.status_code, self._sender.place
        if status < 200:
            # the answer that follows would be taken for that to the next request
            response.connection.close()
            raise Unreachable(f"{place} answered {status} and not what came of it")
        measured = {"content-length", "transfer-encoding"} & {name.lower() for name in response.headers}
        if not measured and status not in _EMPTY:
            raise Unreachable(f"{place} cut its answer, or did not say how long it is", passing=True)
        return response


def _retry_after(response: Any) -> float | None:
    """Seconds after which a busy controller wants to be asked again; None when it said no such thing."""
    value = response.headers.get("Retry-After", "")
    return float(value) if response.status_code == _BUSY and value.isascii() and value.isdigit() else None
