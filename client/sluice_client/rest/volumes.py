"""The operations of the controller on volumes, tiers and pools of Cinder."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from sluice_client.rest.auth import IDEMPOTENCY_HEADER
from sluice_client.rest.collection import Collection, join_path, make_query
from sluice_client.rest.transport import Data, Transport


class VolumeApi:
    """The methods of :class:`~sluice_client.Client` that are about volumes.

    A volume is its id, or its name where only one is called so.  Each change is an operation, which is returned as it
    is at once, or at most ``wait`` (30) seconds later.
    """

    _transport: Transport

    def volumes(self, project: str = "", name: str = "", tier: str = "") -> Iterator[Data]:
        """The volumes of the token's project; for an administrator those of all, or of the one with this id."""
        return Collection(self._transport, "/volumes").list(project=project, name=name, tier=tier)

    def volume(self, volume: str) -> Data:
        """One volume."""
        return Collection(self._transport, "/volumes").get(volume)

    def volume_locality(self, volume: str) -> Data:
        """Where a volume lies, and who uses it."""
        return self._transport.call("GET", join_path("locality", "volume", volume))

    def create_volume(self, size: int, wait: float = 0.0, **wanted: Any) -> Data:
        """Have a volume of ``size`` GiB made.

        :param wanted: ``name``, and ``tier`` or demands: ``resiliency``, ``bandwidth``, ``iops``, ``fabric``
        """
        return self._order("POST", "/volumes", {"size": size, **wanted}, wait)

    def extend_volume(self, volume: str, size: int, wait: float = 0.0) -> Data:
        """Have a volume grow to ``size`` GiB."""
        return self._order("PUT", join_path("volumes", volume, "size"), {"size": size}, wait)

    def retype_volume(self, volume: str, wait: float = 0.0, **wanted: Any) -> Data:
        """Give a volume another ``tier``, or the cheapest one that meets the demands."""
        return self._order("PUT", join_path("volumes", volume, "tier"), wanted, wait)

    def attach_volume(self, volume: str, node: str, wait: float = 0.0, **how: Any) -> Data:
        """Have a node attach a volume.

        :param how: ``export`` (``block`` or ``nbd``), ``adopt``
        """
        return self._order("POST", join_path("volumes", volume, "attach"), {"node": node, **how}, wait)

    def detach_volume(self, volume: str, wait: float = 0.0, **how: Any) -> Data:
        """Have a volume detached from its node.

        :param how: ``force``, when its konnector does not answer, and ``machine_is_gone``, when that will not come back
        """
        return self._order("POST", join_path("volumes", volume, "detach"), how or None, wait)

    def delete_volume(self, volume: str, wait: float = 0.0) -> Data:
        """Have a volume deleted."""
        return self._order("DELETE", join_path("volumes", volume), None, wait)

    def snapshots(self, volume: str) -> Iterator[Data]:
        """The snapshots of a volume, newest first."""
        return Collection(self._transport, join_path("volumes", volume, "snapshots")).list()

    def create_snapshot(self, volume: str, name: str = "", wait: float = 0.0) -> Data:
        """Have a snapshot made of a volume."""
        body = {"name": name} if name else {}
        return self._order("POST", join_path("volumes", volume, "snapshots"), body, wait)

    def delete_snapshot(self, volume: str, snapshot: str, wait: float = 0.0) -> Data:
        """Have a snapshot deleted."""
        return self._order("DELETE", join_path("volumes", volume, "snapshots", snapshot), None, wait)

    def volume_operations(self, state: str = "", volume: str = "") -> Iterator[Data]:
        """Operations on volumes, oldest first."""
        return Collection(self._transport, "/volumes/operations").list(state=state, volume=volume)

    def volume_operation(self, operation: str, wait: float = 0.0) -> Data:
        """One operation, at most ``wait`` seconds from now if it has not ended."""
        path = join_path("volumes", "operations", operation)
        return self._transport.call("GET", path, query=make_query(wait=wait), patience=wait)

    def pools(self) -> Iterator[Data]:
        """Cinder's pools, by name, each with what was ``measured`` of it; None: nothing."""
        found = self._transport.call("GET", "/volumes/pools")
        measured = {one["pool"]: one for one in found["measured"]}
        return ({**one, "measured": measured.get(one["name"])} for one in found["pools"])

    def calibrate_pool(self, pool: str, **measured: Any) -> Data:
        """Say what was measured of a pool: ``read_bw``, ``write_bw``, ``read_iops``, ``write_iops``."""
        return self._transport.call("PUT", join_path("volumes", "pools", pool, "calibration"), body=measured)

    def measure_pool(self, pool: str, node: str, wait: float = 0.0, **how: Any) -> Data:
        """Have a node measure a pool with fio.

        :param how: ``seconds`` for each figure, ``size`` of the volume that is made for it, in GiB
        """
        return self._order("POST", join_path("volumes", "pools", pool, "calibrate"), {"node": node, **how}, wait)

    def match_tier(self, **demands: Any) -> Data:
        """The cheapest tier that meets demands now; ``size`` in GiB is one, too."""
        return self._transport.call("GET", "/volumes/tiers/match", query=make_query(**demands))

    def mend_tier(self, tier: str) -> Data:
        """Put the volume type of a tier right in Cinder."""
        return self._transport.call("PUT", join_path("volumes", "tiers", tier))

    def _order(self, method: str, path: str, body: Mapping[str, Any] | None, wait: float) -> Data:
        headers = {IDEMPOTENCY_HEADER: uuid.uuid4().hex} if _makes_something(method, path) else {}
        return self._transport.call(
            method, path, body=body, query=make_query(wait=wait), headers=headers, patience=wait
        )


def _makes_something(method: str, path: str) -> bool:
    return method == "POST" and path.endswith(("/volumes", "/snapshots", "/calibrate"))
