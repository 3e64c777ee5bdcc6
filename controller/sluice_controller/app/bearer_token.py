"""``Authorization: Bearer TOKEN`` means the same as ``X-Auth-Token: TOKEN``.

Prometheus can read the one out of a file in every version, other headers only since 2.55.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

_GIVEN = "HTTP_AUTHORIZATION"
_TOKEN = "HTTP_X_AUTH_TOKEN"  # noqa: S105 - the name of a header


class BearerToken:
    """Stands before whatever reads ``X-Auth-Token``, which counts where both are there."""

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Called by the server for each request."""
        scheme, _, token = environ.get(_GIVEN, "").partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            environ.setdefault(_TOKEN, token.strip())
        return self._app(environ, start_response)
