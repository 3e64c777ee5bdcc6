"""A Cinder in memory with the methods of :class:`sluice_core.volumes.cinder.adapter.Cinder`.

What is asked for is done at once, unless ``held``: then statuses stay as Cinder has them meanwhile until
:meth:`FakeCinder.settle`.  All views of one Cinder (:meth:`FakeCinder.as_caller`) share its ``state``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sluice_core.errors import CallerError, Conflict, Forbidden, NotFound
from sluice_core.volumes.cinder.records import (
    AVAILABLE,
    IN_USE,
    CinderAttachment,
    CinderSnapshot,
    CinderType,
    CinderVolume,
)
from sluice_core.volumes.messages import Pool

#: Cinder's own type, which volumes have that were created without one.
DEFAULT_TYPE = CinderType("0" * 32, "standard")

#: The extra spec that chooses a pool here; without it a volume lies in the first one.
_PLACE = "volume_backend_name"


@dataclass
class FakeState:
    """What there is; ``asked`` are the names of the changes that were asked for, ``faults`` what the next raise.

    ``connection_type`` is of attachments that are made, ``quota`` the number of volumes that a project may have.
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
        """The same with the rights of a member of ``project``; a token that begins with ``admin`` has all."""
        return FakeCinder(state=self.state, project=project, administrator=token.startswith("admin"))

    def settle(self) -> None:
        """Do what was asked for while it was ``held``."""
        waiting, self.state.unfinished = self.state.unfinished, []
        for one in waiting:
            one()

    def pools(self) -> list[Pool]:
        """As of the adapter."""
        self._admin("reading the pools")
        return list(self.state.pools)

    def types(self) -> list[CinderType]:
        """As of the adapter."""
        self._ask("types")
        return self._visible_types()

    def create_type(self, name: str, specs: Mapping[str, str], text: str = "", public: bool = True) -> CinderType:
        """As of the adapter."""
        self._admin("create_type")
        if any(one.name == name for one in self.state.types.values()):
            raise Conflict(f"creating the volume type `{name}`: it exists")
        made = CinderType(str(uuid.uuid4()), name, dict(specs))
        self.state.types[made.id] = made
        if not public:
            self.state.private.add(made.id)
        return made

    def change_specs(self, type_id: str, specs: Mapping[str, str], gone: tuple[str, ...] = ()) -> None:
        """As of the adapter."""
        self._admin("change_specs")
        found = self._found(self.state.types, type_id, "volume type")
        kept = {name: value for name, value in {**found.specs, **specs}.items() if name not in gone}
        self.state.types[type_id] = replace(found, specs=kept)

    def delete_type(self, type_id: str) -> None:
        """As of the adapter."""
        self._admin("delete_type")
        found = self._found(self.state.types, type_id, "volume type")
        if any(one.type == found.name for one in self.state.volumes.values()):
            raise CallerError(f"deleting the volume type `{type_id}`: it is in use")
        del self.state.types[type_id]

    def create_volume(self, size: int, name: str, type_name: str, metadata: Mapping[str, str]) -> CinderVolume:
        """As of the adapter."""
        self._ask("create_volume")
        kind = next((one for one in self._visible_types() if one.name == (type_name or DEFAULT_TYPE.name)), None)
        if kind is None:
            raise NotFound(f"creating the volume: volume type `{type_name}` could not be found")
        if sum(one.project == self._project for one in self.state.volumes.values()) >= self.state.quota:
            raise Conflict("creating the volume: maximum number of volumes exceeded")
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
        found = [
            one
            for one in reversed(self.state.volumes.values())
            if (one.project == self._project or (everybody and self._administrator))
            and filters.get("name", one.name) == one.name
            and filters.get("project_id", one.project) == one.project
            and filters.get("metadata", {}).items() <= one.metadata.items()
        ]
        return [self._seen(one) for one in found]

    def extend(self, volume_id: str, size: int) -> None:
        """As of the adapter."""
        self._ask("extend")
        found = self._own(volume_id)
        if size <= found.size:
            raise CallerError(f"extending volume `{volume_id}`: new size must be greater than {found.size}")
        self._change(volume_id, status="extending")
        self._later(volume_id, size=size, status=found.status)

    def retype(self, volume_id: str, type_name: str) -> None:
        """As of the adapter."""
        self._ask("retype")
        found = self._own(volume_id)
        self._change(volume_id, status="retyping")
        self._later(volume_id, type=type_name, status=found.status)

    def delete_volume(self, volume_id: str) -> None:
        """As of the adapter."""
        self._ask("delete_volume")
        found = self._own(volume_id)
        if found.status == IN_USE or any(one.volume == volume_id for one in self.state.snapshots.values()):
            raise CallerError(f"deleting volume `{volume_id}`: it is attached or has snapshots")
        self._change(volume_id, status="deleting")
        self._do(lambda: self.state.volumes.pop(volume_id, None))

    def create_snapshot(self, volume_id: str, name: str, metadata: Mapping[str, str]) -> CinderSnapshot:
        """As of the adapter."""
        self._ask("create_snapshot")
        size = self._own(volume_id).size
        made = CinderSnapshot(str(uuid.uuid4()), name, volume_id, "creating", size, metadata=dict(metadata))
        self.state.snapshots[made.id] = made
        self._do(lambda: self.state.snapshots.update({made.id: replace(made, status=AVAILABLE)}))
        return made

    def snapshot(self, snapshot_id: str) -> CinderSnapshot:
        """As of the adapter."""
        self._ask("snapshot")
        found: CinderSnapshot = self._found(self.state.snapshots, snapshot_id, "snapshot")
        self._own(found.volume)
        return found

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
        found: CinderAttachment = self._found(self.state.attachments, attachment_id, "attachment")
        return found

    def attach(self, volume_id: str, connector: Mapping[str, Any]) -> CinderAttachment:
        """As of the adapter."""
        self._ask("attach")
        if self._own(volume_id).status != AVAILABLE:
            raise CallerError(f"attaching volume `{volume_id}`: it must be available")
        connection = {"driver_volume_type": self.state.connection_type, "device_path": f"/srv/{volume_id}"}
        made = CinderAttachment(str(uuid.uuid4()), volume_id, "attaching", connector["host"], connection)
        self.state.attachments[made.id] = made
        self._change(volume_id, status="attaching", attachments=(replace(made, connection={}),))
        return replace(made, host="")

    def complete_attachment(self, attachment_id: str) -> None:
        """As of the adapter."""
        self._ask("complete_attachment")
        found = self._found(self.state.attachments, attachment_id, "attachment")
        self.state.attachments[attachment_id] = replace(found, status="attached")
        self._change(found.volume, status=IN_USE)

    def delete_attachment(self, attachment_id: str) -> None:
        """As of the adapter."""
        self._ask("delete_attachment")
        found = self._found(self.state.attachments, attachment_id, "attachment")
        del self.state.attachments[attachment_id]
        self._change(found.volume, status=AVAILABLE, attachments=())

    def _ask(self, what: str) -> None:
        self.state.asked.append(what)
        fault = self.state.faults.pop(what, None)
        if fault is not None:
            raise fault

    def _visible_types(self) -> list[CinderType]:
        return [one for one in self.state.types.values() if self._administrator or one.id not in self.state.private]

    def _admin(self, what: str) -> None:
        self._ask(what)
        if not self._administrator:
            raise Forbidden(f"{what}: cinder does not let you: policy doesn't allow it")

    def _found(self, known: Mapping[str, Any], key: str, what: str) -> Any:
        if key not in known:
            raise NotFound(f"{what} `{key}`: it could not be found")
        return known[key]

    def _own(self, volume_id: str) -> CinderVolume:
        found: CinderVolume = self._found(self.state.volumes, volume_id, "volume")
        if not self._administrator and self._project != found.project:
            raise NotFound(f"volume `{volume_id}`: it could not be found")
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
