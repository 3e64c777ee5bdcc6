"""``volume``: creation, display, changes, attachments and deletion."""

from __future__ import annotations

from argparse import Namespace
from typing import Any, Final

from sluice_client.command_base import crud
from sluice_client.command_base.arguments import WAIT_FOR_END, Argument, names_argument
from sluice_client.command_base.command import ListCommand, ShowCommand
from sluice_client.commands.volumes.operations import OrderCommand, OrderEachCommand
from sluice_client.resources.columns import Data
from sluice_client.resources.volumes import LOCALITY, SNAPSHOT_LIST, VOLUME, VOLUME_LIST

#: Demands on a volume or a tier.
DEMANDS: Final = (
    Argument("--resiliency", "none, raid, or a number of replicas"),
    Argument("--bandwidth", "bytes per second, as 50MBps; a bare number is MB/s", {"metavar": "RATE"}),
    Argument("--iops", "operations per second", {"type": float, "metavar": "N"}),
    Argument("--fabric", "how it is reached", {"choices": ("nbd", "iscsi", "rbd", "nfs", "fc")}),
)
_TIER: Final = Argument("--tier", "the tier")
_VOLUME: Final = Argument("volume", "id of the volume, or its name, if it is unique", {"metavar": "VOLUME"})
_VOLUMES: Final = names_argument("volume", "id of the volume, or its name, if it is unique")
_SIZE: Final = Argument("size", "GiB", {"type": int, "metavar": "SIZE"})

VOLUMES: Final = crud.Resource(
    "volume",
    "/volumes",
    VOLUME_LIST,
    VOLUME,
    key="volume",
    filters=(
        Argument("--project", "only volumes of the project with this id"),
        Argument("--name", "only volumes with this name"),
        _TIER,
    ),
)


class ListVolumes(crud.ListResources, resource=VOLUMES, words="volume list"):
    """List volumes: those of the project, for an administrator those of all projects."""


class ShowVolume(crud.ShowResource, resource=VOLUMES, words="volume show"):
    """Show a volume: its pool, its attachments, the filters of its data, and its rates."""

    key_help = "id of the volume, or its name, if it is unique"
    examples = ("data1",)


class ShowVolumeLocality(ShowCommand, words="volume locality show", calls="volume_locality"):
    """Show a volume's pool, host and back end, its attachments, and in Ceph the OSDs that hold its objects."""

    columns = LOCALITY
    arguments = (_VOLUME,)
    examples = ("data1 -f json",)


class CreateVolume(OrderCommand, words="volume create", calls="create_volume"):
    """Create a volume: of a tier, of the cheapest tier that meets demands, or of Cinder's default type."""

    arguments = (_SIZE, Argument("--name", "its name, which others may have, too"), _TIER, *DEMANDS, WAIT_FOR_END)
    examples = ("10 --name data1 --tier gold --wait", "10 --resiliency 2 --bandwidth 50MBps --fabric rbd")


class ExtendVolume(OrderCommand, words="volume extend", calls="extend_volume"):
    """Extend a volume, attached or not; the operation says when its consumer sees the new size."""

    arguments = (_VOLUME, _SIZE, WAIT_FOR_END)
    examples = ("data1 20 --wait",)


class RetypeVolume(OrderCommand, words="volume retype", calls="retype_volume"):
    """Change the tier of a volume, attached or not, without moving it."""

    arguments = (_VOLUME, _TIER, *DEMANDS, WAIT_FOR_END)
    examples = ("data1 --tier silver", "data1 --bandwidth 100MBps --wait")


class AttachVolume(OrderCommand, words="volume attach"):
    """Attach a volume to a node; the operation has the device on the node."""

    arguments = (
        _VOLUME,
        Argument("node", "a node with a konnector", {"metavar": "NODE"}),
        Argument("--export", "a block device (the default), or an NBD socket for QEMU", {"choices": ("block", "nbd")}),
        Argument(
            "--adopt", "for a volume that Sluice did not create: its data passed no filter", {"action": "store_true"}
        ),
        WAIT_FOR_END,
    )
    examples = ("data1 consumer1 --wait", "data1 consumer1 --export nbd")

    def submit(self, args: Namespace) -> Data:
        """The operation."""
        how: dict[str, Any] = {"export": args.export} if args.export else {}
        return self.client.attach_volume(args.volume, args.node, **how, **({"adopt": True} if args.adopt else {}))


class DetachVolume(OrderEachCommand, words="volume detach"):
    """Detach volumes from their nodes; refused while a process holds the device, which the error names."""

    arguments = (
        _VOLUMES,
        Argument("--force", "even if the konnector of its node does not answer", {"action": "store_true"}),
        Argument(
            "--machine-is-gone",
            "with --force: that machine is off, and will not use the volume again",
            {"action": "store_true"},
        ),
        WAIT_FOR_END,
    )
    examples = ("data1 --wait", "data1 --force")

    def submit(self, name: str, args: Namespace) -> Data:
        """The operation."""
        said = {"force": args.force, "machine_is_gone": args.machine_is_gone}
        return self.client.detach_volume(name, **{word: True for word, is_said in said.items() if is_said})


class DeleteVolume(OrderEachCommand, words="volume delete"):
    """Delete volumes that are not attached and have no snapshots."""

    arguments = (_VOLUMES, WAIT_FOR_END)
    asks = "delete volume {volume}"
    examples = ("data1 data2 --wait",)

    def submit(self, name: str, args: Namespace) -> Data:
        """The operation."""
        return self.client.delete_volume(name)


class ListSnapshots(ListCommand, words="volume snapshot list", calls="snapshots"):
    """List the snapshots of a volume, newest first."""

    columns = SNAPSHOT_LIST
    arguments = (_VOLUME,)
    examples = ("data1",)


class CreateSnapshot(OrderCommand, words="volume snapshot create", calls="create_snapshot"):
    """Create a snapshot of a volume, attached or not."""

    arguments = (_VOLUME, Argument("--name", "its name, which others may have, too"), WAIT_FOR_END)
    examples = ("data1 --name monday --wait",)


class DeleteSnapshot(OrderEachCommand, words="volume snapshot delete"):
    """Delete snapshots of a volume."""

    arguments = (_VOLUME, names_argument("snapshot", "id of the snapshot, or its name"), WAIT_FOR_END)
    asks = "delete snapshot {snapshot} of volume {volume}"
    examples = ("data1 monday",)

    def submit(self, name: str, args: Namespace) -> Data:
        """The operation."""
        return self.client.delete_snapshot(args.volume, name)
