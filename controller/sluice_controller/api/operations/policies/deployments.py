"""``/filters/{target}/deploy`` and ``/undeploy``: filters set for a tenant, a container or an object."""

from __future__ import annotations

from functools import partial

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import ETAG, LIST, WAIT, in_path, operation
from sluice_controller.api.resources import render_entry, render_page
from sluice_controller.api.serializers import filters as shapes
from sluice_controller.api.view import View
from sluice_controller.identity.rules import THING, WRITES_OWN, Rule
from sluice_controller.policies import deployments

TARGET = in_path("target", "`account`, `account/container` or `account/container/object`")
_KEYWORD = in_path("keyword", "the filter")


@operation(
    "GET /filters/<target:target>/deploy",
    "sluice:deployments:list",
    shapes.DeployedPageSerializer,
    TARGET,
    *LIST,
    errors=(),
)
def list_deployments(view: View, request: Request, target: str) -> Response:
    """List the filters that policies without metrics set for exactly this target.

    A page of filters, by keyword.
    """
    catalogue = view.backend.catalogue
    where = deployments.target_of(target, catalogue)
    view.authorize_target(request, where)
    deployed = deployments.list_deployed(view.backend.policy_cache.contents(), where)
    known = {one.action.keyword: one for one in deployed}
    show = partial(shapes.DeployedSerializer.render_deployment, catalogue=catalogue)
    return render_page(view.given, "filters", known, show, target=where.name, level=where.level)


@operation(
    "PUT /filters/<target:target>/deploy/<name:keyword>",
    Rule("sluice:deployments:deploy", WRITES_OWN, "deploy a filter", about=THING),
    shapes.DeploymentResultSerializer,
    TARGET,
    _KEYWORD,
    WAIT,
    ETAG,
    takes=shapes.DeploymentSerializer,
    examples=shapes.DEPLOYMENT,
)
def deploy_filter(view: View, request: Request, target: str, keyword: str) -> Response:
    """Set a filter for a target; repeating the call changes nothing, other parameters replace the former ones.

    The deployment. Parameters are in `params`, or beside it: `{"engine": "gzip"}`. A parameter that is in both with
    different values is refused.
    """
    where = deployments.target_of(target, view.backend.catalogue)
    allow = view.plan_authorizer(request)
    done = deployments.deploy(view.backend, where, keyword, request.data, request.user.name, allow)
    view.wait_acknowledged(done.epoch)
    one = deployments.find_deployment(view.backend, done.policies[0].id)
    shown = shapes.DeployedSerializer.render_deployment(one, view.backend.catalogue)
    return render_entry({**shown, "changed": done.changed}, one.policy.version)


@operation(
    "PUT /filters/<target:target>/undeploy/<name:keyword>",
    Rule("sluice:deployments:undeploy", WRITES_OWN, "undeploy a filter", about=THING),
    shapes.DeployedPageSerializer,
    TARGET,
    _KEYWORD,
    WAIT,
    takes=None,
)
def undeploy_filter(view: View, request: Request, target: str, keyword: str) -> Response:
    """Remove a deployment of a filter.

    The deployments that are left at the target.
    """
    catalogue = view.backend.catalogue
    where = deployments.target_of(target, catalogue)
    # A caller without the right must not learn whether the filter is deployed.
    view.authorize_target(request, where)
    done = deployments.undeploy(view.backend, where, keyword, request.user.name, view.plan_authorizer(request))
    view.wait_acknowledged(done.epoch)
    left = deployments.list_deployed(view.backend.policy_cache.contents(), where)
    data = {
        "target": where.name,
        "level": where.level,
        "filters": [shapes.DeployedSerializer.render_deployment(one, catalogue) for one in left],
    }
    return Response({**data, "next_marker": None})
