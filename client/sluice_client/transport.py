"""HTTP: one session, one way to fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any, Final

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from sluice_client.errors import ApiError, Unreachable

#: For GET alone: whether a change happened is not known when its answer is lost.
RETRY: Final = Retry(
    total=3, connect=3, read=0, redirect=0, status=0, other=0, backoff_factor=0.1, respect_retry_after_header=False
)
#: A Retry-After is the caller's to respect, too.
NO_RETRY: Final = Retry(total=0, respect_retry_after_header=False)


class Transport:
    """Sends requests with the token and reads JSON."""

    def __init__(self, url: str, token: str, timeout: float) -> None:
        self._url = url.rstrip("/")
        self._timeout = timeout
        self._reading = _session(token, RETRY)
        self._writing = _session(token, NO_RETRY)

    def close(self) -> None:
        """Close all connections."""
        self._reading.close()
        self._writing.close()

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        patience: float = 0.0,
        accepted: tuple[int, ...] = (),
        data: IO[bytes] | bytes | None = None,
    ) -> Any:
        """The answer's JSON; None when it has no body.

        :param patience: seconds that the controller itself may wait before it answers
        :param accepted: statuses from 400 on that are no errors here
        :param data: a body that is no JSON
        :raises ApiError: when the controller refuses
        :raises Unreachable: when there is no answer, or not one of the controller's
        """
        session = self._reading if method == "GET" else self._writing
        try:
            response = session.request(
                method,
                self._url + path,
                json=body,
                data=data,
                params=query,
                headers=headers,
                timeout=(self._timeout, self._timeout + patience),
                allow_redirects=False,
            )
        except (requests.RequestException, ValueError) as error:
            raise Unreachable(f"`{self._url}` cannot be reached: {_reason(error)}") from error
        return self._read(response, accepted)

    def _read(self, response: requests.Response, accepted: tuple[int, ...]) -> Any:
        status = response.status_code
        if status == 204:
            return None
        try:
            data = response.json()
        except ValueError as error:
            raise Unreachable(f"`{self._url}` answered {status} without JSON; is it the controller?") from error
        if status < 300 or status in accepted:
            return data
        request_id = response.headers.get("X-Request-Id", "")
        try:
            detail = data["error"]
            raise ApiError(status, detail["message"], detail["problems"], request_id)
        except (KeyError, TypeError) as error:
            raise Unreachable(f"`{self._url}` answered {status} in a form that is not the controller's") from error


def _reason(error: Exception) -> str:
    """The last cause: what requests and urllib3 wrap around it names objects of theirs."""
    cause = getattr(error.args[0], "reason", None) if error.args else None
    return str(cause or error).rpartition(": ")[2]


def _session(token: str, retries: Retry) -> requests.Session:
    session = requests.Session()
    session.headers.update({"X-Auth-Token": token, "Accept": "application/json"})
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(max_retries=retries))
    return session
