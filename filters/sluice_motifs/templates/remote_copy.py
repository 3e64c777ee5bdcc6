"""An item of which another Swift has a copy: written there before its bytes go, read from there when they are wanted.

The copy is called by the digest of its bytes.  So a motif that goes to a copy of its item, or stays with an older
version of it, means the same bytes for ever; a name made of the item's would mean those that were written there last.
Copies that nobody refers to any more are not removed.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from sluice_core.connections.swift_account import SwiftResponse
from sluice_core.describe import MOTIF, ActionInfo, Parameter
from sluice_core.errors import NotFound
from sluice_motifs.api import NETWORK, PRESERVING, ExpansionError, Source, Template, TemplateCall
from sluice_motifs.context import Remote

_MD5: Final = "md5"


class RemoteCopy(Template):
    """Keeps a copy in a named container of another Swift."""

    info = ActionInfo(
        "remote_copy",
        MOTIF,
        "what it has itself, copied to another Swift before its bytes go",
        (Parameter("remote", "str", "the other Swift, as the node's configuration calls it", required=True),),
    )
    relation = PRESERVING
    resource = NETWORK

    def check(self) -> None:
        name = str(self.params["remote"])
        if name not in self.context.remotes:
            near = difflib.get_close_matches(name, self.context.remotes, 1)
            raise NotFound(f"there is no remote `{name}`" + (f", did you mean `{near[0]}`" if near else ""))

    def sources(self, item: str) -> Sequence[Source]:
        return [Source(str(self.params["remote"]), external=True)]

    def expand(self, call: TemplateCall) -> Iterator[bytes]:
        with self._requested("GET", call) as answer:
            self._check_size(call, answer)
            yield from answer

    def verify(self, call: TemplateCall) -> None:
        with self._requested("HEAD", call) as answer:
            self._check_size(call, answer)

    def contract(self, call: TemplateCall) -> None:
        etag = _etag(call)
        with self._requested("HEAD", call) as answer:
            if answer.status == HTTPStatus.OK and _is_same(answer, call.size, etag):
                return
        headers = {"Content-Length": str(call.size), "ETag": etag, "Content-Type": "application/octet-stream"}
        with self._requested("PUT", call, _own_bytes(call), headers) as answer:
            if answer.status != HTTPStatus.CREATED or answer.headers.get("Etag", "").strip('"') != etag:
                raise self._refusal(answer, "does not take the copy")

    def _requested(
        self,
        method: str,
        call: TemplateCall,
        body: Iterator[bytes] | None = None,
        headers: dict[str, str] | None = None,
    ) -> SwiftResponse:
        remote = self._remote()
        path = f"/{quote(remote.container)}/{_copy_name(call)}"
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

    def _refusal(self, answer: SwiftResponse, what: str) -> ExpansionError:
        return ExpansionError(f"remote `{self.params['remote']}` {what}: {answer.status}")


def _copy_name(call: TemplateCall) -> str:
    if not call.digest:
        raise ExpansionError("an item that never had bytes has no copy")
    return call.digest.replace(":", "-")


def _is_same(answer: SwiftResponse, size: int, etag: str) -> bool:
    return answer.headers.get("Content-Length") == str(size) and answer.headers.get("Etag", "").strip('"') == etag


def _etag(call: TemplateCall) -> str:
    """The ETag that Swift gives to the bytes of the item, which are read unless their digest is one."""
    algorithm, _, digest = call.digest.partition(":")
    if algorithm == _MD5:
        return digest
    found = hashlib.new(_MD5, usedforsecurity=False)
    for piece in _own_bytes(call):
        found.update(piece)
    return found.hexdigest()


def _own_bytes(call: TemplateCall) -> Iterator[bytes]:
    """The bytes of the item, of which the last piece is held back until their digest is right."""
    algorithm, _, expected = call.digest.partition(":")
    found = hashlib.new(algorithm, usedforsecurity=False)
    held = b""
    for piece in call.own_bytes():
        call.check()
        found.update(piece)
        if held:
            yield held
        held = piece
    if found.hexdigest() != expected:
        raise ExpansionError("the item has other bytes than it should have")
    if held:
        yield held
