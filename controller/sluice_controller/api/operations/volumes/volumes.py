"""``/volumes``: create, change, attach and delete volumes of Cinder; ``/locality/volume``: where a volume is stored."""

from __future__ import annotations

from typing import Final

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import MARKER, in_path, operation, query_limit, query_text
from sluice_controller.api.operations.policies.policies import REPEATED
from sluice_controller.api.operations.volumes.operations import VOLUME_NAME, VolumesBaseView, order_operation
from sluice_controller.api.permissions import current_rules, visible_accounts
from sluice_controller.api.serializers import volumes as shapes
from sluice_controller.api.serializers.placement import VolumeLocalitySerializer
from sluice_controller.identity.rules import ADMIN, READS_OWN, THING, USES_OWN, Rule
from sluice_controller.policies import idempotency
from sluice_controller.validation.bodies import Body
from sluice_controller.volumes import attachments, changes, volumes
from sluice_controller.volumes.tiers import read_size
from sluice_controller.volumes.volume_policies import asked_rates

_ADOPT: Final = Rule(
    "sluice:volumes:adopt",
    ADMIN,
    "attach a volume that Sluice did not create; checked besides the rule of the call, if the body has `adopt`",
)
_FORCE: Final = Rule(
    "sluice:volumes:force_detach",
    ADMIN,
    "detach a volume although its konnector does not answer; checked besides the rule of the call, if the body has "
    "`force`",
)
_SNAPSHOT: Final = in_path("snapshot", "the id of the snapshot, or its name if only one snapshot has it")


@operation(
    "GET /volumes",
    Rule(
        "sluice:volumes:list", READS_OWN, "list the volumes of a project", everybody="list the volumes of all projects"
    ),
    shapes.VolumePageSerializer,
    query_limit("volumes on a page"),
    MARKER,
    query_text("project", "only volumes of the project with this id"),
    query_text("name", "only volumes with this name"),
    query_text("tier", "only volumes of this tier"),
)
def list_volumes(view: VolumesBaseView, request: Request) -> Response:
    """List the volumes of the token's project, for an administrator those of all projects.

    A page of volumes.
    """
    everybody = visible_accounts(request, "sluice:volumes:list") is None
    page = volumes.page(view.backend, view.caller(request), everybody, **view.given)
    return Response(shapes.VolumePageSerializer.render(page))


@order_operation(
    "POST /volumes",
    Rule("sluice:volumes:create", USES_OWN, "create a volume", about=THING),
    REPEATED,
    errors=(404, 409),
    takes=shapes.NewVolumeSerializer,
    examples=shapes.VOLUMES,
)
def create_volume(view: VolumesBaseView, request: Request) -> Response:
    """Create a volume in the project of the token.

    Demands choose the cheapest tier that meets them now; without one, 409 names the demands that no pool meets. With
    `Idempotency-Key`, the same request under the same key creates one volume.
    """
    view.authorize_project(request, request.user.project_id)
    key = idempotency.read_key(request)
    return view.ordered(changes.create(view.backend, view.caller(request), request.data, key))


@operation(
    "GET /volumes/<name:volume>",
    Rule("sluice:volumes:show", READS_OWN, "show a volume and its snapshots", about=THING),
    shapes.VolumeDetailSerializer,
    VOLUME_NAME,
    errors=(404, 409),
)
def show_volume(view: VolumesBaseView, request: Request, volume: str) -> Response:
    """Show a volume: its pool, its consumer, the filters of its data, and its floors and ceilings.

    The volume.
    """
    shown_volume = view.volume(request, volume)
    rates = asked_rates(view.backend, shown_volume.record) if shown_volume.record else {}
    use = volumes.read_use(view.backend, shown_volume.record) if shown_volume.record else volumes.VolumeUse()
    how = {"fault": use.fault or None, "data_path": use.data_path or None}
    shown = {"rates": rates, "rates_in_force": use.rates, **how}
    return Response(shapes.VolumeDetailSerializer.render(shown_volume, **shown))


@order_operation(
    "DELETE /volumes/<name:volume>",
    Rule("sluice:volumes:delete", USES_OWN, "delete a volume", about=THING),
    VOLUME_NAME,
)
def delete_volume(view: VolumesBaseView, request: Request, volume: str) -> Response:
    """Delete a volume that is not attached and has no snapshots.

    The operation.
    """
    return view.ordered(changes.delete(view.backend, view.caller(request), view.volume(request, volume)))


@order_operation(
    "PUT /volumes/<name:volume>/size",
    Rule("sluice:volumes:extend", USES_OWN, "extend a volume", about=THING),
    VOLUME_NAME,
    takes=shapes.NewSizeSerializer,
)
def extend_volume(view: VolumesBaseView, request: Request, volume: str) -> Response:
    """Extend a volume, attached or not.

    `size_seen` in the operation's `data` tells when its consumer sees the new size.
    """
    size = read_size(Body(request.data, "size"))
    found = view.volume(request, volume)
    return view.ordered(changes.extend(view.backend, view.caller(request), found, size))


@order_operation(
    "PUT /volumes/<name:volume>/tier",
    Rule("sluice:volumes:retype", USES_OWN, "change the tier of a volume", about=THING),
    VOLUME_NAME,
    takes=shapes.NewTierOfVolumeSerializer,
)
def retype_volume(view: VolumesBaseView, request: Request, volume: str) -> Response:
    """Change the tier of a volume without moving it, attached or not.

    If its pool does not meet that tier, 409: volumes are not moved.
    """
    wanted = changes.read_tier_or_demands(request.data)
    found = view.volume(request, volume)
    return view.ordered(changes.retype(view.backend, view.caller(request), found, wanted))


@order_operation(
    "POST /volumes/<name:volume>/attach",
    Rule("sluice:volumes:attach", USES_OWN, "attach a volume to a node", about=THING),
    VOLUME_NAME,
    takes=shapes.NewAttachmentSerializer,
    further=(_ADOPT,),
)
def attach_volume(view: VolumesBaseView, request: Request, volume: str) -> Response:
    """Attach a volume to a node by its konnector, with the filters of its data.

    The filters are chosen by the policies in force at the first attachment, and never changed. `device` in the
    operation's `data` is the device on the node.
    """
    wanted = attachments.AttachRequest.read(request.data)
    found = view.volume(request, volume)
    may_adopt = current_rules().allows(request.user, _ADOPT.name, {})
    return view.ordered(attachments.attach(view.backend, view.caller(request), found, wanted, may_adopt))


@order_operation(
    "POST /volumes/<name:volume>/detach",
    Rule("sluice:volumes:detach", USES_OWN, "detach a volume", about=THING),
    VOLUME_NAME,
    takes=shapes.DetachmentSerializer,
    further=(_FORCE,),
)
def detach_volume(view: VolumesBaseView, request: Request, volume: str) -> Response:
    """Detach a volume from its node; refused while processes use its device, and the answer names them.

    With `force`, which only an administrator may use, Sluice does not wait for a konnector that does not answer:
    Cinder deletes the attachment. That is refused (409) if the machine could continue to write, unless
    `machine_is_gone`. If the konnector answers, it decides as without `force`.
    """
    wanted = attachments.DetachRequest.read(request.data)
    found = view.volume(request, volume)
    may_force = current_rules().allows(request.user, _FORCE.name, {})
    return view.ordered(attachments.detach(view.backend, view.caller(request), found, wanted, may_force))


@operation(
    "GET /volumes/<name:volume>/snapshots",
    "sluice:volumes:show",
    shapes.SnapshotListSerializer,
    VOLUME_NAME,
    errors=(404, 409),
)
def list_snapshots(view: VolumesBaseView, request: Request, volume: str) -> Response:
    """List the snapshots of a volume, newest first.

    The snapshots.
    """
    found = changes.snapshots(view.backend, view.caller(request), view.volume(request, volume))
    return Response({"snapshots": shapes.SnapshotSerializer.render_all(found)})


@order_operation(
    "POST /volumes/<name:volume>/snapshots",
    Rule("sluice:volumes:snapshot", USES_OWN, "create and delete snapshots of a volume", about=THING),
    VOLUME_NAME,
    REPEATED,
    takes=shapes.NewSnapshotSerializer,
)
def create_snapshot(view: VolumesBaseView, request: Request, volume: str) -> Response:
    """Create a snapshot of a volume, attached or not.

    `snapshot` in the operation's `data` is its id.
    """
    name, key = changes.read_snapshot_name(request.data), idempotency.read_key(request)
    found = view.volume(request, volume)
    return view.ordered(changes.create_snapshot(view.backend, view.caller(request), found, name, key))


@order_operation(
    "DELETE /volumes/<name:volume>/snapshots/<name:snapshot>", "sluice:volumes:snapshot", VOLUME_NAME, _SNAPSHOT
)
def delete_snapshot(view: VolumesBaseView, request: Request, volume: str, snapshot: str) -> Response:
    """Delete a snapshot.

    The operation.
    """
    found = view.volume(request, volume)
    return view.ordered(changes.delete_snapshot(view.backend, view.caller(request), found, snapshot))


@operation(
    "GET /locality/volume/<name:volume>",
    "sluice:locality:show",
    VolumeLocalitySerializer,
    VOLUME_NAME,
    errors=(404, 409),
)
def show_volume_locality(view: VolumesBaseView, request: Request, volume: str) -> Response:
    """Show a volume's pool, host and back end, its consumer, and in Ceph the OSDs that hold its objects.

    The konnector of the volume's node finds the OSDs, so they are known while it is attached. If a konnector does not
    answer, its values are missing, and `warnings` names it.
    """
    found = volumes.find_locality(view.backend, view.volume(request, volume))
    return Response(VolumeLocalitySerializer.render(found))
