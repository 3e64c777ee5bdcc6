"""Uploaded code: upload, download, start, stop and rollback, common to filters, metrics and controllers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import IO, Final

from sluice_client.errors import ClientError, Unreachable
from sluice_client.rest.auth import Request
from sluice_client.rest.collection import Collection, if_match, join_path, make_query
from sluice_client.rest.transport import Data, Transport

#: Greatest number of seconds for which the controller validates native code before it accepts it.
VALIDATION_SECONDS: Final = 60.0
_BYTES: Final = "application/octet-stream"
_NOTHING: Final = hashlib.sha256().hexdigest()


class Uploads:
    """The code of the items at ``path``; methods return the item.

    In all methods, ``wait`` is the number of seconds (at most 30) to wait for nodes and actor hosts, and ``etag``
    refuses (412) when the item has another one.
    """

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport = transport
        self._path = path

    def upload(self, name: str, code: bytes | IO[bytes], wait: float = 0.0, etag: str = "", main: str = "") -> Data:
        """Upload code, or another revision of it; the controller verifies its digest.

        :param code: a file that can be rewound is read twice: for its digest, and when it is sent
        :param main: the class to run, if the code has several
        """
        digest = digest_of(code)
        headers = {"X-Content-Sha256": digest, "Content-Type": _BYTES} | if_match(etag)
        return self._transport.call(
            "PUT",
            self._path_of(name, "data"),
            query=make_query(main=main, wait=wait),
            headers=headers,
            patience=wait + VALIDATION_SECONDS,
            # requests would send an empty file in chunks, like one of unknown length
            data=b"" if digest == _NOTHING else code,
        )

    def download(self, name: str) -> bytes:
        """Return the code of the newest revision.

        :raises Unreachable: when it does not match its digest
        """
        request = Request(
            "GET", self._path_of(name, "data"), headers={"Accept": f"{_BYTES}, application/json"}, raw=True
        )
        answer = self._transport.request(request)
        code: bytes = answer.data
        if answer.sha256 not in ("", digest_of(code)):
            raise Unreachable(f"the code of `{name}` came damaged: it is not what its SHA-256 says")
        return code

    def start(self, name: str, wait: float = 0.0, etag: str = "") -> Data:
        """Let proxies measure the metric, or actor hosts run the controller."""
        return self._post(name, "start", None, make_query(wait=wait), wait, etag)

    def stop(self, name: str, wait: float = 0.0, etag: str = "", force: bool = False) -> Data:
        """Stop it; the assignments of a controller are removed.

        :param force: of a metric: even while policies watch it
        """
        return self._post(name, "stop", None, make_query(force=force, wait=wait), wait, etag)

    def roll_back(self, name: str, revision: int | None = None, wait: float = 0.0, etag: str = "") -> Data:
        """Upload an earlier revision again, as a new revision; default: the previous one."""
        if revision is not None and revision < 1:
            raise ClientError(f"`{revision}` is no revision, expected 1 or more")
        body = {} if revision is None else {"revision": revision}
        return self._post(name, "rollback", body, make_query(wait=wait), wait + VALIDATION_SECONDS, etag)

    def instances(self, name: str) -> Iterator[Data]:
        """Yield the nodes or hosts that run it."""
        return Collection(self._transport, self._path_of(name, "instances")).list()

    def _post(self, name: str, verb: str, body: Data | None, query: Data, patience: float, etag: str) -> Data:
        path, headers = self._path_of(name, verb), if_match(etag)
        return self._transport.call("POST", path, body=body, query=query, headers=headers, patience=patience)

    def _path_of(self, name: str, what: str) -> str:
        return self._path + join_path(name, what)


def digest_of(code: bytes | IO[bytes]) -> str:
    """Return the SHA-256 in hexadecimal; a file is rewound."""
    if isinstance(code, bytes):
        return hashlib.sha256(code).hexdigest()
    digest = hashlib.sha256()
    while piece := code.read(1 << 20):
        digest.update(piece)
    code.seek(0)
    return digest.hexdigest()
