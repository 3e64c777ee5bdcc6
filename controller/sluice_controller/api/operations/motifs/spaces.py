"""``/spaces``: what is kept below a size."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import LIST, in_path, operation
from sluice_controller.api.permissions import authorize, thing_target, visible_accounts
from sluice_controller.api.prometheus import spaces as prometheus
from sluice_controller.api.prometheus.cluster import CONTENT_TYPE
from sluice_controller.api.renderers import TEXT, TextView
from sluice_controller.api.serializers import motifs as shapes
from sluice_controller.api.view import View
from sluice_controller.identity.rules import ADMIN, READS_OWN, THING, Rule
from sluice_controller.motifs import spaces
from sluice_core.messages.policies import CLUSTER, CONTAINER, TENANT


@operation(
    "GET /spaces",
    Rule("sluice:spaces:list", READS_OWN, "list the spaces of a project", everybody="list the spaces of everybody"),
    shapes.SpacePageSerializer,
    *LIST,
)
def list_spaces(view: View, request: Request) -> Response:
    """List spaces: what they are kept at, hold and cost, as the daemons that keep them report it.

    A page of spaces.
    """
    accounts = visible_accounts(request, "sluice:spaces:list")
    return Response(shapes.SpacePageSerializer.render(spaces.page(view.backend, accounts, **view.given)))


@operation(
    "GET /spaces/<target:space>",
    Rule("sluice:spaces:show", READS_OWN, "show a space", about=THING),
    shapes.SpaceSerializer,
    in_path("space", "account/container, account, or CLUSTER; a project's name may stand for its account"),
)
def show_space(view: View, request: Request, space: str) -> Response:
    """Show what a space is kept at, holds and costs.

    The space.
    """
    space = spaces.named_space(view.backend, space)
    account = spaces.account_of_space(space)
    level = CONTAINER if "/" in space else TENANT if account else CLUSTER
    authorize(request, view.rule, thing_target(level, account))
    return Response(shapes.SpaceSerializer.render(spaces.find(view.backend, space)))


@operation(
    "GET /spaces/metrics",
    Rule("sluice:spaces:metrics", ADMIN, "give Prometheus what spaces hold and cost"),
    {(200, TEXT): OpenApiTypes.STR},
)
def space_metrics(view: TextView, request: Request) -> Response:
    """Give what spaces are kept at, hold and cost, in Prometheus' text format.

    Names of accounts and containers are in it.
    """
    return Response(prometheus.exposition(view.backend), content_type=CONTENT_TYPE)
