"""Before a client changes or deletes an item that preserving items need: these are expanded first.

Dependents are expanded without any lease of the source, which an expansion may need itself.  Then, under its lease,
they are looked at again; a contraction that stands on the source holds the same lease, so none begins until the
client's write is done.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from sluice_core.errors import Conflict, NotFound
from sluice_motifs.api import ExpansionError
from sluice_motifs.dependencies.freshness import Templates, preserved_by
from sluice_motifs.storage.leases import HeldLeases, Renewal
from sluice_motifs.storage.shim import Dependents, Leases, Shim

#: Seconds between two tries to get the lease of a source.
_TRY_AGAIN: Final = 0.1


class LocalDependents:
    """Dependents as one process knows them; implements ``Dependents``, filled again by a scan of the storage."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._items: dict[str, set[str]] = {}

    def add(self, source: str, item: str) -> None:
        with self._mutex:
            self._items.setdefault(source, set()).add(item)

    def remove(self, source: str, item: str) -> None:
        with self._mutex:
            items = self._items.get(source, set())
            items.discard(item)
            if not items:
                self._items.pop(source, None)

    def find(self, source: str) -> list[str]:
        with self._mutex:
            return sorted(self._items.get(source, ()))


class SourceChanges:
    """Lets clients change items.

    :param expand: makes the bytes of an item and waits until they are in their place
    """

    def __init__(
        self,
        shim: Shim,
        leases: Leases,
        templates: Templates,
        dependents: Dependents,
        expand: Callable[[str], None],
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._shim = shim
        self._leases = leases
        self._templates = templates
        self._dependents = dependents
        self._expand = expand
        self._pause = pause
        self._clock = clock

    @contextmanager
    def changing(self, name: str, patience: float = 10.0) -> Iterator[Renewal]:
        """While it is entered, a client may write or delete an item; what it gives is to be called for each piece.

        :param patience: seconds to wait for who works at it
        :raises Conflict: when an item that needs it cannot be expanded, or it is busy for longer
        """
        end = self._clock() + patience
        while True:
            for item in self._needing(name):
                try:
                    self._expand(item)
                except (ExpansionError, NotFound) as error:
                    if item in self._needing(name):
                        raise Conflict(f"`{name}` is needed by `{item}`, which cannot be expanded: {error}") from error
            with HeldLeases(self._leases) as held:
                if held.acquire({name}) and not self._needing(name) and held.renew():
                    for item in self._dependents.find(name):
                        self._dependents.remove(name, item)
                    yield Renewal(lambda: self._keep(name, held), self._clock)
                    return
            if self._clock() >= end:
                raise Conflict(f"`{name}` is being worked at, and for longer than {patience:g} s")
            self._pause(_TRY_AGAIN)

    def _keep(self, name: str, held: HeldLeases) -> None:
        if not held.renew():
            raise Conflict(f"`{name}` cannot be changed: somebody else works at it")

    def _needing(self, name: str) -> list[str]:
        """The contracted items that need it as it is."""
        return [item for item in self._dependents.find(name) if self._needs(item, name)]

    def _needs(self, item: str, name: str) -> bool:
        view = self._shim.view(item)
        if view is None or not view.contracted:
            return False
        return name in preserved_by(view.record.motifs, item, self._templates)
