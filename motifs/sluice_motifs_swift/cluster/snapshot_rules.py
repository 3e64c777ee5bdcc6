"""What policies say of spaces, out of a node's snapshot, as the middleware reads it.  Items are called as objects are:
``account/container/object``."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Protocol

from sluice_core.describe import MOTIF
from sluice_core.messages.elasticity import Membership, membership
from sluice_core.messages.predicate import Facts
from sluice_core.resolve import Candidates
from sluice_core.store.records import Head

_NO_FACTS: Final = Facts("PUT")


class Snapshot(Protocol):
    """What is used of ``sluice_core.snapshot.reader.SnapshotReader``."""

    def refresh(self) -> None: ...

    def position(self) -> Head: ...

    def find(self, account: str, container: str = "", obj: str = "") -> Candidates: ...


class SnapshotRules:
    """Implements ``SpaceRules`` of the motifs' space controller."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def refresh(self) -> Hashable:
        """History and epoch of what is read from now on."""
        self._snapshot.refresh()
        position = self._snapshot.position()
        return position.history, position.epoch

    def container(self, item: str) -> str:
        """``account/container``."""
        return "/".join(item.split("/", 2)[:2])

    def membership(self, container: str) -> Membership | None:
        """The space of everything in a container; an assignment to single objects says nothing of spaces."""
        account, _, name = container.partition("/")
        # no sentence about spaces asks about requests
        pipelines = self._snapshot.find(account, name).resolve(_NO_FACTS)
        return membership(pipelines.get(MOTIF, ()), account, name)
