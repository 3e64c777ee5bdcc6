"""Which host acts for what.

A team of hosts divides it (``sluice_actors.hosts.team``).  Whatever has a name and must have one actor in the cluster
asks here: policies by their id, global controllers by ``controller/<name>``, services by names of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class Ownership(Protocol):
    """Which host acts for a name."""

    def owns(self, name: str) -> bool:
        """True when this host is to run the actor of this policy now; must be cheap."""

    def owns_slot(self, slot: str) -> bool:
        """The same for all names of a slot (``sluice_core.store.fencing``)."""

    def fence(self, names: Iterable[str]) -> dict[str, str]:
        """What a change decided for these names carries (``Draft.fence``)."""

    @property
    def acting(self) -> bool:
        """False while nothing must be written."""

    def refused(self, slot: str) -> None:
        """The store refused a change because another host owns ``slot``."""
