"""Changes of a volume in use: its filters, limits, share, log and size."""

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
    """Replace its own filters while I/O waits; those of policies stay.

    :raises CallerError: when they cannot be used
    :raises Conflict: when they would read stored data differently
    :raises PeerError: when they do not start; the old ones keep serving
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
    """Replace the filters that policies put before its own, while I/O waits.

    :param steps: filters that do not change stored data
    :raises PeerError: when they do not start; the old ones keep serving
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
    """Apply limits for rates without a policy: at once, also for waiting requests.

    :raises CallerError: when one is negative or too large
    """
    with volume.lock:
        _set_limits(volume, replace(volume.attachment, limits=limits))


def set_policy_limits(volume: AttachedVolume, limits: VolumeLimits) -> bool:
    """Apply the limits of policies, in place of those that were set by hand.

    :returns: False while another call changes the volume
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
    """Apply its share of its pool, unless another call changes it now.

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
    """Show the present size of the volume, if that is possible while it is attached: I/O waits for a second.

    :param asked_size: its size for users from now on, in bytes; 0: as before
    :returns: whether new connections see it from now on; else after the next attach
    :raises Conflict: when it is not attached
    :raises SluiceError: when a process does not start
    """
    with volume.lock:
        if volume.state != ATTACHED:
            raise Conflict(f"volume `{volume.attachment.volume}` is {volume.state} here")
        if volume.attachment.export != NBD:  # the file of nbdfuse keeps its size
            return False
        wanted = replace(volume.attachment, asked_size=asked_size or volume.attachment.asked_size)
        volume.stack.renew(volume.attachment)
        volume.stack.replace(wanted, volume.front.swap)  # fails when the source has not grown
        shown = volume.front.show_size()
        volume.keep(replace(wanted, size=volume.front.size() if shown else volume.attachment.size))
        return shown


def _names(steps: Steps) -> str:
    return "through " + ", ".join(f"`{keyword}`" for keyword, _ in steps) if steps else "as they are"
