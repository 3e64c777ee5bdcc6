"""For tests of code that depends only on ownership: a host that owns everything."""

from __future__ import annotations

from collections.abc import Iterable


class SingleHost:
    """Owns everything, forever."""

    acting = True

    def owns(self, name: str) -> bool:
        """True: it owns all names."""
        return True

    def owns_slot(self, slot: str) -> bool:
        """True: it owns all slots."""
        return True

    def fence(self, names: Iterable[str]) -> dict[str, str]:
        """None: there is no other host."""
        return {}

    def refused(self, slot: str) -> None:
        """Never called without a fence."""
