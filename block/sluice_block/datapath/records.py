"""The konnector's record of each volume, on disk and in answers."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from sluice_block.stack.page import Limits
from sluice_core.errors import CallerError, DecodeError, PeerError
from sluice_core.messages.base import Message
from sluice_volumes.messages import StackStep

log = logging.getLogger(__name__)

#: The kind of export: a block device of this machine, or an NBD socket for QEMU.
BLOCK: Final = "block"
NBD: Final = "nbd"
EXPORTS: Final = (BLOCK, NBD)

#: States of a volume here.
ATTACHING: Final = "attaching"
ATTACHED: Final = "attached"
DETACHING: Final = "detaching"
#: Taken over after a restart: it is not attached again before its attachment is confirmed.
WAITING: Final = "waiting"
#: Its front has ended: its users received I/O errors, and it must be detached.
BROKEN: Final = "broken"


@dataclass(frozen=True, slots=True)
class VolumeLimits(Message):
    """Rates of a volume; bytes and operations per second, 0 for none."""

    read_bw: float = 0.0
    write_bw: float = 0.0
    max_bw: float = 0.0
    read_iops: float = 0.0
    write_iops: float = 0.0
    max_iops: float = 0.0

    def overridden(self, by: VolumeLimits) -> VolumeLimits:
        """Return these limits, replaced by those that ``by`` sets."""
        return VolumeLimits(**{name: getattr(by, name) or getattr(self, name) for name in VolumeLimits.__slots__})

    def at_most(self, other: VolumeLimits) -> VolumeLimits:
        """Return these limits, each at most that of ``other``."""
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in VolumeLimits.__slots__}
        return VolumeLimits(**{name: min(filter(None, both), default=0.0) for name, both in pairs.items()})

    def page_limits(self) -> Limits:
        """Return the limits for the volume's page, as whole numbers; values below 1 become 1, since 0 is none."""
        return Limits(
            read_bytes=_whole(self.read_bw),
            read_ops=_whole(self.read_iops),
            write_bytes=_whole(self.write_bw),
            write_ops=_whole(self.write_iops),
            both_bytes=_whole(self.max_bw),
            both_ops=_whole(self.max_iops),
        )


@dataclass(frozen=True, slots=True)
class VolumePolicy(Message):
    """The last policies of a volume: rates, 0 without one, and filters that do not change content."""

    limits: VolumeLimits = field(default_factory=VolumeLimits)
    stack: tuple[StackStep, ...] = ()

    nested: ClassVar[Mapping[str, type[Message]]] = {"limits": VolumeLimits, "stack": StackStep}


@dataclass(frozen=True, slots=True)
class VolumeAttachment(Message):
    """The requested attachment: written before a process is started, so that it can be finished or undone after a
    crash.

    ``connection`` is Cinder's ``connection_info`` (``driver_volume_type`` and ``data``), which may hold secrets, and
    ``secret`` the passphrase of its stack: both are never shown.  ``volume`` is Cinder's id, ``project`` its project,
    ``account`` the Swift account of the project, ``attachment`` the id of Cinder's attachment.  ``fresh`` is true when
    the volume was never attached, so that a header may be created.  ``size`` is the size for its users, in bytes; 0
    until it is attached.  ``asked_size`` is the requested size, when its stack has more; 0: all of that.  ``limits``
    and ``stack`` were set by hand.  ``uploaded`` is the uploaded filter behind ``stack``: none or one.  ``fault`` is
    the reason why it is broken.  ``revoked`` is true when its attachment was ended without a detach on this machine: it
    is never served again, and its record is removed once its device is unused.
    """

    volume: str
    project: str
    connection: Mapping[str, Any] = field(repr=False)
    account: str = ""
    name: str = ""
    attachment: str = ""
    export: str = BLOCK
    stack: tuple[StackStep, ...] = ()
    uploaded: tuple[StackStep, ...] = ()
    limits: VolumeLimits = field(default_factory=VolumeLimits)
    policy: VolumePolicy = field(default_factory=VolumePolicy)
    fresh: bool = False
    secret: str = field(default="", repr=False)
    size: int = 0
    asked_size: int = 0
    log: bool = False
    state: str = ATTACHING
    fault: str = ""
    revoked: bool = False
    #: Unix seconds.
    created: float = 0.0

    nested: ClassVar[Mapping[str, type[Message]]] = {
        "stack": StackStep,
        "uploaded": StackStep,
        "limits": VolumeLimits,
        "policy": VolumePolicy,
    }

    def limits_in_force(self) -> VolumeLimits:
        """Return the limits that were set by hand, replaced by those of policies."""
        return self.limits.overridden(self.policy.limits)

    def steps(self) -> tuple[StackStep, ...]:
        """Return the stack over the source: filters of policies before its own, without repetitions."""
        own = {one.keyword for one in self.stack}
        return (*(one for one in self.policy.stack if one.keyword not in own), *self.stack)

    def shown(self, share: VolumeLimits) -> dict[str, Any]:
        """Return the fields that may be shown; the uploaded filter is shown as the last of the stack.

        :param share: the volume's part of its pool's capacity
        """
        data = self.to_data()
        for name in ("connection", "secret", "fresh", "asked_size"):
            del data[name]
        data["stack"] = [*data["stack"], *data.pop("uploaded")]
        return {**data, "limits_in_force": self.limits_in_force().at_most(share).to_data()}


def _whole(rate: float) -> int:
    return max(1, round(rate)) if rate > 0 else round(rate)


_SUFFIX = ".volume"


@dataclass(frozen=True, slots=True)
class StateFiles:
    """The record files, in ``folder``; they hold secrets of connections, and only their owner may read them."""

    folder: Path

    def read_all(self) -> Iterator[VolumeAttachment]:
        """Yield all records; an unreadable one is logged and skipped."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in sorted(self.folder.glob(f"*{_SUFFIX}")):
            try:
                yield VolumeAttachment.decode(path.read_bytes())
            except (OSError, DecodeError) as error:
                log.error("`%s` cannot be read, its volume is not looked after: %s", path, error)

    def check_none(self, volume: str) -> None:
        """
        :raises PeerError: when there is a file of ``volume``, which is then unreadable
        """
        path = self._path(volume)
        if path.exists():
            raise PeerError(f"`{path}` cannot be read, so what is attached here of volume `{volume}` is not known")

    def write(self, attachment: VolumeAttachment) -> None:
        """Write the record; it is on the disk when this returns.

        :raises PeerError: when it cannot be written
        """
        path = self._path(attachment.volume)
        fresh = path.with_suffix(".new")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "wb") as file:
                file.write(attachment.encode())
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
            self._sync_folder()
        except OSError as error:
            raise PeerError(f"`{path}` cannot be written: {error}") from error

    def remove(self, volume: str) -> None:
        """Remove the record.

        :raises PeerError: when the file cannot be removed
        """
        try:
            self._path(volume).unlink(missing_ok=True)
            self._sync_folder()
        except OSError as error:
            raise PeerError(f"`{self._path(volume)}` cannot be removed: {error}") from error

    def _path(self, volume: str) -> Path:
        return self.folder / f"{volume}{_SUFFIX}"

    def _sync_folder(self) -> None:
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def text_field(data: Mapping[str, Any], name: str, kind: str) -> str:
    """Return the text ``name`` of a connection of type ``kind``.

    :raises CallerError: when it is missing
    """
    value = data.get(name)
    if not isinstance(value, str) or not value:
        raise CallerError(f"connection of type `{kind}` has no `{name}`")
    return value


def write_secret(path: Path, text: str) -> Path:
    """Write a file that only its owner may read.

    :raises PeerError: when it cannot be written
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        raise PeerError(f"`{path}` cannot be written: {error}") from error
    return path
