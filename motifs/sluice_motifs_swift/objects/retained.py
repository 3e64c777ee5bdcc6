"""Objects that version 1 contracted: their preserving motifs stand on the source itself, not on a copy.

Nobody makes writers of sources wait any more.  Instead the bytes of an object in a marked container are kept, under its
name and version, before a client writes or deletes it; what stands on that version reads them.  Meanwhile all such
objects are contracted anew with copies of their own (``version_one``), and then the marks go.
"""

from __future__ import annotations

import hashlib
from typing import Final

from sluice_core.errors import PeerError
from sluice_middleware.motifs.rights import OPERATOR
from sluice_middleware.swift.proxy_api import close_if_possible
from sluice_middleware.wsgi.response import UpstreamResponse
from sluice_middleware.wsgi.swift_client import SwiftClient, make_environment
from sluice_motifs.storage.shim import Shim
from sluice_rewrites.accounts import copies_account

_CONTAINER: Final = "retained"


def retained_name(source: str, version: str) -> str:
    """Where the bytes of an object are that it had in a version."""
    words = f"{source}\0{version}".encode("utf-8", "surrogateescape")
    return f"{copies_account(source.partition('/')[0])}/{_CONTAINER}/{hashlib.sha256(words).hexdigest()}"


class RetainedSources:
    """Keeps the bytes of objects before they are written."""

    def __init__(self, client: SwiftClient, shim: Shim) -> None:
        self._client = client
        self._shim = shim

    def retain(self, source: str) -> None:
        """Keep the bytes that an object has now; nothing happens when it does not exist, or they were kept.

        :raises SluiceError: when they cannot be kept, and the object should stay as it is
        """
        view = self._shim.view(source)
        if view is None:
            return
        name = retained_name(source, view.plain.version)
        if self._shim.copies.find(name) is not None:
            return
        env = make_environment("PUT", *name.split("/", 2)[:2])
        answer = UpstreamResponse(self._client.app, env)
        close_if_possible(answer.body)
        if answer.code not in (201, 202):
            raise PeerError(f"swift answered `{answer.status}` to the container of bytes that are kept of `{source}`")
        pieces = self._shim.read(source, OPERATOR, ()) if view.contracted else self._shim.own_bytes(view)
        self._shim.copies.store(name, view, view.plain, pieces)
