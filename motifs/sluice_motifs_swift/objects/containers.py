"""What is known of containers: who may read them, whether they are synchronized, whether they are marked.

Version 1 marked a container when one of its objects was a source that contracted objects needed as it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from sluice_core.errors import PeerError
from sluice_middleware.swift.proxy_api import close_if_possible, header_to_environ_key
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.response import UpstreamResponse
from sluice_middleware.wsgi.swift_client import SwiftClient, make_environment

#: Seconds for which a container is remembered here, and how many are.
_REMEMBERED: Final = 10.0
_MOST: Final = 10_000
_MARK: Final = f"x-container-sysmeta-{sysmeta.SOURCES_MARK}"


class Containers:
    def __init__(self, client: SwiftClient, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[tuple[str, str], tuple[float, dict[str, str]]] = {}

    def is_synchronized(self, account: str, container: str) -> bool:
        """Whether container-sync reads it, which cannot read a timestamp with an offset."""
        return "x-container-sync-to" in self._headers(account, container)

    def read_acl(self, account: str, container: str) -> str:
        """Its read ACL as it is now."""
        return self._headers(account, container, fresh=True).get("x-container-read", "")

    def is_marked(self, account: str, container: str) -> bool:
        """Whether objects that version 1 contracted may stand on its objects."""
        return bool(self._headers(account, container, fresh=True).get(_MARK))

    def remove_mark(self, account: str, container: str) -> None:
        """No object stands on its objects any more.

        :raises PeerError: when Swift does not take that
        """
        env = make_environment("POST", account, container)
        env[header_to_environ_key(_MARK)] = ""
        answer = UpstreamResponse(self._client.app, env)
        close_if_possible(answer.body)
        self._known.pop((account, container), None)
        if not 200 <= answer.code < 300 and answer.code != 404:
            raise PeerError(f"swift answered `{answer.status}` to a POST of container `{container}`")

    def _headers(self, account: str, container: str, fresh: bool = False) -> dict[str, str]:
        """Its headers by their names in lower case; none when it does not exist."""
        now = self._clock()
        known = self._known.get((account, container))
        if known is not None and not fresh and known[0] > now:
            return known[1]
        headers = self._client.container_headers(account, container) or {}
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[account, container] = (now + _REMEMBERED, headers)
        return headers
