"""``/locality/volume``: where a volume lies."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import operation
from sluice_controller.api.serializers.placement import VolumeLocalitySerializer
from sluice_controller.api.views.volumes.base import VOLUME_NAME, VolumesBaseView
from sluice_controller.volumes import locality


class VolumeLocalityView(VolumesBaseView):
    """Where one volume is."""

    @operation("sluice:locality:show", "show_volume_locality", VolumeLocalitySerializer, VOLUME_NAME, errors=(404, 409))
    def get(self, request: Request, volume: str) -> Response:
        """Show a volume's pool, host and back end, who uses it, and in Ceph which OSDs hold its objects.

        OSDs are those that the konnector of its node finds, so they are known while it is attached. What a konnector
        that does not answer would have said is missing, and `warnings` say so.
        """
        found = locality.find(self.backend, self.volume(request, volume))
        return Response(VolumeLocalitySerializer.render(found))
