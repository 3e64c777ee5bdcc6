"""Brings volumes to the tiers of their policies, by retyping them in Cinder.

One host of the cluster does this, the one that owns :data:`NAME`.  Of the ``tier`` actions about a volume the
narrowest holds, as for other actions.  The volume goes to the named tier, or to the cheapest tier that has the demanded
objectives and that the volume's pool meets: volumes are retyped without moving.  Each retype is an operation, as for
one that a user starts.  A retype that fails is an event, and is tried again after :data:`AGAIN` seconds.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sluice_actors.policies.group_index import GroupIndex
from sluice_actors.runtime.event_log import LogEvent
from sluice_actors.runtime.services import Ownership, Service, Spawn, repeat_forever
from sluice_actors.volumes.kept_assignments import KeptAssignments
from sluice_core.describe import TIER
from sluice_core.errors import CallerError, Conflict, SluiceError
from sluice_core.messages.events import VOLUME_FAILED
from sluice_core.messages.policies import ALL, CLUSTER, GROUP, TENANT, VOLUME, Assignment, Change
from sluice_core.resolve import Candidates
from sluice_core.store.store import AsyncStore
from sluice_volumes import operations
from sluice_volumes.attachments import Request
from sluice_volumes.cinder.adapter import Cinder
from sluice_volumes.messages import FAILED, RETYPE, Tier, VolumeOperation, VolumeRecord
from sluice_volumes.outcomes import failed
from sluice_volumes.reconciler import ask_cinder
from sluice_volumes.tiers import Calibrations, Demands, Pools, matching_tiers, unmet

log = logging.getLogger(__name__)

#: The name under which the retyping host owns its work.
NAME: Final = "volumes/tiers"
#: The source of its events, whichever host retypes.
SOURCE: Final = "volumes"
INTERVAL: Final = 2.0
#: Seconds after which a failed retype is tried again.
AGAIN: Final = 60.0

Tiers = Mapping[str, Tier]


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A retype that was started, or could not be."""

    assignment: str
    at: float
    operation: str = ""


@dataclass(eq=False)
class TierKeeper(Service):
    """Retypes volumes while this host owns :data:`NAME`.

    :param groups: the host updates it before it calls :meth:`apply`
    """

    cinder: Cinder
    store: AsyncStore
    ownership: Ownership
    groups: GroupIndex
    clock: Callable[[], float]
    log_event: LogEvent
    _attempts: dict[str, _Attempt] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._assignments = KeptAssignments(self.store, lambda assignment: assignment.kind == TIER)

    def start(self, spawn: Spawn) -> None:
        spawn(repeat_forever("tiers of volumes", self._step))

    def reload(self) -> None:
        """Read the assignments anew."""
        self._assignments.reload()

    def apply(self, change: Change) -> None:
        """Apply ``change``, which the groups contain already."""
        self._assignments.apply(change)

    async def _step(self) -> None:
        if self.ownership.owns(NAME):
            await self.retype_all()
        else:
            self._assignments.reload()
        await asyncio.sleep(INTERVAL)

    async def retype_all(self) -> None:
        """Start a retype of each volume whose tier differs from that of its policies.

        :raises PeerError: when Redis is unreachable
        """
        await self._assignments.read()
        if not self._assignments.values():
            return
        keys, run = self.store.keys, self.store.run
        tiers = await run(operations.TIERS.read_all(keys))
        pools, calibrations = (
            await run(operations.POOLS.read_all(keys)),
            await run(operations.CALIBRATIONS.read_all(keys)),
        )
        for record in (await run(operations.RECORDS.read_all(keys))).values():
            said = self._said(record)
            if said is not None:
                await self._keep(record, said, tiers, pools, calibrations)

    def _said(self, record: VolumeRecord) -> Assignment | None:
        """The action that holds for a volume; None without any."""
        concerning = [one for one in self._assignments.values() if one.when is True and self._concerns(one, record)]
        pipeline = (Candidates(concerning).constant or {}).get(TIER, ())
        return pipeline[0] if pipeline else None

    def _concerns(self, assignment: Assignment, record: VolumeRecord) -> bool:
        target = assignment.target
        path = {VOLUME: record.path, TENANT: record.account}.get(target.level)
        if target.level == CLUSTER:
            return True
        if path is None:
            return False
        if assignment.path():
            return assignment.path() == path
        if target.select == GROUP:
            return self.groups.contains(target.level, target.name, path)
        return target.select == ALL

    async def _keep(
        self, record: VolumeRecord, said: Assignment, tiers: Tiers, pools: Pools, calibrations: Calibrations
    ) -> None:
        before = self._attempts.get(record.id)
        if before is not None and before.assignment == said.id and self.clock() - before.at < AGAIN:
            await self._note_failure(record, before)
            return
        try:
            volume = await asyncio.to_thread(self.cinder.volume, record.id)
            wanted = _choose(said, volume.pool, tiers, pools, calibrations)
            if wanted == volume.type:
                self._attempts.pop(record.id, None)
            else:
                await self._order(record, said, wanted)
        except SluiceError as error:
            self._fail(record, said.id, str(error))

    async def _order(self, record: VolumeRecord, said: Assignment, tier: str) -> None:
        """
        :raises SluiceError: when it cannot be started, or Cinder refuses
        """
        keys, now = self.store.keys, self.clock()
        ordered = VolumeOperation(
            uuid.uuid4().hex, RETYPE, record.project, record.id, {"tier": tier}, created=now, by=f"policy/{said.policy}"
        )
        if await self.store.run(operations.create_operation(keys, ordered)):
            return  # another operation on the volume is running
        self._attempts[record.id] = _Attempt(said.id, now, ordered.id)
        claimed, write = operations.claim(keys, ordered, now)
        if not await self.store.run(write):
            return
        try:
            found = await asyncio.to_thread(ask_cinder, claimed, record, Request(self.cinder))
        except CallerError as error:
            found = failed(claimed, self.clock(), str(error))
        await self.store.run(operations.release(keys, claimed, found))

    async def _note_failure(self, record: VolumeRecord, attempt: _Attempt) -> None:
        """Log once that a retype has failed."""
        if not attempt.operation:
            return
        found = await self.store.run(operations.JOBS.read(self.store.keys, attempt.operation))
        if found is not None and found.state == FAILED:
            self._fail(record, attempt.assignment, found.reason)

    def _fail(self, record: VolumeRecord, assignment: str, reason: str) -> None:
        self._attempts[record.id] = _Attempt(assignment, self.clock())
        text = f"volume `{record.id}` (`{record.name}`) is not moved to the tier of its policy: {reason}"
        self.log_event(VOLUME_FAILED, text, SOURCE, subject=record.id, policy=assignment.partition(".")[0])


def _choose(said: Assignment, pool: str, tiers: Tiers, pools: Pools, calibrations: Calibrations) -> str:
    """The name of the tier for a volume in ``pool``.

    :raises Conflict: when there is none
    """
    there = pools.get(pool)
    if there is None:
        raise Conflict(f"its pool `{pool}` is not known")
    named = str(said.params.get("name", ""))
    if named:
        tier = tiers.get(named)
        if tier is None:
            raise Conflict(f"there is no tier `{named}`")
        missed = unmet(there, Demands.of_tier(tier), calibrations.get(pool))
        if missed:
            raise Conflict(f"its pool `{pool}` does not meet {_listed(missed)} of tier `{named}`")
        return named
    demands = Demands.of_action(said.params)
    missed = unmet(there, demands, calibrations.get(pool))
    if missed:
        raise Conflict(f"its pool `{pool}` does not meet {_listed(missed)}")
    for tier in matching_tiers(demands, tiers.values(), pools, calibrations):
        if not unmet(there, Demands.of_tier(tier), calibrations.get(pool)):
            return tier.name
    raise Conflict(f"no tier that its pool `{pool}` meets promises that")


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{one}`" for one in names)
