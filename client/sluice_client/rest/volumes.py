"""The operations of the controller on volumes, tiers and pools of Cinder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sluice_client.rest.collection import Collection, join_path, make_query
from sluice_client.rest.operations_document import OperationCaller, calls
from sluice_client.rest.transport import Data


class VolumeApi(OperationCaller):
    """The methods of :class:`~sluice_client.Client` for volumes.

    A volume is its id, or its name if that is unique.  Each change is an operation, which is returned in its present
    state, or after at most ``wait`` (30) seconds.
    """

    @calls("list_volumes")
    def volumes(self, project: str = "", name: str = "", tier: str = "") -> Iterator[Data]:
        """Yield the volumes of the token's project; for an administrator those of all, or of the one with this id."""

    @calls("show_volume")
    def volume(self, volume: str) -> Data:
        """One volume."""

    @calls("show_volume_locality")
    def volume_locality(self, volume: str) -> Data:
        """Return the place of a volume, and its attachments."""

    @calls("create_volume")
    def create_volume(self, size: int, wait: float = 0.0, **wanted: Any) -> Data:
        """Create a volume of ``size`` GiB.

        :param wanted: ``name``, and ``tier`` or demands: ``resiliency``, ``bandwidth``, ``iops``, ``fabric``
        """

    @calls("extend_volume")
    def extend_volume(self, volume: str, size: int, wait: float = 0.0) -> Data:
        """Extend a volume to ``size`` GiB."""

    @calls("retype_volume")
    def retype_volume(self, volume: str, wait: float = 0.0, **wanted: Any) -> Data:
        """Change the ``tier`` of a volume, also to the cheapest one that meets the demands."""

    @calls("attach_volume")
    def attach_volume(self, volume: str, node: str, wait: float = 0.0, **how: Any) -> Data:
        """Attach a volume to a node.

        :param how: ``export`` (``block`` or ``nbd``), ``adopt``
        """

    def detach_volume(self, volume: str, wait: float = 0.0, **how: Any) -> Data:
        """Detach a volume from its node.

        :param how: ``force``, if its konnector does not answer, and ``machine_is_gone``, if the machine will not return
        """
        path, query = join_path("volumes", volume, "detach"), make_query(wait=wait)
        return self._transport.call("POST", path, body=how or None, query=query, patience=wait)

    @calls("delete_volume")
    def delete_volume(self, volume: str, wait: float = 0.0) -> Data:
        """Delete a volume."""

    def snapshots(self, volume: str) -> Iterator[Data]:
        """Yield the snapshots of a volume, newest first."""
        return Collection(self._transport, join_path("volumes", volume, "snapshots")).list()

    @calls("create_snapshot")
    def create_snapshot(self, volume: str, name: str = "", wait: float = 0.0) -> Data:
        """Create a snapshot of a volume."""

    @calls("delete_snapshot")
    def delete_snapshot(self, volume: str, snapshot: str, wait: float = 0.0) -> Data:
        """Delete a snapshot."""

    @calls("list_volume_operations")
    def volume_operations(self, state: str = "", volume: str = "") -> Iterator[Data]:
        """Yield operations on volumes, oldest first."""

    @calls("show_volume_operation")
    def volume_operation(self, operation: str, wait: float = 0.0) -> Data:
        """Return one operation, after at most ``wait`` seconds if it has not ended."""

    def pools(self) -> Iterator[Data]:
        """Yield Cinder's pools, by name, each with its ``measured`` capacity; None: not measured."""
        found = self._transport.call("GET", "/volumes/pools")
        measured = {one["pool"]: one for one in found["measured"]}
        return ({**one, "measured": measured.get(one["name"])} for one in found["pools"])

    @calls("calibrate_pool")
    def calibrate_pool(self, pool: str, **measured: Any) -> Data:
        """Set the measured capacity of a pool: ``read_bw``, ``write_bw``, ``read_iops``, ``write_iops``."""

    @calls("measure_pool")
    def measure_pool(self, pool: str, node: str, wait: float = 0.0, **how: Any) -> Data:
        """Measure a pool with fio on a node.

        :param how: ``seconds`` for each figure, ``size`` of the volume that is made for it, in GiB
        """

    @calls("match_tier")
    def match_tier(self, **demands: Any) -> Data:
        """Return the cheapest tier that meets demands now; ``size`` in GiB is one, too."""

    @calls("mend_tier")
    def mend_tier(self, tier: str) -> Data:
        """Restore the volume type of a tier in Cinder."""
