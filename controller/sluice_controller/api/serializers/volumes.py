"""The shapes of ``/volumes``: volumes, tiers and operations."""

from __future__ import annotations

from typing import Final

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import Serializer, UnixTimeField, computed, examples, page_of
from sluice_controller.volumes.attachments import EXPORTS
from sluice_controller.volumes.changes import LONGEST_NAME
from sluice_controller.volumes.tiers import MOST_GIB, STATES
from sluice_volumes.messages import DONE, FAILED, OPERATIONS, UNDER_WAY
from sluice_volumes.tiers import FABRICS

OPERATION_STATES: Final = (UNDER_WAY, DONE, FAILED)
_RATE_HELP: Final = "a rate with its unit, as `50MBps`; a bare number is MB/s"
_RESILIENCY_HELP: Final = "none, raid, or a number of replicas"


class VolumeAttachmentSerializer(Serializer):
    """An attachment as shown by Cinder."""

    id = s.CharField()
    host = s.CharField(allow_blank=True, help_text="empty if the caller may not see it")


class VolumeFilterSerializer(Serializer):
    """A filter that every read and write of a volume passes."""

    keyword = s.CharField()
    params = s.DictField(child=s.JSONField())


class VolumeSerializer(Serializer):
    """A volume."""

    id = s.CharField(source="volume.id")
    name = s.CharField(source="volume.name", allow_blank=True)
    project = s.CharField(source="volume.project", allow_blank=True, help_text="its id")
    status = s.CharField(source="volume.status", help_text="as shown by Cinder")
    size = s.IntegerField(help_text="the requested GiB, which its consumer sees")
    cinder_size = s.IntegerField(source="volume.size", help_text="its GiB in Cinder, with its header")
    tier = computed(lambda view: view.tier or None, s.CharField(allow_null=True))
    type = s.CharField(source="volume.type", allow_blank=True, help_text="its volume type in Cinder")
    pool = computed(
        lambda view: view.volume.pool or None,
        s.CharField(allow_null=True, help_text="host@backend#pool; null if the caller may not see it"),
    )
    attachments = VolumeAttachmentSerializer(many=True, source="volume.attachments")
    node = computed(
        lambda view: (view.record and view.record.node) or None,
        s.CharField(allow_null=True, help_text="the node that it is attached to through Sluice"),
    )
    filters = computed(
        lambda view: VolumeFilterSerializer.render_all(view.record.stack if view.record else ()),
        VolumeFilterSerializer(many=True, help_text="the filters of its data, the one next to the consumer first"),
    )
    filters_fixed_at = computed(
        lambda view: UnixTimeField(allow_null=True).text(view.record.fixed if view.record else 0.0),
        s.DateTimeField(allow_null=True, help_text="time of its first attachment through Sluice; null before"),
    )
    header = computed(
        lambda view: view.record.header if view.record else 0,
        s.IntegerField(help_text="bytes in Cinder that its consumer does not see"),
    )
    path = computed(
        lambda view: view.record.path if view.record else None,
        s.CharField(
            allow_null=True, help_text="its path account/id in targets, metrics and effective policies; null: not known"
        ),
    )
    known = computed(
        lambda view: view.record is not None, s.BooleanField(help_text="whether Sluice created or adopted it")
    )
    created_at = s.CharField(source="volume.created", allow_blank=True)


class VolumeDetailSerializer(VolumeSerializer):
    """A volume, with its objectives."""

    rates = s.DictField(child=s.FloatField(), help_text="the limits of policies now: bytes and operations per second")
    rates_in_force = s.DictField(
        child=s.FloatField(),
        allow_null=True,
        help_text="the limits that its konnector applies, with those set by hand and its share of its pool; null if it "
        "is not attached, or the konnector does not answer",
    )
    fault = s.CharField(
        allow_null=True,
        help_text="why it is not served as it should be, as its konnector reports; or the reason for which the "
        "operation on it waits, as the user of a device whose attachment is being undone; null: no problem",
    )
    data_path = s.CharField(
        allow_null=True,
        help_text="the first stage of requests before its filters: `fuse` (its nbdkit serves the block device), "
        "`nbdfuse` (nbdfuse serves it, on an older kernel) or `nbd` (an NBD socket); null: not attached, or not known",
    )


VolumePageSerializer: Final = page_of("volumes", VolumeSerializer, "Volumes, by id.")


class DemandsSerializer(Serializer):
    """The properties of a tier, or the demands on a volume; those that are left out do not matter."""

    resiliency = s.JSONField(required=False, help_text=_RESILIENCY_HELP)
    bandwidth = s.JSONField(required=False, help_text=_RATE_HELP)
    iops = s.FloatField(required=False, help_text="operations per second")
    fabric = s.ChoiceField(FABRICS, required=False)


class NewVolumeSerializer(DemandsSerializer):
    """A volume: its size, and its tier or demands; without both it has Cinder's default type."""

    size = s.IntegerField(min_value=1, max_value=MOST_GIB, help_text="GiB")
    name = s.CharField(required=False, allow_blank=True, max_length=LONGEST_NAME, help_text="need not be unique")
    tier = s.CharField(required=False)
    project = s.CharField(required=False, help_text="name or id; by default the project of the token")


class NewSizeSerializer(Serializer):
    """A larger size."""

    size = s.IntegerField(min_value=1, max_value=MOST_GIB, help_text="GiB")


class NewTierOfVolumeSerializer(DemandsSerializer):
    """Another tier, by its name or by demands."""

    tier = s.CharField(required=False)


class NewSnapshotSerializer(Serializer):
    """A snapshot."""

    name = s.CharField(required=False, allow_blank=True, max_length=LONGEST_NAME)


class NewAttachmentSerializer(Serializer):
    """The node of an attachment, and the form in which it shows the volume."""

    node = s.CharField(help_text="a node with a konnector")
    export = s.ChoiceField(EXPORTS, required=False, help_text="a block device (the default), or an NBD socket for QEMU")
    adopt = s.BooleanField(
        required=False, help_text="for a volume that Sluice did not create: its data passed no filter"
    )


class DetachmentSerializer(Serializer):
    """The options of a detachment."""

    force = s.BooleanField(required=False, help_text="although its konnector does not answer")
    machine_is_gone = s.BooleanField(
        required=False, help_text="with `force`: its machine is off, and will not use the volume again"
    )


class SnapshotSerializer(Serializer):
    """A snapshot of a volume."""

    id = s.CharField()
    name = s.CharField(allow_blank=True)
    status = s.CharField(help_text="as shown by Cinder")
    size = s.IntegerField(help_text="GiB in Cinder: with the header of an encrypted volume")
    created_at = s.CharField(source="created", allow_blank=True)


class SnapshotListSerializer(Serializer):
    """The snapshots of a volume, newest first."""

    snapshots = SnapshotSerializer(many=True)


class VolumeOperationSerializer(Serializer):
    """An operation on a volume."""

    id = s.CharField()
    what = s.ChoiceField(OPERATIONS)
    state = s.ChoiceField(OPERATION_STATES)
    reason = s.CharField(allow_blank=True, help_text="why it failed")
    step = s.CharField(allow_blank=True, help_text="the last completed step; empty at first")
    volume = computed(lambda one: one.volume or None, s.CharField(allow_null=True, help_text="null: not known yet"))
    project = s.CharField(allow_blank=True, help_text="id")
    data = s.DictField(
        child=s.JSONField(),
        help_text="its parameters and results: `device` of an attachment, `snapshot`, and `size_seen`, "
        "which tells when a consumer sees a new size. Of a forced detachment that no konnector answered: whether its "
        "machine is `fenced` by the back end, and whether its konnector has received it (`konnector_told`). Of a "
        "calibration its figures, in bytes and operations per second",
    )
    created_at = UnixTimeField(source="created")
    ended_at = UnixTimeField(source="ended", allow_null=True)
    created_by = s.CharField(source="by")


VolumeOperationPageSerializer: Final = page_of(
    "operations", VolumeOperationSerializer, "Operations on volumes, oldest first."
)


class PoolSerializer(Serializer):
    """A pool of Cinder in its last report."""

    name = s.CharField(help_text="host@backend#pool")
    total = computed(lambda pool: _known(pool.total), s.FloatField(allow_null=True, help_text="bytes"))
    free = computed(lambda pool: _known(pool.free), s.FloatField(allow_null=True, help_text="bytes"))
    capabilities = s.DictField(child=s.CharField())
    seen_at = UnixTimeField(source="seen")


def _known(size: float) -> float | None:
    return size if size >= 0 else None


class TierSerializer(Serializer):
    """A class of volumes, which is a volume type of Cinder that Sluice maintains."""

    name = s.CharField(source="tier.name")
    resiliency = s.CharField(source="tier.resiliency", allow_blank=True, help_text=_RESILIENCY_HELP)
    bandwidth = computed(
        lambda view: view.tier.bandwidth or None, s.FloatField(allow_null=True, help_text="bytes per second")
    )
    iops = computed(lambda view: view.tier.iops or None, s.FloatField(allow_null=True))
    fabric = s.CharField(source="tier.fabric", allow_blank=True)
    cost = s.FloatField(source="tier.cost", help_text="the cheapest tier is the one with the least cost")
    state = s.ChoiceField(STATES, help_text="the state of its type in Cinder")
    drift = s.ListField(child=s.CharField(), help_text="the differences in Cinder; PUT repairs them")
    type = s.CharField(source="tier.type", help_text="id of the volume type")
    pools = PoolSerializer(many=True, help_text="the pools that meet it now, the one with most free space first")
    created_at = UnixTimeField(source="tier.created")
    created_by = s.CharField(source="tier.by")


TierPageSerializer: Final = page_of("tiers", TierSerializer, "Tiers by name.")


class NewTierSerializer(DemandsSerializer):
    """A tier."""

    name = s.CharField(help_text="also the name of its volume type")
    cost = s.FloatField(required=False)


class MatchSerializer(Serializer):
    """The cheapest tier that meets demands now."""

    tier = s.CharField(source="tier.name")
    cost = s.FloatField(source="tier.cost")
    pools = PoolSerializer(many=True, help_text="the pools that meet it, the one with most free space first")
    others = s.ListField(child=s.CharField(), help_text="further tiers that meet the demands, by cost")


class NewCalibrationSerializer(Serializer):
    """Measured values of a pool; a rate is a number with its unit, a bare number is MB/s."""

    read_bw = s.CharField(help_text="read per second")
    write_bw = s.CharField(help_text="written per second")
    read_iops = s.FloatField(help_text="reads per second")
    write_iops = s.FloatField(help_text="writes per second")


class NewMeasurementSerializer(Serializer):
    """The node and the parameters of a measurement."""

    node = s.CharField(help_text="a node with a konnector, which has fio")
    seconds = s.IntegerField(required=False, help_text="for each of the four figures; 10 by default")
    size = s.IntegerField(required=False, help_text="GiB of the volume that is created for it; 1 by default")


class CalibrationSerializer(Serializer):
    """The measured values of a pool."""

    pool = s.CharField(help_text="host@backend#pool")
    read_bw = s.FloatField(help_text="bytes per second")
    write_bw = s.FloatField(help_text="bytes per second")
    read_iops = s.FloatField()
    write_iops = s.FloatField()
    measured_at = UnixTimeField(source="at")
    measured_by = s.CharField(source="by", allow_blank=True)
    node = computed(
        lambda one: one.node or None,
        s.CharField(allow_null=True, help_text="the node whose konnector measured it; null: the values were entered"),
    )


class PoolListSerializer(Serializer):
    """All pools of Cinder, and the measured values of some."""

    pools = PoolSerializer(many=True)
    measured = CalibrationSerializer(many=True)


TIERS: Final = examples(
    ("safe and fast", {"name": "gold", "resiliency": 2, "bandwidth": "50MBps", "fabric": "rbd", "cost": 5}),
)
VOLUMES: Final = examples(
    ("of any type", {"name": "data1", "size": 10}),
)
MEASUREMENTS: Final = examples(
    ("for ten seconds each", {"node": "node1", "seconds": 10, "size": 4}),
)
CALIBRATIONS: Final = examples(
    ("as fio measured", {"read_bw": "90MBps", "write_bw": "80MBps", "read_iops": 9000, "write_iops": 7000}),
)
