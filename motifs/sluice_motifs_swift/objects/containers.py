"""The properties of containers: read ACLs, container-sync, and the marks of version 1.

Version 1 marked a container when one of its objects was a source whose version contracted objects needed: their
preserving motifs rely on the source itself, not on a copy.  Writers of sources no longer wait.  Instead
the bytes of an object in a marked container are stored, under its name and version, before a client writes or deletes
it; objects that rely on that version read them.  Meanwhile such objects get copies of their own (``copy_upkeep``), and
then the marks are removed.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Iterator
from typing import Final

from sluice_core.errors import PeerError
from sluice_core.store.store import Store
from sluice_middleware.motifs.rights import OPERATOR
from sluice_middleware.swift.proxy_api import close_if_possible, header_to_environ_key
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.internal_client import SwiftClient, make_environment
from sluice_middleware.wsgi.response import Env, UpstreamResponse
from sluice_motifs.storage.shim import Shim
from sluice_rewrites.accounts import accounts_after, copies_account

#: Seconds for which a container is cached here, and how many are.
_REMEMBERED: Final = 10.0
_MOST: Final = 10_000
#: The container of the bytes of sources on which objects of version 1 rely.
_RETAINED: Final = "retained"
_LISTED: Final = 500
_MARK: Final = f"x-container-sysmeta-{sysmeta.SOURCES_MARK}"


def list_containers(
    store: Store, client: SwiftClient, account_of: Callable[[str], str] = lambda account: account
) -> Iterator[tuple[str, str]]:
    """Account and name of each container of the accounts that agents found.

    :param account_of: returns the account to list for one that was found; by default itself
    """
    marker = ""
    while accounts := store.run(accounts_after(store.keys, marker, _LISTED)):
        for account in map(account_of, accounts):
            for page in client.list_containers(account, "", _LISTED):
                yield from ((account, row["name"]) for row in page)
        marker = accounts[-1]


def list_objects(client: SwiftClient, account: str, container: str) -> Iterator[str]:
    """The names of all objects in a container, as account/container/object."""
    for page in client.list_objects(account, container, "", "", _LISTED):
        yield from (f"{account}/{container}/{row['name']}" for row in page)


def send_request(client: SwiftClient, env: Env, request: str, expected: Collection[int]) -> None:
    """Send a request without a body.

    :param request: its name in errors
    :param expected: statuses of success
    :raises PeerError: when Swift answers with another one
    """
    answer = UpstreamResponse(client.app, env)
    close_if_possible(answer.body)
    if answer.code not in expected:
        raise PeerError(f"swift answered `{answer.status}` to {request}")


class Containers:
    """The headers of containers, each cached for some seconds."""

    def __init__(self, client: SwiftClient, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[tuple[str, str], tuple[float, dict[str, str]]] = {}

    def is_synchronized(self, account: str, container: str) -> bool:
        """Whether container-sync reads it, which cannot read a timestamp with an offset."""
        return "x-container-sync-to" in self._headers(account, container)

    def read_acl(self, account: str, container: str) -> str:
        """The read ACL of a container as it is now."""
        return self._headers(account, container, fresh=True).get("x-container-read", "")

    def is_marked(self, account: str, container: str) -> bool:
        """Whether objects that version 1 contracted may rely on its objects."""
        return bool(self._headers(account, container, fresh=True).get(_MARK))

    def remove_mark(self, account: str, container: str) -> None:
        """Remove the mark: no object relies on its objects any more.

        :raises PeerError: when Swift refuses that
        """
        env = make_environment("POST", account, container)
        env[header_to_environ_key(_MARK)] = ""
        self._known.pop((account, container), None)
        send_request(self._client, env, f"a POST of container `{container}`", (*range(200, 300), 404))

    def _headers(self, account: str, container: str, fresh: bool = False) -> dict[str, str]:
        """The headers of a container by their names in lower case; none when it does not exist."""
        now = self._clock()
        known = self._known.get((account, container))
        if known is not None and not fresh and known[0] > now:
            return known[1]
        headers = self._client.container_headers(account, container) or {}
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[account, container] = (now + _REMEMBERED, headers)
        return headers


def retained_name(source: str, version: str) -> str:
    """The name under which the bytes of a version of an object are stored."""
    words = f"{source}\0{version}".encode("utf-8", "surrogateescape")
    return f"{copies_account(source.partition('/')[0])}/{_RETAINED}/{hashlib.sha256(words).hexdigest()}"


class RetainedSources:
    """Stores the bytes of objects before they are written."""

    def __init__(self, client: SwiftClient, shim: Shim) -> None:
        self._client = client
        self._shim = shim

    def retain(self, source: str) -> None:
        """Store the present bytes of an object; does nothing when it does not exist, or they are stored already.

        :raises SluiceError: when they cannot be stored, and the object must not be written
        """
        view = self._shim.view(source)
        if view is None:
            return
        name = retained_name(source, view.plain.version)
        if self._shim.copies.find(name) is not None:
            return
        env = make_environment("PUT", *name.split("/", 2)[:2])
        send_request(self._client, env, f"the container of bytes that are kept of `{source}`", (201, 202))
        pieces = self._shim.read(source, OPERATOR, ()) if view.contracted else self._shim.own_bytes(view)
        self._shim.copies.store(name, view, view.plain, pieces)
