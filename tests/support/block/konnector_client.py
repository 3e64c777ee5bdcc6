"""A client of the konnector on this machine, over its Unix socket."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from sluice_core.errors import CallerError, Conflict, NotFound, PeerError

#: Seconds for one call: a detach waits for processes to end.
_TIMEOUT: Final = 90.0
_ERRORS: Final = {400: CallerError, 404: NotFound, 409: Conflict}


class KonnectorClient:
    """Each call raises the konnector's error, or :class:`PeerError` when it does not answer."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def list(self) -> Any:
        """All volumes."""
        return self._call("GET", "/volumes")["volumes"]

    def show(self, volume: str) -> Any:
        """One volume, by its id."""
        return self._call("GET", _path(volume))

    def attach(self, volume: str, wanted: Mapping[str, Any]) -> Any:
        """Attach a volume; ``wanted`` as of :class:`KonnectorApi`."""
        return self._call("PUT", _path(volume), wanted)

    def detach(self, volume: str) -> None:
        """Detach a volume."""
        self._call("DELETE", _path(volume))

    def set_filters(self, volume: str, stack: Sequence[Mapping[str, Any]]) -> Any:
        """Replace the volume's stack of filters."""
        return self._call("PUT", f"{_path(volume)}/filters", {"stack": stack})

    def set_limits(self, volume: str, limits: Mapping[str, float]) -> Any:
        """Replace the limits."""
        return self._call("PUT", f"{_path(volume)}/limits", limits)

    def counters(self, volume: str) -> Any:
        """The counters since it was attached."""
        return self._call("GET", f"{_path(volume)}/counters")

    def locality(self, volume: str) -> Any:
        """Its locality: ``rbd``, None when it is not in Ceph."""
        return self._call("GET", f"{_path(volume)}/locality")

    def measure(self, volume: str, seconds: int) -> Any:
        """Let fio overwrite and measure a volume."""
        return self._call("POST", f"{_path(volume)}/measure", {"seconds": seconds})

    def _call(self, method: str, path: str, data: Mapping[str, Any] | None = None) -> Any:
        connection = _UnixConnection(self._path)
        try:
            connection.request(method, path, None if data is None else json.dumps(data))
            answer = connection.getresponse()
            body = answer.read()
            found: Any = json.loads(body) if body else None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise PeerError(f"no konnector answers at `{self._path}`: {error}") from error
        finally:
            connection.close()
        if answer.status >= 300:
            raise _ERRORS.get(answer.status, PeerError)(str(found["error"]))
        return found


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("konnector", timeout=_TIMEOUT)
        self._socket_path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._socket_path))


def _path(volume: str) -> str:
    return f"/volumes/{quote(volume, safe='')}"
