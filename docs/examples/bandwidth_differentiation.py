"""Algorithm 1 of Crystal (FAST'17) as a global controller: floors first, then an equal part of the spare bandwidth."""

from collections.abc import Iterable, Mapping

from sluice_core.control import Controller, ControllerInfo, Observation, Rate

Flow = tuple[str, str, int]  # account, container, storage policy
Rates = dict[Flow, dict[str, float]]  # flow → node → bytes per second


class BandwidthDifferentiation(Controller):
    """Computes the rate of each flow's downloads from each node, in place of Sluice's own allocation."""

    info = ControllerInfo("bandwidth_differentiation", allocates=("GET",), help="Crystal's algorithm 1")

    def compute_assignments(self, observation: Observation) -> Iterable[Rate]:
        for method in self.info.allocates:
            side = observation.sides.get(method, "")
            room = {
                one.node: one.capacity
                for one in observation.capacities
                if (one.side, one.method) == (side, method) and one.capacity
            }
            moved: Rates = {}
            for part in observation.parts:
                if (part.side, part.method) == (side, method) and part.node in room:
                    nodes = moved.setdefault((part.account, part.container, part.storage_policy), {})
                    nodes[part.node] = nodes.get(part.node, 0.0) + part.measured
            floors = {
                (one.account, one.container, one.storage_policy): one.floor
                for one in observation.flows
                if one.method == method and one.active
            }
            rates = place_floors(floors, moved, room)
            add_spare(rates, room)
            for (account, container, policy), nodes in rates.items():
                for node, rate in nodes.items():
                    yield Rate(node, account, method, rate, policy, container)


def place_floors(floors: Mapping[Flow, float], moved: Rates, room: dict[str, float]) -> Rates:
    """Place floors where their flows are, those with the fewest nodes first: the others can move away from full nodes.

    Floors that do not fit are reduced in proportion.  ``room`` is the rest of each node afterwards.
    """
    rates: Rates = {flow: dict.fromkeys(nodes, 0.0) for flow, nodes in moved.items()}
    wanted = sum(floors.get(flow, 0.0) for flow in moved)
    fits = min(1.0, sum(room.values()) / wanted) if wanted else 1.0
    for flow in sorted(moved, key=lambda flow: len(moved[flow])):
        missing = floors.get(flow, 0.0) * fits
        for _ in moved[flow]:  # each round fills one more node, or no floor is missing
            for node, asked in split(missing, moved[flow], room).items():
                given = min(asked, room[node])
                rates[flow][node] += given
                room[node] -= given
                missing -= given
    return rates


def split(rate: float, moved: Mapping[str, float], room: Mapping[str, float]) -> dict[str, float]:
    """Divide ``rate`` over the nodes that have room: half by the moved bytes, half equally, so no part dries up."""
    nodes = {node: bytes_moved for node, bytes_moved in moved.items() if room[node] > 1.0}
    total = sum(nodes.values())
    return {
        node: rate * (0.5 * (here / total if total else 1 / len(nodes)) + 0.5 / len(nodes))
        for node, here in nodes.items()
    }


def add_spare(rates: Rates, room: Mapping[str, float]) -> None:
    """Share the rest of each node equally among the flows on it."""
    for node, left in room.items():
        here = [nodes for nodes in rates.values() if node in nodes]
        for nodes in here:
            nodes[node] += left / len(here)
