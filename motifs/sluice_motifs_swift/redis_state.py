"""What daemons share: leases of objects, and which are made from which (``sluice_core.motifs``)."""

from __future__ import annotations

from collections.abc import Sequence

from sluice_core.motifs import item_index, leases
from sluice_core.store.store import Store
from sluice_motifs.storage.shim import Lease


class RedisLeases:
    """Leases of the whole cluster; implements ``Leases``.

    :param lasts: seconds
    """

    def __init__(self, store: Store, lasts: float = leases.LASTS) -> None:
        self._store = store
        self._lasts = lasts

    def acquire(self, item: str) -> Lease | None:
        token = self._store.run(leases.acquire_lease(self._store.keys, item, self._lasts))
        return None if token is None else Lease(item, token)

    def renew(self, lease: Lease) -> bool:
        return self._store.run(leases.renew_lease(self._store.keys, lease.item, lease.token, self._lasts))

    def release(self, *held: Lease) -> None:
        if held:
            self._store.run(leases.release_leases(self._store.keys, {one.item: one.token for one in held}))


class RedisDerivations:
    """Implements ``Derivations``; ``ItemIndex`` notes them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, sources: Sequence[str]) -> list[list[str]]:
        return self._store.run(item_index.find_derived(self._store.keys, sources))

    def remove(self, source: str, items: Sequence[str]) -> None:
        self._store.run(item_index.remove_derived(self._store.keys, source, items))
