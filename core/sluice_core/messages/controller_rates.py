"""The rates that a global controller computed, on their way to the host that allocates bandwidth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from sluice_core.messages.bandwidth import GET, PUT, Flow
from sluice_core.messages.base import PackedMessage
from sluice_core.messages.bounds import MOST_RATE, Bounds

#: Methods whose rates a controller may compute; replication has one cap, which is an assignment.
ALLOCATED_METHODS: Final = (GET, PUT)
#: Rates in one answer.
MOST_RATES: Final = 100_000
_BOUNDS: Final[Bounds] = {"rate": (0.0, MOST_RATE)}


class Rate(NamedTuple):
    """What one flow may move on one node, in bytes of payload per second.

    ``storage_policy`` is the storage policy's index; ``container`` is empty but for flows that a policy of containers
    names (``sluice_core.messages.bandwidth.Flow``).
    """

    node: str
    account: str
    method: str
    rate: float
    storage_policy: int = 0
    container: str = ""

    @property
    def flow(self) -> Flow:
        """The flow that may move so much."""
        return Flow(self.account, self.method, self.storage_policy, self.container)


@dataclass(frozen=True, slots=True)
class ControllerRates(PackedMessage):
    """One answer of a controller: all ``rows`` that hold for ``methods``; flows without a row are not held back.

    :param term: of the ownership of the controller; the answer of a greater term is newer
    :param at: Unix time of the answer
    :param valid: seconds for which the answer holds after it arrived
    """

    controller: str
    term: int
    at: float
    valid: float
    methods: tuple[str, ...] = ()
    rows: tuple[Rate, ...] = ()

    row_types = {"rows": (Rate, _BOUNDS)}
