"""``/spaces``: what is kept below a size."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import LIST, in_path, operation
from sluice_controller.api.permissions import authorize, thing_target, visible_accounts
from sluice_controller.api.prometheus import spaces as prometheus
from sluice_controller.api.prometheus.cluster import CONTENT_TYPE
from sluice_controller.api.serializers import motifs as shapes
from sluice_controller.api.views.base import View
from sluice_controller.api.views.renderers import TEXT, NonJSONView, TextRenderer
from sluice_controller.motifs import spaces
from sluice_core.messages.policies import CLUSTER, CONTAINER, TENANT


class SpacesView(View):
    """All spaces."""

    @operation("sluice:spaces:list", "list_spaces", shapes.SpacePageSerializer, *LIST)
    def get(self, request: Request) -> Response:
        """List spaces: what they are kept at, hold and cost, as the daemons that keep them report it.

        A page of spaces.
        """
        accounts = visible_accounts(request, "sluice:spaces:list")
        return Response(shapes.SpacePageSerializer.render(spaces.page(self.backend, accounts, **self.given)))


class SpaceView(View):
    """One space."""

    @operation(
        "sluice:spaces:show",
        "show_space",
        shapes.SpaceSerializer,
        in_path("space", "account/container, account, or CLUSTER; a project's name may stand for its account"),
        errors=(404,),
    )
    def get(self, request: Request, space: str) -> Response:
        """Show what a space is kept at, holds and costs.

        The space.
        """
        space = spaces.named_space(self.backend, space)
        account = spaces.account_of_space(space)
        level = CONTAINER if "/" in space else TENANT if account else CLUSTER
        authorize(request, self.rule(request), thing_target(level, account))
        return Response(shapes.SpaceSerializer.render(spaces.find(self.backend, space)))


class SpaceMetricsView(NonJSONView):
    """Of all spaces."""

    renderer_classes = (TextRenderer, JSONRenderer)

    @operation("sluice:spaces:metrics", "space_metrics", {(200, TEXT): OpenApiTypes.STR})
    def get(self, request: Request) -> Response:
        """Give what spaces are kept at, hold and cost, in Prometheus' text format.

        Names of accounts and containers are in it.
        """
        return Response(prometheus.exposition(self.backend), content_type=CONTENT_TYPE)
