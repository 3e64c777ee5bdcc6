"""The stack of a volume is replaced, again and again, under a mounted ext4 whose content fio verifies."""

from __future__ import annotations

import statistics
import time
from typing import Final

from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.fio import Fio, device_target
from benchmarks.harness.scale import Scale, say
from benchmarks.volumes.konnector import attached, fill, make_konnector, run
from benchmarks.volumes.loads import SIZE

from sluice_core.volumes.messages import StackStep

_LONGEST_PAUSE: Final = 0.3
_FILE: Final = 256 << 20
_DEPTH: Final = 16
#: Each block is read again and compared before so many others are written.
_VERIFY: Final = ("--verify=crc32c", "--verify_fatal=1", "--verify_backlog=64", "--verify_state_save=0")
#: Seconds between two replacements.
_PERIOD: Final = 0.4


def measure(scale: Scale) -> list[Figure]:
    """The longest request while stacks are replaced.

    :raises PeerError: for others than root, when a request failed, and when content or file system are not right
    """
    konnector = make_konnector(scale)
    source, mount = scale.folder / "volume", scale.folder / "mount"
    fill(source, SIZE)
    mount.mkdir()
    say("volume replace: a mounted ext4")
    took: list[float] = []
    with attached(konnector, source) as volume:
        device = volume.device()
        run("mkfs.ext4", "-q", device)
        run("mount", device, str(mount))
        try:
            target = device_target(str(mount / "file"), _FILE)
            load = Fio(target, "randrw", "64k", scale.pick(60, 5), _DEPTH, _VERIFY)
            try:
                while load.is_running():
                    begin = time.monotonic()
                    stack = (StackStep("readahead"),) if len(took) % 2 == 0 else ()
                    konnector.replace_stack(volume.attachment.volume, stack)
                    took.append(time.monotonic() - begin)
                    time.sleep(_PERIOD)
                found = load.finish()
            finally:
                load.kill()
        finally:
            run("umount", str(mount))
        run("e2fsck", "-fn", device)
    what = f"longest request that fio verifies on ext4 while its volume's stack is replaced {len(took)} times"
    beside = (
        f"a replacement takes {statistics.median(took):.3f} s, at most {max(took):.3f} s;"
        f" {found.iops:.0f} requests of 64 KB a second, no error; e2fsck is clean"
    )
    return [at_most("volume replace", what, found.longest, _LONGEST_PAUSE, "s", beside, took=took)]
