"""Two ways for one request to reach the controller: a token of ours, or somebody's Keystone session.

A sender sends once and gives back whatever was answered; what an answer means, and whether to try
again, is the transport's.  Foreign exceptions end here, and none of their texts that could hold a
header is passed on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import BadStatusLine, RemoteDisconnected
from typing import IO, TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

import requests
import urllib3

from sluice_client.errors import ApiError, ClientError, Unreachable

if TYPE_CHECKING:
    from keystoneauth1.session import Session

SERVICE_TYPE: Final = "sluice"
#: With this header the controller creates once, however often it is asked.
REPEATED: Final = "Idempotency-Key"
_BROKEN: Final = (requests.ConnectionError, requests.exceptions.ChunkedEncodingError)
#: A body that does not come in time is said to be a broken connection, with the time-out inside.
_TIMEOUTS: Final = (requests.Timeout, urllib3.exceptions.TimeoutError, TimeoutError)
#: The second is what is raised for addresses that are none, such as those of a strange ``Location``.
_WRONG: Final = (requests.RequestException, ValueError)


@dataclass(frozen=True, slots=True)
class Request:
    """One request; ``patience`` are seconds that the controller itself may wait before it answers.

    ``accepted`` are statuses from 400 on that are no errors, ``once`` forbids to send it again;
    ``raw`` says that the answer is no JSON, but bytes.
    """

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    query: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    patience: float = 0.0
    accepted: tuple[int, ...] = ()
    data: IO[bytes] | bytes | None = None
    once: bool = False
    raw: bool = False

    @property
    def repeatable(self) -> bool:
        """Whether sending it twice is the same as sending it once."""
        guarded = self.method == "PUT" and "If-Match" in self.headers
        keyed = self.method == "POST" and REPEATED in self.headers
        return not self.once and (self.method in ("GET", "DELETE") or guarded or keyed)

    def rewind(self) -> None:
        """Let the body begin anew."""
        if self.data is not None and not isinstance(self.data, bytes):
            self.data.seek(0)


class Sender(Protocol):
    """Sends a request once; ``place`` names the controller in errors."""

    place: str

    def send(self, request: Request) -> Any:
        """The answer, a :class:`requests.Response`, whatever its status.

        :raises Unreachable: when there is none
        """

    def close(self) -> None:
        """Give back what it holds."""


class TokenSender:
    """To a known address, with a known token."""

    def __init__(self, url: str, token: str, timeout: float) -> None:
        if not all("!" <= sign <= "~" for sign in token):
            raise ClientError("the token holds a character that a header cannot carry, expected printable ascii")
        self._url = url.rstrip("/")
        self._timeout = timeout
        self._session = requests.Session()
        self._session.headers.update({"X-Auth-Token": token, "Accept": "application/json"})
        self.place = f"`{without_password(self._url)}`"

    def close(self) -> None:
        """Close all connections."""
        self._session.close()

    def send(self, request: Request) -> Any:
        """The answer; every part of it within the time-out."""
        try:
            return self._session.request(
                request.method,
                self._url + request.path,
                json=request.body,
                data=request.data,
                params=request.query,
                headers=dict(request.headers),
                timeout=(self._timeout, self._timeout + request.patience),
                allow_redirects=False,
            )
        except _WRONG as error:
            raise _unreachable(self.place, error, self._timeout + request.patience) from error


class SessionSender:
    """Through a keystoneauth1 session, which knows the token and finds the endpoint.

    Without ``endpoint`` it is looked up in the service catalogue.
    """

    def __init__(self, session: Session, endpoint: str, interface: str, region: str, timeout: float) -> None:
        self._session = session
        self._timeout = timeout
        self._endpoint = endpoint.rstrip("/") or None
        self._filter = {"service_type": SERVICE_TYPE, "interface": interface, "region_name": region or None}
        shown = f"`{without_password(endpoint)}`" if endpoint else f"service `{SERVICE_TYPE}` of the service catalogue"
        self.place = shown

    def close(self) -> None:
        """Nothing: the session is its owner's."""

    def send(self, request: Request) -> Any:
        """The answer; a body is sent again from its beginning when the token was no longer good."""
        response = self._send(request)
        if response.status_code == 401 and request.data is not None and self._session.invalidate():
            request.rewind()
            response = self._send(request)
        return response

    def _send(self, request: Request) -> Any:
        from keystoneauth1 import exceptions

        try:
            return self._session.request(
                request.path,
                request.method,
                json=request.body,
                data=request.data,
                params=request.query,
                headers={"Accept": "application/json", **request.headers},
                timeout=(self._timeout, self._timeout + request.patience),
                redirect=False,
                raise_exc=False,
                allow_reauth=request.data is None,
                log=request.data is None,
                connect_retries=0,
                endpoint_filter=self._filter,
                endpoint_override=self._endpoint,
                user_agent="sluice",
            )
        except exceptions.HttpError as error:
            message = f"keystone refuses: {error.message.partition(' (HTTP ')[0]}"
            raise ApiError(error.http_status, message, request_id=error.request_id or "") from error
        except exceptions.ConnectionError as error:
            # raised while that of requests was handled, which says what it was
            cause = error.__context__ or error
            raise _unreachable(self.place, cause, self._timeout + request.patience) from error
        except (exceptions.ClientException, *_WRONG) as error:
            raise Unreachable(f"{self.place} cannot be reached: {error}") from error


def without_password(url: str) -> str:
    """``url`` as it may be shown."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _unreachable(place: str, error: BaseException, seconds: float) -> Unreachable:
    """What became of a request to ``place`` that was answered by an exception."""
    cause = _innermost(error)
    # a connection that was refused is derived from one that was not made in time
    if isinstance(cause, _TIMEOUTS) and not isinstance(cause, urllib3.exceptions.NewConnectionError):
        return Unreachable(f"{place} does not answer within {seconds:g} s")
    passing = isinstance(error, _BROKEN) and not isinstance(error, requests.exceptions.SSLError)
    return Unreachable(f"{place} cannot be reached: {_reason(cause)}", passing)


def _innermost(error: BaseException) -> BaseException:
    """The cause: what requests and urllib3 wrap around it names objects of theirs."""
    found = (getattr(error, "reason", None), *reversed(error.args))
    inner = next((one for one in found if isinstance(one, BaseException)), None)
    return error if inner is None else _innermost(inner)


def _reason(cause: BaseException) -> str:
    if isinstance(cause, BadStatusLine) and not isinstance(cause, RemoteDisconnected):
        return "what it answers is no HTTP"
    return str(cause).rpartition(": ")[2].rstrip("'\")") or type(cause).__name__
