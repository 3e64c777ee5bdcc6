"""Changes of a volume while it is used: its filters, limits, share, log and size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sluice_block.datapath.records import ATTACHED, NBD, WAITING, VolumeAttachment, VolumeLimits
from sluice_block.datapath.volume_stack import Steps, pairs
from sluice_block.konnector.volume import AttachedVolume
from sluice_block.stack.filters import changes_content
from sluice_core.errors import Conflict
from sluice_volumes.messages import StackStep


def replace_stack(volume: AttachedVolume, steps: Sequence[StackStep]) -> None:
    """Put other filters in the place of its own while I/O waits; those of policies stay.

    :raises CallerError: when they cannot be used
    :raises Conflict: when they would read what is stored in another way
    :raises PeerError: when they do not start; the old ones serve on
    """
    with volume.lock:
        if volume.state == WAITING:
            raise Conflict(f"volume `{volume.attachment.volume}` is {volume.state} here: {volume.fault}")
        before, after = changes_content(pairs(volume.attachment.stack)), changes_content(pairs(steps))
        if before != after:
            raise Conflict(
                f"volume `{volume.attachment.volume}` stores its bytes {_names(before)}, "
                f"and this stack would read them {_names(after)}"
            )
        _replace_stack(volume, replace(volume.attachment, stack=tuple(steps)))


def set_policy_stack(volume: AttachedVolume, steps: Sequence[StackStep]) -> None:
    """Put other filters in the place of those that policies put before its own, while I/O waits.

    :param steps: filters that change nothing of what is stored
    :raises PeerError: when they do not start; the old ones serve on
    """
    with volume.lock:
        if volume.state == ATTACHED:
            policy = replace(volume.attachment.policy, stack=tuple(steps))
            _replace_stack(volume, replace(volume.attachment, policy=policy))


def _replace_stack(volume: AttachedVolume, wanted: VolumeAttachment) -> None:
    if wanted.steps() != volume.attachment.steps():
        volume.stack.replace(wanted, volume.export.swap)
    volume.keep(wanted)


def set_limits(volume: AttachedVolume, limits: VolumeLimits) -> None:
    """Put limits in force where policies say nothing: at once, also for requests that wait already.

    :raises CallerError: when one is negative or too large
    """
    with volume.lock:
        _set_limits(volume, replace(volume.attachment, limits=limits))


def set_policy_limits(volume: AttachedVolume, limits: VolumeLimits) -> bool:
    """Put the limits of policies in force, in the place of those that were set by hand.

    :returns: False when something else is done to the volume at this moment
    :raises CallerError: when one is too large
    """
    if not volume.lock.acquire(blocking=False):
        return False
    try:
        if volume.state != ATTACHED:
            return False
        if limits != volume.attachment.policy.limits:
            policy = replace(volume.attachment.policy, limits=limits)
            _set_limits(volume, replace(volume.attachment, policy=policy))
        return True
    finally:
        volume.lock.release()


def _set_limits(volume: AttachedVolume, wanted: VolumeAttachment) -> None:
    volume.stack.set_limits(wanted.limits_in_force().at_most(volume.share))
    volume.keep(wanted)


def set_share(volume: AttachedVolume, share: VolumeLimits) -> None:
    """Hold it to its share of its pool, unless something else is done to it at this moment.

    :raises CallerError: when a rate is too large
    """
    if not volume.lock.acquire(blocking=False):
        return
    try:
        if volume.state == ATTACHED:
            volume.stack.set_limits(volume.attachment.limits_in_force().at_most(share))
            volume.share = share
    finally:
        volume.lock.release()


def set_log(volume: AttachedVolume, on: bool) -> None:
    """Switch the log of requests on or off."""
    with volume.lock:
        volume.stack.set_log(on)
        volume.keep(replace(volume.attachment, log=on))


def resize(volume: AttachedVolume, asked_size: int = 0) -> bool:
    """Show the size that the volume has now, if that can be done while it is attached: I/O waits for a second.

    :param asked_size: bytes that are shown of it from now on; 0: as before
    :returns: whether it is shown to whoever connects from now on; else after the next attach
    :raises Conflict: when it is not attached
    :raises SluiceError: when what it needs does not start
    """
    with volume.lock:
        if volume.state != ATTACHED:
            raise Conflict(f"volume `{volume.attachment.volume}` is {volume.state} here")
        if volume.attachment.export != NBD:  # the file of nbdfuse keeps its size
            return False
        wanted = replace(volume.attachment, asked_size=asked_size or volume.attachment.asked_size)
        volume.stack.renew(volume.attachment)
        volume.stack.replace(wanted, volume.front.swap)  # which fails when the source has not grown
        shown = volume.front.show_size()
        volume.keep(replace(wanted, size=volume.front.size() if shown else volume.attachment.size))
        return shown


def _names(steps: Steps) -> str:
    return "through " + ", ".join(f"`{keyword}`" for keyword, _ in steps) if steps else "as they are"
