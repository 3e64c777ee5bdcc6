"""The storage policy of an account's new containers, as a placement names it.

A container PUT without ``X-Storage-Policy`` gets that header, and is otherwise unchanged.  Swift answers 409 when
the header names another policy than that of an existing container, and many clients PUT their container
before each upload.  So only a PUT that creates a container gets the header; and if the container existed after all
(another client created it meanwhile, or the cache was outdated), the request is sent again without the header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from sluice_core.errors import PeerError
from sluice_middleware.swift.proxy_api import POLICIES, drain_and_close, get_container_info
from sluice_middleware.wsgi import decoding
from sluice_middleware.wsgi.backend_headers import SOURCE
from sluice_middleware.wsgi.policy_lookup import decoded_path
from sluice_middleware.wsgi.response import App, Env, UpstreamResponse

HEADER: Final = "HTTP_X_STORAGE_POLICY"


def container_account(env: Env) -> str:
    """The account of a client's request for a container itself; empty for other requests."""
    parts = decoded_path(env).split("/", 4)
    if len(parts) < 4 or not parts[3] or parts[4:] not in ([], [""]) or parts[1] not in ("v1", "v1.0"):
        return ""
    return "" if parts[2].startswith(".") else parts[2]


class ContainerPlacement:
    """The application before ``app`` for PUTs of containers; ``placement`` returns the storage policy of an account."""

    def __init__(self, app: App, placement: Callable[[str], str]) -> None:
        self._app = app
        self._placement = placement

    def __call__(self, env: Env, start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer a PUT without an object."""
        name = "" if env.get(HEADER) else self._named(env)
        if not name or self._is_there(env):
            return self._app(env, start_response)
        policy = POLICIES.get_by_name(name)
        if policy is None or policy.is_deprecated:
            what = "deprecated" if policy else "not known"
            error = PeerError(f"new containers of this account go to storage policy `{name}`, which is {what} here")
            return decoding.refuse(env, error, start_response)
        answer = self._placed(env, name)
        start_response(answer.status, answer.headers, answer.exc_info)
        return answer.body

    def _named(self, env: Env) -> str:
        account = container_account(env)
        return self._placement(account) if account else ""

    def _is_there(self, env: Env) -> bool:
        status = get_container_info(env, self._app, swift_source=SOURCE)["status"]
        return 200 <= int(status or 0) < 300

    def _placed(self, env: Env, name: str) -> UpstreamResponse:
        env[HEADER] = name
        answer = UpstreamResponse(self._app, env)
        if answer.code == 409:
            drain_and_close(answer.body)
            del env[HEADER]
            answer = UpstreamResponse(self._app, env)
        return answer
