"""An item of which another Swift has a copy: written there before the contraction, read from there on expansion.

The copy is named by the SHA-256 of its bytes, which the motif keeps while the item has them.  So a motif that is copied
with its item, or stays with an older version of it, always means the same bytes; a name derived from the item's would
mean those that were written there last.  The digest in the storage of the items may be a weaker one: a client with
two contents of the same MD5 must not get one in place of the other.

Copies without references are not removed.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from urllib.parse import quote

from sluice_core.connections.swift_account import SwiftResponse
from sluice_core.describe import MOTIF, ActionInfo, Parameter, Scalar
from sluice_core.errors import NotFound
from sluice_motifs.api import COPY, NETWORK, PRESERVING, ExpansionError, Remote, Source, Template, TemplateCall


class RemoteCopy(Template):
    """Keeps a copy in a named container of another Swift."""

    info = ActionInfo(
        "remote_copy",
        MOTIF,
        "its own bytes, copied to another Swift before it is contracted",
        (Parameter("remote", "str", "the other Swift, by its name in the node's configuration", required=True),),
    )
    relation = PRESERVING
    resource = NETWORK
    keeps_copy = True
    copy_is_item = True

    def check(self) -> None:
        name = str(self.params["remote"])
        if name not in self.context.remotes:
            near = difflib.get_close_matches(name, self.context.remotes, 1)
            raise NotFound(f"there is no remote `{name}`" + (f", did you mean `{near[0]}`" if near else ""))

    def sources(self, item: str) -> Sequence[Source]:
        return [Source(str(self.params["remote"]), external=True)]

    def keep_copy(self, call: TemplateCall) -> Mapping[str, Scalar]:
        digest = hashlib.sha256()
        for piece in call.own_bytes():
            digest.update(piece)
        return {COPY: digest.hexdigest()}

    def expand(self, call: TemplateCall) -> Iterator[bytes]:
        with self._request("GET") as answer:
            self._check_size(call, answer)
            yield from self._proven(answer)

    def verify(self, call: TemplateCall) -> None:
        with self._request("HEAD") as answer:
            self._check_size(call, answer)

    def contract(self, call: TemplateCall) -> None:
        with self._request("HEAD") as answer:
            if answer.status == HTTPStatus.OK and self._is_same(call, answer):
                return
        etag = hashlib.md5(usedforsecurity=False)

        def body() -> Iterator[bytes]:
            for piece in self._proven(call.own_bytes()):
                etag.update(piece)
                yield piece

        headers = {"Content-Length": str(call.size), "Content-Type": "application/octet-stream"}
        with self._request("PUT", body(), headers) as answer:
            if answer.status != HTTPStatus.CREATED or _etag(answer) != etag.hexdigest():
                raise self._refusal(answer, "does not take the copy")

    def _request(
        self, method: str, body: Iterator[bytes] | None = None, headers: dict[str, str] | None = None
    ) -> SwiftResponse:
        remote = self._remote()
        if COPY not in self.params:
            raise ExpansionError("no copy was made yet")
        path = f"/{quote(remote.container)}/{self.params[COPY]}"
        return remote.account.request(method, path, body, headers)

    def _remote(self) -> Remote:
        name = str(self.params["remote"])
        remote = self.context.remotes.get(name)
        if remote is None:
            raise ExpansionError(f"remote `{name}` is not in the configuration of this node")
        return remote

    def _check_size(self, call: TemplateCall, answer: SwiftResponse) -> None:
        if answer.status != HTTPStatus.OK:
            raise self._refusal(answer, "does not give the copy")
        size = answer.headers.get("Content-Length", "")
        if size != str(call.size):
            raise ExpansionError(f"the copy at remote `{self.params['remote']}` has {size} bytes, expected {call.size}")

    def _is_same(self, call: TemplateCall, answer: SwiftResponse) -> bool:
        """Whether a copy is complete and undamaged, by its size and ETag."""
        if answer.headers.get("Content-Length") != str(call.size):
            return False
        etag = hashlib.md5(usedforsecurity=False)
        for piece in self._proven(call.own_bytes()):
            etag.update(piece)
        return _etag(answer) == etag.hexdigest()

    def _proven(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """``pieces``, the last one if all together are the bytes that the copy's name identifies."""
        digest = hashlib.sha256()
        held = b""
        for piece in pieces:
            digest.update(piece)
            if held:
                yield held
            held = piece
        if digest.hexdigest() != self.params[COPY]:
            raise ExpansionError("other bytes than those by which the copy is called")
        if held:
            yield held

    def _refusal(self, answer: SwiftResponse, what: str) -> ExpansionError:
        return ExpansionError(f"remote `{self.params['remote']}` {what}: {answer.status}")


def _etag(answer: SwiftResponse) -> str:
    return str(answer.headers.get("Etag", "")).strip('"')
