"""``/bw/slo``: Crystal's service level objectives, promises to tenants over the whole cluster."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import ETAG, GONE, LIST, WAIT, operation, operations, query_text, query_word
from sluice_controller.api.permissions import authorize, thing_target, visible_accounts
from sluice_controller.api.serializers import bandwidth as shapes
from sluice_controller.api.views.bandwidth.iostack import ACCOUNT, POLICY
from sluice_controller.api.views.base import View
from sluice_controller.api.views.resources import Declare, no_content, render_entry, render_page
from sluice_controller.bandwidth import promises, services
from sluice_controller.bandwidth.promises import NAMES, Objective
from sluice_controller.catalog import bandwidth_report
from sluice_controller.validation.bodies import Body
from sluice_core.messages.bandwidth_report import BandwidthReport

_NAME: Final = OpenApiParameter(
    "name", OpenApiTypes.STR, OpenApiParameter.PATH, description="what is promised", enum=NAMES
)
_TOGETHER: Final = (
    "The objectives of a tenant under one storage policy (without one: under all) stand in one policy of origin "
    "`slo/…`, which this changes or makes."
)


def objective_data(one: Objective, report: BandwidthReport | None) -> dict[str, Any]:
    """An objective."""
    infeasible = bandwidth_report.shortfall(report, one.policy.policy.id, one.name)
    return shapes.ObjectiveSerializer.render(one, infeasible=infeasible)


class ObjectivesView(View):
    """All objectives."""

    @operation(
        "sluice:slos:list",
        "list_slo",
        shapes.ObjectivePageSerializer,
        query_text("account", "only of this account"),
        query_word("name", "only of this name", NAMES),
        *LIST,
    )
    def get(self, request: Request) -> Response:
        """List the service level objectives of tenants.

        Those that were set here; what policies promise besides is among the policies.
        """
        account, name = self.given["account"], self.given["name"]
        accounts = visible_accounts(request, self.rules["get"])
        known = {
            " ".join((one.account, one.name, one.storage_policy, one.policy.policy.id)): one
            for one in promises.list_objectives(self.backend.policy_cache.contents())
            if account in ("", one.account) and name in ("", one.name) and (accounts is None or one.account in accounts)
        }
        report = bandwidth_report.current_report(self.backend)
        return render_page(self.given, "slos", known, lambda one: objective_data(one, report))


def _objective(suffix: str, scope: str, *path: OpenApiParameter) -> Declare:
    """Declares the view of one objective for the storage policies that the words ``scope`` name."""
    show = operation(
        "sluice:slos:show",
        f"show_slo{suffix}",
        shapes.ObjectiveSerializer,
        *path,
        ETAG,
        errors=(404,),
        summary=f"Show an objective of a tenant{scope}",
    )
    update = operation(
        "sluice:slos:set",
        f"update_slo{suffix}",
        shapes.ObjectiveResultSerializer,
        *path,
        WAIT,
        ETAG,
        errors=(404, 409),
        takes=shapes.ObjectiveValueSerializer,
        examples=shapes.VALUES,
        summary=f"Promise a tenant a rate over the whole cluster{scope}, or hold it to one",
        description=_TOGETHER,
    )
    summary = f"Take an objective of a tenant{scope} back"
    delete = operation(
        "sluice:slos:delete", f"delete_slo{suffix}", GONE, *path, WAIT, errors=(404, 409), summary=summary
    )
    return operations(get=show, put=update, delete=delete)


class ObjectiveBase(View):
    """One objective of a tenant."""

    def get(self, request: Request, account: str, name: str, policy: str = "") -> Response:
        """The objective."""
        where = promises.read_scope(self.backend, account, policy)
        authorize(request, self.rules["get"], thing_target(where.target.level, where.target.name))
        found = promises.find_objective(self.backend.policy_cache.contents(), where, name)
        return render_entry(objective_data(found, bandwidth_report.current_report(self.backend)), found.policy.version)

    def put(self, request: Request, account: str, name: str, policy: str = "") -> Response:
        """The objective as it is now."""
        value = Body(request.data, "value").value("value")
        where = promises.read_scope(self.backend, account, policy)
        done = services.set_objective(self.backend, where, name, value, request.user.name)
        self.wait_acknowledged(done.epoch)
        found = promises.find_objective(self.backend.policy_cache.contents(), where, name)
        data = objective_data(found, bandwidth_report.current_report(self.backend))
        return render_entry({**data, **done.to_data()}, found.policy.version)

    def delete(self, request: Request, account: str, name: str, policy: str = "") -> Response:
        """204."""
        where = promises.read_scope(self.backend, account, policy)
        done = services.delete_objective(self.backend, where, name, request.user.name)
        self.wait_acknowledged(done.epoch)
        return no_content()


@_objective("", "", ACCOUNT, _NAME)
class ObjectiveView(ObjectiveBase):
    """One objective, for all storage policies."""


@_objective("_of_policy", " under a storage policy", ACCOUNT, _NAME, POLICY)
class PolicyObjectiveView(ObjectiveBase):
    """One objective, for one storage policy."""
