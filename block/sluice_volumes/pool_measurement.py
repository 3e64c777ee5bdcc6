"""Measures the capacity of a pool: fio runs on a volume that is created for it, and deleted afterwards.

Theory of operation.

* A private volume type names the pool, and the service user creates a volume of it.  The type has no QoS.
* A konnector attaches the volume without an account, so that no policy applies to it, and with an empty stack.  The
  volume has no record: it is not attached otherwise, and it has no floor.
* Each call of :meth:`PoolMeasurement.advance` takes one step, and is repeated after a crash: type and volume are found
  by the id of the operation, and the konnector begins only once.  An interrupted attachment, or a measurement that
  ended with its konnector, is ended as failed.
* In every case, the operation ends by :meth:`PoolMeasurement._clear`: its objects are deleted, at the konnector first,
  and the type last, which Cinder keeps while it has a volume.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite
from typing import Any, Final

from sluice_core.errors import CallerError, Conflict, NotFound, PeerError
from sluice_volumes.attachments import Konnectors
from sluice_volumes.cinder.adapter import Cinder
from sluice_volumes.cinder.records import AVAILABLE, IN_USE, OPERATION, CinderType, CinderVolume
from sluice_volumes.messages import FIGURES, PoolCalibration, VolumeOperation, VolumeRecord
from sluice_volumes.outcomes import ASKED, Outcome, done, failed

#: The steps: the type exists, the volume exists (:data:`ASKED`), a konnector has it, fio runs, all objects are deleted.
TYPED: Final = "typed"
ATTACHED: Final = "attached"
MEASURING: Final = "measuring"
CLEARING: Final = "clearing"
#: States of a measurement at a konnector.
RUNNING: Final = "running"
MEASURED: Final = "measured"
#: The status of a volume that Cinder could not delete.
_STAYS: Final = "error_deleting"
#: In the extra specs of the type: its operation.
OPERATION_SPEC: Final = "sluice:operation"
#: In the operation's data while it is in progress: extra specs that name the pool, the reason of a failure, and the
#: present phase of fio.
SPECS: Final = "specs"
_FAULT: Final = "fault"
_PHASE: Final = "phase"
#: The kind of export for fio.
_EXPORT: Final = "block"


class PoolMeasurement:
    """Runs measurements of pools to their end.

    :param cinder: with the rights of the service user
    :param now: unix seconds
    """

    def __init__(self, cinder: Cinder, konnectors: Konnectors, now: Callable[[], float]) -> None:
        self._cinder = cinder
        self._konnectors = konnectors
        self._now = now
        self._steps: Mapping[str, Callable[[VolumeOperation], Outcome]] = {
            "": self._make_type,
            TYPED: self._make_volume,
            ASKED: self._attach,
            ATTACHED: self._begin,
            MEASURING: self._read,
            CLEARING: self._clear,
        }

    def advance(self, operation: VolumeOperation, record: VolumeRecord | None) -> Outcome:
        """Return the operation one step further.

        :raises PeerError: when Cinder or the konnector is unreachable; the caller repeats this
        """
        try:
            return self._steps[operation.step](operation)
        except CallerError as error:
            if operation.step != CLEARING:
                return _at(operation, CLEARING, **{_FAULT: str(error)})
            if isinstance(error, NotFound):  # it was deleted meanwhile
                return Outcome(operation, None)
            return self._ended(operation, f"what it made stays in cinder as `{type_name(operation)}`: {error}")

    def _make_type(self, operation: VolumeOperation) -> Outcome:
        if self._own_type(operation) is None:
            specs = {**operation.data[SPECS], OPERATION_SPEC: operation.id}
            text = f"made by Sluice to measure pool {operation.data['pool']}, and deleted afterwards"
            self._cinder.create_type(type_name(operation), specs, text, public=False)
        return _at(operation, TYPED)

    def _make_volume(self, operation: VolumeOperation) -> Outcome:
        volume = next(iter(self._own_volumes(operation)), None)
        if volume is None:
            size, name = int(operation.data["size"]), type_name(operation)
            volume = self._cinder.create_volume(size, name, name, {OPERATION: operation.id})
        return _at(replace(operation, volume=volume.id), ASKED)

    def _attach(self, operation: VolumeOperation) -> Outcome:
        volume, node = self._cinder.volume(operation.volume), str(operation.data["node"])
        if volume.has_failed:
            raise Conflict("cinder could not make the volume, most likely since the pool has no room for it")
        if self._cinder.attachments(volume.id):
            raise Conflict(f"it was interrupted while node `{node}` attached the volume")
        if volume.status != AVAILABLE:
            return Outcome(operation, None)
        if volume.pool != operation.data["pool"]:
            raise Conflict(
                f"cinder put the volume into pool `{volume.pool}`, whose back end and pool have the same names: no "
                "volume type tells the two apart"
            )
        others, konnector = self._count_attached(volume), self._konnectors(node)
        attachment = self._cinder.attach(volume.id, konnector.connector(_EXPORT, ()))
        wanted = {
            "project": volume.project,
            "name": volume.name,
            "attachment": attachment.id,
            "connection": dict(attachment.connection),
            "export": _EXPORT,
            "stack": [],
        }
        konnector.attach(volume.id, wanted)
        self._cinder.complete_attachment(attachment.id)
        return _at(operation, ATTACHED, attached_volumes=others)

    def _count_attached(self, volume: CinderVolume) -> int:
        """Return the number of other attached volumes of its pool."""
        known = self._cinder.volumes(everybody=True)
        return sum(one.pool == volume.pool and one.status == IN_USE and one.id != volume.id for one in known)

    def _begin(self, operation: VolumeOperation) -> Outcome:
        konnector = self._konnectors(str(operation.data["node"]))
        shown = konnector.measure(operation.volume, int(operation.data["seconds"]))
        return _at(operation, MEASURING, **{_PHASE: str(shown.get(_PHASE, ""))})

    def _read(self, operation: VolumeOperation) -> Outcome:
        node = str(operation.data["node"])
        try:
            shown = self._konnectors(node).measurement(operation.volume)
        except NotFound as error:
            raise Conflict(f"the konnector of node `{node}` was started again while it measured") from error
        if shown.get("state") == RUNNING:
            return _at(operation, MEASURING, **{_PHASE: str(shown.get(_PHASE, ""))})
        if shown.get("state") != MEASURED:
            raise Conflict(f"node `{node}` could not measure the volume: {shown.get('reason', '')}")
        figures = {name: _figure(shown, name) for name in FIGURES}
        found = PoolCalibration(str(operation.data["pool"]), **figures, at=self._now(), node=node, by=operation.by)
        return replace(_at(operation, CLEARING, **figures), calibration=found)

    def _clear(self, operation: VolumeOperation) -> Outcome:
        """Delete the objects of the measurement; the operation is unchanged until all of them are deleted."""
        for volume in self._own_volumes(operation):
            if volume.status == _STAYS:
                raise Conflict(f"the volume `{volume.id}` is `{_STAYS}`")
            attachments = self._cinder.attachments(volume.id)
            if attachments:
                self._detach(operation, volume.id)
            for one in attachments:
                self._cinder.delete_attachment(one.id)
            if volume.is_settled and not attachments:
                self._cinder.delete_volume(volume.id)
            return Outcome(operation, None)
        found = self._own_type(operation)
        if found is not None:
            self._cinder.delete_type(found.id)
        return self._ended(operation)

    def _ended(self, operation: VolumeOperation, *faults: str) -> Outcome:
        """Return the ended operation, succeeded unless it has a fault."""
        given = dict(operation.data)
        del given[SPECS]
        given.pop(_PHASE, None)
        reason = "; ".join(filter(None, (given.pop(_FAULT, ""), *faults)))
        ended = replace(operation, data=given)
        return Outcome(failed(ended, self._now(), reason) if reason else done(ended, self._now()), None)

    def _detach(self, operation: VolumeOperation, volume: str) -> None:
        try:
            self._konnectors(str(operation.data["node"])).detach(volume)
        except NotFound:
            pass
        except Conflict as error:  # fio is about to end
            raise PeerError(f"the volume cannot be detached yet: {error}") from error

    def _own_type(self, operation: VolumeOperation) -> CinderType | None:
        name = type_name(operation)
        found = next((one for one in self._cinder.types() if one.name == name), None)
        return found if found is not None and found.specs.get(OPERATION_SPEC) == operation.id else None

    def _own_volumes(self, operation: VolumeOperation) -> list[CinderVolume]:
        name = type_name(operation)
        found = self._cinder.volumes(everybody=True, metadata={OPERATION: operation.id})
        return [one for one in found if one.type == name]


def type_name(operation: VolumeOperation) -> str:
    """Return the name of the volume type, and of the volume, of an operation."""
    return f"sluice-calibrate-{operation.id}"


def _at(operation: VolumeOperation, step: str, **data: Any) -> Outcome:
    return Outcome(replace(operation, step=step, data={**operation.data, **data}), None)


def _figure(shown: Mapping[str, Any], name: str) -> float:
    """
    :raises Conflict: when it is not a rate
    """
    value = shown.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value <= 0:
        raise Conflict(f"the konnector measured `{name}` as `{value}`, expected a rate per second")
    return float(value)
