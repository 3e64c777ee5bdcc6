"""Space for the header of an encrypted volume: its user has all that was asked for, and Cinder's volume has a GiB more.

The record says what the user asked for before Cinder is asked for more.  So whoever repeats this after a crash knows
what Cinder's volume is to have, and that its user is shown no more than was asked for, whatever became of it.

Our service user asks: it is a policy that encrypts, not whoever attaches.  Cinder charges the quota of the volume's
project nevertheless.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.nodes import wait_until
from sluice_controller.volumes.cinder_access import service_cinder
from sluice_core.errors import CallerError, Conflict, PeerError
from sluice_volumes import operations
from sluice_volumes.messages import HEADER_GIB, VolumeRecord

#: Seconds that Cinder may take; with what follows in an attachment, less than an operation may be claimed for.
PATIENCE: Final = 20.0
_STEP: Final = 0.3


def add_header_space(backend: Backend, record: VolumeRecord) -> VolumeRecord:
    """Have Cinder's volume grow by :data:`HEADER_GIB`, once.

    :param record: of a volume that was never attached
    :returns: it, with what the user asked for
    :raises Conflict: when Cinder refuses, since a quota is exceeded or the pool is full; all is as before then
    :raises PeerError: when Cinder is away, or still at it after :data:`PATIENCE`; it goes on from there next time
    """
    volume = service_cinder(backend).volume(record.id)
    found = record if record.size else replace(record, size=volume.size)
    if not _replace(backend, record, found):
        raise Conflict("somebody else attaches the volume right now")
    if volume.size < found.size + found.header_gib:
        try:
            _extend(backend, found)
        except CallerError as error:
            _replace(backend, found, replace(found, size=0))
            raise Conflict(
                f"the volume is to be encrypted, which takes {HEADER_GIB} GiB more in cinder: {error}"
            ) from error
    return found


def _extend(backend: Backend, record: VolumeRecord) -> None:
    cinder, wanted = service_cinder(backend), record.size + record.header_gib
    cinder.extend(record.id, wanted)
    volume = cinder.volume(record.id)

    def is_settled() -> bool:
        nonlocal volume
        volume = cinder.volume(record.id)
        return volume.is_settled

    if not volume.is_settled and not wait_until(backend, is_settled, PATIENCE, _STEP):
        raise PeerError(f"cinder still extends the volume to {wanted} GiB for its header, attach it again afterwards")
    if volume.has_failed or volume.size < wanted:
        raise Conflict(
            f"cinder did not extend it to {wanted} GiB, its status is `{volume.status}`; most likely its pool is full"
        )


def _replace(backend: Backend, before: VolumeRecord, after: VolumeRecord) -> bool:
    return before == after or backend.store.run(operations.RECORDS.replace(backend.store.keys, before, after))
