"""``/policies/{id}/firings``: what an actor did."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import operation, query
from sluice_controller.api.serializers.policies import FiringPageSerializer
from sluice_controller.api.views.base import View
from sluice_controller.catalog import selectors
from sluice_controller.policies import firings

KINDS = ("set", "changed", "taken_back")


class FiringsView(View):
    """The history of one policy."""

    @operation(
        "sluice:policies:firings",
        "list_firings",
        FiringPageSerializer,
        query("limit", OpenApiTypes.INT, "firings on a page, 1 to 1000", default=100),
        query("marker", OpenApiTypes.STR, "`next_marker` of the page before"),
        query("what", OpenApiTypes.STR, "only those of this kind", enum=KINDS),
        query("member", OpenApiTypes.STR, "only those for this member of a group or ALL"),
        errors=(404,),
    )
    def get(self, request: Request, policy_id: str) -> Response:
        """List what a policy's actor did, newest first.

        Actors keep the last 20 firings of a policy.
        """
        given = self.query(request, "limit", "marker", "what", "member")
        limit, kind = given.integer("limit", 100, 1, selectors.LARGEST_PAGE), given.one_of("what", KINDS)
        found = selectors.find_policy(self.backend, policy_id)
        self.plan_authorizer(request)([found.cached.plan])
        known = found.state.firings if found.state else ()
        page = firings.page_firings(known, limit, given.text("marker"), kind, given.text("member"))
        return Response(FiringPageSerializer.render(page))
