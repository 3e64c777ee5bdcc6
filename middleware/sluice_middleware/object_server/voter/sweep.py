"""Removal of the records of objects that are gone.

A record is needed as long as a state is stored, since it tells an old state from the newest one.  It is needed when the
state is missing, too: the file may have been quarantined, and an older copy may come.  Only a tombstone as new as all
that the voter accepted proves that the object was deleted; the record says so, and Swift removes the tombstone after
``reclaim_age`` (seven days).  Where nothing was ever accepted, a home may have the promise and be about to create the
object.

So a record is removed when there is no data file, when nothing was accepted or only a tombstone of before
``reclaim_age``, and when record and promise are as old.  The age is Swift's own assumption about tombstones: after it
nobody still sends what was begun before.  Nothing depends on when a sweep runs: it saves space.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any, Final

from sluice_middleware.object_server.voter.device_files import DeviceFiles, records_folder
from sluice_middleware.object_server.voter.small_files import Damaged
from sluice_middleware.swift.diskfile_api import get_part_path, get_partition_for_hash
from sluice_objects.protocol.stamps import UNITS

_HASH_LENGTH: Final = 32


def sweep_device(manager: Any, device: str, policy: Any, part_power: int) -> int:
    """Remove the records of a device that are not needed, and return how many; zero without the device.

    Not while the part power of the policy's ring changes: a state may stand in another partition then.

    :param manager: of the disk files of the policy
    :param device: its name
    """
    path = manager.get_dev_path(device)
    removed = 0
    for name in recorded_hashes(path, policy) if path else ():
        partition = get_partition_for_hash(name, part_power)
        folder = os.path.join(get_part_path(path, policy, partition), name[-3:], name)
        removed += remove_when_gone(manager.diskfile_cls.from_hash_dir(manager, folder, path, str(partition), policy))
    return removed


def recorded_hashes(device: str, policy: Any) -> Iterator[str]:
    """The hashes of objects with a record on the device at the path ``device``."""
    folder = records_folder(device, policy)
    for suffix in _listed(folder):
        if len(suffix) == 3:
            yield from (name for name in _listed(f"{folder}/{suffix}") if len(name) == _HASH_LENGTH)


def remove_when_gone(file: Any) -> bool:
    """Remove the record of an object that is gone; False when it stays.

    :param file: a disk file of Swift, which is not opened
    """
    files = DeviceFiles(file)
    horizon = time.time() - file.manager.reclaim_age
    with files.lock():
        try:
            if files.written() > horizon:
                return False
            record, newest = files.record(), files.newest()
        except (FileNotFoundError, Damaged):
            return False
        if record.promised is not None and record.promised.created > horizon * UNITS:
            return False
        if record.accepted is not None or (newest is not None and not newest.deleted):
            return False
        files.remove()
        return True


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
