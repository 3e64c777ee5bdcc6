"""The cluster's Cinder: with the rights of our service user, and with those of callers.

:meth:`CinderService.as_caller` is for what Cinder is to decide by its own rules.
"""

from __future__ import annotations

import threading
from typing import Final

from keystoneauth1 import token_endpoint
from keystoneauth1.session import Session

from sluice_core.errors import PeerError
from sluice_volumes.cinder.adapter import SERVICE, Cinder
from sluice_volumes.cinder.options import CinderSettings, service_session

#: Seconds for an answer; Cinder makes an export while an attachment is created.
TIMEOUT: Final = 30.0


class CinderService(Cinder):
    """Cinder with the rights of our service user; the constructor does not connect."""

    def __init__(self, settings: CinderSettings, timeout: float = TIMEOUT) -> None:
        self._settings = settings
        self._timeout = timeout
        self._lock = threading.Lock()
        self._root = settings.url
        options = {"region_name": settings.region} if settings.region else {}
        if settings.url:
            options["endpoint_override"] = f"{settings.url}/%(project_id)s"
        super().__init__(service_session(settings, timeout), **options)

    def as_caller(self, token: str, project: str) -> Cinder:
        """Cinder with somebody else's rights.

        :param project: the id of the project that the token is for
        :raises PeerError: when Keystone does not say where Cinder is
        """
        url = f"{self._url()}/{project}"
        return Cinder(Session(auth=token_endpoint.Token(url, token), timeout=self._timeout), endpoint_override=url)

    def _url(self) -> str:
        """Cinder's URL without a project."""
        with self._lock:
            if not self._root:
                with self._asking("looking for cinder"):
                    found = self._session.get_endpoint(service_type=SERVICE, region_name=self._settings.region or None)
                    own = self._session.get_project_id()
                if not found:
                    self._session.invalidate()  # the catalogue came with the token
                    raise PeerError("keystone's catalogue names no cinder (`volumev3`) to our service user")
                self._root = found.rstrip("/").removesuffix(f"/{own}")
            return self._root
