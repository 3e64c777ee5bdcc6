"""A Cinder in memory with the methods of :class:`sluice_volumes.cinder.adapter.Cinder`.

Its refusals have the texts of Cinder 29.  Changes are done at once, unless ``held``: then statuses are Cinder's
intermediate ones until :meth:`FakeCinder.settle`.  All views of one Cinder (:meth:`FakeCinder.as_caller`) share its
``state``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sluice_core.errors import CallerError, Conflict, Forbidden, NotFound
from sluice_volumes.cinder.records import (
    AVAILABLE,
    IN_USE,
    CinderAttachment,
    CinderSnapshot,
    CinderType,
    CinderVolume,
)
from sluice_volumes.messages import Pool

#: Cinder's own type, for volumes that were created without one.
DEFAULT_TYPE = CinderType("0" * 32, "standard")

_CANNOT_DELETE = (
    "Invalid volume: Volume status must be available or error or error_restoring or error_extending or error_managing"
    " and must not be migrating, attached, belong to a group, have snapshots, awaiting a transfer, or be disassociated"
    " from snapshots after volume transfer."
)
#: The extra spec that chooses a pool here; without it a volume is in the first one.
_PLACE = "volume_backend_name"


@dataclass
class FakeState:
    """The objects; ``asked`` are the names of the requested changes, ``faults`` the exceptions of the next ones.

    ``connection_type`` is the type of new attachments, ``quota`` the number of volumes of a project.
    """

    pools: list[Pool] = field(default_factory=list)
    types: dict[str, CinderType] = field(default_factory=lambda: {DEFAULT_TYPE.id: DEFAULT_TYPE})
    private: set[str] = field(default_factory=set)
    volumes: dict[str, CinderVolume] = field(default_factory=dict)
    snapshots: dict[str, CinderSnapshot] = field(default_factory=dict)
    attachments: dict[str, CinderAttachment] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    faults: dict[str, Exception] = field(default_factory=dict)
    held: bool = False
    quota: int = 10
    connection_type: str = "local"
    unfinished: list[Callable[[], None]] = field(default_factory=list)


class FakeCinder:
    """Cinder for an administrator, or for a member of ``project``; an administrator's volumes are in it, too."""

    def __init__(
        self, *pools: Pool, state: FakeState | None = None, project: str = "service", administrator: bool = True
    ) -> None:
        self.state = FakeState(list(pools)) if state is None else state
        self._project = project
        self._administrator = administrator

    def as_caller(self, token: str, project: str) -> FakeCinder:
        """Return a view with the rights of a member of ``project``; a token ``admin…`` has all rights."""
        return FakeCinder(state=self.state, project=project, administrator=token.startswith("admin"))

    def settle(self) -> None:
        """Complete the changes that were requested while it was ``held``."""
        waiting, self.state.unfinished = self.state.unfinished, []
        for one in waiting:
            one()

    def pools(self) -> list[Pool]:
        """As of the adapter."""
        self._admin("reading the pools", "reading the pools", "scheduler_extension:scheduler_stats:get_pools")
        return list(self.state.pools)

    def types(self) -> list[CinderType]:
        """As of the adapter."""
        self._ask("types")
        return self._visible_types()

    def create_type(self, name: str, specs: Mapping[str, str], text: str = "", public: bool = True) -> CinderType:
        """As of the adapter."""
        trying = f"creating the volume type `{name}`"
        self._admin("create_type", trying, "volume_extension:type_create")
        if any(one.name == name for one in self.state.types.values()):
            raise Conflict(f"{trying}: Volume Type {name} already exists.")
        made = CinderType(str(uuid.uuid4()), name, dict(specs))
        self.state.types[made.id] = made
        if not public:
            self.state.private.add(made.id)
        return made

    def change_specs(self, type_id: str, specs: Mapping[str, str], gone: tuple[str, ...] = ()) -> None:
        """As of the adapter."""
        trying = f"changing the volume type `{type_id}`"
        self._admin("change_specs", trying, "volume_extension:types_extra_specs:create")
        found = self._found(self.state.types, type_id, trying, f"Volume type {type_id} could not be found.")
        kept = {name: value for name, value in {**found.specs, **specs}.items() if name not in gone}
        self.state.types[type_id] = replace(found, specs=kept)

    def delete_type(self, type_id: str) -> None:
        """As of the adapter."""
        trying = f"deleting the volume type `{type_id}`"
        self._admin("delete_type", trying, "volume_extension:type_delete")
        found = self._found(self.state.types, type_id, trying, f"Volume type {type_id} could not be found.")
        if any(one.type == found.name for one in self.state.volumes.values()):
            raise CallerError(f"{trying}: Target volume type is still in use.")
        del self.state.types[type_id]

    def create_volume(self, size: int, name: str, type_name: str, metadata: Mapping[str, str]) -> CinderVolume:
        """As of the adapter."""
        self._ask("create_volume")
        kind = next((one for one in self._visible_types() if one.name == (type_name or DEFAULT_TYPE.name)), None)
        if kind is None:
            raise NotFound(f"creating the volume: Volume type with name {type_name} could not be found.")
        quota = self.state.quota
        if sum(one.project == self._project for one in self.state.volumes.values()) >= quota:
            reason = f"Maximum number of volumes allowed ({quota}) exceeded for quota 'volumes'."
            raise Conflict(f"creating the volume: VolumeLimitExceeded: {reason}")
        place = kind.specs.get(_PLACE)
        pools = [one.name for one in self.state.pools if place in (None, one.specs.get(_PLACE))]
        pool = pools[0] if pools else ""
        made = CinderVolume(
            str(uuid.uuid4()), name, "creating", size, self._project, kind.name, pool,
            metadata=dict(metadata),
        )  # fmt: skip
        self.state.volumes[made.id] = made
        self._later(made.id, status=AVAILABLE)
        return self._seen(made)

    def volume(self, volume_id: str) -> CinderVolume:
        """As of the adapter."""
        self._ask("volume")
        return self._seen(self._own(volume_id))

    def volumes(self, everybody: bool = False, **filters: Any) -> list[CinderVolume]:
        """As of the adapter; ``filters`` are ``name``, ``project_id`` and ``metadata``."""
        self._ask("volumes")
        matching = [
            volume
            for volume in reversed(self.state.volumes.values())
            if (volume.project == self._project or (everybody and self._administrator))
            and filters.get("name", volume.name) == volume.name
            and filters.get("project_id", volume.project) == volume.project
            and filters.get("metadata", {}).items() <= volume.metadata.items()
        ]
        return [self._seen(one) for one in matching]

    def extend(self, volume_id: str, size: int) -> None:
        """As of the adapter."""
        self._ask("extend")
        trying = f"extending volume `{volume_id}`"
        own = self._own(volume_id, trying)
        if size <= own.size:
            reason = f"greater than current size. (current: {own.size}, extended: {size})."
            raise CallerError(f"{trying}: Invalid input received: New size for extend must be {reason}")
        self._change(volume_id, status="extending")
        self._later(volume_id, size=size, status=own.status)

    def retype(self, volume_id: str, type_name: str) -> None:
        """As of the adapter."""
        self._ask("retype")
        found = self._own(volume_id, f"retyping volume `{volume_id}`")
        self._change(volume_id, status="retyping")
        self._later(volume_id, type=type_name, status=found.status)

    def delete_volume(self, volume_id: str) -> None:
        """As of the adapter."""
        self._ask("delete_volume")
        found = self._own(volume_id, f"deleting volume `{volume_id}`")
        if found.status == IN_USE or any(one.volume == volume_id for one in self.state.snapshots.values()):
            raise CallerError(f"deleting volume `{volume_id}`: {_CANNOT_DELETE}")
        self._change(volume_id, status="deleting")
        self._do(lambda: self.state.volumes.pop(volume_id, None))

    def create_snapshot(self, volume_id: str, name: str, metadata: Mapping[str, str]) -> CinderSnapshot:
        """As of the adapter."""
        self._ask("create_snapshot")
        size = self._own(volume_id, f"a snapshot of volume `{volume_id}`").size
        made = CinderSnapshot(str(uuid.uuid4()), name, volume_id, "creating", size, metadata=dict(metadata))
        self.state.snapshots[made.id] = made
        self._do(lambda: self.state.snapshots.update({made.id: replace(made, status=AVAILABLE)}))
        return made

    def snapshot(self, snapshot_id: str) -> CinderSnapshot:
        """As of the adapter."""
        self._ask("snapshot")
        trying, gone = f"snapshot `{snapshot_id}`", f"Snapshot {snapshot_id} could not be found."
        snapshot: CinderSnapshot = self._found(self.state.snapshots, snapshot_id, trying, gone)
        if not self._sees(self.state.volumes[snapshot.volume]):
            raise NotFound(f"{trying}: {gone}")
        return snapshot

    def snapshots(self, volume_id: str, everybody: bool = False) -> list[CinderSnapshot]:
        """As of the adapter."""
        self._ask("snapshots")
        return [one for one in reversed(self.state.snapshots.values()) if one.volume == volume_id]

    def delete_snapshot(self, snapshot_id: str) -> None:
        """As of the adapter."""
        self._ask("delete_snapshot")
        found = self.snapshot(snapshot_id)
        self.state.snapshots[snapshot_id] = replace(found, status="deleting")
        self._do(lambda: self.state.snapshots.pop(snapshot_id, None))

    def attachments(self, volume_id: str) -> list[CinderAttachment]:
        """As of the adapter."""
        self._ask("attachments")
        return [replace(one, connection={}) for one in self.state.attachments.values() if one.volume == volume_id]

    def attachment(self, attachment_id: str) -> CinderAttachment:
        """As of the adapter."""
        self._ask("attachment")
        return self._attachment(attachment_id, f"attachment `{attachment_id}`")

    def attach(self, volume_id: str, connector: Mapping[str, Any]) -> CinderAttachment:
        """As of the adapter."""
        self._ask("attach")
        trying = f"attaching volume `{volume_id}`"
        if (status := self._own(volume_id, trying).status) != AVAILABLE:
            reason = f"must be available or downloading to reserve, but the current status is {status}."
            raise CallerError(f"{trying}: Invalid volume: Volume {volume_id} status {reason}")
        connection = {"driver_volume_type": self.state.connection_type, "device_path": f"/srv/{volume_id}"}
        made = CinderAttachment(str(uuid.uuid4()), volume_id, "attaching", connector["host"], connection)
        self.state.attachments[made.id] = made
        self._change(volume_id, status="attaching", attachments=(replace(made, connection={}),))
        return replace(made, status="reserved", host="")  # Cinder answers with the former status

    def complete_attachment(self, attachment_id: str) -> None:
        """As of the adapter."""
        self._ask("complete_attachment")
        found = self._attachment(attachment_id, f"completing attachment `{attachment_id}`")
        self.state.attachments[attachment_id] = replace(found, status="attached")
        self._change(found.volume, status=IN_USE)

    def delete_attachment(self, attachment_id: str) -> None:
        """As of the adapter."""
        self._ask("delete_attachment")
        found = self._attachment(attachment_id, f"deleting attachment `{attachment_id}`")
        del self.state.attachments[attachment_id]
        self._change(found.volume, status=AVAILABLE, attachments=())

    def _ask(self, what: str) -> None:
        self.state.asked.append(what)
        fault = self.state.faults.pop(what, None)
        if fault is not None:
            raise fault

    def _visible_types(self) -> list[CinderType]:
        return [one for one in self.state.types.values() if self._administrator or one.id not in self.state.private]

    def _admin(self, what: str, trying: str, rule: str) -> None:
        self._ask(what)
        if not self._administrator:
            raise Forbidden(f"{trying}: cinder does not let you: Policy doesn't allow {rule} to be performed.")

    def _found(self, known: Mapping[str, Any], key: str, trying: str, gone: str) -> Any:
        if key not in known:
            raise NotFound(f"{trying}: {gone}")
        return known[key]

    def _own(self, volume_id: str, trying: str = "") -> CinderVolume:
        trying = trying or f"volume `{volume_id}`"
        gone = f"Volume {volume_id} could not be found."
        volume: CinderVolume = self._found(self.state.volumes, volume_id, trying, gone)
        if not self._sees(volume):
            raise NotFound(f"{trying}: {gone}")
        return volume

    def _sees(self, volume: CinderVolume) -> bool:
        return self._administrator or self._project == volume.project

    def _attachment(self, attachment_id: str, trying: str) -> CinderAttachment:
        gone = f"Volume attachment could not be found with filter: attachment_id = {attachment_id}."
        found: CinderAttachment = self._found(self.state.attachments, attachment_id, trying, gone)
        return found

    def _seen(self, volume: CinderVolume) -> CinderVolume:
        return volume if self._administrator else replace(volume, pool="")

    def _change(self, volume_id: str, **fields: Any) -> None:
        self.state.volumes[volume_id] = replace(self.state.volumes[volume_id], **fields)

    def _later(self, volume_id: str, **fields: Any) -> None:
        self._do(lambda: self._change(volume_id, **fields))

    def _do(self, act: Callable[[], Any]) -> None:
        if self.state.held:
            self.state.unfinished.append(act)
        else:
            act()
