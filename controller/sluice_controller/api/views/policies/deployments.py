"""``/filters/{target}/deploy`` and ``/undeploy``: filters set for a tenant, a container or an object."""

from __future__ import annotations

from functools import partial

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import ETAG, LIST, WAIT, in_path, operation
from sluice_controller.api.serializers import filters as shapes
from sluice_controller.api.views.base import View
from sluice_controller.api.views.resources import render_entry, render_page
from sluice_controller.policies import deployments

TARGET = in_path("target", "`account`, `account/container` or `account/container/object`")
_KEYWORD = in_path("keyword", "the filter")


class DeploymentsView(View):
    """What is set for one target."""

    @operation("sluice:deployments:list", "list_deployments", shapes.DeployedPageSerializer, TARGET, *LIST)
    def get(self, request: Request, target: str) -> Response:
        """List the filters that are set for just this target by policies without metrics.

        A page of filters, by keyword.
        """
        catalogue = self.backend.catalogue
        where = deployments.target_of(target, catalogue)
        self.authorize_target(request, where)
        deployed = deployments.list_deployed(self.backend.policy_cache.contents(), where)
        known = {one.action.keyword: one for one in deployed}
        show = partial(shapes.DeployedSerializer.render_deployment, catalogue=catalogue)
        return render_page(self.given, "filters", known, show, target=where.name, level=where.level)


class DeployView(View):
    """One filter for one target."""

    @operation(
        "sluice:deployments:deploy",
        "deploy_filter",
        shapes.DeploymentResultSerializer,
        TARGET,
        _KEYWORD,
        WAIT,
        ETAG,
        errors=(404, 409),
        takes=shapes.DeploymentSerializer,
        examples=shapes.DEPLOYMENT,
    )
    def put(self, request: Request, target: str, keyword: str) -> Response:
        """Set a filter for a target; the same again changes nothing, other parameters replace it.

        The deployment. Parameters stand in `params`, or beside it: `{"engine": "gzip"}`. One that stands in both with
        different values is refused.
        """
        where = deployments.target_of(target, self.backend.catalogue)
        allow = self.plan_authorizer(request)
        done = deployments.deploy(self.backend, where, keyword, request.data, request.user.name, allow)
        self.wait_acknowledged(done.epoch)
        one = deployments.find_deployment(self.backend, done.policies[0].id)
        shown = shapes.DeployedSerializer.render_deployment(one, self.backend.catalogue)
        return render_entry({**shown, "changed": done.changed}, one.policy.version)


class UndeployView(View):
    """One filter for one target, taken back."""

    @operation(
        "sluice:deployments:undeploy",
        "undeploy_filter",
        shapes.DeployedPageSerializer,
        TARGET,
        _KEYWORD,
        WAIT,
        errors=(404, 409),
        takes=None,
    )
    def put(self, request: Request, target: str, keyword: str) -> Response:
        """Take back what deploying a filter has set.

        What is still deployed there.
        """
        catalogue = self.backend.catalogue
        where = deployments.target_of(target, catalogue)
        # whoever may not is not told whether it is deployed
        self.authorize_target(request, where)
        done = deployments.undeploy(self.backend, where, keyword, request.user.name, self.plan_authorizer(request))
        self.wait_acknowledged(done.epoch)
        left = deployments.list_deployed(self.backend.policy_cache.contents(), where)
        data = {
            "target": where.name,
            "level": where.level,
            "filters": [shapes.DeployedSerializer.render_deployment(one, catalogue) for one in left],
        }
        return Response({**data, "next_marker": None})
