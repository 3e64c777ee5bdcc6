"""``/volumes``: volumes of Cinder, made, changed, attached and deleted."""

from __future__ import annotations

from typing import Final

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import MARKER, in_path, operation, query_limit, query_text
from sluice_controller.api.permissions import current_rules, visible_accounts
from sluice_controller.api.serializers import volumes as shapes
from sluice_controller.api.views.policies.policies import REPEATED
from sluice_controller.api.views.volumes.base import OPERATION_LOCATION, ORDERED, VOLUME_NAME, WAIT, VolumesBaseView
from sluice_controller.policies import idempotency
from sluice_controller.validation.bodies import Body
from sluice_controller.volumes import attach, changes, detach, volumes
from sluice_controller.volumes.demands import read_size
from sluice_controller.volumes.volume_policies import asked_rates

_SNAPSHOT: Final = in_path("snapshot", "the id of the snapshot, or its name where only one is called so")


class VolumesView(VolumesBaseView):
    """All volumes."""

    @operation(
        "sluice:volumes:list",
        "list_volumes",
        shapes.VolumePageSerializer,
        query_limit("volumes on a page"),
        MARKER,
        query_text("project", "only volumes of the project with this id"),
        query_text("name", "only volumes that are called so"),
        query_text("tier", "only volumes of this tier"),
    )
    def get(self, request: Request) -> Response:
        """List the volumes of the token's project, for an administrator those of all projects.

        A page of volumes.
        """
        everybody = visible_accounts(request, "sluice:volumes:list") is None
        page = volumes.page(self.backend, self.caller(request), everybody, **self.given)
        return Response(shapes.VolumePageSerializer.render(page))

    @operation(
        "sluice:volumes:create",
        "create_volume",
        ORDERED,
        WAIT,
        REPEATED,
        OPERATION_LOCATION,
        errors=(404, 409),
        takes=shapes.NewVolumeSerializer,
        examples=shapes.VOLUMES,
    )
    def post(self, request: Request) -> Response:
        """Have a volume made in the project that the token is for.

        Demands choose the cheapest tier that meets them now; when there is none, 409 names what no pool meets. With
        `Idempotency-Key`, the same request under the same key makes one volume.
        """
        self.authorize_project(request, request.user.project_id)
        key = idempotency.read_key(request)
        return self.ordered(changes.create(self.backend, self.caller(request), request.data, key))


class VolumeView(VolumesBaseView):
    """One volume."""

    @operation("sluice:volumes:show", "show_volume", shapes.VolumeDetailSerializer, VOLUME_NAME, errors=(404, 409))
    def get(self, request: Request, volume: str) -> Response:
        """Show a volume: where it lies, who uses it, the filters that its data pass, the rates that it is held to.

        The volume.
        """
        found = self.volume(request, volume)
        rates = asked_rates(self.backend, found.record) if found.record else {}
        use = attach.read_use(self.backend, found.record) if found.record else attach.VolumeUse()
        how = {"fault": use.fault or None, "data_path": use.data_path or None}
        shown = {"rates": rates, "rates_in_force": use.rates, **how}
        return Response(shapes.VolumeDetailSerializer.render(found, **shown))

    @operation(
        "sluice:volumes:delete", "delete_volume", ORDERED, VOLUME_NAME, WAIT, OPERATION_LOCATION, errors=(404, 409)
    )
    def delete(self, request: Request, volume: str) -> Response:
        """Have a volume deleted that is not attached and has no snapshots.

        The operation.
        """
        return self.ordered(changes.delete(self.backend, self.caller(request), self.volume(request, volume)))


class VolumeSizeView(VolumesBaseView):
    """How large it is."""

    @operation(
        "sluice:volumes:extend",
        "extend_volume",
        ORDERED,
        VOLUME_NAME,
        WAIT,
        OPERATION_LOCATION,
        errors=(404, 409),
        takes=shapes.NewSizeSerializer,
    )
    def put(self, request: Request, volume: str) -> Response:
        """Have a volume grow, attached or not.

        `size_seen` in the operation's `data` says when its consumer sees the new size.
        """
        size = read_size(Body(request.data, "size"))
        found = self.volume(request, volume)
        return self.ordered(changes.extend(self.backend, self.caller(request), found, size))


class VolumeTierView(VolumesBaseView):
    """What class it is of."""

    @operation(
        "sluice:volumes:retype",
        "retype_volume",
        ORDERED,
        VOLUME_NAME,
        WAIT,
        OPERATION_LOCATION,
        errors=(404, 409),
        takes=shapes.NewTierOfVolumeSerializer,
    )
    def put(self, request: Request, volume: str) -> Response:
        """Give a volume another tier where it lies, attached or not.

        When its pool does not meet that tier, 409: volumes are not moved.
        """
        wanted = changes.read_tier_or_demands(request.data)
        found = self.volume(request, volume)
        return self.ordered(changes.retype(self.backend, self.caller(request), found, wanted))


class VolumeAttachView(VolumesBaseView):
    """Attaching it."""

    further_rules = ("sluice:volumes:adopt",)

    @operation(
        "sluice:volumes:attach",
        "attach_volume",
        ORDERED,
        VOLUME_NAME,
        WAIT,
        OPERATION_LOCATION,
        errors=(404, 409),
        takes=shapes.NewAttachmentSerializer,
    )
    def post(self, request: Request, volume: str) -> Response:
        """Have the konnector of a node attach a volume, with the filters that its data pass.

        They are chosen at the first time, as policies say then, and never changed. `device` in the operation's `data`
        is what the node shows.
        """
        wanted = attach.AttachRequest.read(request.data)
        found = self.volume(request, volume)
        may_adopt = current_rules().allows(request.user, self.further_rules[0], {})
        return self.ordered(attach.attach(self.backend, self.caller(request), found, wanted, may_adopt))


class VolumeDetachView(VolumesBaseView):
    """Detaching it."""

    further_rules = ("sluice:volumes:force_detach",)

    @operation(
        "sluice:volumes:detach",
        "detach_volume",
        ORDERED,
        VOLUME_NAME,
        WAIT,
        OPERATION_LOCATION,
        errors=(404, 409),
        takes=shapes.DetachmentSerializer,
    )
    def post(self, request: Request, volume: str) -> Response:
        """Have a volume detached from its node; refused while somebody holds its device, with who it is.

        With `force`, which is an administrator's to say, a konnector that does not answer is not waited for: Cinder
        deletes the attachment. That is refused (409) where the machine could go on to write, unless
        `machine_is_gone`. A konnector that answers decides as without `force`.
        """
        wanted = detach.DetachRequest.read(request.data)
        found = self.volume(request, volume)
        may_force = current_rules().allows(request.user, self.further_rules[0], {})
        return self.ordered(detach.detach(self.backend, self.caller(request), found, wanted, may_force))


class SnapshotsView(VolumesBaseView):
    """The snapshots of a volume."""

    @operation("sluice:volumes:show", "list_snapshots", shapes.SnapshotListSerializer, VOLUME_NAME, errors=(404, 409))
    def get(self, request: Request, volume: str) -> Response:
        """List the snapshots of a volume, newest first.

        The snapshots.
        """
        found = changes.snapshots(self.backend, self.caller(request), self.volume(request, volume))
        return Response({"snapshots": shapes.SnapshotSerializer.render_all(found)})

    @operation(
        "sluice:volumes:snapshot",
        "create_snapshot",
        ORDERED,
        VOLUME_NAME,
        WAIT,
        REPEATED,
        OPERATION_LOCATION,
        errors=(404, 409),
        takes=shapes.NewSnapshotSerializer,
    )
    def post(self, request: Request, volume: str) -> Response:
        """Have a snapshot made of a volume as it is now, attached or not.

        `snapshot` in the operation's `data` is its id.
        """
        name, key = changes.read_snapshot_name(request.data), idempotency.read_key(request)
        found = self.volume(request, volume)
        return self.ordered(changes.create_snapshot(self.backend, self.caller(request), found, name, key))


class SnapshotView(VolumesBaseView):
    """One snapshot."""

    @operation(
        "sluice:volumes:snapshot",
        "delete_snapshot",
        ORDERED,
        VOLUME_NAME,
        _SNAPSHOT,
        WAIT,
        OPERATION_LOCATION,
        errors=(404, 409),
    )
    def delete(self, request: Request, volume: str, snapshot: str) -> Response:
        """Have a snapshot deleted.

        The operation.
        """
        found = self.volume(request, volume)
        return self.ordered(changes.delete_snapshot(self.backend, self.caller(request), found, snapshot))
