"""A series of the history: what it is of, and where its points are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from sluice_core.messages.base import Message
from sluice_core.messages.policies import CONTAINER, TENANT, VOLUME

#: Levels whose paths begin with an account.
OWNED: Final = (TENANT, CONTAINER, VOLUME)
#: The level of devices, whose paths are ``node/device``.
DEVICE: Final = "device"
#: The level of what tenants do there and on proxies: ``node/device/account`` and ``node/proxy/account``.
PART: Final = "part"


class SeriesKey(NamedTuple):
    """``path`` at ``level``: empty for the cluster.

    ``rest`` says that it is the sum of all paths of the level that have no series of their own.
    """

    metric: str
    level: str
    path: str
    rest: bool = False

    @property
    def owner(self) -> str:
        """The account whose people may see it; empty when it is nobody's."""
        return self.path.partition("/")[0] if self.level in OWNED else ""

    @property
    def account(self) -> str:
        """The account that it is about; empty when it is about none."""
        return self.path.rpartition("/")[2] if self.level == PART else self.owner


@dataclass(frozen=True, slots=True)
class SeriesRecord(Message):
    """A series that is kept.

    ``id`` names its rings.  ``step`` is that of its finest resolution, in seconds, and ``since`` the unix time of its
    beginning.  ``of`` is how many paths the sum of a rest had last.
    """

    id: str
    metric: str
    level: str
    path: str
    step: int
    since: int
    rest: bool = False
    of: int = 0

    @property
    def key(self) -> SeriesKey:
        """The metric, the level and the path of the series."""
        return SeriesKey(self.metric, self.level, self.path, self.rest)
