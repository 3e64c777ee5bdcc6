"""``/locality/volume``: where a volume lies."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import operation
from sluice_controller.api.operations.volumes.base import VOLUME_NAME, VolumesBaseView
from sluice_controller.api.serializers.placement import VolumeLocalitySerializer
from sluice_controller.volumes import volumes


@operation(
    "GET /locality/volume/<name:volume>",
    "sluice:locality:show",
    VolumeLocalitySerializer,
    VOLUME_NAME,
    errors=(404, 409),
)
def show_volume_locality(view: VolumesBaseView, request: Request, volume: str) -> Response:
    """Show a volume's pool, host and back end, who uses it, and in Ceph which OSDs hold its objects.

    OSDs are those that the konnector of its node finds, so they are known while it is attached. What a konnector
    that does not answer would have said is missing, and `warnings` say so.
    """
    found = volumes.find_locality(view.backend, view.volume(request, volume))
    return Response(VolumeLocalitySerializer.render(found))
