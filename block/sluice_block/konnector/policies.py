"""Policies of this machine's volumes: read from the agent's snapshot, four times a second.

Of an assignment the konnector enforces the parts that can be undone: rates (``throttling``), and filters that do not
change stored data.  The controller decides changes of stored data before the first attach, and sends them with the
attach.

* A rate of a policy replaces the one that was set by hand; the others stay.
* The filters of policies stand in front of the volume's own.
* A volume with a floor has a share of its pool's capacity, which applies if it is less than its limits, or without
  limits.
* The policies are kept in the volume's record.  They stay in force while the snapshot cannot be read, and over a
  restart of the konnector or of the machine, until the snapshot changes them.

The thread that reads also applies rates.  A stack is replaced in another thread, since this waits for I/O in progress.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Final

from sluice_block.datapath.records import ATTACHED, VolumeLimits, VolumePolicy
from sluice_block.konnector import volume_changes
from sluice_block.konnector.konnector import Konnector
from sluice_block.konnector.volume import AttachedVolume
from sluice_block.stack.filters import FILTERS, check_steps
from sluice_core.describe import FILTER, THROTTLE
from sluice_core.errors import CallerError, DecodeError, SluiceError
from sluice_core.messages.bandwidth import GET, VOLUME_SHARES_SUFFIX, Share, Shares
from sluice_core.messages.policies import Assignment
from sluice_core.messages.predicate import Facts
from sluice_core.resolve import Candidates
from sluice_core.snapshot.reader import SnapshotReader
from sluice_volumes.actions import THROTTLING
from sluice_volumes.messages import StackStep, volume_path

log = logging.getLogger(__name__)

#: Seconds between two reads of the snapshot.
_PERIOD: Final = 0.25
#: Seconds before another attempt for a volume that could not apply its policies.
_AGAIN: Final = 5.0
#: Number of stacks that are replaced at the same time.
_REPLACED_TOGETHER: Final = 4
#: Conditions on requests of objects do not hold for volumes.
_NO_REQUEST: Final = Facts("")
_NO_SHARE: Final = VolumeLimits()


class Policies:
    """A thread that applies policies to the volumes of ``konnector``."""

    def __init__(self, konnector: Konnector, snapshot: SnapshotReader, shares: VolumeShares) -> None:
        self._konnector = konnector
        self._snapshot = snapshot
        self._shares = shares
        self._obeyed: dict[str, tuple[AttachedVolume, Candidates]] = {}
        self._replacing: dict[str, threading.Thread] = {}
        self._failed: dict[str, float] = {}
        self._complaint = ""
        self._places = threading.BoundedSemaphore(_REPLACED_TOGETHER)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="policies", daemon=True)

    def snapshot_id(self) -> str:
        """The id of the snapshot that is read."""
        return self._snapshot.snapshot_id

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for replacements in progress."""
        self._stopping.set()
        self._thread.join()
        self.wait()

    def wait(self) -> None:
        """Wait until no stack is being replaced."""
        for thread in self._replacing.values():
            thread.join()

    def obey(self) -> None:
        """Read the snapshot once, and apply it."""
        self._snapshot.refresh()
        volumes = {one.attachment.volume: one for one in self._konnector.volumes()}
        shares = self._shares.read()
        for key, volume in volumes.items():
            # without an account the policies of the volume are unknown
            if volume.attachment.account and volume.state == ATTACHED:
                self._obey(key, volume)
                self._share(volume, shares.get(volume_path(volume.attachment.account, key), _NO_SHARE))
        for known in (self._obeyed, self._failed):
            for gone in known.keys() - volumes.keys():
                del known[gone]
        if self._snapshot.problem != self._complaint:
            self._complaint = self._snapshot.problem
            log.log(logging.WARNING if self._complaint else logging.INFO, "%s", self._complaint or "snapshot is read")

    def _run(self) -> None:
        while not self._stopping.wait(_PERIOD):
            self.obey()

    def _obey(self, key: str, volume: AttachedVolume) -> None:
        pipeline = self._snapshot.find_volume(volume.attachment.account, key)
        if self._snapshot.problem and not pipeline.keywords:
            return  # it may only be unreadable
        if self._obeyed.get(key) == (volume, pipeline) or time.monotonic() < self._failed.get(key, 0.0):
            return
        policy = read_policy(pipeline)
        try:
            if not volume_changes.set_policy_limits(volume, policy.limits):
                return  # another call changes it: continue at the next read
        except SluiceError as error:
            self._note_failure(key, error)
            return
        if volume.attachment.policy.stack == policy.stack:
            self._obeyed[key] = (volume, pipeline)
        elif key not in self._replacing or not self._replacing[key].is_alive():
            thread = threading.Thread(target=self._replace, args=(key, volume, policy.stack), name=f"stack of {key}")
            self._replacing[key] = thread
            thread.start()

    @staticmethod
    def _share(volume: AttachedVolume, share: VolumeLimits) -> None:
        if share != volume.share:
            try:
                volume_changes.set_share(volume, share)
            except SluiceError as error:
                log.error("volume `%s` is not held to its share: %s", volume.attachment.volume, error)

    def _replace(self, key: str, volume: AttachedVolume, stack: tuple[StackStep, ...]) -> None:
        with self._places:
            try:
                volume_changes.set_policy_stack(volume, stack)
            except SluiceError as error:
                self._note_failure(key, error)

    def _note_failure(self, key: str, error: SluiceError) -> None:
        self._failed[key] = time.monotonic() + _AGAIN
        log.error("volume `%s` does not obey its policies: %s", key, error)


def read_policy(found: Candidates) -> VolumePolicy:
    """Return the assignments for a volume that a konnector enforces itself."""
    pipelines = found.resolve(_NO_REQUEST)
    limits = dict(rate for one in pipelines.get(THROTTLE, ()) for rate in _rates(one))
    return VolumePolicy(VolumeLimits(**limits), tuple(_filters(pipelines.get(FILTER, ()))))


def _rates(assignment: Assignment) -> Iterator[tuple[str, float]]:
    if assignment.keyword != THROTTLING:
        return
    for name in VolumeLimits.__slots__:
        value = assignment.params.get(name, 0.0)
        if isinstance(value, int | float) and isfinite(value) and value > 0:
            yield name, float(value)


def _filters(pipeline: Iterable[Assignment]) -> Iterator[StackStep]:
    for assignment in pipeline:
        known = FILTERS.get(assignment.keyword)
        if known is None or known.changes_content:
            continue
        try:
            check_steps([(assignment.keyword, assignment.params)])
        except CallerError as error:
            log.error("assignment `%s`: %s", assignment.id, error)
        else:
            yield StackStep(assignment.keyword, assignment.params)


class VolumeShares:
    """The shares of volumes with floors, in the file that the agent keeps beside its snapshot.

    It is read again after a replacement.

    :param snapshot: folder of the agent's snapshot
    """

    def __init__(self, snapshot: Path) -> None:
        self._file = Path(f"{snapshot}{VOLUME_SHARES_SUFFIX}")
        self._seen: tuple[int, int] | None = None
        self._shares: Mapping[str, VolumeLimits] = {}

    def read(self) -> Mapping[str, VolumeLimits]:
        """Return path of a volume → its rates besides its limits; without the file the last ones."""
        try:
            status = self._file.stat()
            seen = (status.st_ino, status.st_mtime_ns)
            if seen != self._seen:
                self._shares = _by_volume(Shares.decode(self._file.read_bytes()).rows)
                self._seen = seen
        except FileNotFoundError:
            pass
        except (OSError, DecodeError) as error:
            log.warning("shares in `%s` cannot be read: %s", self._file, error)
        return self._shares


def _by_volume(rows: tuple[Share, ...]) -> dict[str, VolumeLimits]:
    rates: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.rate >= 0:
            name = "read_bw" if row.method == GET else "write_bw"
            rates.setdefault(volume_path(row.account, row.container), {})[name] = row.rate
    return {path: VolumeLimits(**found) for path, found in rates.items()}
