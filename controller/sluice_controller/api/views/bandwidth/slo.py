"""``/bw/slo``: Crystal's service level objectives, promises to tenants over the whole cluster."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import ETAG, GONE, LIST, WAIT, operation, query_text, query_word
from sluice_controller.api.permissions import authorize, project_target, visible_accounts
from sluice_controller.api.serializers import bandwidth as shapes
from sluice_controller.api.views.bandwidth.iostack import ACCOUNT, POLICY
from sluice_controller.api.views.base import View
from sluice_controller.api.views.resources import no_content, render_entry, render_page
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


def _show(name: str, *path: OpenApiParameter) -> Any:
    return operation("sluice:slos:show", name, shapes.ObjectiveSerializer, *path, ETAG, errors=(404,))


def _set(name: str, *path: OpenApiParameter) -> Any:
    return operation(
        "sluice:slos:set",
        name,
        shapes.ObjectiveResultSerializer,
        *path,
        WAIT,
        ETAG,
        errors=(404, 409),
        takes=shapes.ObjectiveValueSerializer,
        examples=shapes.VALUES,
        description=_TOGETHER,
    )


def _delete(name: str, *path: OpenApiParameter) -> Any:
    return operation("sluice:slos:delete", name, GONE, *path, WAIT, errors=(404, 409))


class ObjectiveBase(View):
    """A call about one objective."""

    def show_objective(self, request: Request, account: str, name: str, policy: str = "") -> Response:
        """The objective."""
        where = promises.read_scope(self.backend, account, policy)
        authorize(request, self.rules["get"], project_target(where.target.name, settings.SLUICE.reseller_prefix))
        found = promises.find_objective(self.backend.policy_cache.contents(), where, name)
        return render_entry(objective_data(found, bandwidth_report.current_report(self.backend)), found.policy.version)

    def set_objective(self, request: Request, account: str, name: str, policy: str = "") -> Response:
        """The objective as it is now."""
        value = Body(request.data, "value").value("value")
        where = promises.read_scope(self.backend, account, policy)
        done = services.set_objective(self.backend, where, name, value, request.user.name)
        self.wait_acknowledged(done.epoch)
        found = promises.find_objective(self.backend.policy_cache.contents(), where, name)
        data = objective_data(found, bandwidth_report.current_report(self.backend))
        return render_entry({**data, **done.to_data()}, found.policy.version)

    def delete_objective(self, request: Request, account: str, name: str, policy: str = "") -> Response:
        """204."""
        where = promises.read_scope(self.backend, account, policy)
        done = services.delete_objective(self.backend, where, name, request.user.name)
        self.wait_acknowledged(done.epoch)
        return no_content()


class ObjectiveView(ObjectiveBase):
    """One objective, for all storage policies."""

    @_show("show_slo", ACCOUNT, _NAME)
    def get(self, request: Request, account: str, name: str) -> Response:
        """Show an objective of a tenant.

        The objective.
        """
        return self.show_objective(request, account, name)

    @_set("update_slo", ACCOUNT, _NAME)
    def put(self, request: Request, account: str, name: str) -> Response:
        """Promise a tenant a rate over the whole cluster, or hold it to one.

        The objective as it is now.
        """
        return self.set_objective(request, account, name)

    @_delete("delete_slo", ACCOUNT, _NAME)
    def delete(self, request: Request, account: str, name: str) -> Response:
        """Take an objective of a tenant back.

        204.
        """
        return self.delete_objective(request, account, name)


class PolicyObjectiveView(ObjectiveBase):
    """One objective, for one storage policy."""

    @_show("show_slo_of_policy", ACCOUNT, _NAME, POLICY)
    def get(self, request: Request, account: str, name: str, policy: str) -> Response:
        """Show an objective of a tenant under a storage policy.

        The objective.
        """
        return self.show_objective(request, account, name, policy)

    @_set("update_slo_of_policy", ACCOUNT, _NAME, POLICY)
    def put(self, request: Request, account: str, name: str, policy: str) -> Response:
        """Promise a tenant a rate over the whole cluster under a storage policy, or hold it to one.

        The objective as it is now.
        """
        return self.set_objective(request, account, name, policy)

    @_delete("delete_slo_of_policy", ACCOUNT, _NAME, POLICY)
    def delete(self, request: Request, account: str, name: str, policy: str) -> Response:
        """Take an objective of a tenant under a storage policy back.

        204.
        """
        return self.delete_objective(request, account, name, policy)
