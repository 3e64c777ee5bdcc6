"""``volume``: made, shown, changed, attached and deleted."""

from __future__ import annotations

from argparse import Namespace
from typing import Any, Final

from sluice_client.command_base import crud
from sluice_client.command_base.arguments import WAIT_FOR_END, Argument, names_argument
from sluice_client.command_base.command import ListCommand, ShowCommand
from sluice_client.commands.volumes.operations import OrderCommand, OrderEachCommand
from sluice_client.resources.columns import Data
from sluice_client.resources.volumes import LOCALITY, SNAPSHOT_LIST, VOLUME, VOLUME_LIST

#: What a volume or a tier must have.
DEMANDS: Final = (
    Argument("--resiliency", "none, raid, or a number of replicas"),
    Argument("--bandwidth", "bytes per second, as 50MBps; a bare number is MB/s", {"metavar": "RATE"}),
    Argument("--iops", "operations per second", {"type": float, "metavar": "N"}),
    Argument("--fabric", "how it is reached", {"choices": ("nbd", "iscsi", "rbd", "nfs", "fc")}),
)
_TIER: Final = Argument("--tier", "the tier")
_VOLUME: Final = Argument("volume", "id of the volume, or its name where only one is called so", {"metavar": "VOLUME"})
_VOLUMES: Final = names_argument("volume", "id of the volume, or its name where only one is called so")
_SIZE: Final = Argument("size", "GiB", {"type": int, "metavar": "SIZE"})

VOLUMES: Final = crud.Resource(
    "volume",
    "/volumes",
    VOLUME_LIST,
    VOLUME,
    key="volume",
    filters=(
        Argument("--project", "only volumes of the project with this id"),
        Argument("--name", "only volumes that are called so"),
        _TIER,
    ),
)


class ListVolumes(crud.ListResources, resource=VOLUMES, words="volume list"):
    """List volumes: those of the project, for an administrator those of all projects."""


class ShowVolume(crud.ShowResource, resource=VOLUMES, words="volume show"):
    """Show a volume: where it lies, who uses it, the filters that its data pass, the rates that it is held to."""

    key_help = "id of the volume, or its name where only one is called so"
    examples = ("data1",)


class ShowVolumeLocality(ShowCommand, words="volume locality show", calls="volume_locality"):
    """Show a volume's pool, host and back end, who uses it, and in Ceph the OSDs that hold its objects."""

    columns = LOCALITY
    arguments = (_VOLUME,)
    examples = ("data1 -f json",)


class CreateVolume(OrderCommand, words="volume create", calls="create_volume"):
    """Have a volume made: of a tier, of the cheapest tier that meets demands, or of Cinder's default type."""

    arguments = (_SIZE, Argument("--name", "its name, which others may have, too"), _TIER, *DEMANDS, WAIT_FOR_END)
    examples = ("10 --name data1 --tier gold --wait", "10 --resiliency 2 --bandwidth 50MBps --fabric rbd")


class ExtendVolume(OrderCommand, words="volume extend", calls="extend_volume"):
    """Have a volume grow, attached or not; the operation says when its consumer sees the new size."""

    arguments = (_VOLUME, _SIZE, WAIT_FOR_END)
    examples = ("data1 20 --wait",)


class RetypeVolume(OrderCommand, words="volume retype", calls="retype_volume"):
    """Give a volume another tier where it lies, attached or not; it is not moved."""

    arguments = (_VOLUME, _TIER, *DEMANDS, WAIT_FOR_END)
    examples = ("data1 --tier silver", "data1 --bandwidth 100MBps --wait")


class AttachVolume(OrderCommand, words="volume attach"):
    """Have a node attach a volume; the operation has the device that the node shows."""

    arguments = (
        _VOLUME,
        Argument("node", "a node with a konnector", {"metavar": "NODE"}),
        Argument("--export", "a block device (the default), or an NBD socket for QEMU", {"choices": ("block", "nbd")}),
        Argument(
            "--adopt", "of a volume that Sluice did not make: what it holds passed no filter", {"action": "store_true"}
        ),
        WAIT_FOR_END,
    )
    examples = ("data1 consumer1 --wait", "data1 consumer1 --export nbd")

    def submit(self, args: Namespace) -> Data:
        """The operation."""
        how: dict[str, Any] = {"export": args.export} if args.export else {}
        return self.client.attach_volume(args.volume, args.node, **how, **({"adopt": True} if args.adopt else {}))


class DetachVolume(OrderEachCommand, words="volume detach"):
    """Have volumes detached from their nodes; refused while somebody holds the device, with who it is."""

    arguments = (
        _VOLUMES,
        Argument("--force", "although the konnector of its node does not answer", {"action": "store_true"}),
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
    """Have volumes deleted that are not attached and have no snapshots."""

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
    """Have a snapshot made of a volume as it is now, attached or not."""

    arguments = (_VOLUME, Argument("--name", "its name, which others may have, too"), WAIT_FOR_END)
    examples = ("data1 --name monday --wait",)


class DeleteSnapshot(OrderEachCommand, words="volume snapshot delete"):
    """Have snapshots of a volume deleted."""

    arguments = (_VOLUME, names_argument("snapshot", "id of the snapshot, or its name"), WAIT_FOR_END)
    asks = "delete snapshot {snapshot} of volume {volume}"
    examples = ("data1 monday",)

    def submit(self, name: str, args: Namespace) -> Data:
        """The operation."""
        return self.client.delete_snapshot(args.volume, name)
