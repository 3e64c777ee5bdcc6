"""Where an object is: its storage policy and its path."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """
    :param policy: index of the storage policy
    """

    policy: int
    account: str
    container: str
    name: str

    @property
    def path(self) -> str:
        """``account/container/object``."""
        return f"{self.account}/{self.container}/{self.name}"
