"""Copies of objects under other storage policies, which no client can see (template ``tier``).

They lie in an account of their own beside each account with such objects, in a container for each storage policy.  So
they count to nobody's quota.  A copy is called by what it is a copy of, its version and its digest, so that whoever
writes it, whenever, writes the same bytes.  It is stored as policies say that the object itself is.
"""

from __future__ import annotations

import difflib
import hashlib
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final

from sluice_core.errors import PeerError
from sluice_core.rewrites.accounts import accounts_after, add_accounts, copies_account, is_copies_account
from sluice_core.store.store import Store
from sluice_middleware.motifs.object_views import target_of
from sluice_middleware.swift.proxy_api import POLICIES, close_if_possible
from sluice_middleware.wsgi.response import UpstreamResponse
from sluice_middleware.wsgi.swift_client import SwiftClient, make_environment
from sluice_motifs.api import ExpansionError
from sluice_motifs.storage.records import ItemView
from sluice_motifs_swift.objects.reads import ObjectReads
from sluice_motifs_swift.objects.writes import ObjectWrites

_LISTED: Final = 500


def is_copy(name: str) -> bool:
    """Whether an object of this name is a copy of ours."""
    return is_copies_account(name.partition("/")[0])


class Copies:
    """Keeps, reads, lists and removes copies, as ``Shim`` says."""

    def __init__(
        self,
        client: SwiftClient,
        store: Store,
        reads: ObjectReads,
        writes: ObjectWrites,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._store = store
        self._reads = reads
        self._writes = writes
        self._clock = clock
        self._made: set[tuple[str, str]] = set()

    def keep(self, seen: ItemView, policy: str, pieces: Iterator[bytes]) -> str:
        """As ``Shim.keep_copy``; ``policy`` is the name of a storage policy."""
        path = self._container(seen.name.partition("/")[0], policy)
        words = "\0".join((seen.name, seen.plain.version, seen.plain.digest))
        name = f"{path}/{hashlib.sha256(words.encode('utf-8', 'surrogateescape')).hexdigest()}"
        self._writes.create(name, seen, pieces)
        return name

    def read(self, name: str) -> Iterator[bytes]:
        """As ``Shim.read_copy``."""
        return self._reads.stored_bytes(name)

    def scan(self) -> Iterator[tuple[str, float]]:
        """As ``Shim.scan_copies``, of the accounts that agents found and of those with copies."""
        marker = ""
        while accounts := self._store.run(accounts_after(self._store.keys, marker, _LISTED)):
            for account in accounts:
                for page in self._client.list_containers(copies_account(account), "", _LISTED):
                    for row in page:
                        yield from self._listed(copies_account(account), row["name"])
            marker = accounts[-1]

    def _listed(self, account: str, container: str) -> Iterator[tuple[str, float]]:
        for page in self._client.list_objects(account, container, "", "", _LISTED):
            for row in page:
                written = datetime.fromisoformat(row["last_modified"]).replace(tzinfo=UTC).timestamp()
                yield f"{account}/{container}/{row['name']}", max(0.0, self._clock() - written)

    def delete(self, name: str) -> None:
        """As ``Shim.delete_copy``."""
        target = target_of(name)
        if target is None or not is_copy(name):
            return
        answer = UpstreamResponse(self._client.app, make_environment("DELETE", *target))
        close_if_possible(answer.body)
        if answer.code not in (204, 404):
            raise PeerError(f"swift answered `{answer.status}` to a DELETE of a copy")

    def _container(self, account: str, policy: str) -> str:
        """Account and container of an account's copies under a storage policy, made at the first of them."""
        found = POLICIES.get_by_name(policy)
        if found is None:
            names = [one.name for one in POLICIES]
            near = difflib.get_close_matches(policy, names, 1)
            said = f"did you mean `{near[0]}`" if near else f"expected one of {', '.join(names)}"
            raise ExpansionError(f"there is no storage policy `{policy}`, {said}")
        keeping = copies_account(account)
        if (account, found.name) not in self._made:
            env = make_environment("PUT", keeping, found.name)
            env["HTTP_X_STORAGE_POLICY"] = found.name
            answer = UpstreamResponse(self._client.app, env)
            close_if_possible(answer.body)
            if answer.code not in (201, 202):
                raise PeerError(f"swift answered `{answer.status}` to the container of copies of `{account}`")
            self._store.run(add_accounts(self._store.keys, [account]))
            self._made.add((account, found.name))
        return f"{keeping}/{found.name}"
