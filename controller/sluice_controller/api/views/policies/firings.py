"""``/policies/{id}/firings``: what an actor did."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import MARKER, operation, query_limit, query_text, query_word
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
        query_limit("firings on a page"),
        MARKER,
        query_word("what", "only those of this kind", KINDS),
        query_text("member", "only those for this member of a group or ALL"),
        errors=(404,),
    )
    def get(self, request: Request, policy_id: str) -> Response:
        """List what a policy's actor did, newest first.

        Actors keep the last 20 firings of a policy.
        """
        found = selectors.find_policy(self.backend, policy_id)
        self.plan_authorizer(request)([found.cached.plan])
        known = found.state.firings if found.state else ()
        return Response(FiringPageSerializer.render(firings.page_firings(known, **self.given)))
