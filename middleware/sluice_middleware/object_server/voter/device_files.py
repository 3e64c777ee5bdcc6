"""The files of one object on one device, as a voter needs them.

Beside the folder ``objects`` (``objects-1``) of a storage policy a device has ``sluice-objects``
(``sluice-objects-1``)::

    sluice-objects/incarnation          the id of the device as a voter
    sluice-objects/lock                 locks of objects (:mod:`lock`)
    sluice-objects/<last 3>/<hash>      the record of the object with this hash (:mod:`small_files`)

Swift's daemons ignore the folder.  One that was emptied, with the promises in it, gets another incarnation: it is
another voter.  So do the folders of different policies, since they can be lost one by one.

A record says whether the highest stamp that the voter accepted is that of a tombstone, which Swift removes after
``reclaim_age``.  From then on the voter has lost nothing when nothing is stored.
"""

from __future__ import annotations

import os
import secrets
import time
from typing import Any, Final, NamedTuple

from sluice_core.errors import DecodeError
from sluice_middleware.object_server.voter.lock import ObjectLock
from sluice_middleware.object_server.voter.small_files import Damaged, read_fields, write_fields
from sluice_middleware.swift.diskfile_api import DiskFileError, fsync_dir, read_metadata
from sluice_middleware.wsgi import sysmeta
from sluice_objects.protocol.acceptor import Record
from sluice_objects.protocol.stamps import NOTHING, UNITS, Stamp

_FOLDER: Final = "sluice-objects"
#: The lock of the incarnation: no hash of an object begins with it, by all that is probable.
_INCARNATION_LOCK: Final = "0" * 15
#: Files with a smaller offset are never states of a home, whose ballots begin at 1.
_FIRST_BALLOT: Final = Stamp(0, 1, 0).internal.partition("_")[2]


class Newest(NamedTuple):
    """The newest file of an object.

    :param deleted: whether it is a tombstone
    """

    stamp: Stamp
    deleted: bool


def records_folder(device: str, policy: Any) -> str:
    """The folder of a policy's records on the device at the path ``device``."""
    return f"{device}/{_FOLDER}-{policy.idx}" if policy.idx else f"{device}/{_FOLDER}"


class DeviceFiles:
    """The contract ``sluice_objects.protocol.acceptor.Device`` over a disk file of Swift."""

    def __init__(self, file: Any) -> None:
        """
        :param file: a disk file, which is not opened
        """
        self._file = file
        self._objects: str = file._datadir
        self._folder = records_folder(file._device_path, file.policy)
        self._hash = self._objects.rpartition("/")[2]
        self._path = f"{self._folder}/{self._hash[-3:]}/{self._hash}"
        self._fields: dict[str, Any] | None = None

    def lock(self) -> ObjectLock:
        """The lock of the object on this device."""
        return ObjectLock(self._folder, self._hash)

    def record(self) -> Record:
        """The record; an empty one when there is none.

        :raises Damaged: when it cannot be read
        """
        self._fields = fields = read_fields(self._path)
        if fields is None:
            return Record()
        try:
            promised, accepted = (fields[name] and Stamp.read(fields[name]) for name in ("promised", "accepted"))
            if fields["deleted"] and accepted.created < (time.time() - self._file.manager.reclaim_age) * UNITS:
                accepted = None
            return Record(promised, accepted, fields["home"])
        except (DecodeError, KeyError, TypeError) as error:
            raise Damaged(f"`{self._path}` is no record") from error

    def save(self, record: Record) -> None:
        """Write the record in place of the one that was read last; it is on the disk when the call returns.

        :raises OSError: when it cannot be written
        """
        promised, accepted = (stamp and stamp.internal for stamp in (record.promised, record.accepted))
        before = self._fields
        deleted = before is not None and before["deleted"] and before["accepted"] == accepted
        newest = self.newest() if accepted else None
        if newest is not None and newest.deleted and newest.stamp >= (record.accepted or NOTHING):
            accepted, deleted = newest.stamp.internal, True
        fields = {"promised": promised, "accepted": accepted, "deleted": deleted, "home": record.home}
        write_fields(self._path, fields)

    def remove(self) -> None:
        """Remove the record; the caller holds the lock, and knows that it is not needed (:mod:`sweep`)."""
        os.unlink(self._path)

    def written(self) -> float:
        """When the record was written last, by the clock of this node; seconds since 1970.

        :raises FileNotFoundError: when there is none
        """
        return os.stat(self._path).st_mtime

    def stored(self) -> Stamp | None:
        """The stamp of the newest file, read from the disk; None without files."""
        newest = self.newest()
        return newest and newest.stamp

    def newest(self) -> Newest | None:
        """The newest file by the names of files: data, or metadata that were posted to a plain object, or a tombstone.

        A state that is stored below any of them would be hidden.
        """
        try:
            names = os.listdir(self._objects)
        except FileNotFoundError:
            return None
        if len(names) == 1 and names[0].endswith((".data", ".ts")):  # nearly always
            stamp, _, kind = names[0].rpartition(".")
            return Newest(Stamp.read(stamp), kind == "ts")
        found = self._file.manager.get_ondisk_files(names, self._objects, policy=self._file.policy)
        files = [found[key] for key in ("data_info", "meta_info", "ts_info") if found.get(key)]
        if not files:
            return None
        last = max(files, key=lambda info: info["timestamp"])
        return Newest(Stamp.read(last["timestamp"].internal), last["ext"] == ".ts")

    def has_state(self) -> bool:
        """Whether there is a record, damaged or not, or the state of a home that another device stored first.

        A disk file that was read knows of such a state.  One that a replicator brings between is as one that it brings
        later: this device has no part in the decisions about the object.
        """
        try:
            os.stat(self._path)
            return True
        except FileNotFoundError:
            pass
        if self._file._ondisk_info is not None:
            return sysmeta.VOTERS in (self._file._datafile_metadata or ()) and _has_ballot(self._file._data_file or "")
        try:
            names = os.listdir(self._objects)
        except FileNotFoundError:
            return False
        # rewrites of plain objects have offsets as large, so that a name does not suffice
        return any(_has_ballot(name) and _names_voters(f"{self._objects}/{name}") for name in names)

    def incarnation(self) -> str:
        """The id of this device as a voter; it is written when a home asks for the first time.

        :raises Damaged: when it cannot be read
        :raises OSError: when it cannot be written
        """
        path = self._folder + "/incarnation"
        fields = read_fields(path)
        if fields is None:
            with ObjectLock(self._folder, _INCARNATION_LOCK):
                fields = read_fields(path)
                if fields is None:
                    fields = {"incarnation": secrets.token_hex(8)}
                    write_fields(path, fields)
                    fsync_dir(os.path.dirname(self._folder))
        return str(fields["incarnation"])


def _has_ballot(name: str) -> bool:
    """Whether the name of a file may be that of a state."""
    return name.endswith(".data") and name.rpartition("/")[2].partition("_")[2] >= _FIRST_BALLOT


def _names_voters(path: str) -> bool:
    try:
        return sysmeta.VOTERS in read_metadata(path)
    except DiskFileError:
        return True
