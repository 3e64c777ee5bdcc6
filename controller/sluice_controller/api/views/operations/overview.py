"""``/overview``: whether all is well, in counts."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import operation
from sluice_controller.api.permissions import visible_accounts
from sluice_controller.api.serializers.operations.overview import OverviewSerializer
from sluice_controller.api.views.base import View
from sluice_controller.policies.overview import overview


class OverviewView(View):
    """The counts of the whole cluster, or of one project's policies."""

    @operation("sluice:overview:show", "show_overview", OverviewSerializer)
    def get(self, request: Request) -> Response:
        """Count policies, nodes and hosts by state, and floors that are not met.

        Readers of a project get the counts of its own policies alone.
        """
        found = overview(self.backend, visible_accounts(request, self.rules["get"]))
        return Response(OverviewSerializer.render(found))
