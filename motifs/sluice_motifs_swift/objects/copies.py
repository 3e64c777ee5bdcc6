"""Hidden copies of objects, from which preserving motifs make them; implements ``SweptCopies``.

They are in an account of their own beside each account with such objects, in a container for each storage policy.  So
they count for no quota.  A copy is named by the SHA-256 of its bytes, and stored as policies say for the object
for which it was made first.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from sluice_core.store.store import Store
from sluice_middleware.motifs.object_views import ObjectViews, target_of
from sluice_middleware.swift.internal_api import Timestamp
from sluice_middleware.swift.proxy_api import POLICIES
from sluice_middleware.wsgi.internal_client import SwiftClient, make_environment
from sluice_motifs.api import ExpansionError
from sluice_motifs.storage.records import ItemView, Plain
from sluice_motifs.storage.shim import CopyView, Reference
from sluice_motifs_swift.objects.containers import list_containers, list_objects, send_request
from sluice_motifs_swift.objects.reads import ObjectReads
from sluice_motifs_swift.objects.references import ObjectProofs, ReferenceRows
from sluice_motifs_swift.objects.writes import ObjectWrites
from sluice_rewrites.accounts import add_accounts, copies_account, is_copies_account

#: The prefix of the names of containers of copies; no storage policy can have such a name.  Copies of version 1, which
#: were named by their objects and have no references, are in containers without it.
_CONTAINER: Final = "sha256:"


def is_copy(name: str) -> bool:
    """Whether an object of this name is a hidden copy."""
    return is_copies_account(name.partition("/")[0])


class ObjectCopies:
    """:param rows: references
    :param proofs: read the states of an object on single servers
    """

    def __init__(
        self,
        client: SwiftClient,
        store: Store,
        reads: ObjectReads,
        writes: ObjectWrites,
        rows: ReferenceRows,
        proofs: ObjectProofs,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._store = store
        self._reads = reads
        self._writes = writes
        self._rows = rows
        self._proofs = proofs
        self._views = ObjectViews(client.app)
        self._clock = clock
        self._made: set[tuple[str, str]] = set()

    def name(self, item: str, placement: str, digest: str) -> str:
        account, container, _ = item.split("/", 2)
        policy = placement or self._policy_of(account, container)
        return f"{self._container(account, policy)}/{digest}"

    def find(self, name: str) -> CopyView | None:
        stored = self._views.stored(name)
        if stored is None:
            return None
        return CopyView(name, self._clock() - float(stored.version), stored.data_timestamp)

    def store(self, name: str, item: ItemView, plain: Plain, pieces: Iterator[bytes]) -> None:
        self._writes.create(name, item, plain, pieces)

    def read(self, name: str) -> Iterator[bytes]:
        return self._reads.stored_bytes(name)

    def scan(self) -> Iterator[CopyView]:
        """Lists the copies of the accounts that agents found and of those with copies; those of other accounts stay."""
        for account, container in list_containers(self._store, self._client, copies_account):
            if container.startswith(_CONTAINER):
                yield from filter(None, map(self.find, list_objects(self._client, account, container)))

    def delete(self, seen: CopyView) -> None:
        target = target_of(seen.name)
        if target is None or not is_copy(seen.name):
            return
        env = make_environment("DELETE", *target)
        stored = Timestamp(seen.version)
        env["HTTP_X_TIMESTAMP"] = Timestamp(stored.timestamp, offset=stored.offset + 1).internal
        # 409: it was stored again
        send_request(self._client, env, "a DELETE of a copy", (204, 404, 409))

    def refer(self, copy: str, item: str, seen: ItemView | None) -> None:
        version = Timestamp(self._clock()).normal if seen is None else seen.opaque.version
        self._rows.add(copy, item, version)

    def references(self, copy: str) -> Sequence[Reference]:
        return self._rows.find(copy)

    def outlived(self, reference: Reference) -> bool:
        return self._proofs.outlived(reference)

    def drop(self, reference: Reference) -> None:
        self._rows.drop(reference)

    def _policy_of(self, account: str, container: str) -> str:
        headers = self._client.container_headers(account, container)
        if headers is None:
            raise ExpansionError(f"there is no container `{account}/{container}`")
        policy: str = headers.get("x-storage-policy", POLICIES.default.name)
        return policy

    def _container(self, account: str, policy: str) -> str:
        """Account and container of an account's copies under a storage policy, created for the first copy."""
        storage_policy = POLICIES.get_by_name(policy)
        if storage_policy is None:
            names = [one.name for one in POLICIES]
            near = difflib.get_close_matches(policy, names, 1)
            said = f"did you mean `{near[0]}`" if near else f"expected one of {', '.join(names)}"
            raise ExpansionError(f"there is no storage policy `{policy}`, {said}")
        keeping, container = copies_account(account), f"{_CONTAINER}{storage_policy.name}"
        if (account, container) not in self._made:
            env = make_environment("PUT", keeping, container)
            env["HTTP_X_STORAGE_POLICY"] = storage_policy.name
            send_request(self._client, env, f"the container of copies of `{account}`", (201, 202))
            self._store.run(add_accounts(self._store.keys, [account]))
            self._made.add((account, container))
        return f"{keeping}/{container}"
