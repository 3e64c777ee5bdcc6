"""All volumes of this machine: attached, shown, changed and detached, one call at a time for each."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from sluice_block.datapath import loop_devices
from sluice_block.datapath.fuse_device import is_supported
from sluice_block.datapath.records import BLOCK, BROKEN, DETACHING, StateFiles, VolumeAttachment, VolumeLimits
from sluice_block.konnector import volume_changes
from sluice_block.konnector.fio_measurement import FioMeasurement, check_measurable
from sluice_block.konnector.volume import AttachedVolume
from sluice_block.stack.filters import FILTERS
from sluice_block.uploaded.catalogue import REFUSALS, Refusals, UploadedFilters
from sluice_code.code_store import CodeStore
from sluice_core.errors import Conflict, NotFound, SluiceError
from sluice_volumes.messages import StackStep

log = logging.getLogger(__name__)

#: Seconds before another attempt to end a process that did not end.
_AGAIN: Final = 5.0


class Konnector:
    """:param state: folder of the records
    :param run: folder of sockets, mounts and records
    :param built: folder of Sluice's filters for nbdkit
    :param logs: folder of the logs of requests
    :param filters: the uploaded filters; None: none
    """

    def __init__(self, state: Path, run: Path, built: Path, logs: Path, filters: UploadedFilters | None = None) -> None:
        self._files = StateFiles(state)
        self._run = run
        self._built = built
        self._logs = logs
        self.filters = filters or UploadedFilters(tuple, CodeStore(state), Refusals(state / REFUSALS))
        self._volumes: dict[str, AttachedVolume] = {}
        self._measurements: dict[str, FioMeasurement] = {}
        self._tried: dict[str, float] = {}
        self._lock = threading.Lock()

    def adopt(self) -> None:
        """Take over volumes of an earlier konnector; a failure is logged and repeated with each check."""
        for attachment in self._files.read_all():
            volume = self._volumes[attachment.volume] = self._make(attachment)
            if attachment.revoked:
                self._try(volume, "is not forgotten", partial(self._drop_revoked, volume))
            elif attachment.state == DETACHING:
                self._try(volume, "is not detached", partial(self._end, volume))
            else:
                self._try(volume, "is not taken over", volume.adopt)

    def halt(self) -> list[str]:
        """End all volumes for a shutdown of the machine: the next konnector attaches them again.

        :returns: the reasons why volumes did not end
        """
        reasons = []
        for attachment in self._files.read_all():
            try:
                self._make(attachment).halt()
            except SluiceError as error:
                reasons.append(f"volume `{attachment.volume}`: {error}")
        return reasons

    def volumes(self) -> list[AttachedVolume]:
        """All volumes, by their ids."""
        with self._lock:
            return [self._volumes[key] for key in sorted(self._volumes)]

    def volume(self, key: str) -> AttachedVolume:
        """
        :raises NotFound: when it is not attached here
        :raises PeerError: when its record cannot be read
        """
        with self._lock:
            attached = self._volumes.get(key)
        if attached is None:
            self._files.check_none(key)
            raise NotFound(f"volume `{key}` is not attached here")
        return attached

    def makes_single_requests(self, export: str, filters: Sequence[str]) -> bool:
        """Whether the data path of such a volume has one request at a time on each NBD connection to its source.

        QEMU's client, in other data paths, has one connection for all requests.
        """
        return export == BLOCK and all(one in FILTERS for one in filters) and is_supported(self._built)

    def attach(self, wanted: VolumeAttachment) -> tuple[AttachedVolume, bool]:
        """Return the attached volume, and whether this call attached it.

        :raises Conflict: when it is attached with another connection, stack or export
        :raises CallerError: when its connection or its stack cannot be used
        :raises PeerError: when a program does not start; it is then undone
        """
        stack, uploaded = self.filters.split(wanted.stack)
        wanted = replace(wanted, stack=stack, uploaded=uploaded)
        with self._lock:
            volume = self._volumes.get(wanted.volume)
            fresh = volume is None
            if volume is None:
                self._files.check_none(wanted.volume)
                volume = self._volumes[wanted.volume] = self._make(replace(wanted, created=time.time()))
        with volume.lock:
            if not fresh:
                _check_same(volume.attachment, wanted)
            volume.confirmed = True  # the caller knows that the attachment is valid
            try:
                self._files.write(volume.attachment)
                if volume.waiting_since is None:
                    volume.attach()
                else:
                    volume.adopt()
            except BaseException as error:
                if fresh:
                    self._undo(volume, str(error))
                raise
        return volume, fresh

    def detach(self, key: str) -> None:
        """
        :raises NotFound: when it is not attached here
        :raises Conflict: while its device is in use
        :raises PeerError: when one of its processes does not end
        """
        volume = self.volume(key)
        with volume.lock:
            if not self._is_known(volume):  # another call ended it, and it may be attached again
                raise NotFound(f"volume `{key}` is not attached here")
            volume.detach()
            self._forget(volume)

    def measure(self, key: str, seconds: int) -> FioMeasurement:
        """Overwrite and read a volume with fio; return a running measurement if there is one.

        :param seconds: for each figure
        :raises NotFound: when it is not attached here
        :raises Conflict: as of :func:`check_measurable`
        """
        volume = self.volume(key)
        with volume.lock:
            known = self._measurements.get(key)
            if known is not None and known.is_running():
                return known
            check_measurable(replace(volume.attachment, state=volume.state), volume.device())
            made = self._measurements[key] = FioMeasurement(volume.device(), volume.attachment.size, seconds)
            made.start()
            return made

    def measurement(self, key: str) -> FioMeasurement:
        """
        :raises NotFound: when it is not attached here, or was not measured since this konnector started
        """
        self.volume(key)
        running = self._measurements.get(key)
        if running is None:
            raise NotFound(f"volume `{key}` is not measured here")
        return running

    def confirm(self, key: str, attachment: str) -> AttachedVolume:
        """Attach a volume again that waits for the confirmation of its attachment; the next check does it.

        :param attachment: Cinder's id of the attachment
        :raises NotFound: when it is not attached here by that attachment
        """
        volume = self.volume(key)
        with volume.lock:
            _check_attachment(volume.attachment, attachment)
            volume.confirmed = True
        return volume

    def revoke(self, key: str, attachment: str) -> bool:
        """Stop serving a volume whose attachment was ended elsewhere, and remove its record once its device is unused.

        :param attachment: Cinder's id of the attachment that was ended
        :returns: whether the record is removed already
        :raises NotFound: when it is not attached here by that attachment
        :raises PeerError: when one of its processes does not end
        """
        volume = self.volume(key)
        with volume.lock:
            _check_attachment(volume.attachment, attachment)
            volume.revoke()
            return self._drop_revoked(volume)

    def replace_stack(self, key: str, steps: Sequence[StackStep]) -> AttachedVolume:
        """
        :raises NotFound: when it is not attached here
        :raises SluiceError: as of :func:`volume_changes.replace_stack`
        """
        volume = self.volume(key)
        stack, uploaded = self.filters.split(steps)
        if uploaded != volume.attachment.uploaded:
            raise Conflict(
                f"volume `{key}` keeps the uploaded filter that it was attached with, or none if it had none"
            )
        volume_changes.replace_stack(volume, stack)
        return volume

    def set_limits(self, key: str, limits: VolumeLimits) -> AttachedVolume:
        """
        :raises NotFound: when it is not attached here
        :raises CallerError: when one is negative or too large
        """
        volume = self.volume(key)
        volume_changes.set_limits(volume, limits)
        return volume

    def check(self, on_progress: Callable[[], None] = lambda: None) -> None:
        """Restart ended processes.

        :param on_progress: called after each volume, which may take a minute when its source is away
        """
        devices = loop_devices.by_file()
        for volume in self.volumes():
            if volume.attachment.revoked:
                self._try(volume, "is not forgotten", partial(self._drop_revoked, volume))
            elif volume.attachment.state == DETACHING:
                self._end_again(volume)
            else:
                self._try(volume, "does not come back", partial(volume.check, devices))
            on_progress()

    def _drop_revoked(self, volume: AttachedVolume) -> bool:
        """Remove the record of a revoked volume, unless its device is in use.

        :raises PeerError: when one of its processes does not end
        """
        try:
            with volume.lock:
                volume.revoke()  # a crash may have interrupted it
                self.detach(volume.attachment.volume)
        except Conflict:
            return False
        return True

    def _make(self, attachment: VolumeAttachment) -> AttachedVolume:
        key = attachment.volume
        logs = self._logs / f"{key}.requests"
        return AttachedVolume(attachment, self._files, self._run / key, self._built, logs, self.filters)

    def _undo(self, volume: AttachedVolume, reason: str) -> None:
        """Undo a failed attach; a volume that does not end stays known, and each check repeats the attempt.

        The caller must not take the volume as absent here, or it could attach it to another machine.
        """
        self._tried[volume.attachment.volume] = time.monotonic()
        try:
            volume.undo_attach(reason)
        except SluiceError:  # the volume has recorded it
            return
        self._forget(volume)

    def _end_again(self, volume: AttachedVolume) -> None:
        """Repeat, at intervals, the end of a volume whose detach was begun, or whose attach is being undone."""
        key, now = volume.attachment.volume, time.monotonic()
        if now - self._tried.get(key, -_AGAIN) < _AGAIN or not volume.lock.acquire(blocking=False):
            return  # another call detaches it now
        try:
            self._tried[key] = now
            self._end(volume)
        except SluiceError:  # the volume has recorded it
            pass
        finally:
            volume.lock.release()

    def _end(self, volume: AttachedVolume) -> None:
        """
        :raises SluiceError: as of :meth:`AttachedVolume.detach`
        """
        with volume.lock:
            if self._is_known(volume) and volume.attachment.state == DETACHING:
                volume.retry_detach()
                self._forget(volume)

    def _is_known(self, volume: AttachedVolume) -> bool:
        with self._lock:
            return self._volumes.get(volume.attachment.volume) is volume

    def _forget(self, volume: AttachedVolume) -> None:
        key = volume.attachment.volume
        with self._lock:
            for known in (self._volumes, self._measurements, self._tried):
                known.pop(key, None)

    @staticmethod
    def _try(volume: AttachedVolume, failure: str, call: Callable[[], object]) -> None:
        try:
            call()
        except SluiceError as error:
            log.error("volume `%s` %s: %s", volume.attachment.volume, failure, error)


def _check_attachment(known: VolumeAttachment, attachment: str) -> None:
    """
    :raises NotFound: when its attachment is another one
    """
    if known.attachment != attachment:
        raise NotFound(f"volume `{known.volume}` is not attached here by attachment `{attachment}`")


def _check_same(known: VolumeAttachment, wanted: VolumeAttachment) -> None:
    """
    :raises Conflict: naming the difference
    """
    if known.state in (BROKEN, DETACHING):
        raise Conflict(f"volume `{known.volume}` is {known.state} here, detach it first")
    for name in ("project", "account", "attachment", "connection", "export", "stack", "uploaded", "secret"):
        if getattr(known, name) != getattr(wanted, name):
            raise Conflict(f"volume `{known.volume}` is attached here with another {name}, detach it first")
