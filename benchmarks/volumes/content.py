"""The stored bytes of filters: the back end's bytes compared with the expected transformation, and the bytes read back.

Each stack writes pseudo-random bytes to a block device.  After the detach the source must hold exactly their
transformation; attached to another konnector it must read as what was written.
"""

from __future__ import annotations

import functools
import hashlib
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.scale import Scale, say
from benchmarks.volumes.konnector import attached, make_konnector
from benchmarks.volumes.loads import SIZE

from sluice_block.konnector.konnector import Konnector
from sluice_volumes.messages import StackStep

_BLOCK: Final = 1 << 20
_STACKS: Final = (("nop",), ("xor",), ("bitrev",), ("xor", "bitrev"), ("nop", "bitrev", "nop", "xor"))
#: Filter → the stored value of each byte.
_STORED: Final = {
    "nop": bytes(range(256)),
    "xor": bytes(byte ^ 0x55 for byte in range(256)),
    "bitrev": bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256)),
}


def measure(scale: Scale) -> list[Figure]:
    """Bytes that differ, of all stacks.

    :raises PeerError: for users other than root
    """
    size = scale.pick(SIZE, SIZE // 16)
    konnectors = (make_konnector(scale), make_konnector(scale))
    source = scale.folder / "volume"
    stored = returned = 0
    for names in _STACKS:
        say(f"volume content: {', '.join(names)}")
        differing = _differing(konnectors, source, names, size)
        stored, returned = stored + differing[0], returned + differing[1]
    stacks = "; ".join(", ".join(names) for names in _STACKS)
    what = f"bytes of the back end that are not the transformation, of {size >> 20} MiB by each stack"
    back = "volumes whose MD5 is another one when they are attached to another konnector"
    return [
        at_most("volume content", what, stored, 0, "bytes", stacks, 0),
        at_most("volume content", back, returned, 0, "volumes", f"of {len(_STACKS)}", 0),
    ]


def _differing(
    konnectors: tuple[Konnector, Konnector], source: Path, names: Sequence[str], size: int
) -> tuple[int, int]:
    """Wrong bytes of ``source``, and 1 if the content read back differs."""
    with source.open("wb") as file:
        file.truncate(size)
    stack = tuple(map(StackStep, names))
    with attached(konnectors[0], source, stack=stack) as volume, open(volume.device(), "r+b") as device:
        for block in _blocks(size):
            device.write(block)
        device.flush()
        os.fsync(device.fileno())
    # writes pass the filters in the written order
    table = functools.reduce(lambda made, name: made.translate(_STORED[name]), names, bytes(range(256)))
    wrong, written = 0, hashlib.md5()
    with source.open("rb") as file:
        for block in _blocks(size):
            written.update(block)
            expected, found = block.translate(table), file.read(_BLOCK)
            if found != expected:
                wrong += sum(one != other for one, other in zip(found, expected, strict=True))
    with attached(konnectors[1], source, stack=stack) as volume, open(volume.device(), "rb") as device:
        read = hashlib.file_digest(device, "md5")
    return wrong, int(read.digest() != written.digest())


def _blocks(size: int) -> Iterator[bytes]:
    """The same pseudo-random bytes each time."""
    generator = random.Random(size)
    return (generator.randbytes(_BLOCK) for _ in range(size // _BLOCK))
