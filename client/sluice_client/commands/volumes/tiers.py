"""``volume tier``: classes of volumes; ``volume pool``: the pools that store them."""

from __future__ import annotations

from argparse import Namespace
from typing import Any, Final

from sluice_client.command_base import crud
from sluice_client.command_base.arguments import WAIT_FOR_END, Argument, names_argument
from sluice_client.command_base.command import ListCommand, ShowCommand
from sluice_client.command_base.each import EachCommand
from sluice_client.commands.volumes.operations import OrderCommand
from sluice_client.commands.volumes.volumes import DEMANDS
from sluice_client.resources.columns import Data, printable
from sluice_client.resources.volumes import CALIBRATION, MATCH, POOL_LIST, TIER, TIER_LIST

TIERS: Final = crud.Resource(
    "tier",
    "/volumes/tiers",
    TIER_LIST,
    TIER,
    filters=(Argument("--prefix", "only those whose name begins with this"),),
    fields=(*DEMANDS, Argument("--cost", "by which the cheapest is chosen", {"type": float, "metavar": "N"})),
)


class ListTiers(crud.ListResources, resource=TIERS, words="volume tier list"):
    """List tiers, and their volume types in Cinder."""


class ShowTier(crud.ShowResource, resource=TIERS, words="volume tier show"):
    """Show a tier, its volume type in Cinder, and the pools that meet it."""

    examples = ("gold",)


class CreateTier(crud.CreateResource, resource=TIERS, words="volume tier create"):
    """Create a tier, and its volume type in Cinder."""

    examples = ("gold --resiliency 2 --bandwidth 50MBps --fabric rbd --cost 5",)


class RepairTier(EachCommand, words="volume tier repair", earlier="volume tier mend"):
    """Restore the volume types of tiers that were changed or deleted in Cinder."""

    arguments = (names_argument("name", "the tier"),)
    examples = ("gold",)

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Repair one."""
        found = self.client.mend_tier(name)
        return f"tier {printable(name)} is {found['state']}", found


class DeleteTier(crud.DeleteResources, resource=TIERS, words="volume tier delete"):
    """Delete tiers without volumes, and their volume types."""

    examples = ("gold",)


class MatchTier(ShowCommand, words="volume tier match", calls="match_tier"):
    """Find the cheapest tier that meets demands now; without one, show which demand no pool meets."""

    columns = MATCH
    arguments = (*DEMANDS, Argument("--size", "GiB that one pool must have free", {"type": int, "metavar": "SIZE"}))
    examples = ("--resiliency 2 --bandwidth 50MBps --fabric rbd --size 10",)


class ListPools(ListCommand, words="volume pool list", calls="pools"):
    """List Cinder's pools with their last reports."""

    columns = POOL_LIST


_POOL: Final = Argument("pool", "host@backend#pool", {"metavar": "POOL"})
_HOW: Final = (
    Argument("--seconds", "for each of four figures, by default 10", {"type": int, "metavar": "N"}),
    Argument("--size", "of the volume that is measured, by default 1", {"type": int, "metavar": "GIB"}),
)


class MeasurePool(OrderCommand, words="volume pool measure", earlier="volume calibrate"):
    """Measure the capacity of a pool with fio on a node; `volume pool set` sets such figures by hand.

    The measurement creates a volume in the pool, and deletes it afterwards. Busy volumes of the pool lower the figures:
    the operation shows how many are attached (`attached_volumes`).
    """

    arguments = (
        _POOL,
        Argument("--consumer", "a node with a konnector and fio", {"required": True, "metavar": "NODE"}),
        *_HOW,
        WAIT_FOR_END,
    )
    examples = ("node1@nbd#fast --consumer node1 --wait", "node1@nbd#fast --consumer node1 --seconds 60 --size 20")

    def submit(self, args: Namespace) -> Data:
        """The operation."""
        return self.client.measure_pool(args.pool, args.consumer, **crud.given_values(_HOW, args))

    def fetch(self, args: Namespace) -> Data:
        """The operation, with ``--wait`` after its end."""
        operation = super().fetch(args)
        others = operation["data"].get("attached_volumes")
        if others:
            self.say(
                f"other volumes of the pool that are attached: {others}; what they moved is missing in the figures"
            )
        return operation


class SetPool(ShowCommand, words="volume pool set", earlier="volume pool calibrate", calls="calibrate_pool"):
    """Set the capacity of a pool, as you measured it; `volume pool measure` measures it.

    It replaces the capacity that the pool reports, and floors divide it.
    """

    columns = CALIBRATION
    arguments = (
        _POOL,
        Argument("--read-bw", "read per second, as 90MBps", {"required": True, "metavar": "RATE"}),
        Argument("--write-bw", "written per second", {"required": True, "metavar": "RATE"}),
        Argument("--read-iops", "reads per second", {"required": True, "type": float, "metavar": "N"}),
        Argument("--write-iops", "writes per second", {"required": True, "type": float, "metavar": "N"}),
    )
    examples = ("node1@nbd#fast --read-bw 90MBps --write-bw 80MBps --read-iops 9000 --write-iops 7000",)
