"""What the konnector keeps of each volume, on disk and in answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from sluice_block.stack.page import Limits
from sluice_core.messages.base import Message
from sluice_core.volumes.messages import StackStep

#: How the volume is shown: a block device of this machine, or an NBD socket for QEMU.
BLOCK: Final = "block"
NBD: Final = "nbd"
EXPORTS: Final = (BLOCK, NBD)

#: States of a volume here.
ATTACHING: Final = "attaching"
ATTACHED: Final = "attached"
DETACHING: Final = "detaching"
#: Its front has ended: its users got I/O errors, and it must be detached.
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

    def page_limits(self) -> Limits:
        """The same for the volume's page, where numbers are whole; less than 1 is 1, as 0 is none."""
        return Limits(
            read_bytes=_whole(self.read_bw),
            read_ops=_whole(self.read_iops),
            write_bytes=_whole(self.write_bw),
            write_ops=_whole(self.write_iops),
            both_bytes=_whole(self.max_bw),
            both_ops=_whole(self.max_iops),
        )


@dataclass(frozen=True, slots=True)
class VolumeAttachment(Message):
    """What was asked for: written before anything is started, so that it can be finished or undone after a crash.

    ``connection`` is Cinder's ``connection_info`` (``driver_volume_type`` and ``data``), which may hold secrets: it is
    never shown.  ``volume`` is Cinder's id, ``project`` its project, ``attachment`` the id of Cinder's attachment.
    """

    volume: str
    project: str
    connection: Mapping[str, Any]
    name: str = ""
    attachment: str = ""
    export: str = BLOCK
    stack: tuple[StackStep, ...] = ()
    limits: VolumeLimits = field(default_factory=VolumeLimits)
    state: str = ATTACHING
    #: Unix seconds.
    created: float = 0.0

    nested: ClassVar[Mapping[str, type[Message]]] = {"stack": StackStep, "limits": VolumeLimits}


def _whole(rate: float) -> int:
    return max(1, round(rate)) if rate > 0 else round(rate)
