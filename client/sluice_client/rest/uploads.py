"""Code that travels: what is uploaded, started, watched on its way and gone back from is the same for every kind."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import IO, Any, Final

from sluice_client.errors import ClientError, Unreachable
from sluice_client.rest.auth import Request
from sluice_client.rest.collection import Collection, Data, expecting, path_of
from sluice_client.rest.transport import Transport

#: Native code is tried before it is taken, which takes the controller so many seconds at most.
TRIAL: Final = 60.0
_BYTES: Final = "application/octet-stream"
_NOTHING: Final = hashlib.sha256().hexdigest()


class Uploads:
    """The code of the things at ``path``; what is answered describes the thing.

    Everywhere: ``wait`` are seconds (at most 30) for nodes and actor hosts to follow, and ``etag`` refuses (412)
    when the thing has another one meanwhile.
    """

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport = transport
        self._path = path

    def upload(self, name: str, code: bytes | IO[bytes], wait: float = 0.0, etag: str = "", main: str = "") -> Data:
        """Bring code, or another revision of it; the digest is verified there.

        :param code: a file that can be rewound is read twice: for its digest, and when it is sent
        :param main: the class to run, where the code has several
        """
        digest = digest_of(code)
        headers = {"X-Content-Sha256": digest, "Content-Type": _BYTES} | expecting(etag)
        made: Data = self._transport.call(
            "PUT",
            self._at(name, "data"),
            query=({"main": main} if main else {}) | waiting(wait),
            headers=headers,
            patience=wait + TRIAL,
            # requests would send an empty file in chunks, as it would one of unknown length
            data=b"" if digest == _NOTHING else code,
        )
        return made

    def download(self, name: str) -> bytes:
        """The code of the newest revision.

        :raises Unreachable: when it is not what its digest says
        """
        request = Request("GET", self._at(name, "data"), headers={"Accept": f"{_BYTES}, application/json"}, raw=True)
        answer = self._transport.ask(request)
        code: bytes = answer.data
        if answer.sha256 not in ("", digest_of(code)):
            raise Unreachable(f"the code of `{name}` came damaged: it is not what its SHA-256 says")
        return code

    def start(self, name: str, wait: float = 0.0, etag: str = "") -> Data:
        """Let it run."""
        return self._post(name, "start", None, waiting(wait), wait, etag)

    def stop(self, name: str, wait: float = 0.0, etag: str = "", force: bool = False) -> Data:
        """Let it run no more; what a controller set is taken back.

        :param force: of a metric: even while policies watch it
        """
        query = ({"force": "true"} if force else {}) | waiting(wait)
        return self._post(name, "stop", None, query, wait, etag)

    def roll_back(self, name: str, revision: int | None = None, wait: float = 0.0, etag: str = "") -> Data:
        """Give it the code of an earlier revision again, by default of the one before; this is a new revision."""
        if revision is not None and revision < 1:
            raise ClientError(f"`{revision}` is no revision, expected 1 or more")
        body = {} if revision is None else {"revision": revision}
        return self._post(name, "rollback", body, waiting(wait), wait + TRIAL, etag)

    def instances(self, name: str) -> Iterator[Data]:
        """Where it runs."""
        return Collection(self._transport, self._at(name, "instances"), "instances").all()

    def _post(self, name: str, verb: str, body: Data | None, query: Data, patience: float, etag: str) -> Data:
        path, headers = self._at(name, verb), expecting(etag)
        made: Data = self._transport.call("POST", path, body=body, query=query, headers=headers, patience=patience)
        return made

    def _at(self, name: str, what: str) -> str:
        return self._path + path_of(name, what)


def waiting(seconds: float) -> dict[str, Any]:
    """The query that lets the controller wait for all live nodes; empty when it need not."""
    return {"wait": seconds} if seconds else {}


def digest_of(code: bytes | IO[bytes]) -> str:
    """SHA-256 in hexadecimal; a file is rewound."""
    if isinstance(code, bytes):
        return hashlib.sha256(code).hexdigest()
    found = hashlib.sha256()
    while piece := code.read(1 << 20):
        found.update(piece)
    code.seek(0)
    return found.hexdigest()
