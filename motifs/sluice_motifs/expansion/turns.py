"""Turns of expansions: a process runs a limited number at a time, and no tenant takes all of these places.

Theory of operation.  Sources may be slow for as long as ``STALLED`` allows, which depends on their owners.

* A tenant gets a further place while it holds fewer than :data:`SHARE` times the free places (dynamic thresholds,
  Choudhury and Hahne 1998).  Alone it has two thirds of all; the more tenants are busy, the fewer each may hold.
* A tenant that holds none does not wait for others: it gets an extra place when all are taken; at most as
  many tenants as there are places.
* A freed place goes to the tenant that holds the fewest; among equal tenants to the one that was served longest ago.
  Within a tenant, expansions are served first come, first served.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import Final

#: Places that a tenant may hold for each free one, beyond its first.
SHARE: Final = 2


class Turns:
    """:param places: concurrent expansions
    :param tenant_of: returns the tenant of an item's name
    """

    def __init__(self, places: int, tenant_of: Callable[[str], str]) -> None:
        self._free = self._places = places
        self._tenant_of = tenant_of
        self._mutex = threading.Lock()
        self._held: Counter[str] = Counter()
        #: In the order of the last service of each tenant.
        self._waiting: dict[str, deque[threading.Event]] = {}

    def acquire(self, name: str, timeout: float) -> bool:
        """Take a place for an item; return False without one within ``timeout`` seconds."""
        tenant, called = self._tenant_of(name), threading.Event()
        with self._mutex:
            self._waiting.setdefault(tenant, deque()).append(called)
            self._serve()
        if called.wait(timeout):
            return True
        with self._mutex:
            if called.is_set():
                return True
            self._waiting[tenant].remove(called)
            self._forget_idle(tenant)
            return False

    def release(self, name: str) -> None:
        """Return the place of an item."""
        tenant = self._tenant_of(name)
        with self._mutex:
            self._free += 1
            self._held[tenant] -= 1
            self._serve()
            self._forget_idle(tenant)

    def _serve(self) -> None:
        while True:
            ready = [tenant for tenant, queue in self._waiting.items() if queue and self._may_hold_more(tenant)]
            if not ready:
                return
            tenant = min(ready, key=lambda one: self._held[one])
            queue = self._waiting.pop(tenant)
            queue.popleft().set()
            self._waiting[tenant] = queue  # behind the others
            self._held[tenant] += 1
            self._free -= 1

    def _may_hold_more(self, tenant: str) -> bool:
        if not self._held[tenant]:
            return self._free > -self._places
        return self._held[tenant] < SHARE * self._free

    def _forget_idle(self, tenant: str) -> None:
        if not self._held[tenant] and not self._waiting.get(tenant):
            self._waiting.pop(tenant, None)
            del self._held[tenant]
