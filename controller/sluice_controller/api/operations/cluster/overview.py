"""``/overview``: whether all is well, in counts."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import operation
from sluice_controller.api.permissions import visible_accounts
from sluice_controller.api.serializers.cluster.overview import OverviewSerializer
from sluice_controller.api.view import View
from sluice_controller.identity.rules import READS_OWN, Rule
from sluice_controller.policies.overview import overview


@operation(
    "GET /overview",
    Rule(
        "sluice:overview:show",
        READS_OWN,
        "count policies by state, and floors that are not met",
        everybody="count those of everybody, and nodes and hosts by state",
    ),
    OverviewSerializer,
)
def show_overview(view: View, request: Request) -> Response:
    """Count policies, nodes and hosts by state, and floors that are not met.

    Readers of a project get the counts of its own policies alone.
    """
    found = overview(view.backend, visible_accounts(request, view.rule))
    return Response(OverviewSerializer.render(found))
