"""The data of volumes in Redis: pools, tiers, volumes, and operations on them.

A volume belongs to a project of Keystone and has Cinder's id; in policies and metrics it is named ``<account>/<volume
id>``, where the account is the Swift account of its project, so that a tenant has one name for objects and volumes
(:func:`volume_path`).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from sluice_core.describe import Scalar
from sluice_core.messages.base import Message

#: The kinds of operations.
CREATE: Final = "create"
EXTEND: Final = "extend"
RETYPE: Final = "retype"
SNAPSHOT: Final = "snapshot"
DELETE_SNAPSHOT: Final = "delete_snapshot"
DELETE: Final = "delete"
ATTACH: Final = "attach"
DETACH: Final = "detach"
#: The measurement of a pool, by a volume that is created for it.
CALIBRATE: Final = "calibrate"
OPERATIONS: Final = (CREATE, EXTEND, RETYPE, SNAPSHOT, DELETE_SNAPSHOT, DELETE, ATTACH, DETACH, CALIBRATE)

#: The measured figures of a pool; bytes and operations per second.
FIGURES: Final = ("read_bw", "write_bw", "read_iops", "write_iops")

#: GiB that Cinder's volume has in addition to the user's size, for a header in front of the data: Cinder counts whole
#: GiB.
HEADER_GIB: Final = 1

#: The filter of a volume's stack that encrypts.
LUKS: Final = "luks"

#: The states of an operation; an actor host finishes or undoes one that has not ended.
UNDER_WAY: Final = "under_way"
DONE: Final = "done"
FAILED: Final = "failed"

#: In the data of a detachment: that it does not wait for the konnector, the type of the attachment's connection, that
#: the machine will not use the volume again, that the back end prevents that, and that the konnector was notified.
FORCE: Final = "force"
CONNECTION_TYPE: Final = "connection_type"
MACHINE_IS_GONE: Final = "machine_is_gone"
FENCED: Final = "fenced"
KONNECTOR_TOLD: Final = "konnector_told"

#: Types of connections whose export has ended when Cinder has deleted the attachment: the former user cannot write.
FENCING: Final = frozenset({"nbd"})


def volume_path(account: str, volume: str) -> str:
    """Return the path of a volume in targets, snapshots and metrics."""
    return f"{account}/{volume}"


def is_volume_id(text: str) -> bool:
    """Whether a text is an id in Cinder's form, and not a name."""
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class StackStep(Message):
    """One filter of a volume's stack; the first step is next to the user of the volume."""

    keyword: str
    params: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pool(Message):
    """The last report of a pool of Cinder.

    ``name`` is ``host@backend#pool``.  ``total`` and ``free`` are bytes, negative when the pool does not report them.
    ``capabilities`` are those whose names begin with ``sluice:``, without that, and ``fabric`` from Cinder's
    ``storage_protocol`` when it is not among them.  ``seen`` is the time of the last discovery that found it, unix
    seconds.  ``specs`` are extra specs of a volume type whose volumes are in this pool, and in others only if these
    have the same names.
    """

    name: str
    total: float
    free: float
    capabilities: Mapping[str, str] = field(default_factory=dict)
    seen: float = 0.0
    specs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PoolCalibration(Message):
    """The measured capacity of a pool: bytes and operations per second; ``at`` in unix seconds.

    ``node`` is the consumer in the measurement, empty for figures that were set by hand; ``by`` is the user who started
    or set it.
    """

    pool: str
    read_bw: float
    write_bw: float
    read_iops: float
    write_iops: float
    at: float
    node: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class Tier(Message):
    """A class of volumes, which is a volume type of Cinder that Sluice keeps.

    ``resiliency`` is ``none``, ``raid`` or a number of replicas as text, ``bandwidth`` bytes per second and ``iops``
    operations per second of one volume, 0 for no demand, ``fabric`` nbd, iscsi, rbd, nfs or fc (empty: any),
    ``cost`` the number by which the cheapest is chosen.  ``type`` is the id of Cinder's volume type.
    """

    name: str
    type: str
    resiliency: str = ""
    bandwidth: float = 0.0
    iops: float = 0.0
    fabric: str = ""
    cost: float = 0.0
    created: float = 0.0
    by: str = ""


@dataclass(frozen=True, slots=True)
class VolumeRecord(Message):
    """Sluice's own data of a volume; all other data is read from Cinder.

    ``account`` is the Swift account of ``project``.  ``stack`` are the filters that change stored data, outermost
    first.  They are fixed at the first attach (``fixed`` is its time, unix seconds; 0: never attached through Sluice),
    and a volume without a record that has data is not attached.  ``size`` is the size that its user requested, in GiB,
    for a volume that has, or will have, :data:`HEADER_GIB` more in Cinder; 0: its user has all of it.  ``header`` is
    the number of bytes that its user did not see at the last attach: a header of the stack.  ``secret`` names the key
    of the stack for the key manager.  ``node`` is the node to which it is attached through Sluice, ``attachment`` the
    id of Cinder's attachment; both empty without one.  ``pool`` is its ``host@backend#pool`` at the last attach.
    """

    id: str
    project: str
    account: str
    name: str = ""
    tier: str = ""
    stack: tuple[StackStep, ...] = ()
    fixed: float = 0.0
    size: int = 0
    header: int = 0
    secret: str = ""
    created: float = 0.0
    by: str = ""
    node: str = ""
    attachment: str = ""
    pool: str = ""

    nested: ClassVar[Mapping[str, type[Message]]] = {"stack": StackStep}

    @property
    def path(self) -> str:
        """As :func:`volume_path`."""
        return volume_path(self.account, self.id)

    @property
    def is_encrypted(self) -> bool:
        """Whether a filter of its stack encrypts the stored data."""
        return any(step.keyword == LUKS for step in self.stack)

    @property
    def header_gib(self) -> int:
        """GiB that it has, or will have, in Cinder in addition to its user's size."""
        return HEADER_GIB if self.size else 0

    def to_data(self) -> dict[str, Any]:
        """Leave out a ``size`` of 0: a record from before sizes is replaced by its bytes as they are stored."""
        data = super(VolumeRecord, self).to_data()
        if not self.size:
            del data["size"]
        return data

    def unfixed(self) -> VolumeRecord:
        """Return the record without a fixed stack, which is then chosen again."""
        return replace(self, stack=(), fixed=0.0, secret="")


@dataclass(frozen=True, slots=True)
class VolumeReport(Message):
    """The recent activity of volumes: metric → level → path → value, of the newest window of each metric.

    ``at`` is when it was written, unix seconds.  ``left_out`` is the number of missing volumes and tenants by level.
    """

    at: float
    values: Mapping[str, Mapping[str, Mapping[str, float]]]
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OsdShare(Message):
    """An OSD that holds some of the objects.

    :param id: its number
    :param host: its machine; empty when Ceph's map has none
    :param share: the part of the objects of which it has a copy, 0 to 1
    :param primary: the part of the objects that are read from it, 0 to 1
    """

    id: int
    host: str
    share: float
    primary: float


@dataclass(frozen=True, slots=True)
class RbdLocality(Message):
    """The OSDs of an image of Ceph.

    :param pool: the pool of its data
    :param objects: number of its objects
    :param sampled: number of objects behind ``osds``
    :param osds: those of the largest share first
    """

    pool: str
    objects: int
    sampled: int
    osds: tuple[OsdShare, ...]

    nested: ClassVar[Mapping[str, type[Message]]] = {"osds": OsdShare}


@dataclass(frozen=True, slots=True)
class VolumeOperation(Message):
    """One operation on a volume, written before the request to Cinder or a konnector.

    ``volume`` is empty in a CREATE or a CALIBRATE until Cinder has answered: the volume is found by ``id``, which
    is its ``sluice_operation`` in Cinder's metadata, while the operation is under way.  ``data`` are its arguments.
    ``step`` names the last request, ``reason`` the reason of a failure.  ``claimed`` is the time of the claim, 0
    without one.  Times are unix seconds.
    """

    id: str
    what: str
    project: str
    volume: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    state: str = UNDER_WAY
    step: str = ""
    reason: str = ""
    created: float = 0.0
    ended: float = 0.0
    by: str = ""
    claimed: float = 0.0
