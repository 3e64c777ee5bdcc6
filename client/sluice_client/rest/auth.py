"""HTTP sessions that authenticate with the controller: by a fixed token, or by a Keystone session.

A session sends a request once and returns the response with any status; the transport interprets responses and
retries.  Exceptions of requests and keystoneauth1 are translated here, without texts that could hold a header.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import BadStatusLine, RemoteDisconnected
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

import requests
import urllib3

from sluice_client.errors import ApiError, ClientError, Unreachable

if TYPE_CHECKING:
    from keystoneauth1.session import Session

SERVICE_TYPE: Final = "sluice"
#: With this header the controller executes a repeated POST once.
IDEMPOTENCY_HEADER: Final = "Idempotency-Key"
_BROKEN: Final = (requests.ConnectionError, requests.exceptions.ChunkedEncodingError)
_BAD_URLS: Final = (
    requests.exceptions.MissingSchema,
    requests.exceptions.InvalidSchema,
    requests.exceptions.InvalidURL,
)
#: requests reports a body that does not arrive in time as a broken connection, with the time-out as its cause.
_TIMEOUTS: Final = (requests.Timeout, urllib3.exceptions.TimeoutError, TimeoutError)
#: ValueError is raised for malformed addresses, as in a ``Location``.
_FAILURES: Final = (requests.RequestException, ValueError)


@dataclass(frozen=True, slots=True)
class Request:
    """One request; ``patience``: seconds that the controller may wait before it responds.

    ``accepted``: statuses from 400 on that are not errors; ``once``: never retry; ``raw``: the response is not JSON.
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
    def is_repeatable(self) -> bool:
        """Whether the request is idempotent."""
        guarded = self.method == "PUT" and "If-Match" in self.headers
        keyed = self.method == "POST" and IDEMPOTENCY_HEADER in self.headers
        return not self.once and (self.method in ("GET", "DELETE") or guarded or keyed)

    def rewind(self) -> None:
        """Rewind a body that is a file, for another attempt."""
        if self.data is not None and not isinstance(self.data, bytes):
            self.data.seek(0)


class HttpSession(Protocol):
    """Sends a request once; ``address`` names the controller in errors."""

    address: str

    def send(self, request: Request) -> Any:
        """Return the response, a :class:`requests.Response`, with any status.

        :raises Unreachable: when there is no response
        """

    def close(self) -> None:
        """Close the connections of the session."""


class TokenSession:
    """Token authentication: a fixed address and a fixed token."""

    def __init__(self, url: str, token: str, timeout: float) -> None:
        if not all("!" <= sign <= "~" for sign in token):
            raise ClientError("the token holds a character that a header cannot carry, expected printable ascii")
        self._url = url.rstrip("/")
        self._timeout = timeout
        self._session = requests.Session()
        self._session.headers.update({"X-Auth-Token": token, "Accept": "application/json"})
        self.address = f"`{without_password(self._url)}`"

    def close(self) -> None:
        """Close all connections."""
        self._session.close()

    def send(self, request: Request) -> Any:
        """Return the response; connection and each part of it within the time-out."""
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
        except _FAILURES as error:
            raise _unreachable(self.address, error, self._timeout + request.patience) from error


class KeystoneSession:
    """Authentication by a keystoneauth1 session, which obtains the token and finds the endpoint.

    Without ``endpoint`` the service catalogue has the URL.
    """

    def __init__(self, session: Session, endpoint: str, interface: str, region: str, timeout: float) -> None:
        self._session = session
        self._timeout = timeout
        self._endpoint = endpoint.rstrip("/") or None
        self._filter = {"service_type": SERVICE_TYPE, "interface": interface, "region_name": region or None}
        self.address = (
            f"`{without_password(endpoint)}`" if endpoint else f"service `{SERVICE_TYPE}` of the service catalogue"
        )

    def close(self) -> None:
        """Do nothing: the caller owns the session."""

    def send(self, request: Request) -> Any:
        """Return the response; the request is sent again, with its body, when the token has expired."""
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
            # raised while the exception of requests, which has the reason, was handled
            cause = error.__context__ or error
            raise _unreachable(self.address, cause, self._timeout + request.patience) from error
        except (exceptions.ClientException, *_FAILURES) as error:
            raise Unreachable(f"{self.address} cannot be reached: {error}") from error


def read_token(path: str) -> str:
    """Return the token in a file; empty without one.

    :raises ClientError: when it cannot be read
    """
    try:
        return Path(path).read_text(encoding="utf-8").strip() if path else ""
    except OSError as error:
        raise ClientError(f"the token file `{path}` cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ClientError(f"the token file `{path}` holds no text") from error


def without_password(url: str) -> str:
    """Return ``url`` without user name and password, for error messages."""
    try:
        parts = urlsplit(url)
    except ValueError:  # half of the brackets of an IPv6 address; sending a request reports it
        before, slashes, rest = url.rpartition("//")
        return before + slashes + rest.rpartition("@")[2]
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _unreachable(address: str, error: BaseException, seconds: float) -> Unreachable:
    """Return the error for a request that ended with an exception."""
    if isinstance(error, _BAD_URLS):
        return Unreachable(f"{address} is no URL of an API, expected one like `http://127.0.0.1:8877`")
    cause = _innermost(error)
    # NewConnectionError, for a refused connection, is derived from a time-out
    if isinstance(cause, _TIMEOUTS) and not isinstance(cause, urllib3.exceptions.NewConnectionError):
        return Unreachable(f"{address} does not answer within {seconds:g} s")
    passing = isinstance(error, _BROKEN) and not isinstance(error, requests.exceptions.SSLError)
    return Unreachable(f"{address} cannot be reached: {_reason(cause)}", passing)


def _innermost(error: BaseException) -> BaseException:
    """Return the innermost cause: requests and urllib3 wrap it in exceptions that name their objects."""
    causes = (getattr(error, "reason", None), *reversed(error.args))
    inner = next((cause for cause in causes if isinstance(cause, BaseException)), None)
    return error if inner is None else _innermost(inner)


def _reason(cause: BaseException) -> str:
    if isinstance(cause, BadStatusLine) and not isinstance(cause, RemoteDisconnected):
        return "what it answers is no HTTP"
    return str(cause).rpartition(": ")[2].rstrip("'\")") or type(cause).__name__
