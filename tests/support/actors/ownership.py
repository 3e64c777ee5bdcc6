"""For tests of what depends on ownership alone: a host that owns everything."""

from __future__ import annotations

from collections.abc import Iterable


class SingleHost:
    """Everything is ours, for ever."""

    acting = True

    def owns(self, name: str) -> bool:
        """All names are ours."""
        return True

    def owns_slot(self, slot: str) -> bool:
        """All slots are ours."""
        return True

    def fence(self, names: Iterable[str]) -> dict[str, str]:
        """Nothing: there is nobody else."""
        return {}

    def refused(self, slot: str) -> None:
        """Never happens without a fence."""
