"""The allocation problem of one method, and its solution.

Rates are bytes per second.  A *part* is one flow on one node of one side; a flow has as many parts as there are nodes
on which it has transfers.
"""

from __future__ import annotations

from dataclasses import dataclass

from sluice_actors.bandwidth.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Side:
    """One side of the cluster (all proxies, or all storage nodes) for one method.

    A flow without any part on a side is not held back by it.
    """

    capacity: FloatArray  #: (nodes,) bytes/s; inf where unknown
    flow: IntArray  #: (parts,) index of the flow
    node: IntArray  #: (parts,) index of the node
    weight: FloatArray  #: (parts,) > 0: where the flow's bytes were lately, any scale per flow
    copies: FloatArray  #: (flows,) bytes here per byte of client payload (replicas for PUT, 1 for GET)


@dataclass(frozen=True, slots=True)
class AllocationProblem:
    """The active flows of one method in one round."""

    floor: FloatArray  #: (flows,) bytes/s, 0 none
    ceiling: FloatArray  #: (flows,) inf none
    demand: FloatArray  #: (flows,) inf while it waits
    tenant: IntArray  #: (flows,) index of its tenant
    bound: FloatArray  #: (tenants,) ceiling over all flows of the tenant, inf none
    transfers: FloatArray  #: (flows,) parallel transfers
    proxies: Side
    storage: Side


@dataclass(frozen=True, slots=True)
class SideAllocation:
    """The rates of flows on one side, which are the rates of the flows times their copies."""

    rates: FloatArray  #: (parts,) the sum over a flow is its share; inf where nothing holds it back
    floors: FloatArray  #: (parts,) the part of ``met`` on each node
    spare: FloatArray  #: (nodes,) unused capacity


@dataclass(frozen=True, slots=True)
class MaxMinAllocation:
    """Rates of flows, and of their parts on both sides; inf where nothing holds a flow back."""

    share: FloatArray  #: (flows,) total rate
    met: FloatArray  #: (flows,) the part of the floor (in ceiling and bound) that can be carried even if the flow waits
    short: FloatArray  #: (flows,) floor - met, for flows whose demand exceeds met
    proxies: SideAllocation
    storage: SideAllocation
