"""Removal of the records of objects that are gone.

A record is needed as long as a state is stored, since it tells an old state from the newest one.  It is needed when the
state is missing, too: the file may have been quarantined, and an older copy may come.  Only a tombstone at least as new
as all that the voter accepted proves that the object was deleted.  Where nothing was ever accepted, a home may have the
promise and be about to create the object.

So a record is removed when there is no data file, when nothing was accepted or a tombstone as new is there, and when
record and promise are older than half of ``reclaim_age``.  The age is Swift's own assumption about tombstones: after
``reclaim_age`` (seven days) nobody still sends what was begun before.  It is half of it, so that a sweep each day comes
before Swift removes the tombstone; a record that outlives its tombstone stays, and the device votes about the object
again when it gets the next state of that name.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any, Final

from sluice_middleware.object_server.voter.device_files import DeviceFiles, records_folder
from sluice_middleware.object_server.voter.small_files import Damaged
from sluice_objects.protocol.stamps import UNITS

_HASH_LENGTH: Final = 32


def recorded_hashes(device: str, policy: Any) -> Iterator[str]:
    """The hashes of objects with a record on the device at the path ``device``."""
    folder = records_folder(device, policy)
    for suffix in _listed(folder):
        if len(suffix) == 3:
            yield from (name for name in _listed(f"{folder}/{suffix}") if len(name) == _HASH_LENGTH)


def remove_when_gone(file: Any, now: float | None = None) -> bool:
    """Remove the record of an object that is gone; False when it stays.

    :param file: a disk file of Swift, which is not opened
    """
    files = DeviceFiles(file)
    horizon = (time.time() if now is None else now) - file.manager.reclaim_age / 2
    with files.lock():
        try:
            if files.written() > horizon:
                return False
            record, newest = files.record(), files.newest()
        except (FileNotFoundError, Damaged):
            return False
        if record.promised is not None and record.promised.created > horizon * UNITS:
            return False
        if newest is not None and not newest.deleted:
            return False
        if record.accepted is not None and (newest is None or newest.stamp < record.accepted):
            return False
        files.remove()
        return True


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
