"""Where the home of an object is: the daemon that has its devices' promises, or one that may take it over."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final

from sluice_core.errors import DecodeError, PeerError
from sluice_middleware.log import Logger
from sluice_middleware.swift import green, object_votes
from sluice_objects.protocol.stamps import NOTHING
from sluice_objects_swift.http import Timeouts, send
from sluice_objects_swift.place import Place

#: Addresses that are remembered.
_MOST: Final = 10_000
_TIMEOUTS: Final = Timeouts(0.5, 2.0)


class HomeFinder:
    """
    :param ring: of a storage policy, by its index
    """

    def __init__(self, ring: Callable[[int], Any], logger: Logger) -> None:
        self._ring = ring
        self._logger = logger
        self._known: OrderedDict[Place, str] = OrderedDict()

    def find(self, place: Place, refused: Collection[str]) -> str | None:
        """The address of the home; None when no device knows one.

        :param refused: addresses of daemons that do not answer
        """
        known = self._known.get(place)
        if known is not None and known not in refused:
            self._known.move_to_end(place)
            return known
        # by promise, and those without one in the order of the ring, so that all proxies ask the same daemon
        answers = sorted(self._look(place), key=lambda answer: answer.promised or NOTHING, reverse=True)
        candidates = [answer.home for answer in answers if answer.promised] + [answer.daemon for answer in answers]
        return next((address for address in candidates if address and address not in refused), None)

    def note(self, place: Place, address: str) -> None:
        """Remember the home; an empty address forgets it."""
        self._known.pop(place, None)
        if address:
            self._known[place] = address
        if len(self._known) > _MOST:
            self._known.popitem(last=False)

    def _look(self, place: Place) -> list[object_votes.VoteAnswer]:
        """The answers of the devices, in the order of the ring."""
        partition, nodes = self._ring(place.policy).get_nodes(*place[1:])
        ask = partial(self._ask, place, int(partition))
        return [answer for answer in green.map_concurrently(ask, nodes, len(nodes)) if answer is not None]

    def _ask(self, place: Place, partition: int, node: Any) -> object_votes.VoteAnswer | None:
        request = object_votes.VoteRequest(object_votes.LOOK, node["device"], partition, *place)
        body = object_votes.encode_requests([request])
        address = f"{node['ip']}:{node['port']}"
        try:
            reply = send(address, object_votes.METHOD, "/", {}, body, _TIMEOUTS)
            answers: Sequence[object_votes.VoteAnswer] = object_votes.decode_answers(reply.body, 1)
        except (PeerError, DecodeError) as error:
            self._logger.warning("sluice: no look at `%s`: %s", place.path, error)
            return None
        return answers[0]
